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

#include "netdev.h"
#include "util/gid.h"

/* States of RFC 2863 as in <linux/if.h>, which cannot be included together with <net/if.h> */
#define OPERSTATE_UNKNOWN 0
#define OPERSTATE_UP 6

/* Order of the GID table: IPv4 first for programs that use index 0, link-local last */
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

/* Number of addresses of each class that keep a place if earlier classes have too many */
#define CLASS_ADDRESSES_MIN 32u

/* Returns the class of an address; *gid is set unless that is CLASS_NONE. */
static enum address_class classify_address(struct rtnl_addr *addr, uint8_t gid[16])
{
	struct nl_addr *local = rtnl_addr_get_local(addr);
	const uint8_t *bytes;

	if (!local || rtnl_addr_get_flags(addr) & (IFA_F_TENTATIVE | IFA_F_DADFAILED))
		return CLASS_NONE;
	bytes = nl_addr_get_binary_addr(local);
	if (nl_addr_get_family(local) == AF_INET && nl_addr_get_len(local) == 4) {
		gid_from_ipv4(gid, bytes);
		return CLASS_IPV4;
	}
	if (nl_addr_get_family(local) != AF_INET6 || nl_addr_get_len(local) != 16)
		return CLASS_NONE;
	memcpy(gid, bytes, 16);
	return gid_is_link_local(gid) ? CLASS_LINK_LOCAL : CLASS_GLOBAL;
}

struct found_address {
	uint32_t interface; /* index */
	enum address_class class;
	unsigned int order; /* position in the kernel's list */
	uint8_t gid[16];
};

static int by_interface_and_class(const void *left, const void *right)
{
	const struct found_address *a = left, *b = right;

	if (a->interface != b->interface)
		return a->interface < b->interface ? -1 : 1;
	if (a->class != b->class)
		return a->class < b->class ? -1 : 1;
	return a->order < b->order ? -1 : 1;
}

/*
 * Stores the addresses of all interfaces in found, which has room for the whole cache, sorted by
 * interface and class.  Returns their number.
 */
static unsigned int find_addresses(struct nl_cache *addrs, struct found_address *found)
{
	struct nl_object *object;
	unsigned int count = 0;

	for (object = nl_cache_get_first(addrs); object; object = nl_cache_get_next(object)) {
		struct rtnl_addr *addr = (struct rtnl_addr *)object;
		struct found_address *entry = &found[count];

		entry->class = classify_address(addr, entry->gid);
		if (entry->class == CLASS_NONE)
			continue;
		entry->interface = (uint32_t)rtnl_addr_get_ifindex(addr);
		entry->order = count++;
	}
	if (count)
		qsort(found, count, sizeof(*found), by_interface_and_class);
	return count;
}

static unsigned int min(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

/*
 * Copies the addresses of netdev from found, which is sorted by interface and class, to "to", which
 * has room for NETDEV_MAX_ADDRESSES.
 */
static void copy_addresses(struct netdev *netdev, const struct found_address *found,
			   unsigned int count, uint8_t (*to)[16])
{
	unsigned int of_class[CLASS_COUNT] = { 0 }, i = 0, later, places;
	int class;

	netdev->address = (const uint8_t(*)[16])to;
	while (i < count && found[i].interface < netdev->index)
		i++;
	for (unsigned int j = i; j < count && found[j].interface == netdev->index; j++)
		of_class[found[j].class]++;
	for (class = 0; class < CLASS_COUNT; class ++) {
		places = NETDEV_MAX_ADDRESSES - netdev->address_count;
		for (later = (unsigned int)class + 1; later < CLASS_COUNT; later++)
			places -= min(of_class[later], CLASS_ADDRESSES_MIN);
		places = min(of_class[class], places);
		for (unsigned int j = 0; j < places; j++)
			memcpy(to[netdev->address_count++], found[i + j].gid, 16);
		netdev->left_out += of_class[class] - places;
		i += of_class[class];
	}
}

/*
 * Returns the speed in Mbit/s, or 0 if it is unknown: the driver reports -1 or nothing, or sysfs
 * shows another network namespace.
 */
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

static void fill_netdev(struct netdev *netdev, struct rtnl_link *link)
{
	unsigned int flags = rtnl_link_get_flags(link);
	unsigned int state = rtnl_link_get_operstate(link);
	struct nl_addr *mac = rtnl_link_get_addr(link);

	snprintf(netdev->name, sizeof(netdev->name), "%s", rtnl_link_get_name(link));
	netdev->index = (uint32_t)rtnl_link_get_ifindex(link);
	netdev->mtu = rtnl_link_get_mtu(link);
	if (mac && nl_addr_get_len(mac) == sizeof(netdev->mac))
		memcpy(netdev->mac, nl_addr_get_binary_addr(mac), sizeof(netdev->mac));
	netdev->up = flags & IFF_UP && (state == OPERSTATE_UP || state == OPERSTATE_UNKNOWN);
	netdev->loopback = flags & IFF_LOOPBACK;
	netdev->speed_mbps = read_speed(netdev->name);
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

/*
 * Returns an array of all interfaces, followed by their addresses in the same allocation; NULL if
 * out of memory.
 */
static struct netdev *make_list(struct nl_cache *links, struct nl_cache *addrs, unsigned int *count)
{
	unsigned int most_links = (unsigned int)nl_cache_nitems(links);
	unsigned int most_addrs = (unsigned int)nl_cache_nitems(addrs), addresses;
	/* One more of each, so that the size is never 0, for which calloc() may return NULL. */
	struct netdev *list =
		calloc(1, (most_links + 1) * sizeof(*list) + most_addrs * sizeof(*list->address));
	struct found_address *found = calloc(most_addrs + 1, sizeof(*found));
	uint8_t(*room)[16] = (uint8_t(*)[16])(list + most_links + 1);
	struct nl_object *object;
	unsigned int n = 0;

	if (!list || !found) {
		free(found);
		free(list);
		return NULL;
	}
	addresses = find_addresses(addrs, found);
	for (object = nl_cache_get_first(links); object; object = nl_cache_get_next(object)) {
		struct rtnl_link *link = (struct rtnl_link *)object;

		if (!rtnl_link_get_name(link))
			continue;
		fill_netdev(&list[n], link);
		copy_addresses(&list[n], found, addresses, room);
		room += list[n++].address_count;
	}
	free(found);
	*count = n;
	return list;
}

int netdev_list(struct netdev **list, unsigned int *count)
{
	struct nl_cache *links, *addrs;
	int error = read_caches(&links, &addrs);

	if (error)
		return error;
	*list = make_list(links, addrs, count);
	nl_cache_free(addrs);
	nl_cache_free(links);
	return *list ? 0 : -ENOMEM;
}
