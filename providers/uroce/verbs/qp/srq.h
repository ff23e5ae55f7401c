/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Shared receive queues: one ring that the engines of many queue pairs take receive requests from,
 * in whatever threads they run.  The ring has a lock of its own, inside that of the QP.
 */
#ifndef UROCE_VERBS_SRQ_H
#define UROCE_VERBS_SRQ_H

#include "verbs/completion/cq.h"
#include "verbs/memory/pd.h"
#include "verbs/uroce.h"

struct uroce_xrcd;
struct xrc_domain;

struct uroce_srq {
	struct verbs_srq base;
	struct uroce_context *context;
	struct uroce_pd *pd;	 /* constant; its memory is what the receive requests name */
	unsigned int generation; /* forked.h */
	struct uroce_belonging belonging;
	atomic_uint users;	  /* QPs: destroy answers EBUSY while any is left */
	atomic_uint asyncs_taken; /* asynchronous events that the application has been told of */
	/* XRC only, constant. */
	struct uroce_cq *cq;
	struct uroce_xrcd *xrcd;
	struct xrc_domain *domain;

	pthread_mutex_t lock; /* all below */
	struct eng_ring ring;
	struct uroce_buffer buffer;
	uint32_t max_sge;
	uint32_t limit; /* raise an event when fewer requests are left; 0: not armed */
};

static inline struct uroce_srq *to_uroce_srq(struct ibv_srq *srq)
{
	return (struct uroce_srq *)srq;
}

static inline bool uroce_srq_is_xrc(const struct uroce_srq *srq)
{
	return srq->base.srq_type == IBV_SRQT_XRC;
}

/* The engine's take_receive; sge has room for srq->max_sge.  Never ENG_RQ_DENIED. */
enum eng_rq_result uroce_srq_take(struct uroce_srq *srq, struct eng_recv_desc *wqe,
				  struct eng_sge *sge);

/* One receive request into a ring whose entries have max_sge SGEs; 0, EINVAL or ENOMEM (full). */
int uroce_put_receive(struct eng_ring *ring, uint32_t max_sge, const struct ibv_recv_wr *wr);

#endif
