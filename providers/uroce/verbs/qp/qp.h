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
	bool path_mtu_check_pending; /* path_mtu.c; under progress.lock */
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

/* ---- mw.c ---- */

/*
 * Memory windows: R_Keys for part of a memory region.  A type 1 window is bound by ibv_bind_mw(),
 * may be bound again at any time, and can be used through every QP of its protection domain.  A
 * type 2 window (2B in the specification) is bound by a work request with a key that the consumer
 * chooses, while it is unbound.  It can be used only through the QP that bound it, and is unbound
 * by LOCAL_INV, by the peer's SEND with invalidate, and when that QP is destroyed.
 *
 * A bind is executed in the order of the send queue.  Window and region may have been destroyed by
 * then, so the WQE refers to them by their keys.
 */
struct uroce_mw {
	struct ibv_mw base;
	struct mkey_entry entry;
	struct uroce_pd *pd;
};

static inline struct uroce_mw *to_uroce_mw(struct ibv_mw *mw)
{
	return (struct uroce_mw *)mw;
}

/*
 * Fills wqe as a BIND_MW request for window mw, which must be of the given type; the low byte of
 * the new key is that of rkey.  Returns 0, EINVAL or EPERM.
 */
int uroce_mw_init_wqe(const struct uroce_qp *qp, enum ibv_mw_type type, const struct ibv_mw *mw,
		      uint32_t rkey, const struct ibv_mw_bind_info *info, struct eng_send_wqe *wqe);

/* MW bind and invalidation: engine callbacks (eng_ops); owner is the struct uroce_qp. */
bool uroce_mw_bind(void *owner, const struct eng_send_wqe *wqe);
bool uroce_mw_invalidate(void *owner, uint32_t key);

/* ---- ooo_pool.c ---- */

/*
 * Memory for packets received out of order (engine/rx/ooo_rx.h): one pool of fixed size for each
 * process.  Only blocks that have been used occupy memory, and continue to.  The pool has no lock,
 * so that a forked child never finds it locked; blocks in use by QPs of the parent are lost to the
 * child.
 */

/* Creates the pool if there is none.  If that fails, ooo_pool_alloc() returns NULL. */
void ooo_pool_init(void);
/* Take and return a block of eng_ooo_packet_bytes() bytes, aligned to 64; NULL: none is free. */
void *ooo_pool_alloc(void);
void ooo_pool_free(void *block);

/* ---- path_mtu.c ---- */

/*
 * Check that the path to the peer carries packets as large as the QP sends.  If it does not, only
 * small packets arrive, and the protocol does not report it.  The kernel knows the path MTU from
 * its routes, or after the first packet from a router's ICMP message.  A mismatch is reported on
 * stderr and counted (path_too_small); since ICMP messages can be forged it has no other effect.
 */

/* Checks the path of a connected qp, for path_mtu.  Called with modify_lock held. */
void uroce_path_mtu_check(struct uroce_qp *qp, enum ibv_mtu path_mtu);
/*
 * The peer does not respond: schedules a check of the path in the progress thread.  Called in a
 * progress cycle, with the QP's lock held.
 */
void uroce_path_mtu_schedule_check(struct progress_qp *qp);
/* Runs a scheduled check.  Called outside progress cycles, with the QP's lock held. */
void uroce_path_mtu_run_scheduled(struct uroce_qp *qp);

#endif
