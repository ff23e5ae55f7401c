/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The receiving end of shared memory.  The inbox of an address is made when the first process asks
 * for a lane.  Its memory is not inherited by forked children, which would read what is not
 * theirs.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lane.h"
#include "question.h"

enum {
	/*
	 * To look at the socket takes longer than to look at the rings, and once there are lanes
	 * most comes by the rings: when VAIN_LOOKS in a row have found nothing, the socket is
	 * looked at only every LOOK_INTERVAL-th time.
	 */
	VAIN_LOOKS = 64,
	LOOK_INTERVAL = 8,
	/* However much comes through the rings, others have their turn after so many frames. */
	FRAMES_BETWEEN_LOOKS = 32,
};

static int make_file(void)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	/* Held until the process closes the file or ends, however it ends. */
	struct flock life = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
	struct rlimit size;
	int fd;

	/* ftruncate(2) beyond it sends a signal that ends the program. */
	if (getrlimit(RLIMIT_FSIZE, &size) || size.rlim_cur < LINK_INBOX_BYTES)
		return -EFBIG;
	fd = memfd_create("uroce-inbox", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, LINK_INBOX_BYTES) || fcntl(fd, F_ADD_SEALS, seals) ||
	    fcntl(fd, F_SETLK, &life)) {
		int error = -errno;

		close(fd);
		return error;
	}
	return fd;
}

/*
 * Writers ring from now on.  Each time it is another number, so that a writer which has rung takes
 * back no later one.
 */
static void say_asleep(struct link_inbox *inbox)
{
	uint32_t sleeps = atomic_fetch_add_explicit(&inbox->sleeps, 2, memory_order_relaxed);

	__atomic_store_n(&inbox->shared->waiting, (sleeps + 2) | 1, __ATOMIC_SEQ_CST);
}

static struct link_inbox *new_inbox(struct link *link, const struct link_endpoint *endpoint)
{
	struct link_inbox *inbox = calloc(1, sizeof(*inbox));

	if (!inbox)
		return NULL;
	inbox->link = link;
	inbox->endpoint = *endpoint;
	inbox->fd = make_file();
	inbox->memory = inbox->fd < 0 ? MAP_FAILED
				      : mmap(NULL, LINK_INBOX_BYTES, PROT_READ | PROT_WRITE,
					     MAP_SHARED, inbox->fd, 0);
	if (inbox->memory == MAP_FAILED) {
		link_close_fd(&inbox->fd);
		free(inbox);
		return NULL;
	}
	madvise(inbox->memory, LINK_INBOX_BYTES, MADV_DONTFORK);
	inbox->shared = (struct uroce_abi_inbox *)(void *)inbox->memory;
	for (unsigned int slot = 0; slot < LINK_SLOTS; slot++) {
		uint8_t *ring = inbox->memory + link_inbox_ring_offset(slot);

		inbox->ring[slot].shared = (struct uroce_abi_ring *)(void *)ring;
		inbox->ring[slot].data = ring + UROCE_ABI_RING_HEAD_BYTES;
	}
	return inbox;
}

void link_inbox_close_all(struct link *link)
{
	/* A forked child does not have the memory. */
	bool abandoned = atomic_load_explicit(&link->abandoned, memory_order_relaxed);
	struct link_inbox *inbox, *older;

	for (inbox = link->inboxes; inbox; inbox = older) {
		older = inbox->older;
		if (!abandoned)
			munmap(inbox->memory, LINK_INBOX_BYTES);
		link_close_fd(&inbox->fd);
		free(inbox);
	}
}

struct link_inbox *link_inbox_find(struct link *link, const struct link_endpoint *endpoint)
{
	struct link_inbox *inbox;

	for (inbox = link->inboxes; inbox; inbox = inbox->older)
		if (link_endpoint_equal(&inbox->endpoint, endpoint))
			break;
	return inbox;
}

static bool has_too_many(const struct link *link)
{
	const struct link_inbox *inbox;
	unsigned int count = 0;

	for (inbox = link->inboxes; inbox; inbox = inbox->older)
		count++;
	return count >= LINK_INBOXES_MAX;
}

void link_inbox_attach(struct link_inbox *inbox, struct link_addr *addr)
{
	if (atomic_load_explicit(&addr->inbox, memory_order_relaxed) == inbox)
		return;
	say_asleep(inbox);
	atomic_store_explicit(&addr->inbox, inbox, memory_order_release);
}

/*
 * Whether the address is open here does not matter: the peer may be the first to connect, and its
 * frames then wait until it is.  Caller holds the lock.
 */
static struct link_inbox *get_inbox(struct link *link, const struct link_endpoint *endpoint)
{
	struct link_inbox *inbox = link_inbox_find(link, endpoint);
	struct link_addr *addr = link_addr_find(link, endpoint);

	if (!inbox && !has_too_many(link)) {
		inbox = new_inbox(link, endpoint);
		if (!inbox)
			return NULL;
		inbox->older = link->inboxes;
		link->inboxes = inbox;
	}
	if (inbox && addr)
		link_inbox_attach(inbox, addr);
	return inbox;
}

/*
 * Let the slot write.  A ring that is not read, because it is new or because an earlier owner of
 * the slot has broken it, begins anew.
 */
static void admit_slot(struct link_inbox *inbox, unsigned int slot)
{
	uint64_t bit = UINT64_C(1) << slot;

	if (atomic_load_explicit(&inbox->slots, memory_order_acquire) & bit)
		return;
	link_ring_renew(&inbox->ring[slot]);
	atomic_fetch_or_explicit(&inbox->slots, bit, memory_order_release);
}

