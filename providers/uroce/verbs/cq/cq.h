/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Completion queues.  Producers are the engines' complete() callbacks, in any thread, with the QP's
 * lock held; consumers are the threads that poll.  cq->lock serialises both.  The ring holds
 * finished struct ibv_wc, so that polling is copying.
 */
#ifndef UROCE_VERBS_CQ_H
#define UROCE_VERBS_CQ_H

#include "cq_moderation.h"
#include "cq_workers.h"
#include "verbs/mr/pd.h"
#include "verbs/uroce.h"

struct uroce_cq {
	struct verbs_cq base;
	struct uroce_context *context;
	struct uroce_comp_channel *channel; /* or NULL */
	struct uroce_pd *pd;		    /* parent domain, or NULL */
	bool ignore_overrun;		    /* IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN */
	bool single_threaded; /* IBV_CREATE_CQ_ATTR_SINGLE_THREADED; constant, as above */
	struct uroce_cq_workers workers;
	pthread_mutex_t lock;	    /* protects the fields below that are not atomic */
	struct uroce_buffer buffer; /* memory of ring and timestamps */
	struct ibv_wc *ring;
	uint64_t *timestamps; /* completion timestamps in ns; NULL if create_cq_ex requested none */
	uint32_t mask;	      /* number of entries - 1 */
	/* Free-running ring indexes, written under lock and read without it by is_empty(). */
	_Atomic uint32_t head; /* next CQE to be written */
	_Atomic uint32_t tail; /* oldest CQE that has not been polled */
	enum uroce_notify notify;
	/*
	 * Ring indexes from tail to head: one past the last CQE covered by an event; one past the
	 * last solicited CQE.
	 */
	uint32_t notified_idx, solicited_idx;
	struct uroce_pending_events pending_events; /* under the lock of channel */
	struct uroce_cq_moderation moderation;
	atomic_bool dead;	      /* set on overrun: no CQEs are stored or returned any more */
	atomic_bool overrun_reported; /* the overrun has been reported on stderr */
	atomic_uint users; /* number of QP queues and XRC SRQs that complete into the CQ */
	/* Numbers of events that the application has read. */
	atomic_uint comp_events_reported, async_events_reported;
	unsigned int generation; /* fork.h */
	struct uroce_ctx_obj ctx_obj;

	/* Extended poll: held from start_poll to end_poll, unless single_threaded. */
	pthread_mutex_t poll_lock;
	struct ibv_wc current; /* CQE that the read functions return */
	uint64_t current_timestamp;
};

static inline struct uroce_cq *to_uroce_cq(struct ibv_cq *cq)
{
	return (struct uroce_cq *)cq;
}

/* Returns true if ring index index is later than other. */
static inline bool uroce_cq_is_after(uint32_t index, uint32_t other)
{
	return (int32_t)(index - other) > 0;
}

/* Returns the size of a CQ created with cqe entries: a power of two, or 0 if out of range. */
uint32_t uroce_cq_entries(int cqe);
/* Allocates ring and locks of a zeroed cq; returns 0 or ENOMEM.  uroce_cq_fini() frees them. */
int uroce_cq_init(struct uroce_cq *cq, uint32_t entries, bool timestamps);
void uroce_cq_fini(struct uroce_cq *cq);

/*
 * Adds a completion of QP qpn, whose lock the caller holds.  Allocates nothing.  If the ring is
 * full, the CQ fails: IBV_EVENT_CQ_ERR is raised and its QPs go to ERR (deferred_qp_work.c).
 */
void uroce_cq_complete(struct uroce_cq *cq, uint32_t qpn, const struct eng_wc *wc);
/* Removes all CQEs of a QP that is being destroyed or reset. */
void uroce_cq_clean_qp(struct uroce_cq *cq, uint32_t qpn);
/* Removes all CQEs of receives of an XRC SRQ that is being destroyed. */
void uroce_cq_clean_srq(struct uroce_cq *cq, uint32_t srqn);
/*
 * Copies up to count CQEs without making progress, and returns their number.  timestamps gets their
 * timestamps, or is NULL.
 */
int uroce_cq_poll_ring(struct uroce_cq *cq, int count, struct ibv_wc *wc, uint64_t *timestamps);
/* As uroce_cq_poll_ring(), but makes progress once if the CQ is empty; -1 after an overrun. */
int uroce_cq_poll(struct uroce_cq *cq, int count, struct ibv_wc *wc, uint64_t *timestamps);

/* Options of create_cq_ex. */
struct uroce_cq_options {
	struct uroce_pd *pd; /* parent domain, or NULL */
	bool timestamps;
	bool ignore_overrun;
	bool single_threaded;
};

/* create_cq, and the common part of create_cq_ex; NULL with errno. */
struct uroce_cq *uroce_cq_create(struct ibv_context *context, int cqe,
				 struct ibv_comp_channel *channel, int comp_vector,
				 const struct uroce_cq_options *options);

/* ---- deferred_qp_work.c ---- */

/*
 * Work on QPs that engine callbacks must leave to the progress thread, which an eventfd wakes.  If
 * a CQ overruns, its QPs go to ERR: the overrun is detected inside an engine callback with a QP's
 * lock held, where no state may change.
 */

/* References, one for each CQ: the first creates the eventfd.  Returns 0 or a positive errno. */
int uroce_qp_work_get(struct progress *progress);
void uroce_qp_work_put(struct progress *progress);
/* Sets the work on a QP, which is done with its lock held. */
void uroce_qp_work_set(void (*run)(struct progress_qp *qp, void *arg));
/*
 * A CQ has overrun, or the path of a QP must be checked (verbs/qp/path_mtu.c): the progress thread
 * visits all QPs.  Allowed inside engine callbacks.
 */
void uroce_qp_work_schedule(void);

#endif
