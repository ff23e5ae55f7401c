/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* A veth pair in a test's own network namespace (enter_new_netns()). */
#ifndef UROCE_TESTS_VETH_H
#define UROCE_TESTS_VETH_H

#include <stdbool.h>

#include "link/netlink/netdev.h"

/* Creates urA and urB, both down; skips the test without the ip program or a namespace. */
void create_veth(void);
/* Runs "ip" with these arguments, which must succeed. */
void ip(const char *command);
/*
 * Reads the current state of an interface; its addresses are valid until the next call.  Returns 0,
 * -ENODEV or another negative errno.
 */
int netdev_read(const char *name, struct netdev *netdev);
/*
 * Waits until the interface is up with carrier, which follows a change of the other end with a
 * delay.  Returns false if it is not up after 30 s.
 */
bool carrier_comes_up(const char *name);

#endif
