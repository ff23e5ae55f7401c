/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <errno.h>
#include <linux/if_vlan.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "neighbour.h"

#define RESOLVE_INTERVAL_MS 50
#define RESOLVE_ATTEMPTS 60
#define DISCARD_PORT 9

/* An IP address in the form of an rtnetlink attribute: network byte order. */
struct address {
	uint8_t family;
	uint8_t length;
	uint8_t bytes[16];
};

struct nl_request {
	struct nlmsghdr header;
	union {
		struct rtmsg route;
		struct ndmsg neighbour;
	};
	uint8_t attributes[64];
};

struct nl_reply {
	struct nlmsghdr header;
	uint8_t body[4096];
};

static bool is_multicast(const struct address *address)
{
	return address->family == AF_INET ? address->bytes[0] >> 4 == 0xe
					  : address->bytes[0] == 0xff;
}

static struct address gid_to_address(const union ibv_gid *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	/* RoCE maps the IPv4 multicast group a.b.c.d to the GID ff0e::ffff:a.b.c.d. */
	static const uint8_t mapped_group[12] = { 0xff, 0x0e, [10] = 0xff, [11] = 0xff };
	struct address address = { .family = AF_INET6, .length = 16 };

	if (memcmp(gid, mapped, sizeof(mapped)) == 0 ||
	    memcmp(gid, mapped_group, sizeof(mapped_group)) == 0) {
		address.family = AF_INET;
		address.length = 4;
		memcpy(address.bytes, gid->raw + 12, 4);
	} else {
		memcpy(address.bytes, gid->raw, 16);
	}
	return address;
}

static void add_attribute(struct nl_request *request, uint16_t type, const void *value,
			  size_t bytes)
{
	struct rtattr *attribute =
		(void *)((char *)request + NLMSG_ALIGN(request->header.nlmsg_len));

	attribute->rta_type = type;
	attribute->rta_len = (uint16_t)RTA_LENGTH(bytes);
	memcpy(RTA_DATA(attribute), value, bytes);
	request->header.nlmsg_len =
		(uint32_t)(NLMSG_ALIGN(request->header.nlmsg_len) + RTA_ALIGN(attribute->rta_len));
}

/* Sends a netlink request and receives its reply.  Returns 0 or a negative errno. */
static int netlink_request(struct nl_request *request, uint16_t expected, struct nl_reply *reply)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	const struct nlmsgerr *error;
	ssize_t got;

	if (fd < 0)
		return -errno;
	request->header.nlmsg_flags = NLM_F_REQUEST;
	got = send(fd, request, request->header.nlmsg_len, 0);
	if (got >= 0)
		got = recv(fd, reply, sizeof(*reply), 0);
	close(fd);
	if (got < 0)
		return -errno;
	if (!NLMSG_OK(&reply->header, got))
		return -EPROTO;
	if (reply->header.nlmsg_type == NLMSG_ERROR) {
		error = NLMSG_DATA(&reply->header);
		return error->error ? error->error : -EPROTO;
	}
	return reply->header.nlmsg_type == expected ? 0 : -EPROTO;
}

static const struct rtattr *find_attribute(const struct nl_reply *reply, size_t header_bytes,
					   uint16_t type, size_t value_bytes)
{
	size_t offset = NLMSG_ALIGN(header_bytes);
	int left = (int)(reply->header.nlmsg_len - NLMSG_HDRLEN - offset);
	const struct rtattr *attribute = (const void *)(reply->body + offset);

	for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left)) {
		if (attribute->rta_type == type && RTA_PAYLOAD(attribute) >= value_bytes)
			return attribute;
	}
	return NULL;
}

/*
 * Looks up the route.  Stores the next hop (a gateway or the destination) in *next.  *local becomes
 * true if the destination is an address of this host, false otherwise.
 */
static int find_route(uint32_t interface, const struct address *to, struct address *next,
		      bool *local)
{
	struct nl_request request = {
		.header = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
			    .nlmsg_type = RTM_GETROUTE },
		.route = { .rtm_family = to->family, .rtm_dst_len = (uint8_t)(to->length * 8) },
	};
	const struct rtattr *gateway;
	struct rtmsg route;
	struct nl_reply reply;
	int error;

	add_attribute(&request, RTA_DST, to->bytes, to->length);
	add_attribute(&request, RTA_OIF, &interface, sizeof(interface));
	error = netlink_request(&request, RTM_NEWROUTE, &reply);
	if (error)
		return error;
	memcpy(&route, reply.body, sizeof(route));
	*local = route.rtm_type == RTN_LOCAL;
	*next = *to;
	gateway = find_attribute(&reply, sizeof(route), RTA_GATEWAY, to->length);
	if (gateway)
		memcpy(next->bytes, RTA_DATA(gateway), to->length);
	return 0;
}

