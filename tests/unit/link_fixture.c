/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "link_fixture.h"

#include <stdio.h>

int open_loopback(struct link **link, struct link_addr **addr)
{
	char error[LINK_ERROR_TEXT];

	if (link_open(link, error) || link_addr_open(*link, loopback4, 0, addr, error)) {
		fprintf(stderr, "%s\n", error);
		return -1;
	}
	return 0;
}

void close_loopback(struct link *link, struct link_addr *addr)
{
	link_addr_close(addr);
	link_close(link);
}

int link_set_up(void **state)
{
	static struct link_fixture fixture;

	fresh_network(state);
	*state = &fixture;
	return open_loopback(&fixture.link, &fixture.addr);
}

int link_tear_down(void **state)
{
	struct link_fixture *fixture = *state;

	close_loopback(fixture->link, fixture->addr);
	return 0;
}
