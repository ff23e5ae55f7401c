/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <errno.h>
#include <stdlib.h>

#include "verbs/generation.h"
#include "verbs/ops.h"
#include "xrc.h"
#include "xrc_domain.h"

/* Hash table of the target QPs of all domains, by QPN; under the domains' lock. */
#define BUCKETS 4096
static struct uroce_qp *targets[BUCKETS];

static struct uroce_qp **bucket_of(uint32_t qpn)
{
	return &targets[qpn % BUCKETS];
}

static void free_ref(struct xrc_opening *opening, bool inherited)
{
	if (!inherited) {
		pthread_cond_destroy(&opening->base.qp.cond);
		pthread_mutex_destroy(&opening->base.qp.mutex);
	}
	free(opening);
}

/* Moves the QP to context, which is open.  Called with the domains' lock held. */
static void move_to_context(struct uroce_qp *qp, struct uroce_context *context)
{
	struct uroce_context *before = qp->context;

	if (before == context)
		return;
	pthread_mutex_lock(&qp->progress.lock);
	qp->context = context;
	pthread_mutex_unlock(&qp->progress.lock);
	uroce_object_move(&before->base.context, &context->base.context, UROCE_OBJECT_QP);
}

/*
 * Moves the QP to the context of an opening that has not been stopped and is not leaving.  Returns
 * false if there is none.  Called with the domains' lock held.
 */
static bool move_to_other_ref(struct uroce_qp *qp, const struct xrc_opening *leaving)
{
	struct xrc_opening *other = qp->openings;

	while (other && (other == leaving || uroce_inherited(other->generation)))
		other = other->next;
	if (other)
		move_to_context(qp, other->belonging.context);
	return other;
}

/* Stops an opening; the QP is stopped with its last one. */
static void stop_ref(struct uroce_belonging *belonging)
{
	struct xrc_opening *opening =
		(struct xrc_opening *)((char *)belonging - offsetof(struct xrc_opening, belonging));
	struct uroce_qp *qp = opening->qp;

	/* Held until the QP is stopped: other threads may be closing the other openings. */
	xrc_domains_lock();
	opening->generation = UROCE_ENDED;
	if (!move_to_other_ref(qp, opening) && !uroce_inherited(qp->generation))
		uroce_qp_end(qp);
	xrc_domains_unlock();
}

/* Called with the domains' lock held, which keeps qp from being destroyed. */
static struct xrc_opening *create_ref(struct uroce_qp *qp, struct ibv_context *context,
				      struct uroce_xrcd *xrcd, void *qp_context)
{
	struct xrc_opening *opening = calloc(1, sizeof(*opening));
	struct ibv_qp *public;

	if (!opening)
		return NULL;
	opening->qp = qp;
	opening->xrcd = xrcd;
	opening->generation = uroce_generation;
	public = &opening->base.qp;
	public->context = context;
	public->qp_context = qp_context;
	public->qp_num = qp->progress.qpn;
	public->handle = qp->progress.qpn;
	public->qp_type = IBV_QPT_XRC_RECV;
	pthread_mutex_init(&public->mutex, NULL);
	pthread_cond_init(&public->cond, NULL);
	pthread_mutex_lock(&qp->progress.lock);
	public->state = (enum ibv_qp_state)eng_qp_state(qp->progress.engine);
	opening->next = qp->openings;
	opening->link = &qp->openings;
	if (opening->next)
		opening->next->link = &opening->next;
	qp->openings = opening;
	pthread_mutex_unlock(&qp->progress.lock);
	atomic_fetch_add(&xrcd->users, 1);
	uroce_context_hold(context);
	uroce_belongings_enter(&opening->belonging, BELONGING_XRC_OPENING,
			       to_uroce_context(context), stop_ref);
	return opening;
}

