/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * XRC.  A target QP has no receive queue, CQ or PD of its own; each message names an SRQ of the
 * same XRC domain, and uses the CQ and the PD of that SRQ.
 *
 * A target QP may be opened several times, and exists while it has handles.  The application's
 * struct ibv_qp is always part of a handle, also after ibv_create_qp_ex().
 *
 * Locks: the domains' lock protects the lists of domains, target QPs and SRQs (control calls only);
 * the table lock, taken inside that of a QP and outside those of SRQ and CQ, keeps an XRC SRQ from
 * being destroyed while it is in use.
 */
#ifndef UROCE_VERBS_XRC_H
#define UROCE_VERBS_XRC_H

#include <sys/stat.h>

#include "verbs/qp/qp.h"
#include "verbs/qp/srq.h"

/*
 * XRC domain: shared by all ibv_xrcd of a device that were opened with the same file, or private to
 * one that was opened without a file.
 */
struct xrc_domain {
	struct uroce_device *device; /* constant */
	bool shared;		     /* opened with a file; constant */
	struct stat file;	     /* constant */
	/* Under the domains' lock. */
	LIST_ENTRY(xrc_domain) link;
	unsigned int users; /* number of ibv_xrcd */
};

/* The domains' lock.  For control calls, with no other lock held. */
void xrc_domains_lock(void);
void xrc_domains_unlock(void);

struct uroce_xrcd {
	struct verbs_xrcd base;
	struct xrc_domain *domain;
	atomic_uint users; /* number of handles and SRQs: close fails with EBUSY while not 0 */
};

/* Handle of a target QP, created by ibv_create_qp_ex() or ibv_open_qp(). */
struct xrc_qp_handle {
	struct verbs_qp base;
	struct uroce_qp *qp;
	struct uroce_xrcd *xrcd;
	LIST_ENTRY(xrc_qp_handle) link;	   /* in the QP's list; under progress.lock of the QP */
	atomic_uint async_events_reported; /* asynchronous events read by the application */
	unsigned int generation;	   /* fork.h; the QP has its own */
	struct uroce_ctx_obj ctx_obj;
};

static inline struct uroce_xrcd *to_uroce_xrcd(struct ibv_xrcd *xrcd)
{
	return (struct uroce_xrcd *)xrcd;
}

static inline struct xrc_qp_handle *to_xrc_qp_handle(struct ibv_qp *qp)
{
	return (struct xrc_qp_handle *)qp;
}

/* Adds an XRC SRQ to the domain of xrcd and assigns its number.  Returns 0, EINVAL or ENOMEM. */
int uroce_xrc_add_srq(struct uroce_srq *srq, struct ibv_xrcd *xrcd, struct ibv_cq *cq);
/* Removes srq from the table: after return no QP uses it.  May be called more than once. */
void uroce_xrc_unlink_srq(struct uroce_srq *srq);
/* As above, and drops the references of srq to CQ and domain. */
void uroce_xrc_remove_srq(struct uroce_srq *srq);

/*
 * Returns XRC SRQ srqn of the domain of target QP qp, or NULL.  Takes the table lock in either
 * case, so that the SRQ is not destroyed before uroce_xrc_srq_put().  Called with qp->progress.lock
 * held.
 */
struct uroce_srq *uroce_xrc_srq_get(const struct uroce_qp *qp, uint32_t srqn);
void uroce_xrc_srq_put(void);

/* Creates the first handle of a new target QP in the domain of xrcd; NULL with errno. */
struct ibv_qp *uroce_xrc_qp_handle_create(struct uroce_qp *qp, struct ibv_xrcd *xrcd,
					  void *qp_context);
/* Destroys a handle, and the QP with its last one.  Returns 0. */
int uroce_xrc_qp_handle_close(struct xrc_qp_handle *handle);

#endif
