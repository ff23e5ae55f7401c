/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <errno.h>
#include <linux/if.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <netlink/errno.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/route/link.h>
#include <netlink/route/link/vlan.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "link/link_priv.h"
#include "neighbour.h"

#define NUD_RESOLVED (NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_PROBE | NUD_STALE | NUD_DELAY)

#define DISCARD_PORT 9
/* Longer than a second, after which the kernel repeats a solicitation */
#define RESOLVE_TIMEOUT_MS 1500
#define UNRESOLVED_MS 30000
/* A reply takes about 100 us on a working network. */
#define FIRST_POLL_NS 100000
#define POLL_MAX_NS 16000000
/* neighbour_resolve_mac() */
#define MAC_INTERVAL_MS 50
#define MAC_ATTEMPTS 60

static int put_address(struct nl_msg *message, int type, const uint8_t gid[16])
{
	return gid_is_ipv4(gid) ? nla_put(message, type, 4, gid + 12)
				: nla_put(message, type, 16, gid);
}

static void get_address(const void *bytes, int length, uint8_t gid[16])
{
	if (length == 16) {
		memcpy(gid, bytes, 16);
	} else if (length == 4) {
		gid_from_ipv4(gid, bytes);
	}
}

/* Requests one object and passes it to parse.  Returns 0 or an error of libnl.  Frees message. */
static int request_object(struct nl_msg *message, nl_recvmsg_msg_cb_t parse, void *arg)
{
	struct nl_sock *sock = nl_socket_alloc();
	int error = sock ? nl_connect(sock, NETLINK_ROUTE) : -NLE_NOMEM;

	if (!error) {
		nl_socket_disable_auto_ack(sock);
		nl_socket_modify_cb(sock, NL_CB_VALID, NL_CB_CUSTOM, parse, arg);
		error = nl_send_auto(sock, message);
		error = error < 0 ? error : nl_recvmsgs_default(sock);
	}
	nl_socket_free(sock);
	nlmsg_free(message);
	return error;
}

struct route {
	struct neighbour next_hop;
	bool is_local;	/* The destination is an address of this host. */
	bool is_remote; /* The route leads to another host, through an interface. */
};

static int parse_route(struct nl_msg *message, void *arg)
{
	struct nlattr *attributes[RTA_MAX + 1];
	struct route *route = arg;
	const struct rtmsg *header = nlmsg_data(nlmsg_hdr(message));
	const struct rtvia *via;

	if (nlmsg_parse(nlmsg_hdr(message), sizeof(*header), attributes, RTA_MAX, NULL))
		return NL_STOP;
	route->is_local = header->rtm_type == RTN_LOCAL;
	if (header->rtm_type != RTN_UNICAST || !attributes[RTA_OIF])
		return NL_STOP;
	route->is_remote = true;
	route->next_hop.interface = nla_get_u32(attributes[RTA_OIF]);
	if (attributes[RTA_GATEWAY]) {
		get_address(nla_data(attributes[RTA_GATEWAY]), nla_len(attributes[RTA_GATEWAY]),
			    route->next_hop.address);
	} else if (attributes[RTA_VIA] && nla_len(attributes[RTA_VIA]) > (int)sizeof(*via)) {
		/* A gateway of the other address family */
		via = nla_data(attributes[RTA_VIA]);
		get_address(via->rtvia_addr, nla_len(attributes[RTA_VIA]) - (int)sizeof(*via),
			    route->next_hop.address);
	}
	return NL_STOP;
}

static int parse_flags(struct nl_msg *message, void *arg)
{
	const struct ifinfomsg *header = nlmsg_data(nlmsg_hdr(message));

	*(unsigned int *)arg = header->ifi_flags;
	return NL_STOP;
}

static bool interface_resolves(uint32_t interface)
{
	struct ifinfomsg header = { .ifi_index = (int)interface };
	struct nl_msg *message = nlmsg_alloc_simple(RTM_GETLINK, 0);
	unsigned int flags = IFF_NOARP;

	if (!message)
		return false;
	if (nlmsg_append(message, &header, sizeof(header), NLMSG_ALIGNTO)) {
		nlmsg_free(message);
		return false;
	}
	return !request_object(message, parse_flags, &flags) &&
	       !(flags & (IFF_NOARP | IFF_LOOPBACK | IFF_POINTOPOINT));
}

/* sgid may be NULL, and interface 0.  Returns 0 or an error of libnl. */
static int find_route(const uint8_t *sgid, const uint8_t dgid[16], uint32_t interface,
		      struct route *route)
{
	uint8_t bits = gid_is_ipv4(dgid) ? 32 : 128;
	struct rtmsg header = {
		.rtm_family = gid_is_ipv4(dgid) ? AF_INET : AF_INET6,
		.rtm_dst_len = bits,
		.rtm_src_len = sgid ? bits : 0,
	};
	struct nl_msg *message = nlmsg_alloc_simple(RTM_GETROUTE, 0);

