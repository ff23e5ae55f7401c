/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Connected transmit sockets.  The kernel looks up the route of a connected socket once, and not
 * for each datagram, which saves a tenth of the cost of a datagram on loopback.  But it counts the
 * IPv4 IDs of such a socket from a random start, by one for each call, and the segments of a call
 * count up from there.  The ICRC covers the IPv4 ID, so the start must be known.  Only the error
 * queue shows it: a transmit time stamp comes with the packet as it was sent, including its
 * headers.
 */
#include <errno.h>
#include <linux/net_tstamp.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "link/link_priv.h"

enum {
	PROBE_BYTES = 8,
	HEADER_BYTES = sizeof(struct iphdr) + sizeof(struct udphdr),
	/* Maximum size of the headers that a device adds: Ethernet, InfiniBand, tunnels */
	LINK_HEADER_MAX = 64,
	/*
	 * Minimum start, larger than any IPv4 ID in a burst of an unconnected socket, so that the
	 * IPv4 IDs of the two kinds of sockets differ
	 */
	IP_ID_START_MIN = 256,
	CONNECT_TRIES = 8,
};

static int set_tx_timestamps(int fd, int flags)
{
	return setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof(flags)) ? -errno : 0;
}

/* Sends count probes in one call to the socket's own address and port, where nothing is read. */
static int send_probes(int fd, unsigned int count)
{
	_Alignas(struct cmsghdr) uint8_t control[LINK_SEGMENT_BYTES];
	uint8_t bytes[2 * PROBE_BYTES] = { 0 };
	struct iovec piece = { .iov_base = bytes, .iov_len = (size_t)count * PROBE_BYTES };
	union link_sockaddr self;
	struct msghdr message = {
		.msg_name = &self,
		.msg_namelen = sizeof(self),
		.msg_iov = &piece,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = link_put_udp_segment(control, count > 1 ? PROBE_BYTES : 0),
	};

	if (getsockname(fd, &self.any, &message.msg_namelen))
		return -errno;
	return sendmsg(fd, &message, MSG_DONTWAIT) < 0 ? -errno : 0;
}

/*
 * Returns the IPv4 ID with which the last call of send_probes(), of count datagrams, began, as the
 * error queue shows it; or a negative errno.
 */
static int read_ip_id(int fd, unsigned int count)
{
	size_t payload = (size_t)count * PROBE_BYTES;
	uint8_t packet[LINK_HEADER_MAX + HEADER_BYTES + 2 * PROBE_BYTES];
	_Alignas(struct cmsghdr) uint8_t control[256];
	struct iovec piece = { .iov_base = packet, .iov_len = sizeof(packet) };
	struct msghdr message = {
		.msg_iov = &piece,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	ssize_t bytes = recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT);
	struct iphdr header;

	if (bytes < 0)
		return -errno;
	if ((size_t)bytes < HEADER_BYTES + payload)
		return -EPROTO;
	memcpy(&header, packet + bytes - payload - HEADER_BYTES, sizeof(header));
	if (header.version != 4 || header.ihl != 5 || header.protocol != IPPROTO_UDP)
		return -EPROTO;
	return ntohs(header.id);
}

static int probe_ip_id(int fd, unsigned int count)
{
	int error = send_probes(fd, count);

	return error ? error : read_ip_id(fd, count);
}

/*
 * Returns the IPv4 ID of the next datagram; -EPROTO if this kernel does not count by one for each
 * call, or another negative errno.
 */
static int learn_next_ip_id(int fd)
{
	int first, burst = -EPROTO, last = -EPROTO;
	int error = set_tx_timestamps(fd, SOF_TIMESTAMPING_TX_SCHED | SOF_TIMESTAMPING_SOFTWARE);

	if (error)
		return error;
	first = probe_ip_id(fd, 1);
	if (first >= 0)
		burst = probe_ip_id(fd, 2);
	if (burst >= 0)
		last = probe_ip_id(fd, 1);
	error = set_tx_timestamps(fd, 0);
	if (error || last < 0)
		return error ? error : -EPROTO;
	if (burst != (uint16_t)(first + 1) || last != (uint16_t)(burst + 1))
		return -EPROTO;
	return (uint16_t)(last + 1);
}

