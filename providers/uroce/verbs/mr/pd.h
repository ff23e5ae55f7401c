/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Protection domains, parent domains (which extend a PD), and thread domains.  A parent domain can
 * be used wherever a PD can; it counts its users itself, and keys are checked against the PD that
 * it extends.
 *
 * With a thread domain the application promises that only one thread at a time uses the objects in
 * it.  The progress thread and polling threads make progress for all QPs of the process, so the
 * locks of QPs and CQs are needed in any case.  Only the lock from ibv_start_poll() to
 * ibv_end_poll(), which is between the application's threads, is omitted.
 */
#ifndef UROCE_VERBS_PD_H
#define UROCE_VERBS_PD_H

#include "verbs/uroce.h"

struct uroce_td {
	struct ibv_td base;
	/* number of parent domains; dealloc_td returns EBUSY while there are any */
	atomic_uint users;
};

static inline struct uroce_td *to_uroce_td(struct ibv_td *td)
{
	return (struct uroce_td *)td;
}

/* Memory of queues, from the application's allocator if there is one. */
struct uroce_buffer {
	void *memory;	     /* aligned to a cache line */
	struct uroce_pd *pd; /* PD whose allocator was used; NULL: from the heap */
	uint64_t resource;
};

/*
 * Allocates zeroed bytes for resource (enum urocedv_resource of infiniband/urocedv.h) of an object
 * of pd, which may be NULL.  The object must be counted in pd->users until the buffer is freed.
 * Returns 0 or ENOMEM.
 */
int uroce_buffer_alloc(struct uroce_buffer *buffer, struct uroce_pd *pd, size_t bytes,
		       uint64_t resource);
void uroce_buffer_free(struct uroce_buffer *buffer);
/* Allocates a ring for wr WQEs of slot_bytes by uroce_buffer_alloc().  Returns 0 or ENOMEM. */
int uroce_ring_alloc(struct eng_ring *ring, struct uroce_buffer *buffer, struct uroce_pd *pd,
		     uint64_t resource, uint32_t wr, uint32_t slot_bytes);

#endif
