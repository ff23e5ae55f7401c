/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The sending end of shared memory.
 *
 * A lane outlives the process that it leads to, as a cable does.  The lock on its inbox shows
 * whether that process lives; it is looked at when a queue pair is to use the lane, because only
 * then a new owner of the slot matters.  (A process of the same user could make that lock vanish,
 * by sending the inbox back to its owner, which then closes it: the lane would look dead.)
 */
#include "lane.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "question.h"

enum {
	/*
	 * A full ring holds the sender back.  But a reader that has done nothing for so long is
	 * stopped or dead: frames are then lost, as at a full socket, and time-outs see it.
	 */
	READER_PATIENCE_MS = 100,
	/* For one that is busy, on a busy host; others answer at once. */
	ANSWER_PATIENCE_MS = 100,
	/* A process that has not answered, or has refused, is not asked again for so long. */
	ASK_PAUSE_MS = 1000,
};

static bool is_alive(struct link_lane *lane)
{
	struct flock life = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
	bool broken;

	pthread_mutex_lock(&lane->lock);
	/* A write looks only when it needs room; and none may come when the reader begins anew. */
	lane->broken |= link_ring_is_given_up(&lane->ring);
	broken = lane->broken;
	pthread_mutex_unlock(&lane->lock);
	return !broken && fcntl(lane->fd, F_GETLK, &life) == 0 && life.l_type != F_UNLCK;
}

static void *map(int fd, size_t bytes, size_t offset)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);

	if (memory == MAP_FAILED)
		return NULL;
	/* A forked child must not write to what its parent writes to. */
	madvise(memory, bytes, MADV_DONTFORK);
	return memory;
}

/* A file that can still be made smaller would let its owner kill us. */
static bool is_inbox(int fd)
{
	struct stat status;
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & F_SEAL_SHRINK) && fstat(fd, &status) == 0 &&
	       status.st_size == LINK_INBOX_BYTES;
}

static void free_lane(struct link_lane *lane)
{
	/* A forked child does not have the memory, and may have something else there by now. */
	bool mine = !atomic_load_explicit(&lane->link->abandoned, memory_order_relaxed);

	if (mine && lane->inbox)
		munmap(lane->inbox, UROCE_ABI_INBOX_HEAD_BYTES);
	if (mine && lane->ring_memory)
		munmap(lane->ring_memory, UROCE_ABI_RING_STRIDE);
	link_close_fd(&lane->fd);
	pthread_mutex_destroy(&lane->lock);
	free(lane);
}

/* A lane through the inbox fd, which it then owns; NULL when that cannot be. */
static struct link_lane *new_lane(struct link *link, unsigned int slot, int fd)
{
	struct link_lane *lane = calloc(1, sizeof(*lane));

	if (!lane)
		return NULL;
	lane->fd = -1;
	lane->refs = 1;
	lane->link = link;
	lane->slot = slot;
	pthread_mutex_init(&lane->lock, NULL);
	lane->inbox = map(fd, UROCE_ABI_INBOX_HEAD_BYTES, 0);
	lane->ring_memory = map(fd, UROCE_ABI_RING_STRIDE, link_inbox_ring_offset(link->slot));
	if (!lane->inbox || !lane->ring_memory) {
		free_lane(lane);
		return NULL;
	}
	lane->fd = fd;
	link_ring_open_writer(&lane->ring, lane->ring_memory,
			      (uint8_t *)lane->ring_memory + UROCE_ABI_RING_HEAD_BYTES);
	return lane;
}

void link_lane_put(struct link_lane *lane)
{
	if (--lane->refs == 0)
		free_lane(lane);
}

/* Only the answer to this question, and from the process that was asked. */
static bool is_answer(const struct link_addr *addr, unsigned int slot,
		      const struct link_answer *answer)
{
	const struct uroce_abi_lane *lane = &answer->message.lane;
	struct link_endpoint endpoint;

	if (answer->message.kind != UROCE_ABI_LANE_REPLY || answer->cut || answer->fd_count != 1)
		return false;
	endpoint = link_endpoint_of(lane->address, lane->scope_id);
	return lane->slot == slot && link_endpoint_equal(&endpoint, &addr->endpoint) &&
	       is_inbox(answer->fds[0]);
}

/* Caller holds open_lock. */
static struct link_lane *ask_for_lane(struct link_addr *addr, unsigned int slot)
{
	struct link *link = addr->link;
	struct uroce_abi_lane request = {
		.header = { .message = UROCE_ABI_LANE_REQUEST, .version = UROCE_ABI_VERSION },
		.scope_id = addr->endpoint.scope_id,
		.slot = link->slot,
	};
	struct link_lane *lane = NULL;
	struct link_answer answer;
	int fd;