	*route = (struct route){ .is_remote = false };
	memcpy(route->next_hop.address, dgid, 16);
	if (!message)
		return -NLE_NOMEM;
	if (nlmsg_append(message, &header, sizeof(header), NLMSG_ALIGNTO) ||
	    put_address(message, RTA_DST, dgid) || (sgid && put_address(message, RTA_SRC, sgid)) ||
	    (interface && nla_put_u32(message, RTA_OIF, interface))) {
		nlmsg_free(message);
		return -NLE_NOMEM;
	}
	return request_object(message, parse_route, route);
}

bool neighbour_find(const uint8_t sgid[16], const uint8_t dgid[16], uint32_t interface,
		    struct neighbour *next_hop)
{
	struct route route;

	if (!memcmp(sgid, dgid, 16) || gid_is_ipv4(sgid) != gid_is_ipv4(dgid) ||
	    find_route(sgid, dgid, interface, &route) || !route.is_remote ||
	    !interface_resolves(route.next_hop.interface))
		return false;
	*next_hop = route.next_hop;
	return true;
}

struct neighbour_entry {
	unsigned int state;
	bool has_mac;
	uint8_t mac[NEIGHBOUR_MAC_BYTES];
};

static int parse_entry(struct nl_msg *message, void *arg)
{
	const struct ndmsg *header = nlmsg_data(nlmsg_hdr(message));
	struct nlattr *attributes[NDA_MAX + 1];
	struct neighbour_entry *entry = arg;

	entry->state = header->ndm_state;
	if (nlmsg_parse(nlmsg_hdr(message), sizeof(*header), attributes, NDA_MAX, NULL) ||
	    !attributes[NDA_LLADDR] || nla_len(attributes[NDA_LLADDR]) < NEIGHBOUR_MAC_BYTES)
		return NL_STOP;
	entry->has_mac = true;
	memcpy(entry->mac, nla_data(attributes[NDA_LLADDR]), NEIGHBOUR_MAC_BYTES);
	return NL_STOP;
}

/* Returns 0 or an error of libnl. */
static int read_entry(const struct neighbour *neighbour, struct neighbour_entry *entry)
{
	struct ndmsg header = {
		.ndm_family = gid_is_ipv4(neighbour->address) ? AF_INET : AF_INET6,
		.ndm_ifindex = (int)neighbour->interface,
	};
	struct nl_msg *message = nlmsg_alloc_simple(RTM_GETNEIGH, 0);

	*entry = (struct neighbour_entry){ .state = NUD_NONE };
	if (!message)
		return -NLE_NOMEM;
	if (nlmsg_append(message, &header, sizeof(header), NLMSG_ALIGNTO) ||
	    put_address(message, NDA_DST, neighbour->address)) {
		nlmsg_free(message);
		return -NLE_NOMEM;
	}
	return request_object(message, parse_entry, entry);
}

/* Kernels before 5.0 can only list all neighbours; there each is regarded as resolved. */
bool neighbour_is_resolved(const struct neighbour *neighbour)
{
	struct neighbour_entry entry;
	int error = read_entry(neighbour, &entry);

	if (error == -NLE_OBJ_NOTFOUND)
		return false;
	return error || entry.state & NUD_RESOLVED;
}

