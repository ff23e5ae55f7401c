/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Queue pairs: the owner of an engine, of its rings and of its attributes.  Three locks, in this
 * order: modify_lock makes modify_qp calls one after the other, as a new address has to be opened
 * outside the next lock; progress.lock is around every use of the engine, the rings and attr; the
 * locks of the CQs come inside it.
 */
#ifndef UROCE_VERBS_QP_H
#define UROCE_VERBS_QP_H

#include "verbs/completion/cq.h"
#include "verbs/memory/key_table.h"
#include "verbs/memory/pd.h"
#include "verbs/uroce.h"

struct uroce_qp {
	struct verbs_qp base; /* not of an XRC target: its openings stand for it (xrc.h) */
	enum eng_qp_type type;
	struct progress_qp progress;
	struct uroce_context *context;
	struct uroce_pd *pd;
	struct uroce_cq *send_cq, *recv_cq; /* NULL where an XRC QP has none, as pd */
	struct uroce_srq *srq;		    /* NULL: own_rq */
	struct eng_ring sq;
	struct eng_ring own_rq;
	struct uroce_buffer sq_buffer, rq_buffer;
	/* The engine's, for replay_depth READs and Atomics; under modify_lock. */
	void *replay;
	uint32_t replay_depth;
	struct ibv_qp_cap cap; /* as granted */
	bool signal_all;
	unsigned int generation;	  /* forked.h */
	struct uroce_belonging belonging; /* not of an XRC target: its openings have */
	/* Found last: by sends, by receives, by the peer. */
	struct key_cache read_cache, write_cache, remote_cache;
	bool has_windows;  /* of type 2 have been bound to it */
	bool path_suspect; /* path_mtu.h; under progress.lock */
	pthread_mutex_t modify_lock;
	struct ibv_qp_attr attr;  /* what modify_qp has set */
	atomic_uint asyncs_taken; /* asynchronous events that the application has been told of */
	/* XRC target: see xrc.h and xrc_domain.h. */
	struct xrc_domain *domain;
	struct xrc_opening *openings;
	struct uroce_qp *next_target; /* in the bucket of xrc_qp.c */
	/* UD: requests from here to the ring's head hold their address handles (ud.h). */
	uint32_t held;
	/* ibv_wr_*() between start and complete (wr.c). */
	struct {
		int error;		  /* the first one */
		uint32_t count;		  /* requests begun, in the slots from sq.head on */
		struct eng_send_wqe *wqe; /* the last of them, or NULL */
	} batch;
};

/* Not for XRC targets: what the application has of them is another thing. */
static inline struct uroce_qp *to_uroce_qp(struct ibv_qp *qp)
{
	return (struct uroce_qp *)qp;
}

/* Of any type. */
struct uroce_qp *uroce_qp_of(struct ibv_qp *qp);

/* Of a QP that progress knows: all of them are ours. */
struct uroce_qp *to_uroce_qp_of_progress(struct progress_qp *progress_qp);

/* The sockets of this process queue so many bytes: a measure for what all QPs may send. */
void uroce_cwnd_fit(const struct progress *worker, uint32_t receive_buffer);

/* The callbacks of a QP's engine, whose owner is the struct uroce_qp. */
extern const struct eng_ops uroce_engine_ops;

/* An asynchronous event about qp; allowed inside engine callbacks. */
void uroce_qp_raise(struct uroce_qp *qp, enum ibv_event_type type);

/* Forget the completions of qp in its CQs; without qp->progress.lock. */
void uroce_qp_forget_completions(struct uroce_qp *qp);

/* create_qp and what create_qp_ex has in common with it; attr->cap gets what is granted. */
struct uroce_qp *uroce_qp_create(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
/*
 * Receive what has arrived for a connected qp, and complete what the peer has acknowledged: for a
 * caller that is about to stop it.  Makes a turn, so without qp->progress.lock.
 */
void uroce_qp_take_in(struct uroce_qp *qp);
/*
 * Wait until the peer has acknowledged the last requests, but for 3 ms at most, and no longer than
 * 3 ms after they were sent.  The peer may delay its ACK in the hope of a reply that takes it along
 * (engine/tx/tx_sched.h), although its application has received the message and can report it by
 * other means.
 */
void uroce_qp_await_answers(struct uroce_qp *qp);
/* After return it is not to be reached from the network, and reaches nothing itself. */
void uroce_qp_end(struct uroce_qp *qp);
/* The end of a QP that the application has destroyed. */
void uroce_qp_free(struct uroce_qp *qp);

/* Memory for wr entries of slot_bytes, as uroce_buffer_alloc(); 0 or ENOMEM. */
int uroce_make_ring(struct eng_ring *ring, struct uroce_buffer *buffer, struct uroce_pd *pd,
		    uint64_t resource, uint32_t wr, uint32_t slot_bytes);

/* create_qp_ex: the functions of struct ibv_qp_ex for what flags asks for; 0 or EOPNOTSUPP. */
int uroce_wr_functions(struct uroce_qp *qp, uint64_t flags);

/* The bits of ibv_send_flags that these work requests can have. */
#define UROCE_SEND_FLAGS (IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE)

/*
 * Requests have been pushed: let them leave, or fail where the QP is in ERR.  Caller holds
 * qp->progress.lock.
 */
void uroce_sends_pushed(struct uroce_qp *qp);

/* It is over: its device keeps what it has counted. */
void uroce_qp_retire(const struct uroce_qp *qp);

#endif
