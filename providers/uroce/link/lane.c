/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The sending end of shared memory.
 *
 * A lane outlives the process that it leads to, as a cable does.  Whether that process lives is
 * seen by the lock on its inbox, and looked at when a queue pair is to use the lane: only then may
 * the slot have a new owner that matters.  (A process of the same user could make that lock vanish,
 * by sending the inbox back to its owner, who then closes it: the lane would look dead.)
 */
#include "lane.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	/*
	 * A full ring holds the sender back.  But a reader that has done nothing for so long is
	 * stopped or dead: frames are then lost, as at a full socket, and time-outs see it.
	 */
	READER_PATIENCE_MS = 100,
	/* Two that cannot take the answers would ask each other back for ever. */
	ASK_BACK_PAUSE_MS = 100,
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

static void ask(struct link_addr *addr, unsigned int slot)
{
	struct link *link = addr->link;
	struct uroce_abi_lane request = {
		.header = { .message = UROCE_ABI_LANE_REQUEST, .version = UROCE_ABI_VERSION },
		.scope_id = addr->endpoint.scope_id,
		.slot = link->slot,
	};
	struct iovec piece = { .iov_base = &request, .iov_len = sizeof(request) };

	memcpy(request.address, addr->endpoint.gid, sizeof(request.address));
	/* When his queue is full, or nobody is there, the next request may do better. */
	link_control_send_to_slot(link, slot, &piece, 1);
}

struct link_lane *link_lane_get(struct link_addr *addr, unsigned int slot)
{
	struct link_lane *lane = atomic_load_explicit(&addr->lane[slot], memory_order_relaxed);

	if (lane && is_alive(lane)) {
		lane->refs++;
		return lane;
	}
	ask(addr, slot);
	return NULL;
}

void link_lane_ask_back(struct link_addr *addr, unsigned int slot)
{
	struct link_lane *lane = atomic_load_explicit(&addr->lane[slot], memory_order_relaxed);
	int64_t now = link_now_ms();

	if ((lane && is_alive(lane)) || now - addr->asked_back[slot] < ASK_BACK_PAUSE_MS)
		return;
	addr->asked_back[slot] = now;
	ask(addr, slot);
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

void link_lane_install(struct link *link, struct link_control_input *input,
		       const struct uroce_abi_lane *reply)
{
	const struct link_endpoint endpoint = link_endpoint_of(reply->address, reply->scope_id);
	struct link_lane *lane, *old;
	struct link_addr *addr;

	if (!atomic_load(&link->shares_memory) || input->fd_count != 1 ||
	    !is_inbox(input->fds[0]) || !link_control_is_from_slot(link, input, reply->slot))
		return;
	link_mutex_lock(link, &link->lock);
	addr = link_addr_find(link, &endpoint);
	old = addr ? atomic_load_explicit(&addr->lane[reply->slot], memory_order_relaxed) : NULL;
	lane = NULL;
	/* Several requests have as many answers, and each has detached us. */
	if (old && is_alive(old))
		link_ring_attach(&old->ring);
	else if (addr)
		lane = new_lane(link, reply->slot, input->fds[0]);
	if (lane) {
		input->fd_count = 0;
		atomic_store_explicit(&addr->lane[reply->slot], lane, memory_order_release);
		/* Whoever sees it may rely on it that queue pairs find the lane. */
		link_ring_attach(&lane->ring);
		/* Who sends by the old one still may, into nothing. */
		if (old) {
			link_close_fd(&old->fd);
			link_lane_put(old);
		}
	}
	link_mutex_unlock(link, &link->lock);
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

	/* Against the reader, who says that he sleeps and then looks once more. */
	atomic_thread_fence(memory_order_seq_cst);
	sleep = __atomic_load_n(&lane->inbox->waiting, __ATOMIC_RELAXED);
	if (!sleep)
		return;
	/*
	 * When his queue is full, he has something to wake up for.  Others ring as well until it is
	 * done: who says that it is may be killed before.
	 */
	if (link_control_ring_bell(lane->link, lane->slot) == 0)
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
