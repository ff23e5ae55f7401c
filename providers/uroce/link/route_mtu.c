/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What the kernel knows of the path to a peer: the MTU of its route, or what a router has said in
 * an ICMP message.  A socket that is connected shows it; ours mostly are not, so one is made to
 * ask.
 */
#include <netinet/in.h>

#include "internal.h"

static bool name_both(int fd, const struct link_peer *peer)
{
	union link_sockaddr own;
	socklen_t bytes = link_endpoint_to_sockaddr(&peer->addr->endpoint, 0, &own);

	/* Of a datagram socket this sends nothing. */
	return bind(fd, &own.any, bytes) == 0 &&
	       connect(fd, &peer->dst_sockaddr.any, peer->dst_bytes) == 0;
}

static uint32_t ask_kernel(const struct link_peer *peer)
{
	bool ipv4 = peer->dst_sockaddr.any.sa_family == AF_INET;
	int fd = link_socket(peer->dst_sockaddr.any.sa_family, SOCK_DGRAM), mtu = 0;
	socklen_t bytes = sizeof(mtu);

	if (fd < 0)
		return 0;
	if (!name_both(fd, peer) || getsockopt(fd, ipv4 ? IPPROTO_IP : IPPROTO_IPV6,
					       ipv4 ? IP_MTU : IPV6_MTU, &mtu, &bytes))
		mtu = 0;
	link_close_fd(&fd);
	return mtu > 0 ? (uint32_t)mtu : 0;
}

/* What the thread was told last.  Programs connect thousands of queue pairs to the same peer. */
static __thread struct {
	struct link_endpoint src, dst;
	uint32_t mtu;
	int64_t asked_ms; /* 0: nothing yet */
} last;

uint32_t link_peer_mtu(const struct link_peer *peer, unsigned int max_age_ms)
{
	int64_t now = link_now_ms();

	if (peer->channel)
		return 0;
	if (!last.asked_ms || now - last.asked_ms >= max_age_ms ||
	    !link_endpoint_equal(&last.src, &peer->addr->endpoint) ||
	    !link_endpoint_equal(&last.dst, &peer->dst)) {
		last.mtu = ask_kernel(peer);
		last.src = peer->addr->endpoint;
		last.dst = peer->dst;
		last.asked_ms = now;
	}
	return last.mtu;
}
