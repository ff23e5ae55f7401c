/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <errno.h>
#include <linux/if_addr.h>
#include <netinet/in.h>
#include <netlink/cache.h>
#include <netlink/errno.h>
#include <netlink/netlink.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link/netdev.h"

/* RFC 2863 as in <linux/if.h>, which cannot be included beside <net/if.h>. */
#define OPERSTATE_UNKNOWN 0
#define OPERSTATE_UP 6

/* The order of the GID table: IPv4 for programs that take index 0, link-local last. */
enum address_class {
	CLASS_IPV4,
	CLASS_GLOBAL,
	CLASS_LINK_LOCAL,
	CLASS_COUNT,
	CLASS_NONE,
};

static int errno_of(int nl_error)
{
	switch (nl_error < 0 ? -nl_error : nl_error) {
	case NLE_NOMEM:
		return -ENOMEM;
	case NLE_PERM:
	case NLE_NOACCESS:
		return -EPERM;
	case NLE_AGAIN:
	case NLE_DUMP_INTR:
		return -EAGAIN;
	default:
		return -EIO;
	}
}

/* What an address is good for; *gid is set unless the result is CLASS_NONE. */
static enum address_class classify(struct rtnl_addr *addr, uint8_t gid[16])
{
	struct nl_addr *local = rtnl_addr_get_local(addr);
	const uint8_t *bytes;

	if (!local || rtnl_addr_get_flags(addr) & (IFA_F_TENTATIVE | IFA_F_DADFAILED))
		return CLASS_NONE;
	bytes = nl_addr_get_binary_addr(local);
	if (nl_addr_get_family(local) == AF_INET && nl_addr_get_len(local) == 4) {
		memset(gid, 0, 10);
		memset(gid + 10, 0xff, 2);
		memcpy(gid + 12, bytes, 4);
		return CLASS_IPV4;
	}
	if (nl_addr_get_family(local) != AF_INET6 || nl_addr_get_len(local) != 16)
		return CLASS_NONE;
	memcpy(gid, bytes, 16);
	return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80 ? CLASS_LINK_LOCAL : CLASS_GLOBAL;
}

static void add_addresses(struct netdev *netdev, struct nl_cache *addrs, enum address_class wanted)
{
	struct nl_object *object;
	uint8_t gid[16];

	for (object = nl_cache_get_first(addrs); object; object = nl_cache_get_next(object)) {
		struct rtnl_addr *addr = (struct rtnl_addr *)object;

		if ((uint32_t)rtnl_addr_get_ifindex(addr) != netdev->index ||
		    classify(addr, gid) != wanted)
			continue;
		if (netdev->address_count == NETDEV_MAX_ADDRESSES)
			return;
		memcpy(netdev->address[netdev->address_count], gid, sizeof(gid));
		netdev->link_local[netdev->address_count] = wanted == CLASS_LINK_LOCAL;
		netdev->address_count++;
	}
}

/* Drivers say -1 or nothing when they do not know; sysfs may show another network namespace. */
static uint32_t read_speed(const char *name)
{
	char path[64 + IF_NAMESIZE];
	long speed = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/class/net/%s/speed", name);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%ld", &speed) != 1 || speed < 0 || speed >= UINT32_MAX)
		speed = 0;
	fclose(file);
	return (uint32_t)speed;
}

static void fill_netdev(struct netdev *netdev, struct rtnl_link *link, struct nl_cache *addrs)
{
	unsigned int flags = rtnl_link_get_flags(link);
	unsigned int state = rtnl_link_get_operstate(link);
	struct nl_addr *mac = rtnl_link_get_addr(link);
	int kind;

	memset(netdev, 0, sizeof(*netdev));
	snprintf(netdev->name, sizeof(netdev->name), "%s", rtnl_link_get_name(link));
	netdev->index = (uint32_t)rtnl_link_get_ifindex(link);
	netdev->mtu = rtnl_link_get_mtu(link);
	if (mac && nl_addr_get_len(mac) == sizeof(netdev->mac))
		memcpy(netdev->mac, nl_addr_get_binary_addr(mac), sizeof(netdev->mac));
	netdev->up = flags & IFF_UP && (state == OPERSTATE_UP || state == OPERSTATE_UNKNOWN);
	netdev->loopback = flags & IFF_LOOPBACK;
	netdev->speed_mbps = read_speed(netdev->name);
	for (kind = CLASS_IPV4; kind < CLASS_COUNT; kind++)
		add_addresses(netdev, addrs, (enum address_class)kind);
}

static int read_caches(struct nl_cache **links, struct nl_cache **addrs)
{
	struct nl_sock *sock = nl_socket_alloc();
	int error;

	if (!sock)
		return -ENOMEM;
	error = nl_connect(sock, NETLINK_ROUTE);
	if (error)
		goto free_socket;
	error = rtnl_link_alloc_cache(sock, AF_UNSPEC, links);
	if (error)
		goto free_socket;
	error = rtnl_addr_alloc_cache(sock, addrs);
	if (error)
		nl_cache_free(*links);
free_socket:
	nl_socket_free(sock);
	return error ? errno_of(error) : 0;
}

int netdev_list(struct netdev **list, unsigned int *count)
{
	struct nl_cache *links, *addrs;
	struct nl_object *object;
	struct netdev *netdevs;
	unsigned int n = 0;
	int error = read_caches(&links, &addrs);

	if (error)
		return error;
	/* One more, so that an empty list is no failed allocation. */
	netdevs = calloc((size_t)nl_cache_nitems(links) + 1, sizeof(*netdevs));
	if (netdevs) {
		for (object = nl_cache_get_first(links); object;
		     object = nl_cache_get_next(object)) {
			struct rtnl_link *link = (struct rtnl_link *)object;

			if (rtnl_link_get_name(link))
				fill_netdev(&netdevs[n++], link, addrs);
		}
		*list = netdevs;
		*count = n;
	}
	nl_cache_free(addrs);
	nl_cache_free(links);
	return netdevs ? 0 : -ENOMEM;
}

int netdev_read(const char *name, struct netdev *netdev)
{
	struct netdev *list;
	unsigned int count, i;
	int error = netdev_list(&list, &count);

	if (error)
		return error;
	error = -ENODEV;
	for (i = 0; i < count; i++) {
		if (strcmp(list[i].name, name) == 0) {
			*netdev = list[i];
			error = 0;
			break;
		}
	}
	free(list);
	return error;
}
