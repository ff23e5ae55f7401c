/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "veth.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "link_child.h"

void create_veth(void)
{
	if (!in_new_netns() || system("ip link add urA address 02:00:00:00:00:0a type veth "
				      "peer name urB 2>/dev/null")) {
		fprintf(stderr, "SKIPPED: cannot make interfaces here\n");
		skip();
	}
}

void ip(const char *command)
{
	char line[200];

	snprintf(line, sizeof(line), "ip %s", command);
	assert_int_equal(system(line), 0);
}

int netdev_read(const char *name, struct netdev *netdev)
{
	static struct netdev *list;
	unsigned int count;
	int error;

	free(list);
	list = NULL;
	error = netdev_list(&list, &count);
	if (error)
		return error;
	for (unsigned int i = 0; i < count; i++) {
		if (strcmp(list[i].name, name))
			continue;
		*netdev = list[i];
		return 0;
	}
	return -ENODEV;
}

bool carrier_comes_up(const char *name)
{
	struct timespec nap = { .tv_nsec = 20000000 };
	struct netdev netdev;
	int i;

	for (i = 0; i < 1500; i++) {
		assert_int_equal(netdev_read(name, &netdev), 0);
		if (netdev.up)
			return true;
		nanosleep(&nap, NULL);
	}
	return false;
}
