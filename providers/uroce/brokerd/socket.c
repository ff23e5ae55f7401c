/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "brokerd.h"
#include "link/udp/sockaddr.h"
#include "wire/packet.h"

#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef UDP_NO_CHECK6_RX
#define UDP_NO_CHECK6_RX 102
#endif

enum {
	RECEIVE_BUFFER = 4 << 20,
	/* More datagrams than fit into a receive buffer. */
	DRAIN_MAX = 32768,
	HOP_LIMIT = 64,
};

static socklen_t make_sockaddr(const struct uroce_broker_endpoint *endpoint, uint16_t port,
			       union link_sockaddr *name)
{
	const struct link_endpoint converted =
		link_endpoint_from_gid(endpoint->gid, endpoint->scope_id);

	return link_endpoint_to_sockaddr(&converted, port, name);
}

int socket_bind(const struct uroce_broker_endpoint *endpoint, uint16_t port, bool shared)
{
	union link_sockaddr name;
	socklen_t bytes = make_sockaddr(endpoint, port, &name);
	int fd = socket(name.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int error = fd < 0 ? -errno : 0;

	if (!error && name.any.sa_family == AF_INET6)
		error = link_set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	if (!error && shared)
		error = link_set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1);
	/* IP_FREEBIND also binds an address that the host does not have at present. */
	if (!error && shared)
		error = link_set_option(fd, IPPROTO_IP, IP_FREEBIND, 1);
	if (!error && bind(fd, &name.any, bytes))
		error = -errno;
	if (error)
		link_close_fd(&fd);
	return error ? error : fd;
}

int socket_make_member(const struct uroce_broker_endpoint *endpoint, bool merges)
{
	int fd = socket_bind(endpoint, UDP_PORT, true);

	if (fd < 0)
		return fd;
	/* Errors are ignored: a smaller buffer, or no GRO on an old kernel, only costs speed. */
	link_set_option(fd, SOL_SOCKET, SO_RCVBUF, RECEIVE_BUFFER);
	if (merges)
		link_set_option(fd, IPPROTO_UDP, UDP_GRO, 1);
	/* Other RoCE stacks send IPv6 without UDP checksums; the ICRC covers the packet. */
	if (!gid_is_ipv4(endpoint->gid))
		link_set_option(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1);
	return fd;
}

int socket_send(int fd, const struct uroce_broker_endpoint *to, uint16_t port, const void *bytes,
		size_t length)
{
	union link_sockaddr name;
	socklen_t name_bytes = make_sockaddr(to, port, &name);

	return sendto(fd, bytes, length, MSG_DONTWAIT, &name.any, name_bytes) < 0 ? -errno : 0;
}

int socket_set_packet_options(int fd, bool ipv4, uint8_t traffic_class)
{
	int error;

	if (ipv4) {
		error = link_set_option(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
		error = error ? error : link_set_option(fd, IPPROTO_IP, IP_TTL, HOP_LIMIT);
		return error ? error : link_set_option(fd, IPPROTO_IP, IP_TOS, traffic_class);
	}
	error = link_set_option(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
	error = error ? error : link_set_option(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, HOP_LIMIT);
	return error ? error : link_set_option(fd, IPPROTO_IPV6, IPV6_TCLASS, traffic_class);
}

uint16_t socket_port(int fd)
{
	union link_sockaddr name;
	socklen_t bytes = sizeof(name);

	memset(&name, 0, sizeof(name));
	getsockname(fd, &name.any, &bytes);
	return ntohs(name.any.sa_family == AF_INET ? name.in.sin_port : name.in6.sin6_port);
}

static void store_source(const union link_sockaddr *from, struct uroce_broker_datagram *head)
{
	link_sockaddr_to_gid(from, head->source.gid, &head->source_port);
	if (from->any.sa_family == AF_INET6)
		head->source.scope_id = from->in6.sin6_scope_id;
}

bool socket_receive(int fd, struct datagram *datagram)
{
	union link_sockaddr from;
	socklen_t from_bytes = sizeof(from);
	ssize_t bytes;

	memset(&from, 0, sizeof(from));
	bytes = recvfrom(fd, datagram->bytes, sizeof(datagram->bytes), MSG_DONTWAIT, &from.any,
			 &from_bytes);
	if (bytes < 0)
		return false;
	memset(&datagram->head, 0, sizeof(datagram->head));
	datagram->head.header.type = UROCE_BROKER_DATAGRAM;
	datagram->head.header.version = UROCE_BROKER_VERSION;
	datagram->head.bytes = (uint16_t)bytes;
	store_source(&from, &datagram->head);
	return true;
}

void socket_drain(int fd)
{
	for (unsigned int i = 0; i < DRAIN_MAX; i++)
		if (recv(fd, NULL, 0, MSG_DONTWAIT | MSG_TRUNC) < 0 && errno == EAGAIN)
			return;
}
