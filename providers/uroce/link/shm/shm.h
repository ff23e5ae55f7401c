/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Datagrams through shared memory, between processes of one user that use the same local address
 * (Documentation/decisions/shared-memory.md).  Each process has a region for each of its addresses;
 * a channel is the right to write to one ring of another process's region.
 *
 * Private to this directory; link.h declares what others call.
 */
#ifndef UROCE_LINK_SHM_SHM_H
#define UROCE_LINK_SHM_SHM_H

#include <sys/types.h>

#include "link/link_priv.h"
#include "ring.h"

/*
 * Maximum number of regions of a link: a process of this user may request a region for any address,
 * and each region takes 4.25 GiB of address space.
 */
#define LINK_REGIONS_MAX 64
#define LINK_REGION_BYTES link_region_ring_offset(LINK_SLOTS)

/* Returns the offset of the slot's ring in a region. */
static inline size_t link_region_ring_offset(unsigned int slot)
{
	return UROCE_ABI_REGION_HEAD_BYTES + (size_t)slot * UROCE_ABI_RING_STRIDE;
}

/* One ring of another process's region. */
struct link_channel {
	unsigned int refs; /* under link->lock */
	/* The region, for checking that its owner is alive; -1: not needed any more. */
	int fd;
	/* The next two are under lock. */
	int conn_fd; /* connection to the reader, for doorbells; -1: not needed any more */
	bool broken; /* the ring is broken: frames are lost */
	/* Device and inode of fd, which identify the region. */
	dev_t device;
	ino_t inode;
	struct link *link;
	struct uroce_abi_region *region;
	void *ring_memory;
	pthread_mutex_t lock; /* serialises writers */
	struct link_ring_writer ring;
	/* Time in ms since which the full ring was not read; 0: it had room at the last write. */
	int64_t full_since;
	uint64_t full_read; /* position of the reader at full_since */
};

/*
 * Memory of a local address that other processes write to.  It exists as long as the link, so that
 * writers need not know when the address is closed.
 */
struct link_region {
	_Atomic(struct link_region *) next_region;
	struct link *link;
	struct link_endpoint endpoint;
	int fd;
	uint8_t *memory;
	struct uroce_abi_region *shared;
	struct link_slot_set slots; /* slots that may write */
	atomic_uint empty_polls;    /* consecutive checks of the socket that found nothing */
	/* Twice the number of times that the owner has announced a sleep. */
	atomic_uint_fast32_t sleeps;
	/* The rest is used by the receiving thread only. */
	struct link_ring_reader ring[LINK_SLOTS];
	unsigned int next_slot; /* slot to check first */
	unsigned int skipped_polls;
	unsigned int frames_since_poll;
};

/* ---- region.c ---- */

/* Handles the request of another slot's owner for a channel: grants or refuses it. */
void link_region_reply(struct link *link, int fd, const struct uroce_abi_shm *request);
/* As link_receive(), from the rings. */
int link_region_receive(struct link_region *region, struct link_batch *batch);
/*
 * Returns true if the rings should be checked before the socket; not always, or they could starve
 * the socket.
 */
bool link_region_polls_first(struct link_region *region);
/*
 * Returns true if it is time to check the socket as well.  The caller then reports the result by
 * link_region_socket_polled().
 */
bool link_region_should_poll_socket(struct link_region *region);
void link_region_socket_polled(struct link_region *region, bool found);
/* Returns the region of the endpoint, or NULL if none was requested.  Caller holds link.lock. */
struct link_region *link_region_find(struct link *link, const struct link_endpoint *endpoint);
/*
 * Makes addr receive from the region.  The receiving thread may be asleep and have announced that
 * to other regions only, so writers ring the doorbell until it has checked this one.  Caller holds
 * link.lock.
 */
void link_region_attach(struct link_region *region, struct link_addr *addr);
void link_region_close_all(struct link *link);

/* ---- channel.c ---- */

/*
 * Control.  Returns the channel from addr to the slot, with a reference for the caller, or NULL.
 * If there is none whose reader is alive, requests one from the process of the slot, which has 100
 * ms to reply.  Other threads can answer requests to this process during that time.  Caller holds
 * no lock.
 */
struct link_channel *link_channel_open(struct link_addr *addr, unsigned int slot);
/* Drops a reference, and frees the channel with the last one.  Caller holds link->lock. */
void link_channel_put(struct link_channel *channel);
/* As link_peer_is_full(). */
bool link_channel_is_full(struct link_channel *channel);
/* As link_send(). */
int link_channel_send(struct link_channel *channel, uint16_t src_port, const struct iovec *pieces,
		      unsigned int count, size_t bytes, unsigned int segment);

#endif
