/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Routes are looked up by binding and connecting a UDP socket, for which the kernel applies all
 * rules that it applies to the packets.
 */
#include "address.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

/* Converts an address, with this port; an AF_IB address becomes the IP address of its GID. */
static socklen_t put_socket_address(const struct ucm_address *address, uint16_t port,
				    struct sockaddr_storage *to)
{
	struct ucm_address ip = *address;

	if (ip.family == UCM_AF_IB)
		ip.family = gid_is_ipv4(ip.ip) ? AF_INET : AF_INET6;
	ip.port = port;
	memset(to, 0, sizeof(*to));
	return (socklen_t)ucm_address_put(&ip, to, sizeof(*to));
}

static int open_bound_socket(const struct ucm_address *address)
{
	struct sockaddr_storage to;
	socklen_t bytes = put_socket_address(address, 0, &to);
	int error, fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || !bind(fd, (struct sockaddr *)&to, bytes))
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

bool ucm_route_is_local(const struct ucm_address *address)
{
	int fd = open_bound_socket(address);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

#define DISCARD_PORT 9

int ucm_route_source(const struct ucm_address *destination, const struct ucm_address *bound,
		     struct ucm_address *source)
{
	struct sockaddr_storage to, from = { 0 };
	socklen_t bytes = put_socket_address(destination, DISCARD_PORT, &to);
	socklen_t from_bytes = sizeof(from);
	int error = 0, fd = open_bound_socket(bound);

	if (fd < 0)
		return errno;
	if (connect(fd, (struct sockaddr *)&to, bytes) ||
	    getsockname(fd, (struct sockaddr *)&from, &from_bytes))
		error = errno;
	close(fd);
	if (error)
		return error;
	if (!ucm_address_get(&from, sizeof(from), source))
		return EAFNOSUPPORT;
	source->port = 0;
	source->family = destination->family;
	return 0;
}

uint32_t ucm_route_mtu(const uint8_t from[16], const uint8_t to[16], uint32_t scope_id)
{
	struct ucm_address source = { .family = UCM_AF_IB, .scope_id = scope_id };
	struct ucm_address destination = source;
	struct sockaddr_storage peer;
	socklen_t peer_bytes, bytes = sizeof(int);
	int fd, mtu = 0;
	bool ipv4 = gid_is_ipv4(to);

	memcpy(source.ip, from, sizeof(source.ip));
	memcpy(destination.ip, to, sizeof(destination.ip));
	peer_bytes = put_socket_address(&destination, DISCARD_PORT, &peer);
	fd = open_bound_socket(&source);
	if (fd < 0)
		return 0;
	if (connect(fd, (struct sockaddr *)&peer, peer_bytes) ||
	    getsockopt(fd, ipv4 ? IPPROTO_IP : IPPROTO_IPV6, ipv4 ? IP_MTU : IPV6_MTU, &mtu,
		       &bytes))
		mtu = 0;
	close(fd);
	return mtu > 0 ? (uint32_t)mtu : 0;
}
