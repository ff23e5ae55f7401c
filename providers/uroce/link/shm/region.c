/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The receiving end of shared memory.  The region of an address is created when the first process
 * requests a channel.  Forked children do not get its mapping, so that they cannot read their
 * parent's frames.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memfd.h"
#include "link/scm_rights.h"
#include "shm.h"

enum {
	/*
	 * Checking the socket takes longer than checking the rings, and once there are channels
	 * most datagrams come by the rings.  So after EMPTY_POLLS_MAX consecutive checks of the
	 * socket that found nothing, it is checked only every SOCKET_POLL_INTERVAL-th time; a
	 * datagram then waits for 4 us at most.
	 */
	EMPTY_POLLS_MAX = 64,
	SOCKET_POLL_INTERVAL = 64,
	/* Maximum number of frames from rings between two checks of the socket */
	SHM_FRAMES_MAX = 31,
};

/*
 * Announces that the owner sleeps: writers ring the doorbell from now on.  The number differs each
 * time, so that a slow writer cannot cancel a later announcement.
 */
static void announce_sleep(struct link_region *region)
{
	uint32_t sleeps = atomic_fetch_add_explicit(&region->sleeps, 2, memory_order_relaxed);

	__atomic_store_n(&region->shared->waiting, (sleeps + 2) | 1, __ATOMIC_SEQ_CST);
}

static struct link_region *new_region(struct link *link, const struct link_endpoint *endpoint)
{
	struct link_region *region = calloc(1, sizeof(*region));

	if (!region)
		return NULL;
	region->link = link;
	region->endpoint = *endpoint;
	region->fd = memfd_make("uroce-region", LINK_REGION_BYTES);
	if (region->fd >= 0)
		region->memory = memfd_map(region->fd, LINK_REGION_BYTES, 0);
	if (!region->memory) {
		link_close_fd(&region->fd);
		free(region);
		return NULL;
	}
	region->shared = (struct uroce_abi_region *)(void *)region->memory;
	return region;
}

void link_region_close_all(struct link *link)
{
	/* A forked child does not have the mapping, so it has nothing to unmap. */
	bool abandoned = atomic_load_explicit(&link->abandoned, memory_order_relaxed);
	struct link_region *region, *next_region;

	for (region = link->regions; region; region = next_region) {
		next_region = region->next_region;
		if (!abandoned)
			munmap(region->memory, LINK_REGION_BYTES);
		link_close_fd(&region->fd);
		free(region);
	}
}

struct link_region *link_region_find(struct link *link, const struct link_endpoint *endpoint)
{
	struct link_region *region;

	for (region = link->regions; region; region = region->next_region)
		if (link_endpoint_equal(&region->endpoint, endpoint))
			break;
	return region;
}

static bool has_max_regions(const struct link *link)
{
	const struct link_region *region;
	unsigned int count = 0;

	for (region = link->regions; region; region = region->next_region)
		count++;
	return count >= LINK_REGIONS_MAX;
}

void link_region_attach(struct link_region *region, struct link_addr *addr)
{
	if (atomic_load_explicit(&addr->region, memory_order_relaxed) == region)
		return;
	announce_sleep(region);
	atomic_store_explicit(&addr->region, region, memory_order_release);
}

/*
 * Returns the region of the endpoint, which is created if necessary, or NULL.  The address need not
 * be open in this process: if the peer is the first to connect, its frames wait until the address
 * is open.  Caller holds link->lock.
 */
static struct link_region *get_region(struct link *link, const struct link_endpoint *endpoint)
{
	struct link_region *region = link_region_find(link, endpoint);
	struct link_addr *addr = link_addr_find(link, endpoint);

	if (!region && !has_max_regions(link)) {
		region = new_region(link, endpoint);
		if (!region)
			return NULL;
		region->next_region = link->regions;
		link->regions = region;
	}
	if (region && addr)
		link_region_attach(region, addr);
	return region;
}

/*
 * Allows the slot to write: empties its ring and has it read from now on.  Does nothing if the ring
 * is being read already, that is, if the slot was admitted before and its ring is not broken.
 */
static void admit_slot(struct link_region *region, unsigned int slot)
{
	uint8_t *ring = region->memory + link_region_ring_offset(slot);

	if (link_slot_set_has(&region->slots, slot))
		return;
	region->ring[slot].shared = (struct uroce_abi_ring *)(void *)ring;
	region->ring[slot].data = ring + UROCE_ABI_RING_HEAD_BYTES;
	link_ring_reset(&region->ring[slot]);
	link_slot_set_add(&region->slots, slot);
}

void link_region_reply(struct link *link, int fd, const struct uroce_abi_shm *request)
{
	struct uroce_abi_shm reply = *request;
	const struct link_endpoint endpoint =
		link_endpoint_from_gid(request->address, request->scope_id);
	struct link_region *region = NULL;

	reply.slot = link->slot;
	link_mutex_lock(link, &link->lock);
	if (atomic_load(&link->shares_memory))
		region = get_region(link, &endpoint);
	if (region)
		admit_slot(region, request->slot);
	reply.header.message = region ? UROCE_ABI_SHM_REPLY : UROCE_ABI_SHM_REFUSED;
	link_send_with_fds(fd, &reply, sizeof(reply), region ? &region->fd : NULL, region ? 1 : 0);
	link_mutex_unlock(link, &link->lock);
}