	memcpy(request.address, addr->endpoint.gid, sizeof(request.address));
	fd = link_ask(link, slot, &request, sizeof(request));
	if (fd >= 0 &&
	    link_await_answer(link, fd, link_now_ms() + ANSWER_PATIENCE_MS, &answer) == 0) {
		if (is_answer(addr, slot, &answer))
			lane = new_lane(link, slot, answer.fds[0]);
		if (lane)
			answer.fd_count = 0;
		link_drop_answer(&answer);
	}
	link_close_fd(&fd);
	if (lane)
		lane->key = addr->key;
	else
		addr->ask_again[slot] = link_now_ms() + ASK_PAUSE_MS;
	return lane;
}

/* Replace the lane; what is still sent by the old one is lost.  Caller holds the lock. */
static void install(struct link_addr *addr, struct link_lane *lane)
{
	struct link_lane *old = addr->lane[lane->slot];

	addr->lane[lane->slot] = lane;
	if (old) {
		link_close_fd(&old->fd);
		link_lane_put(old);
	}
}

struct link_lane *link_lane_open(struct link_addr *addr, unsigned int slot)
{
	struct link *link = addr->link;
	struct link_lane *lane, *fresh;

	link_mutex_lock(link, &link->open_lock);
	/* Under open_lock no other thread changes it. */
	lane = addr->lane[slot];
	if (!lane || !is_alive(lane)) {
		fresh = link_now_ms() < addr->ask_again[slot] ? NULL : ask_for_lane(addr, slot);
		link_mutex_lock(link, &link->lock);
		if (fresh)
			install(addr, fresh);
		link_mutex_unlock(link, &link->lock);
		lane = fresh;
	}
	link_mutex_lock(link, &link->lock);
	if (lane)
		lane->refs++;
	link_mutex_unlock(link, &link->lock);
	link_mutex_unlock(link, &link->open_lock);
	return lane;
}

/* The ring is full: -EAGAIN, or 0 when the reader has stood still for so long that it is lost. */
static int hold_back(struct link_lane *lane)
{
	int64_t now = link_now_ms();

	if (!lane->full_since || lane->full_read != lane->ring.read_seen) {
		lane->full_since = now;
		lane->full_read = lane->ring.read_seen;
	}
	return now - lane->full_since < READER_PATIENCE_MS ? -EAGAIN : 0;
}

bool link_lane_is_full(struct link_lane *lane)
{
	bool full;

	if (atomic_load_explicit(&lane->link->abandoned, memory_order_relaxed))
		return false;
	pthread_mutex_lock(&lane->lock);
	/* Room for one more is left to short runs: an ACK need not wait for others' streams. */
	full = !lane->broken && !link_ring_has_room(&lane->ring, 2 * LINK_MAX_BYTES) &&
	       hold_back(lane) != 0;
	pthread_mutex_unlock(&lane->lock);
	return full;
}

static void ring_bell(struct link_lane *lane)
{
	uint32_t sleep;

	/* Pairs with the reader, which says that it sleeps and then looks once more. */
	atomic_thread_fence(memory_order_seq_cst);
	sleep = __atomic_load_n(&lane->inbox->waiting, __ATOMIC_RELAXED);
	if (!sleep)
		return;
	/*
	 * When its queue is full, the reader has something to wake up for.  Each writer rings
	 * until waiting is 0 again, since the first one may be killed before it has rung.
	 */
	if (link_control_ring_bell(lane->link, lane->slot, lane->key) == 0)
		__atomic_compare_exchange_n(&lane->inbox->waiting, &sleep, 0, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

int link_lane_send(struct link_lane *lane, uint16_t src_port, const struct iovec *pieces,
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
	pthread_mutex_lock(&lane->lock);
	result = lane->broken ? LINK_RING_BROKEN
			      : link_ring_write(&lane->ring, &frame, pieces, count);
	switch (result) {
	case LINK_RING_OK:
		lane->full_since = 0;
		atomic_fetch_add_explicit(&lane->link->memory_sent, 1, memory_order_relaxed);
		break;
	case LINK_RING_FULL:
		error = hold_back(lane);
		break;
	case LINK_RING_EMPTY:
	case LINK_RING_BROKEN:
		/* Lost.  Queue pairs that connect from now on get another lane. */
		lane->broken = true;
		break;
	}
	pthread_mutex_unlock(&lane->lock);
	ring_bell(lane);
	return error;
}
