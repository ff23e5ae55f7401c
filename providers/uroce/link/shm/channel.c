/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The sending end of shared memory
 *
 * A channel remains when the process at its other end exits.  The lock on its region shows whether
 * that process is alive; it is checked when a queue pair is about to use the channel, because only
 * then a new owner of the slot matters. (A process of the same user could remove that lock, by
 * sending the region back to its owner, which then closes it: the channel would look dead.)
 */
#include "shm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memfd.h"
#include "link/scm_rights.h"

enum {
	/*
	 * A full ring blocks the sender.  But a reader that has read nothing for this long is
	 * regarded as stopped or dead: frames are then lost, as with a full socket, and timeouts of
	 * the transport detect it.
	 */
	READER_TIMEOUT_MS = 100,
	/* Timeout of a request for a channel; only on a busy host a process needs this long. */
	REPLY_TIMEOUT_MS = 100,
	/* Pause before a process that has not replied, or has refused, is asked again */
	REQUEST_PAUSE_MS = 1000,
};

static bool reader_is_alive(struct link_channel *channel)
{
	bool broken;

	pthread_mutex_lock(&channel->lock);
	/*
	 * A write notices a broken ring only when it needs room, and there may be no write before
	 * the reader renews the ring.
	 */
	channel->broken |= link_ring_is_broken(&channel->ring);
	broken = channel->broken;
	pthread_mutex_unlock(&channel->lock);
	return !broken && memfd_owner_alive(channel->fd) > 0;
}

static void free_channel(struct link_channel *channel)
{
	/* A forked child does not have the mappings, and may have others at the same addresses. */
	bool mine = !atomic_load_explicit(&channel->link->abandoned, memory_order_relaxed);

	if (mine && channel->region)
		munmap(channel->region, UROCE_ABI_REGION_HEAD_BYTES);
	if (mine && channel->ring_memory)
		munmap(channel->ring_memory, UROCE_ABI_RING_STRIDE);
	link_close_fd(&channel->fd);
	link_close_fd(&channel->conn_fd);
	pthread_mutex_destroy(&channel->lock);
	free(channel);
}

/*
 * Returns a new channel through the region fd, which the channel then owns, or NULL.  There is no
 * reference to it yet.
 */
static struct link_channel *new_channel(struct link *link, int fd, const struct stat *status)
{
	struct link_channel *channel = calloc(1, sizeof(*channel));

	if (!channel)
		return NULL;
	channel->fd = -1;
	channel->conn_fd = -1;
	channel->device = status->st_dev;
	channel->inode = status->st_ino;
	channel->link = link;
	pthread_mutex_init(&channel->lock, NULL);
	channel->region = memfd_map(fd, UROCE_ABI_REGION_HEAD_BYTES, 0);
	channel->ring_memory =
		memfd_map(fd, UROCE_ABI_RING_STRIDE, link_region_ring_offset(link->slot));
	if (!channel->region || !channel->ring_memory) {
		free_channel(channel);
		return NULL;
	}
	channel->fd = fd;
	link_ring_open_writer(&channel->ring, channel->ring_memory,
			      (uint8_t *)channel->ring_memory + UROCE_ABI_RING_HEAD_BYTES);
	return channel;
}

void link_channel_put(struct link_channel *channel)
{
	if (--channel->refs == 0)
		free_channel(channel);
}

/* Returns true if the message is the reply to the request, with a region of this version's size. */
static bool is_reply(const struct link_addr *addr, const struct uroce_abi_shm *reply, ssize_t bytes,
		     int region)
{
	struct link_endpoint endpoint;

	if (bytes != (ssize_t)sizeof(*reply) || reply->header.message != UROCE_ABI_SHM_REPLY ||
	    reply->header.version != UROCE_ABI_VERSION)
		return false;
	endpoint = link_endpoint_from_gid(reply->address, reply->scope_id);
	return link_endpoint_equal(&endpoint, &addr->endpoint) &&
	       memfd_verify(region, LINK_REGION_BYTES);
}

