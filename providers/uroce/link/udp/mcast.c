/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Multicast groups.  The kernel delivers a multicast datagram to every socket that is bound to its
 * group, so processes share nothing here: each has its own socket for each group and interface that
 * it has joined.  Membership (IGMP, MLD) belongs to that socket and ends with it.
 */
#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "link/link_priv.h"

#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef SO_BINDTOIFINDEX
#define SO_BINDTOIFINDEX 62
#endif
#ifndef IPV6_MULTICAST_ALL
#define IPV6_MULTICAST_ALL 29
#endif

static int join_ipv4(int fd, const struct link_group *group)
{
	struct ip_mreqn request = { .imr_ifindex = (int)group->interface };

	memcpy(&request.imr_multiaddr, group->endpoint.gid + 12, sizeof(request.imr_multiaddr));
	/* Do not receive what other sockets of this host have joined on other interfaces. */
	link_set_option(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0);
	return setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof(request)) ? -errno
											: 0;
}

static int join_ipv6(int fd, const struct link_group *group)
{
	struct ipv6_mreq request = { .ipv6mr_interface = group->interface };

	memcpy(&request.ipv6mr_multiaddr, group->endpoint.gid, sizeof(request.ipv6mr_multiaddr));
	link_set_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);
	return setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &request, sizeof(request)) ? -errno
											: 0;
}

static int open_group_socket(struct link_group *group, int receive_buffer)
{
	union link_sockaddr name;
	socklen_t name_bytes = link_endpoint_to_sockaddr(&group->endpoint, LINK_UDP_PORT, &name);
	bool ipv4 = name.any.sa_family == AF_INET;
	int error;

	group->fd = link_socket(name.any.sa_family, SOCK_DGRAM);
	if (group->fd < 0)
		return group->fd;
	/* Processes of any user may bind to the group. */
	error = link_set_option(group->fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (!error && !ipv4)
		error = link_set_option(group->fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	/* Needed to separate IPv6 groups by interface.  Kernels before 5.7 require CAP_NET_RAW. */
	link_set_option(group->fd, SOL_SOCKET, SO_BINDTOIFINDEX, (int)group->interface);
	link_set_option(group->fd, SOL_SOCKET, SO_RCVBUF, receive_buffer);
	link_set_option(group->fd, IPPROTO_UDP, UDP_GRO, 1);
	link_enable_rx_class(group->fd, ipv4);
	link_accept_no_checksum(group->fd);
	if (!error && bind(group->fd, &name.any, name_bytes))
		error = -errno;
	if (!error)
		error = ipv4 ? join_ipv4(group->fd, group) : join_ipv6(group->fd, group);
	return error;
}

static void explain_join_failure(const struct link_group *group, int result,
				 char error[LINK_ERROR_TEXT])
{
	char text[LINK_ADDRESS_TEXT];

	link_endpoint_print(&group->endpoint, text);
	if (result == -EADDRINUSE)
		link_set_error(error,
			       "UDP port %d of multicast group %s is in use by a program that does "
			       "not share it (kernel rxe?); stop it",
			       LINK_UDP_PORT, text);
	else
		link_set_error(error, "cannot join multicast group %s: %s", text,
			       strerror(-result));
}

/* Closes the socket of the group and removes the group from the list.  Caller holds link->lock. */
static void remove_group(struct link_group *group)
{
	_Atomic(struct link_group *) *from = &group->link->groups;

	link_close_fd(&group->fd);
	while (*from != group)
		from = &(*from)->next;
	*from = group->next;
}

int link_group_open(struct link *link, const uint8_t gid[16], uint32_t interface,
		    struct link_group **result, char error[LINK_ERROR_TEXT])
{
	struct link_group *group = calloc(1, sizeof(*group));
	int failure;

	if (!group) {
		link_set_error(error, "out of memory");
		return -ENOMEM;
	}
	group->link = link;
	group->fd = -1;
	group->interface = interface;
	memcpy(group->endpoint.gid, gid, sizeof(group->endpoint.gid));
	/* A link-local group is bound with its interface as scope, wider groups without a scope. */
	if (IN6_IS_ADDR_MC_LINKLOCAL((const struct in6_addr *)(const void *)gid))
		group->endpoint.scope_id = interface;
	link_mutex_lock(link, &link->lock);
	/* Added to the list first, so that a forked child finds the descriptor. */
	group->next = link->groups;
	link->groups = group;
	failure = gid_is_multicast(gid) ? open_group_socket(group, link->receive_buffer) : -EINVAL;
	if (failure)
		remove_group(group);
	link_mutex_unlock(link, &link->lock);
	if (failure) {
		explain_join_failure(group, failure, error);
		free(group);
		return failure;
	}
	*result = group;
	return 0;
}

void link_group_close(struct link_group *group)
{
	struct link *link = group->link;

	link_mutex_lock(link, &link->lock);
	link->closed_overflow += link_socket_drops(group->fd);
	remove_group(group);
	link_mutex_unlock(link, &link->lock);
	free(group);
}

int link_group_fd(const struct link_group *group)
{
	return group->fd;
}

const uint8_t *link_group_gid(const struct link_group *group)
{
	return group->endpoint.gid;
}

int link_group_receive(struct link_group *group, struct link_batch *batch)
{
	batch->addr = NULL;
	batch->ring = NULL;
	return link_receive_from(group->link, group->fd, batch);
}
