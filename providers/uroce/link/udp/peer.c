/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Transmit sockets and the peers that use them
 *
 * A transmit socket never fragments, and is not connected (for exceptions see connected_tx.c): the
 * kernel then numbers the IPv4 IDs of a burst 0, 1, 2 ..., as assumed for the ICRC.  It is bound to
 * the local address and to its own source port, with SO_REUSEPORT, so that every process of a user
 * can use any port.  Hop limit and traffic class are options of the socket, because control
 * messages cost more per datagram; so a port may have several sockets, one for each combination of
 * them in use.
 */
#include <assert.h>
#include <errno.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "link/shm/shm.h"

/*
 * Programs that know only InfiniBand set a hop limit of 1 (ibv_rc_pingpong, pyverbs), with which
 * packets do not pass the first router.  The ICRC does not cover the hop limit, so a larger one
 * does no harm.
 */
#define HOP_LIMIT_MIN 64
/* Range of source ports of RoCEv2 */
#define PORT_FIRST 0xc000
#define PORT_LAST 0xffff
/* Number of ports to try before the kernel chooses one */
#define PORT_TRIES 64
/* Maximum number of segments of kernels before UDP_MAX_SEGMENTS was raised */
#define OLD_MAX_SEGMENTS 64
/* Timeout for a datagram that a socket has sent to itself, in milliseconds */
#define PROBE_MS 100

/*
 * Sends a burst of count datagrams of one byte each from the socket to itself.  Returns the size of
 * the first datagram received, or a negative errno.
 */
static ssize_t send_burst_to_self(int fd, union link_sockaddr *self, unsigned int count)
{
	_Alignas(struct cmsghdr) uint8_t control[LINK_SEGMENT_BYTES];
	uint8_t bytes[OLD_MAX_SEGMENTS + 1] = { 0 };
	struct iovec piece = { bytes, count };
	struct msghdr message = {
		.msg_name = self,
		.msg_namelen = sizeof(self->in),
		.msg_iov = &piece,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = link_put_udp_segment(control, 1),
	};
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	ssize_t first;

	assert(count <= sizeof(bytes));
	if (sendmsg(fd, &message, MSG_DONTWAIT) < 0)
		return -errno;
	/* The datagram has arrived already, unless the kernel is very busy. */
	poll(&wait, 1, PROBE_MS);
	first = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	return first < 0 ? -errno : first;
}

/*
 * Linux before 4.18 ignores UDP_SEGMENT, and qemu-user for a processor of the other byte order
 * passes the value on without swapping it: a burst would then be sent as one datagram.
 */
unsigned int link_probe_segments(void)
{
	union link_sockaddr self = { .in = { .sin_family = AF_INET } };
	socklen_t self_bytes = sizeof(self.in);
	unsigned int segments = OLD_MAX_SEGMENTS;
	int fd;

	if (getenv("UROCE_TEST_NO_SEGMENTS"))
		return 1;
	fd = link_socket(AF_INET, SOCK_DGRAM);
	if (fd < 0)
		return OLD_MAX_SEGMENTS;
	self.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(fd, &self.any, self_bytes) == 0 && getsockname(fd, &self.any, &self_bytes) == 0) {
		ssize_t first = send_burst_to_self(fd, &self, OLD_MAX_SEGMENTS + 1);

		if (first == 1)
			segments = LINK_MAX_SEGMENTS;
		else if (first > 1)
			segments = 1;
	}
	link_close_fd(&fd);
	return segments;
}

/*
 * Nothing reads this socket, so that at most a packet or two should stay in it. (A filter that
 * drops everything would be a further kernel object for each of many sockets.)
 */
static void limit_input(int fd)
{
	link_set_option(fd, SOL_SOCKET, SO_RCVBUF, 0);
}

/*
 * A queue pair cannot make its packets smaller, so they are sent unfragmented whatever the kernel
 * has learned about the path (IP_PMTUDISC_PROBE); otherwise a forged ICMP message could stop them
 * for ten minutes. link_peer_mtu() still reports what the kernel has learned.
 */
static int set_ipv4_options(int fd, const struct link_endpoint *endpoint, int traffic_class,
			    int hop_limit)
{
	int error = link_set_option(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);

	if (!error)
		error = link_set_option(fd, IPPROTO_IP, IP_TTL, hop_limit);
	if (!error)
		error = link_set_option(fd, IPPROTO_IP, IP_TOS, traffic_class);
	if (!error)
		error = link_set_option(fd, IPPROTO_IP, IP_MULTICAST_TTL, hop_limit);
	/* Send multicasts by the interface of the address, not by that of the default route. */
	setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, endpoint->gid + 12, 4);
	return error;
}