static int read_neighbour(uint32_t interface, const struct address *next,
			  uint8_t mac[ETHERNET_LL_SIZE])
{
	struct nl_request request = {
		.header = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct ndmsg)),
			    .nlmsg_type = RTM_GETNEIGH },
		.neighbour = { .ndm_family = next->family, .ndm_ifindex = (int)interface },
	};
	const uint16_t known =
		NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_PROBE | NUD_STALE | NUD_DELAY;
	const struct rtattr *address;
	struct ndmsg neighbour;
	struct nl_reply reply;
	int error;

	add_attribute(&request, NDA_DST, next->bytes, next->length);
	error = netlink_request(&request, RTM_NEWNEIGH, &reply);
	if (error)
		return error;
	memcpy(&neighbour, reply.body, sizeof(neighbour));
	address = find_attribute(&reply, sizeof(neighbour), NDA_LLADDR, ETHERNET_LL_SIZE);
	if (!(neighbour.ndm_state & known) || !address)
		return -EHOSTUNREACH;
	memcpy(mac, RTA_DATA(address), ETHERNET_LL_SIZE);
	return 0;
}

/* Sends a datagram, so that the kernel resolves the neighbour. */
static void trigger_resolution(uint32_t interface, const struct address *to)
{
	struct sockaddr_in6 to6 = { .sin6_family = AF_INET6,
				    .sin6_port = htons(DISCARD_PORT),
				    .sin6_scope_id = interface };
	struct sockaddr_in to4 = { .sin_family = AF_INET, .sin_port = htons(DISCARD_PORT) };
	int fd = socket(to->family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return;
	memcpy(&to4.sin_addr, to->bytes, sizeof(to4.sin_addr));
	memcpy(&to6.sin6_addr, to->bytes, sizeof(to6.sin6_addr));
	if (to->family == AF_INET)
		sendto(fd, "", 0, 0, (struct sockaddr *)&to4, sizeof(to4));
	else
		sendto(fd, "", 0, 0, (struct sockaddr *)&to6, sizeof(to6));
	close(fd);
}

/* Stores the Ethernet address of a multicast group in mac: RFC 1112 and RFC 2464. */
static void map_multicast(const struct address *to, uint8_t mac[ETHERNET_LL_SIZE])
{
	if (to->family == AF_INET) {
		memcpy(mac, (const uint8_t[]){ 0x01, 0x00, 0x5e }, 3);
		mac[3] = to->bytes[1] & 0x7f;
		memcpy(mac + 4, to->bytes + 2, 2);
	} else {
		memset(mac, 0x33, 2);
		memcpy(mac + 2, to->bytes + 12, 4);
	}
}

/* Stores the interface's own Ethernet address in mac.  Returns 0 or a negative errno. */
static int get_interface_mac(uint32_t interface, uint8_t mac[ETHERNET_LL_SIZE])
{
	struct ifreq request = { 0 };
	int fd, error = 0;

	if (!if_indextoname(interface, request.ifr_name))
		return -errno;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (ioctl(fd, SIOCGIFHWADDR, &request))
		error = -errno;
	else
		memcpy(mac, request.ifr_hwaddr.sa_data, ETHERNET_LL_SIZE);
	close(fd);
	return error;
}

int neighbour_resolve(uint32_t interface, const union ibv_gid *gid, uint8_t mac[ETHERNET_LL_SIZE])
{
	const struct timespec interval = { .tv_nsec = RESOLVE_INTERVAL_MS * 1000000 };
	struct address to = gid_to_address(gid), next;
	bool local;
	int error, i;

	if (is_multicast(&to)) {
		map_multicast(&to, mac);
		return 0;
	}
	error = find_route(interface, &to, &next, &local);
	if (error)
		return error;
	if (local)
		return get_interface_mac(interface, mac);
	for (i = 0; i < RESOLVE_ATTEMPTS; i++) {
		error = read_neighbour(interface, &next, mac);
		if (!error)
			return 0;
		trigger_resolution(interface, &to);
		nanosleep(&interval, NULL);
	}
	return -EHOSTUNREACH;
}

uint16_t neighbour_vlan(uint32_t interface)
{
	struct vlan_ioctl_args request = { .cmd = GET_VLAN_VID_CMD };
	char name[IF_NAMESIZE];
	uint16_t vlan = NEIGHBOUR_NO_VLAN;
	int fd;

	if (!if_indextoname(interface, name))
		return vlan;
	_Static_assert(sizeof(request.device1) >= sizeof(name), "an interface's name fits");
	memcpy(request.device1, name, sizeof(name));
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return vlan;
	if (ioctl(fd, SIOCGIFVLAN, &request) == 0)
		vlan = (uint16_t)request.u.VID;
	close(fd);
	return vlan;
}
