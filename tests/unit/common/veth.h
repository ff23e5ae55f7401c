/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Two interfaces that are one wire, in the network namespace of a test's own (enter_new_netns()).
 */
#ifndef UROCE_TESTS_VETH_H
#define UROCE_TESTS_VETH_H

#include <stdbool.h>

#include "link/netlink/netdev.h"

/* Make urA and urB, both down; skips the test without the ip program or a namespace. */
void create_veth(void);
/* Runs "ip" with these arguments, which must succeed. */
void ip(const char *command);
/* An interface as it is now, its addresses until the next call.  0, -ENODEV or another -errno. */
int netdev_read(const char *name, struct netdev *netdev);
/* The carrier follows a change on the other end; false when it has not after three seconds. */
bool carrier_comes_up(const char *name);

#endif
