/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Protection domains, those that extend one (parent domains), and thread domains.  A parent domain
 * is a PD in every call; it has users of its own, and keys are checked against the PD that it
 * extends.
 *
 * A thread domain promises that one thread at a time uses its objects.  The helper thread and the
 * threads that poll make progress for all queue pairs of the process, so the locks of queue pairs
 * and completion queues are not between the application's threads, and stay.  What is given up is
 * the lock from ibv_start_poll() to ibv_end_poll(), which is between those alone.
 */
#ifndef UROCE_VERBS_PD_H
#define UROCE_VERBS_PD_H

#include "verbs/uroce.h"

struct uroce_td {
	struct ibv_td base;
	atomic_uint users; /* parent domains: dealloc answers EBUSY while any is left */
};

static inline struct uroce_td *to_uroce_td(struct ibv_td *td)
{
	return (struct uroce_td *)td;
}

/* Memory for queues, from the application's allocator where it has given one. */
struct uroce_buffer {
	void *memory;	     /* aligned to a cache line */
	struct uroce_pd *pd; /* whose allocator it is from; NULL: from the heap */
	uint64_t resource;
};

/*
 * bytes, all zero, for resource (enum urocedv_resource of infiniband/urocedv.h) of an object of pd,
 * which may be NULL; the object has to be counted in pd->users until the buffer is freed.  0 or
 * ENOMEM.
 */
int uroce_buffer_alloc(struct uroce_buffer *buffer, struct uroce_pd *pd, size_t bytes,
		       uint64_t resource);
void uroce_buffer_free(struct uroce_buffer *buffer);

#endif
