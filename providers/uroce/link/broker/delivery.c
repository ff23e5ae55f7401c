/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The delivery socket: datagrams that reached the broker or another process and belong to this
 * link, and datagrams of this link's sockets that belong elsewhere
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "link/link_priv.h"

/* Maximum number of messages that one call of link_delivery_receive() reads */
enum { DELIVERY_BURST = 64 };

_Static_assert((int)LINK_MISDIRECTED == (int)UROCE_BROKER_MISDIRECTED &&
		       (int)LINK_MAD_OWN == (int)UROCE_BROKER_MAD_OWN &&
		       (int)LINK_MAD_ANY == (int)UROCE_BROKER_MAD_ANY &&
		       (int)LINK_MAD_NONE == (int)UROCE_BROKER_MAD_NONE,
	       "reasons are passed on as they are");

int link_broker_fd(const struct link *link)
{
	return link->broker.epoll_fd;
}

/* ---- receiving ---- */

/*
 * Returns true if messages of this type come by the delivery socket.  Messages of other types are
 * ignored, since they may be too large for the buffer of read_message().
 */
static bool is_delivery_type(uint32_t type)
{
	return type == UROCE_BROKER_DATAGRAM || type == UROCE_BROKER_CONNECTION ||
	       type == UROCE_BROKER_WATCH;
}

/*
 * Reads a message, and handles it unless it is a DATAGRAM, whose bytes go to payload.  Returns 0,
 * -EBADMSG for a message that must be ignored, or another negative errno.
 */
static int read_message(struct link *link, uint8_t *payload, union broker_message *message)
{
	uint8_t head[sizeof(struct uroce_broker_datagram)] = { 0 };
	struct iovec pieces[2] = {
		{ .iov_base = head, .iov_len = sizeof(head) },
		{ .iov_base = payload, .iov_len = LINK_MAX_BYTES + 1 },
	};
	struct link_fds fds;
	ssize_t bytes = link_receive_with_fds(link->broker.delivery, pieces, 2, MSG_DONTWAIT, &fds);
	struct uroce_broker_header header;

	if (bytes == -EMSGSIZE || bytes == -EMFILE)
		return -EBADMSG;
	if (bytes < 0)
		return (int)bytes;
	/* The broker has ended; link_maintain_broker() sees it by the control connection. */
	if (bytes == 0)
		return -EAGAIN;
	memcpy(&header, head, sizeof(header));
	if (is_delivery_type(header.type) &&
	    broker_message_parse(head, (size_t)bytes, message) == BROKER_MESSAGE_OK &&
	    broker_message_descriptor_count(message) == fds.count) {
		if (message->header.type == UROCE_BROKER_CONNECTION)
			link_client_conns_add(link, message->connect.purpose, message->connect.slot,
					      fds.fd[0]);
		else if (message->header.type == UROCE_BROKER_WATCH)
			link_broker_set_pinger(&link->broker,
					       message->on_off.flags & UROCE_BROKER_ON);
		return 0;
	}
	link_close_fds(&fds);
	return -EBADMSG;
}

static bool fill_batch(struct link *link, const struct uroce_broker_datagram *datagram,
		       struct link_batch *batch)
{
	const struct link_endpoint dst =
		link_endpoint_from_gid(datagram->destination.gid, datagram->destination.scope_id);

	link_mutex_lock(link, &link->lock);
	batch->addr = link_addr_find(link, &dst);
	link_mutex_unlock(link, &link->lock);
	if (!batch->addr)
		return false;
	batch->bytes = datagram->bytes;
	batch->segment = datagram->bytes;
	memcpy(batch->src, datagram->source.gid, sizeof(batch->src));
	batch->src_port = datagram->source_port;
	batch->traffic_class = datagram->traffic_class;
	batch->hop_limit = datagram->hop_limit;
	batch->reason = datagram->reason;
	return true;
}

int link_delivery_receive(struct link *link, struct link_batch *batch)
{
	union broker_message message;

	if (atomic_load_explicit(&link->abandoned, memory_order_relaxed))
		return -EOWNERDEAD;
	assert(batch->buffer_bytes > LINK_MAX_BYTES);
	for (unsigned int i = 0; i < DELIVERY_BURST; i++) {
		int error = read_message(link, batch->buffer, &message);

		if (error == -EBADMSG || error == -EINTR)
			continue;
		if (error)
			return error;
		if (message.header.type != UROCE_BROKER_DATAGRAM)
			continue;
		if (fill_batch(link, &message.datagram, batch)) {
			atomic_fetch_add_explicit(&link->forward_received, 1, memory_order_relaxed);
			return 0;
		}
		atomic_fetch_add_explicit(&link->forward_lost, 1, memory_order_relaxed);
	}
	/* The descriptor is still readable, so the caller comes back for the rest. */
	return -EAGAIN;
}

/* ---- passing on ---- */

int link_forward(const struct link_batch *batch, const uint8_t *bytes, size_t length)
{
	const struct link_addr *addr = batch->addr;
	struct link *link = addr->link;
	union broker_message message;
	struct iovec pieces[2] = {
		{ .iov_base = &message, .iov_len = sizeof(message.datagram) },
		{ .iov_base = (void *)(uintptr_t)bytes, .iov_len = length },
	};
	struct msghdr output = { .msg_iov = pieces, .msg_iovlen = 2 };

	if (length == 0 || length > LINK_MAX_BYTES)
		return -EINVAL;
	broker_message_init(&message, UROCE_BROKER_DATAGRAM, 0);
	memcpy(message.datagram.source.gid, batch->src, sizeof(batch->src));
	message.datagram.source.scope_id = addr->endpoint.scope_id;
	memcpy(message.datagram.destination.gid, addr->endpoint.gid, sizeof(addr->endpoint.gid));
	message.datagram.destination.scope_id = addr->endpoint.scope_id;
	message.datagram.source_port = batch->src_port;
	message.datagram.bytes = (uint16_t)length;
	message.datagram.traffic_class = batch->traffic_class;
	message.datagram.hop_limit = batch->hop_limit;
	message.datagram.reason = UROCE_BROKER_MISDIRECTED;
	if (sendmsg(link->broker.delivery, &output, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		atomic_fetch_add_explicit(&link->forward_lost, 1, memory_order_relaxed);
		return -errno;
	}
	atomic_fetch_add_explicit(&link->forwarded, 1, memory_order_relaxed);
	return 0;
}