/* Stores the version of a process that refuses because of it. */
static void note_version(struct link *link, const struct uroce_abi_shm *reply, ssize_t bytes)
{
	if (bytes == (ssize_t)sizeof(reply->header) &&
	    reply->header.message == UROCE_ABI_SHM_REFUSED &&
	    reply->header.version != UROCE_ABI_VERSION)
		atomic_store(&link->refused_version, reply->header.version);
}

/* Waits for the region of the process at the other end.  Returns it or -1. */
static int receive_region(const struct link_addr *addr, int conn_fd)
{
	struct pollfd wait = { .fd = conn_fd, .events = POLLIN };
	struct uroce_abi_shm reply;
	ssize_t bytes;
	int region;

	if (poll(&wait, 1, REPLY_TIMEOUT_MS) <= 0)
		return -1;
	bytes = link_receive_with_fd(conn_fd, &reply, sizeof(reply), MSG_DONTWAIT, &region);
	note_version(addr->link, &reply, bytes);
	if (!is_reply(addr, &reply, bytes, region))
		link_close_fd(&region);
	return region;
}

/*
 * Returns the channel of addr through the region, or NULL.  All slots of the region's owner share
 * it, because a ring has one writer.  Caller holds open_lock.
 */
static struct link_channel *find_channel(struct link_addr *addr, const struct stat *region)
{
	for (unsigned int slot = 0; slot < LINK_SLOTS; slot++) {
		struct link_channel *channel = addr->channel[slot];

		if (channel && channel->inode == region->st_ino &&
		    channel->device == region->st_dev && reader_is_alive(channel))
			return channel;
	}
	return NULL;
}

/*
 * Requests a channel from the process of the slot.  Returns a new one, the one that another slot of
 * that process has, or NULL on failure.  Caller holds open_lock.
 */
static struct link_channel *request_channel(struct link_addr *addr, unsigned int slot)
{
	struct link *link = addr->link;
	struct uroce_abi_shm request = {
		.header = { .message = UROCE_ABI_SHM_REQUEST, .version = UROCE_ABI_VERSION },
		.scope_id = addr->endpoint.scope_id,
		.slot = link->slot,
	};
	int conn_fd = link_broker_connect(link, slot, UROCE_BROKER_SHARED_MEMORY), region = -1;
	struct link_channel *shared = NULL, *channel = NULL;
	struct stat status;

	memcpy(request.address, addr->endpoint.gid, sizeof(request.address));
	if (conn_fd >= 0 && !link_send_with_fds(conn_fd, &request, sizeof(request), NULL, 0))
		region = receive_region(addr, conn_fd);
	if (region >= 0 && !fstat(region, &status)) {
		shared = find_channel(addr, &status);
		if (!shared)
			channel = new_channel(link, region, &status);
	}
	if (channel) {
		channel->conn_fd = conn_fd;
		return channel;
	}
	link_close_fd(&region);
	if (conn_fd >= 0)
		link_close_fd(&conn_fd);
	if (!shared)
		addr->next_request_ms[slot] = link_now_ms() + REQUEST_PAUSE_MS;
	return shared;
}

/* Replaces the slot's channel; frames of the old one are lost.  Caller holds link->lock. */
static void install_channel(struct link_addr *addr, unsigned int slot, struct link_channel *channel)
{
	struct link_channel *old = addr->channel[slot];

	channel->refs++;
	addr->channel[slot] = channel;
	if (old) {
		link_close_fd(&old->fd);
		/* Queue pairs that are connected already may still send. */
		pthread_mutex_lock(&old->lock);
		link_close_fd(&old->conn_fd);
		pthread_mutex_unlock(&old->lock);
		link_channel_put(old);
	}
}

uint32_t link_shm_refused_version(const struct link *link)
{
	return atomic_load(&link->refused_version);
}

struct link_channel *link_channel_open(struct link_addr *addr, unsigned int slot)
{
	struct link *link = addr->link;
	struct link_channel *channel, *fresh;

