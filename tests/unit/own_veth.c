/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "own_veth.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "link/netdev.h"
#include "link_agent.h"

void need_veth(void)
{
	if (!network_is_fresh() || system("ip link add urA address 02:00:00:00:00:0a type veth "
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

bool comes_up(const char *name)
{
	struct timespec nap = { .tv_nsec = 20000000 };
	struct netdev netdev;
	int i;

	for (i = 0; i < 150; i++) {
		assert_int_equal(netdev_read(name, &netdev), 0);
		if (netdev.up)
			return true;
		nanosleep(&nap, NULL);
	}
	return false;
}
