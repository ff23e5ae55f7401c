/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The data path: usually one system call for a burst of datagrams (link_send()), no lock except
 * that of a shared memory channel, no allocation.
 *
 * System calls are made by syscall(2), since the functions of libc are cancellation points: a verb
 * must not be one, as many hold locks, and preparing for cancellation costs 20 ns each time.
 */
#include <assert.h>
#include <errno.h>
#include <linux/sock_diag.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "link/shm/shm.h"
#include <rdma/uroce-abi.h>

#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef UDP_NO_CHECK6_RX
#define UDP_NO_CHECK6_RX 102
#endif
#ifndef SO_MEMINFO
#define SO_MEMINFO 55
#endif

enum {
	/*
	 * A receiver on a busy host may wait for a processor for a few hundred milliseconds;
	 * datagrams sent to it in that time should not be lost.
	 */
	RECEIVER_TIMEOUT_MS = 1000,
	/*
	 * The free bytes divided by this may be sent before the next check.  Senders ask for
	 * several times the bytes that the kernel will charge.
	 */
	ALLOWANCE_DIVISOR = 32,
};

static size_t total_bytes(const struct iovec *pieces, unsigned int count)
{
	size_t total = 0;
	unsigned int i;

	for (i = 0; i < count; i++)
		total += pieces[i].iov_len;
	return total;
}

/* Sends by a socket that other peers use as well. */
static __attribute__((noinline)) int send_unconnected(struct link_peer *peer,
						      const struct iovec *pieces,
						      unsigned int count, unsigned int segment)
{
	struct msghdr message = {
		.msg_name = &peer->dst_sockaddr,
		.msg_namelen = peer->dst_bytes,
		.msg_iov = (struct iovec *)(uintptr_t)pieces,
		.msg_iovlen = count,
	};
	_Alignas(struct cmsghdr) uint8_t control[LINK_CLASS_BYTES + LINK_SEGMENT_BYTES];

	if (peer->class_bytes) {
		memcpy(control, peer->class_control, peer->class_bytes);
		message.msg_control = control;
		message.msg_controllen = peer->class_bytes;
	}
	if (segment) {
		message.msg_control = control;
		message.msg_controllen =
			peer->class_bytes +
			link_put_udp_segment(control + peer->class_bytes, (uint16_t)segment);
	}
	return syscall(SYS_sendmsg, peer->tx->fd, &message, MSG_DONTWAIT) < 0 ? -errno : 0;
}

inline int link_send(struct link_peer *peer, const struct iovec *pieces, unsigned int count,
		     unsigned int segment)
{
	if (atomic_load_explicit(&peer->addr->link->abandoned, memory_order_relaxed))
		return -EOWNERDEAD;
	if (peer->channel)
		return link_channel_send(peer->channel, peer->tx->port, pieces, count,
					 total_bytes(pieces, count), segment);
	/* Leave out UDP_SEGMENT, which would make a single datagram a fifth more expensive. */
	if (segment && total_bytes(pieces, count) <= segment)
		segment = 0;
	if (peer->tx->connected)
		return link_tx_send(peer->tx, pieces, count, segment);
	return send_unconnected(peer, pieces, count, segment);
}

uint16_t link_peer_ip_id(const struct link_peer *peer)
{
	return peer->channel ? 0 : peer->tx->ip_id;
}

static unsigned int control_value(const struct cmsghdr *cmsg)
{
	int value = 0;

	/* IP_TOS has one byte, all other values are an int. */
	if (cmsg->cmsg_level == IPPROTO_IP && cmsg->cmsg_type == IP_TOS)
		return *(const uint8_t *)CMSG_DATA(cmsg);
	memcpy(&value, CMSG_DATA(cmsg), sizeof(value));
	return value > 0 ? (unsigned int)value : 0;
}

/* Reads segment (0 if the kernel merged no datagrams), traffic class and hop limit. */
static inline void read_control(struct msghdr *message, struct link_batch *batch)
{
	struct cmsghdr *cmsg;

	batch->segment = 0;
	batch->traffic_class = 0;
	batch->hop_limit = 0;
	for (cmsg = CMSG_FIRSTHDR(message); cmsg; cmsg = CMSG_NXTHDR(message, cmsg)) {
		unsigned int value = control_value(cmsg);
		bool ipv4 = cmsg->cmsg_level == IPPROTO_IP;

		if (cmsg->cmsg_level == IPPROTO_UDP && cmsg->cmsg_type == UDP_GRO)
			batch->segment = value;
		else if (cmsg->cmsg_type == (ipv4 ? IP_TOS : IPV6_TCLASS))
			batch->traffic_class = (uint8_t)value;
		else if (cmsg->cmsg_type == (ipv4 ? IP_TTL : IPV6_HOPLIMIT))
			batch->hop_limit = (uint8_t)value;
	}
}

