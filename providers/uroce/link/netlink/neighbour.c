/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <linux/if.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <netlink/errno.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
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

bool neighbour_find(const uint8_t sgid[16], const uint8_t dgid[16], uint32_t interface,
		    struct neighbour *next_hop)
{
	struct rtmsg header = {
		.rtm_family = gid_is_ipv4(dgid) ? AF_INET : AF_INET6,
		.rtm_dst_len = gid_is_ipv4(dgid) ? 32 : 128,
		.rtm_src_len = gid_is_ipv4(sgid) ? 32 : 128,
	};
	struct route route = { .is_remote = false };
	struct nl_msg *message;

	if (!memcmp(sgid, dgid, 16) || gid_is_ipv4(sgid) != gid_is_ipv4(dgid))
		return false;
	message = nlmsg_alloc_simple(RTM_GETROUTE, 0);
	if (!message)
		return false;
	if (nlmsg_append(message, &header, sizeof(header), NLMSG_ALIGNTO) ||
	    put_address(message, RTA_DST, dgid) || put_address(message, RTA_SRC, sgid) ||
	    (interface && nla_put_u32(message, RTA_OIF, interface))) {
		nlmsg_free(message);
		return false;
	}
	memcpy(route.next_hop.address, dgid, 16);
	if (request_object(message, parse_route, &route) || !route.is_remote ||
	    !interface_resolves(route.next_hop.interface))
		return false;
	*next_hop = route.next_hop;
	return true;
}

static int parse_state(struct nl_msg *message, void *arg)
{
	const struct ndmsg *header = nlmsg_data(nlmsg_hdr(message));

	*(unsigned int *)arg = header->ndm_state;
	return NL_STOP;
}

/* Kernels before 5.0 can only list all neighbours; there each is regarded as resolved. */
bool neighbour_is_resolved(const struct neighbour *neighbour)
{
	struct ndmsg header = {
		.ndm_family = gid_is_ipv4(neighbour->address) ? AF_INET : AF_INET6,
		.ndm_ifindex = (int)neighbour->interface,
	};
	struct nl_msg *message = nlmsg_alloc_simple(RTM_GETNEIGH, 0);
	unsigned int state = NUD_NONE;
	int error;

	if (!message)
		return true;
	if (nlmsg_append(message, &header, sizeof(header), NLMSG_ALIGNTO) ||
	    put_address(message, NDA_DST, neighbour->address)) {
		nlmsg_free(message);
		return true;
	}
	error = request_object(message, parse_state, &state);
	if (error == -NLE_OBJ_NOTFOUND)
		return false;
	return error || state & NUD_RESOLVED;
}

void neighbour_probe(const uint8_t sgid[16], const uint8_t dgid[16], uint32_t interface)
{
	struct link_endpoint here = link_endpoint_from_gid(sgid, interface);
	struct link_endpoint there = link_endpoint_from_gid(dgid, interface);
	union link_sockaddr from, to;
	socklen_t from_bytes = link_endpoint_to_sockaddr(&here, 0, &from);
	socklen_t to_bytes = link_endpoint_to_sockaddr(&there, DISCARD_PORT, &to);
	int fd = socket(from.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return;
	/* Sending makes the kernel resolve the next hop; the datagram need not arrive. */
	if (!bind(fd, &from.any, from_bytes))
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