void neighbour_probe(const uint8_t sgid[16], const uint8_t dgid[16], uint32_t interface)
{
	struct link_endpoint here = link_endpoint_from_gid(sgid ? sgid : dgid, interface);
	struct link_endpoint there = link_endpoint_from_gid(dgid, interface);
	union link_sockaddr from, to;
	socklen_t from_bytes = link_endpoint_to_sockaddr(&here, 0, &from);
	socklen_t to_bytes = link_endpoint_to_sockaddr(&there, DISCARD_PORT, &to);
	int fd = socket(to.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return;
	/* Sending makes the kernel resolve the next hop; the datagram need not arrive. */
	if (!sgid || !bind(fd, &from.any, from_bytes))
		(void)!sendto(fd, "", 0, MSG_DONTWAIT | MSG_NOSIGNAL, &to.any, to_bytes);
	close(fd);
}

/*
 * The next hop that did not answer last, and until when it is regarded as absent: connecting a
 * thousand queue pairs to a host that is off must not take half an hour.
 */
static struct {
	atomic_uint_fast64_t hash;
	_Atomic(int64_t) until_ms;
} unresolved;

/* FNV-1a; a collision only shortens a wait. */
static uint64_t hash_neighbour(const struct neighbour *neighbour)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ neighbour->interface;

	for (size_t i = 0; i < sizeof(neighbour->address); i++)
		hash = (hash ^ neighbour->address[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static bool wait_resolved(const struct neighbour *neighbour)
{
	const int64_t until = link_now_ms() + RESOLVE_TIMEOUT_MS;
	struct timespec pause = { .tv_nsec = FIRST_POLL_NS };

	do {
		nanosleep(&pause, NULL);
		if (neighbour_is_resolved(neighbour))
			return true;
		if (pause.tv_nsec < POLL_MAX_NS)
			pause.tv_nsec *= 2;
	} while (link_now_ms() < until);
	return false;
}

bool neighbour_wait_resolved(const uint8_t sgid[16], const uint8_t dgid[16], uint32_t interface)
{
	struct neighbour next_hop;
	uint64_t hash;

	if (!neighbour_find(sgid, dgid, interface, &next_hop) || neighbour_is_resolved(&next_hop))
		return true;
	neighbour_probe(sgid, dgid, interface);
	hash = hash_neighbour(&next_hop);
	if (atomic_load(&unresolved.hash) == hash &&
	    link_now_ms() < atomic_load(&unresolved.until_ms))
		return neighbour_is_resolved(&next_hop);
	if (wait_resolved(&next_hop))
		return true;
	atomic_store(&unresolved.hash, hash);
	atomic_store(&unresolved.until_ms, link_now_ms() + UNRESOLVED_MS);
	return false;
}

/* ---- Ethernet addresses ---- */

/* Stores the Ethernet address of a multicast group: RFC 1112 and RFC 2464. */
static void map_multicast(const uint8_t gid[16], uint8_t mac[NEIGHBOUR_MAC_BYTES])
{
	/* RoCE maps the IPv4 multicast group a.b.c.d to the GID ff0e::ffff:a.b.c.d as well. */
	static const uint8_t ipv4_group[12] = { 0xff, 0x0e, [10] = 0xff, [11] = 0xff };

	if (gid_is_ipv4(gid) || !memcmp(gid, ipv4_group, sizeof(ipv4_group))) {
		memcpy(mac, (const uint8_t[]){ 0x01, 0x00, 0x5e, gid[13] & 0x7f }, 4);
		memcpy(mac + 4, gid + 14, 2);
	} else {
		memset(mac, 0x33, 2);
		memcpy(mac + 2, gid + 12, 4);
	}
}

/* Stores the Ethernet address and the VLAN of the interface.  Returns 0 or a negative errno. */
static int read_interface(uint32_t interface, uint8_t mac[NEIGHBOUR_MAC_BYTES], uint16_t *vlan)
{
	struct nl_sock *sock = nl_socket_alloc();
	struct rtnl_link *link = NULL;
	const struct nl_addr *own;
	int error = -ENODEV;

	if (sock && !nl_connect(sock, NETLINK_ROUTE) &&
	    !rtnl_link_get_kernel(sock, (int)interface, NULL, &link)) {
		own = rtnl_link_get_addr(link);
		if (own && nl_addr_get_len(own) == NEIGHBOUR_MAC_BYTES) {
			memcpy(mac, nl_addr_get_binary_addr(own), NEIGHBOUR_MAC_BYTES);
			error = 0;
		}
		*vlan = NEIGHBOUR_NO_VLAN;
		if (rtnl_link_is_vlan(link))
			*vlan = (uint16_t)rtnl_link_vlan_get_id(link);
		rtnl_link_put(link);
	}
	nl_socket_free(sock);
	return error;
}

static int wait_for_mac(const uint8_t dgid[16], const struct neighbour *next_hop,
			uint8_t mac[NEIGHBOUR_MAC_BYTES])
{
	const struct timespec interval = { .tv_nsec = MAC_INTERVAL_MS * 1000000 };
	struct neighbour_entry entry;

	for (int i = 0; i < MAC_ATTEMPTS; i++) {
		if (!read_entry(next_hop, &entry) && entry.state & NUD_RESOLVED && entry.has_mac) {
			memcpy(mac, entry.mac, NEIGHBOUR_MAC_BYTES);
			return 0;
		}
		neighbour_probe(NULL, dgid, next_hop->interface);
		nanosleep(&interval, NULL);
	}
	return -EHOSTUNREACH;
}

int neighbour_resolve_mac(uint32_t interface, const uint8_t dgid[16],
			  uint8_t mac[NEIGHBOUR_MAC_BYTES], uint16_t *vlan)
{
	struct route route;
	/* mac remains that of the interface if the destination is an address of this host. */
	int error = read_interface(interface, mac, vlan);

	if (error)
		return error;
	if (gid_is_multicast(dgid)) {
		map_multicast(dgid, mac);
		return 0;
	}
	if (find_route(NULL, dgid, interface, &route))
		return -EHOSTUNREACH;
	if (route.is_local)
		return 0;
	return route.is_remote ? wait_for_mac(dgid, &route.next_hop, mac) : -EHOSTUNREACH;
}
