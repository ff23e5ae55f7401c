/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Network interfaces and their addresses, by libnl-route-3, and notification of their changes */
#ifndef UROCE_LINK_NETLINK_NETDEV_H
#define UROCE_LINK_NETLINK_NETDEV_H

#include <stdbool.h>
#include <stdint.h>
#include <net/if.h>

/*
 * Maximum number of addresses of an interface: sgid_index, by which a queue pair selects one, has
 * eight bits.
 */
#define NETDEV_MAX_ADDRESSES 256

struct netdev {
	char name[IF_NAMESIZE];
	uint32_t index;
	uint32_t mtu; /* maximum size of an IP packet in bytes */
	uint8_t mac[6];
	bool up; /* administratively up and with carrier (operstate up or unknown) */
	bool loopback;
	uint32_t speed_mbps;	    /* from sysfs if the driver reports it, else 0 */
	unsigned int address_count; /* at most NETDEV_MAX_ADDRESSES */
	unsigned int left_out;	    /* number of further addresses, which are not listed */
	/*
	 * As in GIDs: IPv4 (::ffff:a.b.c.d) first, then global IPv6, then link-local.  If there are
	 * too many, some of each class are kept.  They lie in the memory of the list.
	 */
	const uint8_t (*address)[16];
};

/*
 * Lists all interfaces, up or not, with their addresses except IPv6 addresses that are tentative or
 * have failed DAD.  The caller frees *list with free().  Returns 0 or a negative errno.
 */
int netdev_list(struct netdev **list, unsigned int *count);

/*
 * A netlink socket that becomes readable when links or addresses change. netdev_watch_drain() reads
 * all pending messages and returns the number of changes or a negative errno.
 */
struct netdev_watch;
int netdev_watch_open(struct netdev_watch **watch);
int netdev_watch_fd(const struct netdev_watch *watch);
int netdev_watch_drain(struct netdev_watch *watch);
void netdev_watch_close(struct netdev_watch *watch);
/* For a forked child: closes the descriptor only.  Async-signal-safe. */
void netdev_watch_abandon(struct netdev_watch *watch);

#endif
