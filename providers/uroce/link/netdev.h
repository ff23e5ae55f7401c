/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Network interfaces, their addresses and their changes, by libnl-route-3.
 */
#ifndef UROCE_LINK_NETDEV_H
#define UROCE_LINK_NETDEV_H

#include <stdbool.h>
#include <stdint.h>
#include <net/if.h>

/* Most addresses of an interface: a queue pair names its own by the eight bits of sgid_index. */
#define NETDEV_MAX_ADDRESSES 256

struct netdev {
	char name[IF_NAMESIZE];
	uint32_t index;
	uint32_t mtu; /* bytes of IP packet */
	uint8_t mac[6];
	bool up; /* administratively up and with carrier (operstate up or unknown) */
	bool loopback;
	uint32_t speed_mbps;	    /* from sysfs when the driver says so, else 0 */
	unsigned int address_count; /* NETDEV_MAX_ADDRESSES at most */
	unsigned int left_out;	    /* Number of addresses beyond these. */
	/*
	 * As in GIDs: IPv4 (::ffff:a.b.c.d) first, then IPv6 global, then link-local.  Where there
	 * are too many, each of the three keeps some.  They lie in the memory of the list.
	 */
	const uint8_t (*address)[16];
};

/*
 * All interfaces, up or not, with their addresses; tentative and failed (DAD) IPv6 addresses are
 * left out.  *list is malloc'ed, the caller frees it.  0 or a negative errno.
 */
int netdev_list(struct netdev **list, unsigned int *count);

/*
 * A netlink socket that becomes readable when links or addresses change; netdev_watch_drain()
 * reads all that waits and returns how many changes there were (or a negative errno).
 */
struct netdev_watch;
int netdev_watch_open(struct netdev_watch **watch);
int netdev_watch_fd(const struct netdev_watch *watch);
int netdev_watch_drain(struct netdev_watch *watch);
void netdev_watch_close(struct netdev_watch *watch);
/* In a forked child: close the descriptor only; async-signal-safe. */
void netdev_watch_abandon(struct netdev_watch *watch);

#endif