int link_tx_connect(struct link_tx *tx, const union link_sockaddr *dst, socklen_t dst_bytes)
{
	for (int tries = 0; tries < CONNECT_TRIES; tries++) {
		int next = IP_ID_START_MIN;

		/* Each connect(2) chooses another start: repeat while it is too low. */
		if (connect(tx->fd, &dst->any, dst_bytes))
			return -errno;
		if (dst->any.sa_family == AF_INET)
			next = learn_next_ip_id(tx->fd);
		if (next < 0)
			return next;
		if (next < IP_ID_START_MIN)
			continue;
		tx->ip_id = dst->any.sa_family == AF_INET ? (uint16_t)next : 0;
		tx->connected = true;
		return 0;
	}
	return -EAGAIN;
}

/*
 * Makes this segment size (0: no segments) the default of the socket.  Returns false if it is not
 * the default, so that the caller must pass it in a control message.  Changing the default takes a
 * system call, which is only worthwhile for a size that is wanted twice in a row.
 */
static bool set_default_segment(struct link_tx *tx, unsigned int segment)
{
	int value = (int)segment;

	if (tx->segment == segment)
		return true;
	if (tx->wanted_segment != segment) {
		tx->wanted_segment = (uint16_t)segment;
		return false;
	}
	if (setsockopt(tx->fd, IPPROTO_UDP, UDP_SEGMENT, &value, sizeof(value)))
		return false;
	tx->segment = (uint16_t)segment;
	return true;
}

static __attribute__((noinline)) ssize_t send_message(struct link_tx *tx,
						      const struct iovec *pieces,
						      unsigned int count, unsigned int segment)
{
	_Alignas(struct cmsghdr) uint8_t control[LINK_SEGMENT_BYTES];
	struct msghdr message = {
		.msg_iov = (struct iovec *)(uintptr_t)pieces,
		.msg_iovlen = count,
	};

	if (segment != tx->segment) {
		message.msg_control = control;
		message.msg_controllen = link_put_udp_segment(control, (uint16_t)segment);
	}
	return syscall(SYS_sendmsg, tx->fd, &message, MSG_DONTWAIT);
}

static inline __attribute__((always_inline)) ssize_t send_pieces(struct link_tx *tx,
								 const struct iovec *pieces,
								 unsigned int count,
								 unsigned int segment)
{
	/* sendto(2) takes less time than sendmsg(2). */
	if (count == 1 && set_default_segment(tx, segment))
		return syscall(SYS_sendto, tx->fd, pieces->iov_base, pieces->iov_len, MSG_DONTWAIT,
			       NULL, 0);
	return send_message(tx, pieces, count, segment);
}

/* Handles a failed send; errno is its error.  Sends again if that can help. */
static int handle_send_error(struct link_tx *tx, const struct iovec *pieces, unsigned int count,
			     unsigned int segment)
{
	union link_sockaddr dst;
	socklen_t dst_bytes = sizeof(dst);
	int error = errno, next = -1;

	/* Error of an earlier datagram, sent while no socket was bound to the port: send again. */
	if (error == ECONNREFUSED && send_pieces(tx, pieces, count, segment) >= 0) {
		tx->ip_id++;
		return 0;
	}
	if (error == EAGAIN || error == ENOBUFS)
		return -error;
	/* The failed call may have used an IPv4 ID: determine the next one again. */
	if (getpeername(tx->fd, &dst.any, &dst_bytes) == 0 && dst.any.sa_family == AF_INET)
		next = learn_next_ip_id(tx->fd);
	if (next >= 0)
		tx->ip_id = (uint16_t)next;
	return -error;
}

inline int link_tx_send(struct link_tx *tx, const struct iovec *pieces, unsigned int count,
			unsigned int segment)
{
	if (send_pieces(tx, pieces, count, segment) < 0)
		return handle_send_error(tx, pieces, count, segment);
	tx->ip_id++;
	return 0;
}