static int set_ipv6_options(int fd, int traffic_class, int hop_limit)
{
	int error = link_set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);

	if (!error)
		error = link_set_option(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
	if (!error)
		error = link_set_option(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, hop_limit);
	if (!error)
		error = link_set_option(fd, IPPROTO_IPV6, IPV6_TCLASS, traffic_class);
	if (!error)
		error = link_set_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, hop_limit);
	return error;
}

/*
 * Opens a transmit socket bound to port (0: the kernel chooses), and stores port and descriptor in
 * *tx.  Returns -EADDRINUSE if another user has that port.
 */
static int open_tx(const struct link_endpoint *endpoint, uint16_t port, struct link_tx *tx)
{
	union link_sockaddr name;
	socklen_t name_bytes = link_endpoint_to_sockaddr(endpoint, port, &name);
	uint8_t gid[16];
	int error;
	int fd = link_socket(name.any.sa_family, SOCK_DGRAM);

	if (fd < 0)
		return fd;
	error = link_set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1);
	if (!error && name.any.sa_family == AF_INET)
		error = set_ipv4_options(fd, endpoint, tx->traffic_class, tx->hop_limit);
	else if (!error)
		error = set_ipv6_options(fd, tx->traffic_class, tx->hop_limit);
	if (!error && bind(fd, &name.any, name_bytes))
		error = -errno;
	if (!error && getsockname(fd, &name.any, &name_bytes))
		error = -errno;
	if (error) {
		link_close_fd(&fd);
		return error;
	}
	link_set_option(fd, SOL_SOCKET, SO_SNDBUF, LINK_SOCKET_BUFFER);
	limit_input(fd);
	link_sockaddr_to_gid(&name, gid, &tx->port);
	tx->fd = fd;
	return 0;
}

static struct link_tx *find_tx(struct link_addr *addr, uint16_t port, uint8_t traffic_class,
			       uint8_t hop_limit)
{
	struct link_tx *tx;

	for (tx = addr->txs; tx; tx = tx->next)
		if (!tx->connected && tx->port == port && tx->traffic_class == traffic_class &&
		    tx->hop_limit == hop_limit)
			return tx;
	return NULL;
}

static uint16_t next_port(uint16_t port)
{
	return port < PORT_FIRST || port == PORT_LAST ? PORT_FIRST : (uint16_t)(port + 1);
}

/* Returns an existing socket when no more may be opened; the same one for the same port. */
static struct link_tx *choose_shared_tx(struct link_addr *addr, uint16_t port)
{
	unsigned int left = addr->tx_count ? port % addr->tx_count : 0;
	struct link_tx *tx;

	for (tx = addr->txs; tx; tx = tx->next)
		if (!tx->connected && left-- == 0)
			break;
	return tx;
}

/* Stores a socket in *result that sends from port, or from the next available port. */
static int get_tx(struct link_addr *addr, uint16_t port, uint8_t traffic_class, uint8_t hop_limit,
		  struct link_tx **result)
{
	struct link_tx *tx = NULL;
	unsigned int tries;
	int error = -EADDRINUSE;

	for (tries = 0; tries <= PORT_TRIES && error == -EADDRINUSE; tries++) {
		*result = find_tx(addr, port, traffic_class, hop_limit);
		if (*result)
			break;
		if (addr->tx_count == LINK_MAX_SOURCE_PORTS) {
			*result = choose_shared_tx(addr, port);
			break;
		}
		if (!tx)
			tx = calloc(1, sizeof(*tx));
		if (!tx)
			return -ENOMEM;
		tx->traffic_class = traffic_class;
		tx->hop_limit = hop_limit;
		error = open_tx(&addr->endpoint, tries == PORT_TRIES ? 0 : port, tx);
		port = next_port(port);
	}
	if (!*result && error == 0) {
		tx->next = addr->txs;
		addr->txs = tx;
		addr->tx_count++;
		*result = tx;
		return 0;
	}
	free(tx);
	/* A shared port is better than an error, for example when no descriptors are left. */
	if (!*result)
		*result = choose_shared_tx(addr, port);
	return *result ? 0 : error;
}

static void put_tx(struct link_addr *addr, struct link_tx *tx)
{
	_Atomic(struct link_tx *) *from = &addr->txs;

	if (--tx->refs)
		return;
	while (*from != tx)
		from = &(*from)->next;
	link_close_fd(&tx->fd);
	*from = tx->next;
	if (tx->connected)
		addr->connected_count--;
	else
		addr->tx_count--;
	free(tx);
}

