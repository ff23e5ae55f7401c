/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Shared receive queues: a ring from which the engines of many QPs take receive WQEs, in any
 * thread.  It has its own lock, taken inside that of the QP.
 */
#ifndef UROCE_VERBS_SRQ_H
#define UROCE_VERBS_SRQ_H

#include "verbs/cq/cq.h"
#include "verbs/mr/pd.h"
#include "verbs/uroce.h"

struct uroce_xrcd;
struct xrc_domain;

struct uroce_srq {
	struct verbs_srq base;
	struct uroce_context *context;
	struct uroce_pd *pd;	 /* constant; L_Keys of the receive WQEs are checked against it */
	unsigned int generation; /* fork.h */
	struct uroce_ctx_obj ctx_obj;
	atomic_uint users; /* number of QPs: destroy fails with EBUSY while it is not 0 */
	atomic_uint async_events_reported; /* asynchronous events read by the application */
	/* XRC only, constant. */
	struct uroce_cq *cq;
	struct uroce_xrcd *xrcd;
	struct xrc_domain *xrc_domain;

	pthread_mutex_t lock; /* protects all fields below */
	struct eng_ring ring;
	struct uroce_buffer buffer;
	uint32_t max_sge;
	uint32_t limit; /* srq_limit: raise an event once fewer WQEs are left; 0: not armed */
};

static inline struct uroce_srq *to_uroce_srq(struct ibv_srq *srq)
{
	return (struct uroce_srq *)srq;
}

static inline bool uroce_srq_is_xrc(const struct uroce_srq *srq)
{
	return srq->base.srq_type == IBV_SRQT_XRC;
}

/* Implements eng_ops.get_recv_wqe: ENG_RQ_OK or ENG_RQ_EMPTY.  sge has room for srq->max_sge. */
enum eng_rq_result uroce_srq_take_receive(struct uroce_srq *srq, struct eng_recv_desc *wqe,
					  struct eng_sge *sge);

/* Pushes a receive WQE of up to max_sge SGEs.  Returns 0, EINVAL, or ENOMEM if the ring is full. */
int uroce_push_recv_wqe(struct eng_ring *ring, uint32_t max_sge, const struct ibv_recv_wr *wr);

#endif