void link_inbox_answer(struct link *link, int fd, const struct uroce_abi_lane *request)
{
	struct uroce_abi_lane reply = *request;
	const struct link_endpoint endpoint = link_endpoint_of(request->address, request->scope_id);
	struct link_inbox *inbox = NULL;

	reply.slot = link->slot;
	link_mutex_lock(link, &link->lock);
	if (atomic_load(&link->shares_memory))
		inbox = get_inbox(link, &endpoint);
	if (inbox)
		admit_slot(inbox, request->slot);
	reply.header.message = inbox ? UROCE_ABI_LANE_REPLY : UROCE_ABI_LANE_REFUSED;
	link_send_answer(fd, &reply, sizeof(reply), inbox ? &inbox->fd : NULL, inbox ? 1 : 0);
	link_mutex_unlock(link, &link->lock);
}

/* One thread at a time receives. */
static void count_received(struct link *link)
{
	uint64_t count = atomic_load_explicit(&link->memory_received, memory_order_relaxed);

	atomic_store_explicit(&link->memory_received, count + 1, memory_order_relaxed);
}

/* A frame of the ring into *batch; false when there is none. */
static bool take_frame(struct link_inbox *inbox, unsigned int slot, struct link_batch *batch)
{
	struct uroce_abi_frame frame;
	uint8_t *bytes;

	switch (link_ring_next(&inbox->ring[slot], &frame, &bytes)) {
	case LINK_RING_OK:
		break;
	case LINK_RING_BROKEN:
		/*
		 * Its writer does not keep to the format: the ring is not read until it begins
		 * anew.
		 */
		link_ring_give_up(&inbox->ring[slot]);
		atomic_fetch_and_explicit(&inbox->slots, ~(UINT64_C(1) << slot),
					  memory_order_release);
		return false;
	case LINK_RING_EMPTY:
	case LINK_RING_FULL:
		return false;
	}
	/* The sender uses the same address. */
	memcpy(batch->src, inbox->endpoint.gid, sizeof(batch->src));
	batch->buffer = bytes;
	batch->bytes = frame.bytes;
	batch->segment = frame.segment && frame.segment < frame.bytes ? frame.segment : frame.bytes;
	batch->src_port = frame.src_port;
	batch->traffic_class = 0;
	batch->hop_limit = 0;
	batch->ring = &inbox->ring[slot];
	count_received(inbox->link);
	return true;
}

int link_inbox_receive(struct link_inbox *inbox, struct link_batch *batch)
{
	uint64_t slots = atomic_load_explicit(&inbox->slots, memory_order_acquire);
	uint64_t behind = slots >> inbox->next << inbox->next;
	uint64_t left[2] = { behind, slots & ~behind };

	for (unsigned int part = 0; part < 2; part++) {
		while (left[part]) {
			unsigned int slot = (unsigned int)__builtin_ctzll(left[part]);

			left[part] &= left[part] - 1;
			if (!take_frame(inbox, slot, batch))
				continue;
			inbox->next = (slot + 1) % LINK_SLOTS;
			return 0;
		}
	}
	return -EAGAIN;
}

bool link_inbox_is_next(struct link_inbox *inbox)
{
	return ++inbox->frames % FRAMES_BETWEEN_LOOKS != 0;
}

bool link_inbox_wants_look(struct link_inbox *inbox)
{
	if (atomic_load_explicit(&inbox->vain_looks, memory_order_relaxed) >= VAIN_LOOKS &&
	    ++inbox->looks_left_out < LOOK_INTERVAL)
		return false;
	inbox->looks_left_out = 0;
	return true;
}

void link_inbox_looked(struct link_inbox *inbox, bool found)
{
	unsigned int vain = atomic_load_explicit(&inbox->vain_looks, memory_order_relaxed);

	if (found)
		atomic_store_explicit(&inbox->vain_looks, 0, memory_order_relaxed);
	else if (vain < VAIN_LOOKS)
		atomic_store_explicit(&inbox->vain_looks, vain + 1, memory_order_relaxed);
}

void link_release(const struct link_batch *batch)
{
	if (batch->ring)
		link_ring_release(batch->ring);
}

bool link_addr_await(struct link_addr *addr)
{
	struct link_inbox *inbox = atomic_load_explicit(&addr->inbox, memory_order_acquire);
	uint64_t slots;

	if (!inbox || atomic_load_explicit(&inbox->link->abandoned, memory_order_relaxed))
		return false;
	/* Pairs with a writer, which writes and then looks whether the owner sleeps. */
	say_asleep(inbox);
	atomic_thread_fence(memory_order_seq_cst);
	slots = atomic_load_explicit(&inbox->slots, memory_order_acquire);
	for (; slots; slots &= slots - 1) {
		unsigned int slot = (unsigned int)__builtin_ctzll(slots);

		if (link_ring_has_more(&inbox->ring[slot]))
			return true;
	}
	return false;
}

void link_addr_awake(struct link_addr *addr)
{
	struct link_inbox *inbox = atomic_load_explicit(&addr->inbox, memory_order_acquire);

	if (!inbox || atomic_load_explicit(&inbox->link->abandoned, memory_order_relaxed))
		return;
	__atomic_store_n(&inbox->shared->waiting, 0, __ATOMIC_RELAXED);
	/* It may have been the socket. */
	atomic_store_explicit(&inbox->vain_looks, 0, memory_order_relaxed);
}