static size_t add_control(uint8_t *control, int level, int type, int value)
{
	struct cmsghdr *cmsg = (struct cmsghdr *)(void *)control;

	cmsg->cmsg_level = level;
	cmsg->cmsg_type = type;
	cmsg->cmsg_len = CMSG_LEN(sizeof(value));
	memcpy(CMSG_DATA(cmsg), &value, sizeof(value));
	return CMSG_SPACE(sizeof(value));
}

/* Writes control messages for hop limit and traffic class, where those of the socket differ. */
static void set_class_control(struct link_peer *peer)
{
	bool ipv4 = peer->dst_sockaddr.any.sa_family == AF_INET;
	int level = ipv4 ? IPPROTO_IP : IPPROTO_IPV6;
	size_t used = 0;

	if (peer->hop_limit != peer->tx->hop_limit)
		used += add_control(peer->class_control + used, level,
				    ipv4 ? IP_TTL : IPV6_HOPLIMIT, peer->hop_limit);
	if (peer->traffic_class != peer->tx->traffic_class)
		used += add_control(peer->class_control + used, level, ipv4 ? IP_TOS : IPV6_TCLASS,
				    peer->traffic_class);
	peer->class_bytes = used;
}

/*
 * IPv6 does not route a multicast by its source address.  The local address belongs to one
 * interface, so the option may apply to the whole socket.
 */
static void set_multicast_interface(const struct link_peer *wanted)
{
	if (wanted->dst_sockaddr.any.sa_family == AF_INET6 && wanted->dst.scope_id &&
	    gid_is_multicast(wanted->dst.gid))
		link_set_option(wanted->tx->fd, IPPROTO_IPV6, IPV6_MULTICAST_IF,
				(int)wanted->dst.scope_id);
}

/*
 * Returns 0 if the kernel can send the multicast from this address, or -ENETUNREACH.  Loopback
 * interfaces have no route for IPv6 multicasts and drop them silently.
 */
static int check_multicast_route(const struct link_addr *addr, const struct link_peer *wanted)
{
	union link_sockaddr name;
	socklen_t bytes = link_endpoint_to_sockaddr(&addr->endpoint, 0, &name);
	int fd = link_socket(name.any.sa_family, SOCK_DGRAM), error = 0;

	if (fd < 0)
		return fd;
	if (name.any.sa_family == AF_INET)
		setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, addr->endpoint.gid + 12, 4);
	else if (wanted->dst.scope_id)
		link_set_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, (int)wanted->dst.scope_id);
	/* connect(2) of a datagram socket sends nothing. */
	if (bind(fd, &name.any, bytes) || connect(fd, &wanted->dst_sockaddr.any, wanted->dst_bytes))
		error = -errno;
	link_close_fd(&fd);
	return error;
}

/* Returns a socket that is connected for *wanted alone, or NULL if that fails for any reason. */
static struct link_tx *open_connected_tx(struct link_addr *addr, const struct link_peer *wanted,
					 uint16_t port)
{
	struct link_tx *tx;

	if (addr->connected_count == LINK_MAX_CONNECTED)
		return NULL;
	tx = calloc(1, sizeof(*tx));
	if (!tx)
		return NULL;
	tx->traffic_class = wanted->traffic_class;
	tx->hop_limit = wanted->hop_limit;
	if (open_tx(&addr->endpoint, port, tx)) {
		free(tx);
		return NULL;
	}
	if (link_tx_connect(tx, &wanted->dst_sockaddr, wanted->dst_bytes)) {
		link_close_fd(&tx->fd);
		free(tx);
		return NULL;
	}
	tx->next = addr->txs;
	addr->txs = tx;
	addr->connected_count++;
	return tx;
}

/*
 * Returns true if the peer should use shared memory.  Queue pairs of the same link could do so as
 * well, but are rare.
 */
static bool should_use_shm(const struct link_peer *peer)
{
	struct link *link = peer->addr->link;
	bool own;

	if (!peer->exclusive || !atomic_load(&link->shares_memory))
		return false;
	link_mutex_lock(link, &link->open_lock);
	own = link_has_slot(link, peer->dst_slot);
	link_mutex_unlock(link, &link->open_lock);
	return !own;
}

/*
 * Finds or creates the peer that *wanted describes.  A peer with a single user sends through shared
 * memory or a socket of its own if possible.  Caller holds link->lock.
 */
static int get_peer(struct link_addr *addr, struct link_peer *wanted, uint16_t *port,
		    struct link_peer **result)
{
	struct link_peer *peer = malloc(sizeof(*peer));
	int error = 0;

