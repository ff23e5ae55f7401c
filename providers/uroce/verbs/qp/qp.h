/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Queue pairs.  A QP owns its engine, rings and attributes.  Locks, in this order: modify_lock
 * serialises modify_qp, which opens a path without progress.lock; progress.lock protects engine,
 * rings and attr; then the locks of CQs.
 */
#ifndef UROCE_VERBS_QP_H
#define UROCE_VERBS_QP_H

#include "verbs/cq/cq.h"
#include "verbs/mr/mkey_table.h"
#include "verbs/mr/pd.h"
#include "verbs/uroce.h"

struct uroce_qp {
	struct verbs_qp base; /* unused by an XRC target, which its handles represent (xrc.h) */
	enum eng_qp_type type;
	struct progress_qp progress;
	struct uroce_context *context;
	struct uroce_pd *pd;
	struct uroce_cq *send_cq, *recv_cq; /* like pd, NULL if an XRC QP has none */
	struct uroce_srq *srq;		    /* NULL: the QP uses own_rq */
	struct eng_ring sq;
	struct eng_ring own_rq;
	struct uroce_buffer sq_buffer, rq_buffer;
	/* Memory of the engine's responder resources, and their number; under modify_lock. */
	void *resp_res;
	uint32_t resp_res_depth;
	struct ibv_qp_cap cap; /* as granted */
	bool signal_all;
	unsigned int generation;      /* fork.h */
	struct uroce_ctx_obj ctx_obj; /* unused by an XRC target */
	/* Last keys used: L_Keys read, L_Keys written, R_Keys. */
	struct mkey_cache lkey_read_cache, lkey_write_cache, rkey_cache;
	bool has_windows;	     /* type 2 windows have been bound through the QP */
	bool path_mtu_check_pending; /* path_mtu.h; under progress.lock */
	pthread_mutex_t modify_lock;
	struct ibv_qp_attr attr;	   /* as set by modify_qp */
	atomic_uint async_events_reported; /* asynchronous events read by the application */
	/* XRC target: see xrc.h. */
	struct xrc_domain *xrc_domain;
	LIST_HEAD(, xrc_qp_handle) handles;
	struct uroce_qp *next_target; /* in the hash bucket of xrc_qp.c */
	/* UD: SQ index from which on, up to sq.head, WQEs hold their address handles (ud.h). */
	uint32_t ah_held_tail;
	/* State between ibv_wr_start() and ibv_wr_complete() (wr_api.c). */
	struct {
		int error;		  /* first error */
		uint32_t count;		  /* number of WQEs begun, in the slots from sq.head on */
		struct eng_send_wqe *wqe; /* last WQE begun, or NULL */
	} batch;
};

/* Not for XRC targets: their struct ibv_qp is in a struct xrc_qp_handle. */
static inline struct uroce_qp *to_uroce_qp(struct ibv_qp *qp)
{
	return (struct uroce_qp *)qp;
}

/* Returns the QP of an ibv_qp of any type. */
struct uroce_qp *uroce_qp_of_handle(struct ibv_qp *qp);

/* Every struct progress_qp is part of a struct uroce_qp. */
static inline struct uroce_qp *to_uroce_qp_of_progress(struct progress_qp *progress_qp)
{
	return container_of(progress_qp, struct uroce_qp, progress);
}

/* Sets the in-flight budget of the QPs of worker for socket buffers of receive_buffer bytes. */
void uroce_set_inflight_budget(const struct progress *worker, uint32_t receive_buffer);

/* Engine callbacks; owner is the struct uroce_qp. */
extern const struct eng_ops uroce_engine_ops;

/* Removes the CQEs of qp from its CQs.  Called without qp->progress.lock. */
void uroce_qp_clean_cqs(struct uroce_qp *qp);

/* Common part of create_qp and create_qp_ex; sets attr->cap to the actual capabilities. */
struct uroce_qp *uroce_qp_create(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
/*
 * Receives the packets that have arrived for a connected qp, before it is stopped.  Runs a progress
 * cycle, so called without qp->progress.lock.
 */
void uroce_qp_receive_pending(struct uroce_qp *qp);
/*
 * Waits until the peer has acknowledged the last requests, but at most 3 ms, and at most until 3 ms
 * after they were sent.  The peer may delay its ACK to send it with a reply (engine/tx/tx_sched.h),
 * although its application has received the message and can report that by other means.
 */
void uroce_qp_wait_acks(struct uroce_qp *qp);
/* Stops qp: after return it neither receives nor sends, and only destroy_qp accepts it. */
void uroce_qp_stop(struct uroce_qp *qp);
/* Stops and frees qp; the implementation of destroy_qp. */
void uroce_qp_free(struct uroce_qp *qp);

/* Sets the functions of struct ibv_qp_ex for the operations in flags.  Returns 0 or EOPNOTSUPP. */
int uroce_wr_set_ops(struct uroce_qp *qp, uint64_t flags);

/* The ibv_send_flags that are supported. */
#define UROCE_SEND_FLAGS (IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE)

/*
 * Send WQEs have been pushed: transmits them, or flushes them if the QP is in ERR or SQE.  Caller
 * holds qp->progress.lock.
 */
void uroce_sends_pushed(struct uroce_qp *qp);

#endif