inline int link_receive_from(struct link *link, int fd, struct link_batch *batch)
{
	_Alignas(struct cmsghdr) uint8_t control[3 * CMSG_SPACE(sizeof(int))];
	union link_sockaddr from;
	struct iovec piece = { .iov_base = batch->buffer, .iov_len = batch->buffer_bytes };
	struct msghdr message = {
		.msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_iov = &piece,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	ssize_t bytes;

	assert(batch->buffer_bytes > LINK_MAX_BYTES);
	bytes = syscall(SYS_recvmsg, fd, &message, MSG_DONTWAIT);
	if (bytes < 0) {
		int error = errno;

		if (atomic_load_explicit(&link->abandoned, memory_order_relaxed))
			return -EOWNERDEAD;
		return -error;
	}
	batch->bytes = (size_t)bytes;
	read_control(&message, batch);
	if (batch->segment == 0)
		batch->segment = (unsigned int)bytes;
	link_sockaddr_to_gid(&from, batch->src, &batch->src_port);
	return 0;
}

/*
 * If the datagram is a probe, by which the broker finds out which client's socket has an index in
 * the group, replies to it and returns true.
 */
static __attribute__((noinline)) bool handle_probe(struct link_addr *addr,
						   const struct link_batch *batch)
{
	struct uroce_broker_probe probe;

	memcpy(&probe, batch->buffer, sizeof(probe));
	if (probe.opcode != htonl(UROCE_BROKER_PROBE) || probe.destination)
		return false;
	link_broker_reply_probe(addr->link, &addr->endpoint, &probe);
	return true;
}

/*
 * Receives from the socket.  Returns -EAGAIN after a probe, although the socket may still be
 * readable, so that other sockets are read first.
 */
static inline int receive_from_socket(struct link_addr *addr, struct link_batch *batch)
{
	int error = link_receive_from(addr->link, addr->fd, batch);

	if (!error && batch->bytes == sizeof(struct uroce_broker_probe) &&
	    handle_probe(addr, batch))
		return -EAGAIN;
	return error;
}

/* Receives from the rings or the socket; link_region_polls_first() decides which comes first. */
static int receive_both(struct link_addr *addr, struct link_region *region,
			struct link_batch *batch)
{
	bool rings_next;
	int error;

	if (atomic_load_explicit(&addr->link->abandoned, memory_order_relaxed))
		return -EOWNERDEAD;
	rings_next = link_region_polls_first(region);
	if (rings_next && link_region_receive(region, batch) == 0)
		return 0;
	if (rings_next && !link_region_should_poll_socket(region))
		return -EAGAIN;
	error = receive_from_socket(addr, batch);
	link_region_socket_polled(region, !error);
	return rings_next || error != -EAGAIN ? error : link_region_receive(region, batch);
}

inline int link_receive(struct link_addr *addr, struct link_batch *batch)
{
	struct link_region *region = atomic_load_explicit(&addr->region, memory_order_acquire);

	batch->addr = addr;
	batch->ring = NULL;
	return region ? receive_both(addr, region, batch) : receive_from_socket(addr, batch);
}

bool link_addr_has_shm(const struct link_addr *addr)
{
	return atomic_load_explicit(&addr->region, memory_order_acquire);
}

void link_enable_rx_class(int fd, bool ipv4)
{
	const int on = 1;

	setsockopt(fd, ipv4 ? IPPROTO_IP : IPPROTO_IPV6, ipv4 ? IP_RECVTTL : IPV6_RECVHOPLIMIT, &on,
		   sizeof(on));
	setsockopt(fd, ipv4 ? IPPROTO_IP : IPPROTO_IPV6, ipv4 ? IP_RECVTOS : IPV6_RECVTCLASS, &on,
		   sizeof(on));
}

void link_accept_no_checksum(int fd)
{
	const int on = 1;

	setsockopt(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, &on, sizeof(on));
}

void link_addr_enable_rx_class(struct link_addr *addr)
{
	link_enable_rx_class(addr->fd, gid_is_ipv4(addr->endpoint.gid));
}

/*
 * Reads SO_MEMINFO at least up to index wanted.  Returns false on failure, or if the kernel returns
 * fewer values: qemu-user returns a single one, 0.
 */
static bool read_meminfo(int fd, uint32_t info[SK_MEMINFO_VARS], unsigned int wanted)
{
	socklen_t bytes = SK_MEMINFO_VARS * sizeof(info[0]);

	memset(info, 0, bytes);
	return fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &bytes) == 0 &&
	       bytes > wanted * sizeof(info[0]);
}