struct ibv_qp *uroce_xrc_first_opening(struct uroce_qp *qp, struct ibv_xrcd *ibv_xrcd,
				       void *qp_context)
{
	struct uroce_xrcd *xrcd = to_uroce_xrcd(ibv_xrcd);
	struct xrc_opening *opening;

	xrc_domains_lock();
	opening = create_ref(qp, ibv_xrcd->context, xrcd, qp_context);
	if (opening) {
		qp->next_target = *bucket_of(qp->progress.qpn);
		*bucket_of(qp->progress.qpn) = qp;
	}
	xrc_domains_unlock();
	if (!opening) {
		errno = ENOMEM;
		return NULL;
	}
	return &opening->base.qp;
}

struct ibv_qp *uroce_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	const uint32_t needed =
		IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
	struct xrc_opening *opening = NULL;
	struct uroce_xrcd *xrcd;
	struct uroce_qp *qp;
	int error = EINVAL;

	if ((attr->comp_mask & needed) != needed ||
	    (attr->comp_mask & ~(needed | IBV_QP_OPEN_ATTR_CONTEXT)) ||
	    attr->qp_type != IBV_QPT_XRC_RECV || !attr->xrcd ||
	    !uroce_together(context, attr->xrcd->context))
		goto err;
	xrcd = to_uroce_xrcd(attr->xrcd);
	xrc_domains_lock();
	qp = *bucket_of(attr->qp_num);
	while (qp && (qp->progress.qpn != attr->qp_num || qp->domain != xrcd->domain))
		qp = qp->next_target;
	if (qp) {
		opening = create_ref(qp, context, xrcd,
				     attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT ? attr->qp_context
										: NULL);
		error = ENOMEM;
	}
	xrc_domains_unlock();
	if (opening)
		return &opening->base.qp;
err:
	errno = error;
	return NULL;
}

/*
 * Unlinks opening from its QP, and the QP from the hash table after its last opening; then returns
 * true.  Called with the domains' lock held.
 */
static bool unlink_ref(struct xrc_opening *opening)
{
	struct uroce_qp *qp = opening->qp, **target = bucket_of(qp->progress.qpn);
	bool inherited = uroce_inherited(qp->generation);

	if (!inherited)
		pthread_mutex_lock(&qp->progress.lock);
	*opening->link = opening->next;
	if (opening->next)
		opening->next->link = opening->link;
	if (!inherited)
		pthread_mutex_unlock(&qp->progress.lock);
	if (qp->openings)
		return false;
	while (*target != qp)
		target = &(*target)->next_target;
	*target = qp->next_target;
	return true;
}

int uroce_xrc_close_opening(struct xrc_opening *opening)
{
	struct ibv_context *context = opening->base.qp.context;
	struct uroce_qp *qp = opening->qp;
	bool inherited = uroce_inherited(opening->generation), last;

	uroce_belongings_leave(&opening->belonging);
	xrc_domains_lock();
	/* The QP must not remain in a context that may be closed: move it, or stop it. */
	if (!uroce_inherited(qp->generation) && !move_to_other_ref(qp, opening) &&
	    (qp->openings != opening || opening->next))
		uroce_qp_end(qp);
	last = unlink_ref(opening);
	xrc_domains_unlock();
	if (!inherited) {
		uroce_async_purge(to_uroce_context(context), &opening->base.qp);
		uroce_async_await(&opening->base.qp.mutex, &opening->base.qp.cond,
				  &opening->base.qp.events_completed, &opening->asyncs_taken);
	}
	if (last)
		uroce_qp_free(qp);
	atomic_fetch_sub(&opening->xrcd->users, 1);
	free_ref(opening, inherited);
	uroce_context_release(context);
	return 0;
}

void uroce_xrc_raise(struct uroce_qp *qp, enum ibv_event_type type)
{
	for (struct xrc_opening *opening = qp->openings; opening; opening = opening->next)
		uroce_async_event(to_uroce_context(opening->base.qp.context), type,
				  &opening->base.qp);
}
