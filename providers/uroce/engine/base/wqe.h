/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Work queue entries and the rings that hold them.  The owner of the QP (verbs, tests) supplies the
 * memory; the poster fills the entry at head, the engine consumes from tail.  Everything here is
 * used by one caller at a time, under the lock of the QP (or of the shared receive queue).
 * Indexes run freely and are masked on use.
 */
#ifndef UROCE_ENGINE_BASE_WQE_H
#define UROCE_ENGINE_BASE_WQE_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "types.h"

/* Maximum number of SGEs of a WQE, since a queue pair copies those of its current receive WQE. */
#define ENG_MAX_SGE 32
#define ENG_MAX_INLINE 512
/* Maximum message size of RC, UC and READ in the specification. */
#define ENG_MAX_MESSAGE 0x80000000u

struct eng_sge {
	uint64_t addr;
	uint32_t length; /* in bytes */
	uint32_t lkey;
};

struct eng_path;

struct eng_send_wqe {
	uint64_t wr_id;
	uint32_t length;     /* of the message, in bytes */
	uint32_t first_psn;  /* set by the engine in eng_sq_push() */
	uint32_t packets;    /* set by the engine: number of PSNs of the message */
	uint32_t uncredited; /* set by engine: number of uncredited requests up to this one */
	uint8_t op;	     /* enum eng_op */
	uint8_t flags;	     /* set of enum eng_send_flag */
	uint8_t sge_count;
	uint8_t status;	    /* set by the engine: local error (enum eng_status) */
	uint32_t immediate; /* immediate data, or the R_Key to invalidate; host order */
	union {
		struct {
			uint64_t va;
			uint64_t compare_add;
			uint64_t swap;
			uint32_t rkey;
			uint32_t flush; /* FLUSH: its FETH */
		} remote;
		struct {
			const struct eng_path *path; /* path of the address handle */
			uint32_t dest_qpn;
			uint32_t qkey;
			const void *ah;
		} ud;
		struct { /* BIND_MW, for eng_ops.bind, which interprets the other fields */
			uint64_t addr;
			uint64_t length; /* in bytes; 0 unbinds */
			uint32_t access; /* set of enum ibv_access_flags */
			uint32_t
				window; /* key of the window; its low byte may have changed since */
			uint32_t lkey;	/* key of the region */
			uint32_t rkey;	/* new key of the window */
		} bind;
	};
	uint32_t xrc_srqn;
	uint32_t ssn; /* set by the engine: SSN (rule C11); a local request repeats the last SSN */
	/* sge or bytes, up to the end of the slot. */
	union {
		struct {
			struct {
			} no_other_member;
			struct eng_sge sge[]; /* sge_count entries */
		};
		struct {
			struct {
			} no_member_either;
			uint8_t bytes[]; /* ENG_INLINE: length bytes */
		};
	} data;
};

struct eng_recv_wqe {
	uint64_t wr_id;
	uint32_t length; /* number of bytes: sum of the SGEs */
	uint32_t sge_count;
	struct eng_sge sge[];
};

struct eng_ring {
	uint8_t *slots;
	uint32_t slot_bytes;
	uint32_t mask;	/* number of slots, a power of two, minus 1 */
	uint32_t limit; /* number of entries that may be posted: max_wr as granted */
	uint32_t head;	/* index of the next entry to be posted */
	uint32_t tail;	/* index of the oldest entry in use */
};

/* Number of bytes of a slot of a send queue, a multiple of 64 so that slots share no cache line. */
static inline uint32_t eng_send_slot_bytes(uint32_t max_sge, uint32_t max_inline)
{
	uint32_t data = max_sge * (uint32_t)sizeof(struct eng_sge);

	if (data < max_inline)
		data = max_inline;
	return ((uint32_t)offsetof(struct eng_send_wqe, data) + data + 63) & ~63u;
}

static inline uint32_t eng_recv_slot_bytes(uint32_t max_sge)
{
	return ((uint32_t)sizeof(struct eng_recv_wqe) + max_sge * (uint32_t)sizeof(struct eng_sge) +
		31) &
	       ~31u;
}

static inline void eng_ring_init(struct eng_ring *ring, void *slots, uint32_t slot_bytes,
				 uint32_t slot_count, uint32_t limit)
{
	assert((slot_count & (slot_count - 1)) == 0 && limit <= slot_count);
	ring->slots = slots;
	ring->slot_bytes = slot_bytes;
	ring->mask = slot_count - 1;
	ring->limit = limit;
	ring->head = 0;
	ring->tail = 0;
}

static inline uint32_t eng_ring_used(const struct eng_ring *ring)
{
	return ring->head - ring->tail;
}

static inline bool eng_ring_full(const struct eng_ring *ring)
{
	return eng_ring_used(ring) >= ring->limit;
}

static inline void *eng_ring_slot(const struct eng_ring *ring, uint32_t index)
{
	return ring->slots + (size_t)(index & ring->mask) * ring->slot_bytes;
}

#endif