	link_mutex_lock(link, &link->open_lock);
	/* Other threads change addr->channel only with open_lock held. */
	channel = addr->channel[slot];
	if (!channel || !reader_is_alive(channel)) {
		fresh = link_now_ms() < addr->next_request_ms[slot] ? NULL
								    : request_channel(addr, slot);
		link_mutex_lock(link, &link->lock);
		if (fresh)
			install_channel(addr, slot, fresh);
		link_mutex_unlock(link, &link->lock);
		channel = fresh;
	}
	link_mutex_lock(link, &link->lock);
	if (channel)
		channel->refs++;
	link_mutex_unlock(link, &link->lock);
	link_mutex_unlock(link, &link->open_lock);
	return channel;
}

/*
 * Called when the ring is full.  Returns -EAGAIN, or 0 if the reader has made no progress for so
 * long that frames are dropped.
 */
static int apply_backpressure(struct link_channel *channel)
{
	int64_t now = link_now_ms();

	if (!channel->full_since || channel->full_read != channel->ring.read_seen) {
		channel->full_since = now;
		channel->full_read = channel->ring.read_seen;
	}
	return now - channel->full_since < READER_TIMEOUT_MS ? -EAGAIN : 0;
}

bool link_channel_is_full(struct link_channel *channel)
{
	bool full;

	if (atomic_load_explicit(&channel->link->abandoned, memory_order_relaxed))
		return false;
	pthread_mutex_lock(&channel->lock);
	/* The second is reserved for short bursts, so that an ACK does not wait for streams. */
	full = !channel->broken && !link_ring_has_room(&channel->ring, 2 * LINK_MAX_BYTES) &&
	       apply_backpressure(channel) != 0;
	pthread_mutex_unlock(&channel->lock);
	return full;
}

/* Wakes the reader.  Returns 0 or a negative errno. */
static int send_doorbell(const struct link_channel *channel)
{
	const struct uroce_abi_header doorbell = {
		.message = UROCE_ABI_SHM_DOORBELL,
		.version = UROCE_ABI_VERSION,
	};

	return send(channel->conn_fd, &doorbell, sizeof(doorbell), MSG_DONTWAIT | MSG_NOSIGNAL) < 0
		       ? -errno
		       : 0;
}

/* Caller holds the lock. */
static void ring_doorbell(struct link_channel *channel)
{
	uint32_t sleep;

	/*
	 * Pairs with link_addr_begin_sleep(), which announces the reader's sleep and then checks
	 * the rings once more.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	sleep = __atomic_load_n(&channel->region->waiting, __ATOMIC_RELAXED);
	if (!sleep)
		return;
	/*
	 * If the queue of the connection is full, the reader wakes up anyway.  Each writer rings
	 * until waiting is 0 again, because the first one may be killed before it has rung.
	 */
	if (send_doorbell(channel) == 0)
		__atomic_compare_exchange_n(&channel->region->waiting, &sleep, 0, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

int link_channel_send(struct link_channel *channel, uint16_t src_port, const struct iovec *pieces,
		      unsigned int count, size_t bytes, unsigned int segment)
{
	const struct uroce_abi_frame frame = {
		.bytes = (uint32_t)bytes,
		.segment = (uint16_t)segment,
		.src_port = src_port,
	};
	enum link_ring_result result;
	int error = 0;

	if (bytes == 0 || bytes > LINK_MAX_BYTES)
		return -EMSGSIZE;
	pthread_mutex_lock(&channel->lock);
	result = channel->broken ? LINK_RING_BROKEN
				 : link_ring_write(&channel->ring, &frame, pieces, count);
	switch (result) {
	case LINK_RING_OK:
		channel->full_since = 0;
		atomic_fetch_add_explicit(&channel->link->shm_sent, 1, memory_order_relaxed);
		break;
	case LINK_RING_FULL:
		error = apply_backpressure(channel);
		break;
	case LINK_RING_EMPTY:
	case LINK_RING_BROKEN:
		/* The frame is lost.  Queue pairs that connect from now on get another channel. */
		channel->broken = true;
		break;
	}
	ring_doorbell(channel);
	pthread_mutex_unlock(&channel->lock);
	return error;
}
