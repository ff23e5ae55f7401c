/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Path MTU as known to the kernel: the MTU of the route, or one that a router has reported by ICMP.
 * Only a connected socket can be asked for it, and most of ours are not connected, so one is
 * created for the purpose.
 */
#include <netinet/in.h>

#include "link/link_priv.h"

static bool bind_and_connect(int fd, const struct link_peer *peer)
{
	union link_sockaddr own;
	socklen_t bytes = link_endpoint_to_sockaddr(&peer->addr->endpoint, 0, &own);

	/* connect(2) of a datagram socket sends nothing. */
	return bind(fd, &own.any, bytes) == 0 &&
	       connect(fd, &peer->dst_sockaddr.any, peer->dst_bytes) == 0;
}

static uint32_t query_kernel(const struct link_peer *peer)
{
	bool ipv4 = peer->dst_sockaddr.any.sa_family == AF_INET;
	int fd = link_socket(peer->dst_sockaddr.any.sa_family, SOCK_DGRAM), mtu = 0;
	socklen_t bytes = sizeof(mtu);

	if (fd < 0)
		return 0;
	if (!bind_and_connect(fd, peer) || getsockopt(fd, ipv4 ? IPPROTO_IP : IPPROTO_IPV6,
						      ipv4 ? IP_MTU : IPV6_MTU, &mtu, &bytes))
		mtu = 0;
	link_close_fd(&fd);
	return mtu > 0 ? (uint32_t)mtu : 0;
}

/* Last result of this thread: programs connect thousands of queue pairs to the same peer. */
static __thread struct {
	struct link_endpoint src, dst;
	uint32_t mtu;
	int64_t queried_ms; /* 0: no result yet */
} last;

uint32_t link_peer_mtu(const struct link_peer *peer, unsigned int max_age_ms)
{
	int64_t now = link_now_ms();

	if (peer->channel)
		return 0;
	if (!last.queried_ms || now - last.queried_ms >= max_age_ms ||
	    !link_endpoint_equal(&last.src, &peer->addr->endpoint) ||
	    !link_endpoint_equal(&last.dst, &peer->dst)) {
		last.mtu = query_kernel(peer);
		last.src = peer->addr->endpoint;
		last.dst = peer->dst;
		last.queried_ms = now;
	}
	return last.mtu;
}