	if (!peer)
		return -ENOMEM;
	/* Port 4791 would join the group of receive sockets. */
	if (*port == 0 || *port == LINK_UDP_PORT)
		*port = PORT_FIRST;
	wanted->tx = wanted->exclusive && !wanted->channel ? open_connected_tx(addr, wanted, *port)
							   : NULL;
	if (!wanted->tx)
		error = get_tx(addr, *port, wanted->traffic_class, wanted->hop_limit, &wanted->tx);
	if (error) {
		free(peer);
		return error;
	}
	*port = wanted->tx->port;
	set_multicast_interface(wanted);
	*result = wanted->exclusive ? NULL : link_peer_table_find(&addr->peers, wanted);
	if (*result) {
		(*result)->refs++;
		free(peer);
		return 0;
	}
	wanted->tx->refs++;
	set_class_control(wanted);
	*peer = *wanted;
	if (!peer->exclusive)
		error = link_peer_table_add(&addr->peers, peer);
	if (error) {
		put_tx(addr, peer->tx);
		free(peer);
		return error;
	}
	*result = peer;
	return 0;
}

/* Completes *wanted by what depends on dst, and opens the peer.  Returns 0 or a negative errno. */
static int open_peer(struct link_peer *wanted, const struct link_dst *dst, uint16_t *src_port,
		     struct link_peer **result)
{
	struct link_addr *addr = wanted->addr;
	struct link *link = addr->link;
	int error;

	if (atomic_load_explicit(&link->abandoned, memory_order_relaxed))
		return -EOWNERDEAD;
	if (gid_is_ipv4(dst->gid) != gid_is_ipv4(addr->endpoint.gid))
		return -EAFNOSUPPORT;
	if (gid_is_any(dst->gid))
		return -EINVAL;
	wanted->refs = 1;
	wanted->traffic_class = dst->traffic_class;
	wanted->hop_limit = dst->hop_limit < HOP_LIMIT_MIN ? HOP_LIMIT_MIN : dst->hop_limit;
	wanted->dst.scope_id = dst->scope_id;
	memcpy(wanted->dst.gid, dst->gid, sizeof(wanted->dst.gid));
	wanted->dst_bytes =
		link_endpoint_to_sockaddr(&wanted->dst, LINK_UDP_PORT, &wanted->dst_sockaddr);
	if (gid_is_multicast(dst->gid)) {
		error = check_multicast_route(addr, wanted);
		if (error)
			return error;
	}
	wanted->exclusive = wanted->exclusive && link_endpoint_equal(&wanted->dst, &addr->endpoint);
	if (should_use_shm(wanted))
		wanted->channel = link_channel_open(addr, wanted->dst_slot);
	/* For link_peer_has_room(). */
	if (wanted->exclusive && !wanted->channel)
		link_addr_open_slot_fd(addr, wanted->dst_slot);
	link_mutex_lock(link, &link->lock);
	error = get_peer(addr, wanted, src_port, result);
	if (error && wanted->channel)
		link_channel_put(wanted->channel);
	link_mutex_unlock(link, &link->lock);
	return error;
}

int link_peer_open(struct link_addr *addr, const struct link_dst *dst, uint16_t *src_port,
		   struct link_peer **result)
{
	struct link_peer wanted = { .addr = addr };

	return open_peer(&wanted, dst, src_port, result);
}

int link_peer_open_exclusive(struct link_addr *addr, const struct link_dst *dst, uint32_t dst_qpn,
			     uint16_t *src_port, struct link_peer **result)
{
	struct link_peer wanted = {
		.addr = addr,
		.exclusive = true,
		.dst_slot = (uint16_t)(dst_qpn >> LINK_SLOT_SHIFT),
	};

	if (dst_qpn >> LINK_SLOT_SHIFT >= LINK_SLOTS)
		return -EINVAL;
	return open_peer(&wanted, dst, src_port, result);
}

enum link_transport link_peer_transport(const struct link_peer *peer)
{
	return peer->channel ? LINK_SHARED_MEMORY : LINK_SOCKET;
}

void link_peer_path(const struct link_peer *peer, struct link_path *path)
{
	memcpy(path->src, peer->addr->endpoint.gid, sizeof(path->src));
	memcpy(path->dst, peer->dst.gid, sizeof(path->dst));
	path->src_port = peer->tx->port;
	path->traffic_class = peer->traffic_class;
	path->hop_limit = peer->hop_limit;
}

bool link_peer_is_full(struct link_peer *peer)
{
	return peer->channel && link_channel_is_full(peer->channel);
}

void link_peer_close(struct link_peer *peer)
{
	struct link_addr *addr = peer->addr;
	struct link *link = addr->link;

	link_mutex_lock(link, &link->lock);
	if (--peer->refs == 0) {
		if (!peer->exclusive)
			link_peer_table_remove(&addr->peers, peer);
		put_tx(addr, peer->tx);
		if (peer->channel)
			link_channel_put(peer->channel);
		free(peer);
	}
	link_mutex_unlock(link, &link->lock);
}
