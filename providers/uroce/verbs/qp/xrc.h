/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * XRC: a target queue pair has no receive queue, CQ or protection domain; each message names a
 * shared receive queue of the same domain, and these are what that queue was made with.
 *
 * A target QP may be opened several times, and lives as long as any of its openings.  So what the
 * application holds is never the QP itself but an opening, also after ibv_create_qp_ex().
 *
 * Locks: the domains' lock around lists of domains, target QPs and SRQs (control calls only); the
 * table lock, inside that of a QP and outside those of SRQ and CQ, keeps an XRC SRQ while it is in
 * use.
 */
#ifndef UROCE_VERBS_XRC_H
#define UROCE_VERBS_XRC_H

#include "qp.h"
#include "srq.h"

struct uroce_xrcd {
	struct verbs_xrcd base;
	struct xrc_domain *domain;
	atomic_uint users; /* openings and SRQs: close answers EBUSY while any is left */
};

/* What the application calls the target QP. */
struct xrc_opening {
	struct verbs_qp base;
	struct uroce_qp *qp;
	struct uroce_xrcd *xrcd;
	struct xrc_opening *next, **link; /* all of the QP; under progress.lock of the QP */
	atomic_uint asyncs_taken; /* asynchronous events that the application has been told of */
	unsigned int generation;  /* forked.h; of the opening alone, the QP has its own */
	struct uroce_belonging belonging;
};

static inline struct uroce_xrcd *to_uroce_xrcd(struct ibv_xrcd *xrcd)
{
	return (struct uroce_xrcd *)xrcd;
}

static inline struct xrc_opening *to_xrc_opening(struct ibv_qp *qp)
{
	return (struct xrc_opening *)qp;
}

/* Enter an XRC SRQ into the domain of xrcd and give it a number; 0 or EINVAL, ENOMEM. */
int uroce_xrc_add_srq(struct uroce_srq *srq, struct ibv_xrcd *xrcd, struct ibv_cq *cq);
/* After return no QP uses srq.  The first call only hides it, also more than once. */
void uroce_xrc_hide_srq(struct uroce_srq *srq);
void uroce_xrc_remove_srq(struct uroce_srq *srq);

/* For the engine of target QP qp, about SRQ srqn: caller holds qp->progress.lock. */
enum eng_rq_result uroce_xrc_take(struct uroce_qp *qp, uint32_t srqn, struct eng_recv_desc *wqe,
				  struct eng_sge *sge);
void uroce_xrc_complete(struct uroce_qp *qp, const struct eng_wc *wc);
/* Only to be compared with; NULL when there is no such SRQ. */
const struct uroce_pd *uroce_xrc_pd(struct uroce_qp *qp, uint32_t srqn);

/* The creator's opening of a new target QP, which joins the domain of xrcd; NULL with errno. */
struct ibv_qp *uroce_xrc_first_opening(struct uroce_qp *qp, struct ibv_xrcd *xrcd,
				       void *qp_context);
/* Let go of an opening, and with the last one destroy the QP. */
int uroce_xrc_close_opening(struct xrc_opening *opening);
/* An asynchronous event about target QP qp, to all its openings; under qp->progress.lock. */
void uroce_xrc_raise(struct uroce_qp *qp, enum ibv_event_type type);

/* Around a fork: the child gets lists that no thread was just changing. */
void uroce_xrc_fork_prepare(void);
void uroce_xrc_fork_parent(void);
void uroce_xrc_fork_child(void);

#endif
