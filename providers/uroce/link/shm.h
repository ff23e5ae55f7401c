/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Datagrams through shared memory, between processes of one user that use the same local address
 * (Documentation/decisions/shared-memory.md).  Each process has a region for each of its addresses;
 * a channel is the right to write to one ring of another process's region.
 *
 * Only this folder includes it; link.h has what others call.
 */
#ifndef UROCE_LINK_SHM_H
#define UROCE_LINK_SHM_H

#include "internal.h"
#include "ring.h"

/* A process of this user may ask for any address, and each region takes 4.25 GiB of address space.
 */
#define LINK_REGIONS_MAX 64
#define LINK_REGION_BYTES link_region_ring_offset(LINK_SLOTS)

/* Where in a region the ring of the slot begins. */
static inline size_t link_region_ring_offset(unsigned int slot)
{
	return UROCE_ABI_REGION_HEAD_BYTES + (size_t)slot * UROCE_ABI_RING_STRIDE;
}

/* A set of slots that one thread walks while others change it. */
struct link_slot_set {
	atomic_uint_fast64_t some; /* bit i: word i is not 0, or was so */
	atomic_uint_fast64_t word[LINK_SLOTS / 64];
};

_Static_assert(LINK_SLOTS <= 64 * 64, "a word of words");

bool link_slot_set_has(const struct link_slot_set *set, unsigned int slot);
void link_slot_set_add(struct link_slot_set *set, unsigned int slot);
void link_slot_set_remove(struct link_slot_set *set, unsigned int slot);
/* The lowest slot of the set from this one on, or LINK_SLOTS. */
unsigned int link_slot_set_next(const struct link_slot_set *set, unsigned int slot);

/* One ring of another process's region. */
struct link_channel {
	unsigned int refs; /* under link.lock */
	int fd;		   /* the region, to see whether its owner lives; -1: no matter any more */
	int end;	   /* connection with the reader, to wake it; -1: as before */
	bool broken;	   /* under lock: what is sent is lost */
	struct link *link;
	unsigned int slot;
	struct uroce_abi_region *region;
	void *ring_memory;
	pthread_mutex_t lock; /* one writer at a time */
	struct link_ring_writer ring;
	int64_t full_since; /* milliseconds; 0: it was not full at the last write */
	uint64_t full_read; /* where the reader was then */
};

/* It lives as long as the link: writers need not know when its address is closed. */
struct link_region {
	_Atomic(struct link_region *) older;
	struct link *link;
	struct link_endpoint endpoint;
	int fd;
	uint8_t *memory;
	struct uroce_abi_region *shared;
	struct link_slot_set slots;  /* those that may write */
	atomic_uint vain_looks;	     /* at the socket, one after the other */
	atomic_uint_fast32_t sleeps; /* how often the owner has slept, or may have */
	/* The rest is the receiver's. */
	struct link_ring_reader ring[LINK_SLOTS];
	unsigned int next; /* the slot to look at first */
	unsigned int looks_left_out;
	unsigned int frames;
};

/* ---- shm_region.c ---- */

/* The owner of another slot asks for a channel: give it, or refuse. */
void link_region_answer(struct link *link, int fd, const struct uroce_abi_shm *request);
/* As link_receive(), from the rings. */
int link_region_receive(struct link_region *region, struct link_batch *batch);
/* Are the rings looked at before the socket?  Not always, or they could starve it. */
bool link_region_is_next(struct link_region *region);
/* Is it time to look at the socket as well?  Then tell what came of it. */
bool link_region_wants_look(struct link_region *region);
void link_region_looked(struct link_region *region, bool found);
/* The region of the endpoint, if a process has ever asked for it.  Caller holds link.lock. */
struct link_region *link_region_find(struct link *link, const struct link_endpoint *endpoint);
/*
 * Let addr receive from the region.  The thread that receives may be asleep and have said so of
 * other regions only: until it has looked at this one, writers ring.  Caller holds link.lock.
 */
void link_region_attach(struct link_region *region, struct link_addr *addr);
void link_region_close_all(struct link *link);

/* ---- shm_channel.c ---- */

/*
 * Control.  The channel from addr to the slot, counted, or NULL.  If there is none whose reader
 * lives, the process of the slot is asked for it and has some milliseconds to answer; meanwhile
 * requests to this process are answered.  Caller holds no lock.
 */
struct link_channel *link_channel_open(struct link_addr *addr, unsigned int slot);
/* Caller holds link.lock. */
void link_channel_put(struct link_channel *channel);
/* As link_peer_is_full(). */
bool link_channel_is_full(struct link_channel *channel);
/* As link_send(). */
int link_channel_send(struct link_channel *channel, uint16_t src_port, const struct iovec *pieces,
		      unsigned int count, size_t bytes, unsigned int segment);

#endif