uint32_t link_socket_drops(int fd)
{
	uint32_t info[SK_MEMINFO_VARS];

	return read_meminfo(fd, info, SK_MEMINFO_DROPS) ? info[SK_MEMINFO_DROPS] : 0;
}

/*
 * Returns true if a check in the same millisecond found room for this burst as well.  Without this
 * a datagram would take two system calls.
 */
static bool use_allowance(struct link_rx_room *room, uint64_t bytes)
{
	uint32_t allowance = atomic_load_explicit(&room->allowance, memory_order_relaxed);

	if (bytes > allowance ||
	    link_now_ms() != atomic_load_explicit(&room->checked_ms, memory_order_relaxed))
		return false;
	atomic_store_explicit(&room->allowance, allowance - (uint32_t)bytes, memory_order_relaxed);
	return true;
}

/* Records the number of queued bytes.  If it has decreased, the owner reads: no stall. */
static void update_queued(struct link_rx_room *room, uint32_t queued)
{
	if (queued < atomic_load_explicit(&room->queued, memory_order_relaxed))
		atomic_store_explicit(&room->full_since, 0, memory_order_relaxed);
	atomic_store_explicit(&room->queued, queued, memory_order_relaxed);
}

/*
 * Returns true if these bytes fit into the free part of the socket buffer, of which an eighth is
 * left to the allowances of other senders, or if nothing is queued.
 */
static bool fits(struct link_rx_room *room, const uint32_t info[SK_MEMINFO_VARS], uint64_t bytes)
{
	uint32_t size = info[SK_MEMINFO_RCVBUF], queued = info[SK_MEMINFO_RMEM_ALLOC];

	update_queued(room, queued);
	if (queued > 0 && queued + bytes > size - size / 8)
		return false;
	atomic_store_explicit(&room->allowance, (size - queued) / ALLOWANCE_DIVISOR,
			      memory_order_relaxed);
	atomic_store_explicit(&room->checked_ms, link_now_ms(), memory_order_relaxed);
	return true;
}

/*
 * Called when the socket has no room.  Returns true if the owner has read nothing for
 * RECEIVER_TIMEOUT_MS since the socket was first found full; short bursts may have found room in
 * that time.
 */
static bool is_stalled(struct link_rx_room *room)
{
	int64_t since = atomic_load_explicit(&room->full_since, memory_order_relaxed);
	int64_t now = link_now_ms();

	if (since)
		return now - since >= RECEIVER_TIMEOUT_MS;
	atomic_store_explicit(&room->full_since, now, memory_order_relaxed);
	return false;
}

/* Returns the socket that the slot reads, or -1 if it is not known. */
static int receiver_fd(const struct link_addr *addr, unsigned int slot)
{
	if (addr->unsteered || slot == addr->link->slot)
		return addr->fd;
	return __atomic_load_n(&addr->slot_fd[slot], __ATOMIC_ACQUIRE);
}

bool link_peer_has_room(const struct link_peer *peer, unsigned int slot, uint64_t bytes)
{
	struct link_addr *addr = peer->addr;
	struct link_rx_room *room;
	uint32_t info[SK_MEMINFO_VARS];
	int fd;

	/* For a full ring, link_send() itself returns -EAGAIN. */
	if (peer->channel)
		return true;
	if (!link_endpoint_equal(&peer->dst, &addr->endpoint) || slot >= LINK_SLOTS)
		return true;
	fd = receiver_fd(addr, slot);
	if (fd < 0)
		return !link_addr_want_slot_fd(addr, slot);
	room = &addr->rx_room[slot];
	if (use_allowance(room, bytes) || !read_meminfo(fd, info, SK_MEMINFO_RCVBUF) ||
	    fits(room, info, bytes))
		return true;
	if (!is_stalled(room))
		return false;
	/* The slot may have another owner, with another socket, by now. */
	link_addr_want_slot_fd(addr, slot);
	return true;
}