/* Counts a received frame; only one thread receives, so an atomic addition is not needed. */
static void count_received(struct link *link)
{
	uint64_t count = atomic_load_explicit(&link->shm_received, memory_order_relaxed);

	atomic_store_explicit(&link->shm_received, count + 1, memory_order_relaxed);
}

/* Stores a frame of the ring in *batch.  Returns false if there is none. */
static bool take_frame(struct link_region *region, unsigned int slot, struct link_batch *batch)
{
	struct uroce_abi_frame frame;
	uint8_t *bytes;

	switch (link_ring_next(&region->ring[slot], &frame, &bytes)) {
	case LINK_RING_OK:
		break;
	case LINK_RING_BROKEN:
		/* The writer violates the format: the ring is not read until it is renewed. */
		link_ring_set_broken(&region->ring[slot]);
		link_slot_set_remove(&region->slots, slot);
		return false;
	case LINK_RING_EMPTY:
	case LINK_RING_FULL:
		return false;
	}
	/* The sender's address is that of the region. */
	memcpy(batch->src, region->endpoint.gid, sizeof(batch->src));
	batch->buffer = bytes;
	batch->bytes = frame.bytes;
	batch->segment = frame.segment && frame.segment < frame.bytes ? frame.segment : frame.bytes;
	batch->src_port = frame.src_port;
	batch->traffic_class = 0;
	batch->hop_limit = 0;
	batch->ring = &region->ring[slot];
	count_received(region->link);
	return true;
}

/* Takes a frame of the slots from first to last - 1, in this order.  Returns 0 or -EAGAIN. */
static int take_from_slots(struct link_region *region, unsigned int first, unsigned int last,
			   struct link_batch *batch)
{
	unsigned int slot = link_slot_set_next(&region->slots, first);

	for (; slot < last; slot = link_slot_set_next(&region->slots, slot + 1)) {
		if (!take_frame(region, slot, batch))
			continue;
		region->next_slot = (slot + 1) % LINK_SLOTS;
		region->frames_since_poll++;
		return 0;
	}
	return -EAGAIN;
}

int link_region_receive(struct link_region *region, struct link_batch *batch)
{
	unsigned int next = region->next_slot;

	if (!take_from_slots(region, next, LINK_SLOTS, batch))
		return 0;
	return take_from_slots(region, 0, next, batch);
}

bool link_region_polls_first(struct link_region *region)
{
	return region->frames_since_poll < SHM_FRAMES_MAX;
}

bool link_region_should_poll_socket(struct link_region *region)
{
	if (atomic_load_explicit(&region->empty_polls, memory_order_relaxed) >= EMPTY_POLLS_MAX &&
	    ++region->skipped_polls < SOCKET_POLL_INTERVAL)
		return false;
	region->skipped_polls = 0;
	return true;
}

void link_region_socket_polled(struct link_region *region, bool found)
{
	unsigned int polls = atomic_load_explicit(&region->empty_polls, memory_order_relaxed);

	region->frames_since_poll = 0;
	if (found)
		atomic_store_explicit(&region->empty_polls, 0, memory_order_relaxed);
	else if (polls < EMPTY_POLLS_MAX)
		atomic_store_explicit(&region->empty_polls, polls + 1, memory_order_relaxed);
}

void link_release(const struct link_batch *batch)
{
	if (batch->ring)
		link_ring_release(batch->ring);
}

bool link_addr_begin_sleep(struct link_addr *addr)
{
	struct link_region *region = atomic_load_explicit(&addr->region, memory_order_acquire);
	unsigned int slot;

	if (!region || atomic_load_explicit(&region->link->abandoned, memory_order_relaxed))
		return false;
	/* Pairs with ring_doorbell(), which checks after a write whether the owner sleeps. */
	announce_sleep(region);
	atomic_thread_fence(memory_order_seq_cst);
	slot = link_slot_set_next(&region->slots, 0);
	for (; slot < LINK_SLOTS; slot = link_slot_set_next(&region->slots, slot + 1)) {
		if (link_ring_has_frame(&region->ring[slot]))
			return true;
	}
	return false;
}

void link_addr_end_sleep(struct link_addr *addr)
{
	struct link_region *region = atomic_load_explicit(&addr->region, memory_order_acquire);

	if (!region || atomic_load_explicit(&region->link->abandoned, memory_order_relaxed))
		return;
	__atomic_store_n(&region->shared->waiting, 0, __ATOMIC_RELAXED);
	/* The socket may have woken the thread: check it every time again. */
	atomic_store_explicit(&region->empty_polls, 0, memory_order_relaxed);
}
