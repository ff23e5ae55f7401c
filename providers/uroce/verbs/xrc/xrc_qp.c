/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <errno.h>
#include <stdlib.h>

#include "verbs/fork.h"
#include "verbs/abi/ops.h"
#include "xrc.h"

/* Hash table of the target QPs of all domains, by QPN; under the domains' lock. */
#define BUCKETS 4096
static struct uroce_qp *targets[BUCKETS];

static struct uroce_qp **bucket_of(uint32_t qpn)
{
	return &targets[qpn % BUCKETS];
}

static void free_handle(struct xrc_qp_handle *handle, bool stale)
{
	if (!stale) {
		pthread_cond_destroy(&handle->base.qp.cond);
		pthread_mutex_destroy(&handle->base.qp.mutex);
	}
	free(handle);
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
 * Moves the QP to the context of a handle that has not been stopped and is not leaving.  Returns
 * false if there is none.  Called with the domains' lock held.
 */
static bool move_to_other_handle(struct uroce_qp *qp, const struct xrc_qp_handle *leaving)
{
	struct xrc_qp_handle *other;

	LIST_FOREACH(other, &qp->handles, link)
		if (other != leaving && !uroce_is_stale(other->generation))
			break;
	if (other)
		move_to_context(qp, other->ctx_obj.context);
	return other;
}

/* Stops a handle; the QP is stopped with its last one. */
static void stop_handle(struct uroce_ctx_obj *ctx_obj)
{
	struct xrc_qp_handle *handle = container_of(ctx_obj, struct xrc_qp_handle, ctx_obj);
	struct uroce_qp *qp = handle->qp;

	/* Held until the QP is stopped: other threads may be closing the other handles. */
	xrc_domains_lock();
	handle->generation = UROCE_GEN_STOPPED;
	if (!move_to_other_handle(qp, handle) && !uroce_is_stale(qp->generation))
		uroce_qp_stop(qp);
	xrc_domains_unlock();
}

/* Called with the domains' lock held, which keeps qp from being destroyed. */
static struct xrc_qp_handle *create_handle(struct uroce_qp *qp, struct ibv_context *context,
					   struct uroce_xrcd *xrcd, void *qp_context)
{
	struct xrc_qp_handle *handle = calloc(1, sizeof(*handle));
	struct ibv_qp *public;

	if (!handle)
		return NULL;
	handle->qp = qp;
	handle->xrcd = xrcd;
	handle->generation = uroce_generation;
	public = &handle->base.qp;
	public->context = context;
	public->qp_context = qp_context;
	public->qp_num = qp->progress.qpn;
	public->handle = qp->progress.qpn;
	public->qp_type = IBV_QPT_XRC_RECV;
	pthread_mutex_init(&public->mutex, NULL);
	pthread_cond_init(&public->cond, NULL);
	pthread_mutex_lock(&qp->progress.lock);
	public->state = (enum ibv_qp_state)eng_qp_state(qp->progress.engine);
	LIST_INSERT_HEAD(&qp->handles, handle, link);
	pthread_mutex_unlock(&qp->progress.lock);
	atomic_fetch_add(&xrcd->users, 1);
	uroce_context_hold(context);
	uroce_ctx_obj_add(&handle->ctx_obj, UROCE_CTX_OBJ_XRC_HANDLE, to_uroce_context(context),
			  stop_handle);
	return handle;
}

struct ibv_qp *uroce_xrc_qp_handle_create(struct uroce_qp *qp, struct ibv_xrcd *ibv_xrcd,
					  void *qp_context)
{
	struct uroce_xrcd *xrcd = to_uroce_xrcd(ibv_xrcd);
	struct xrc_qp_handle *handle;

	xrc_domains_lock();
	handle = create_handle(qp, ibv_xrcd->context, xrcd, qp_context);
	if (handle) {
		qp->next_target = *bucket_of(qp->progress.qpn);
		*bucket_of(qp->progress.qpn) = qp;
	}
	xrc_domains_unlock();
	if (!handle) {
		errno = ENOMEM;
		return NULL;
	}
	return &handle->base.qp;
}

struct ibv_qp *uroce_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	const uint32_t needed =
		IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
	struct xrc_qp_handle *handle = NULL;
	struct uroce_xrcd *xrcd;
	struct uroce_qp *qp;
	int error = EINVAL;

	if ((attr->comp_mask & needed) != needed ||
	    (attr->comp_mask & ~(needed | IBV_QP_OPEN_ATTR_CONTEXT)) ||
	    attr->qp_type != IBV_QPT_XRC_RECV || !attr->xrcd ||
	    !uroce_contexts_share_file(context, attr->xrcd->context))
		goto err;
	xrcd = to_uroce_xrcd(attr->xrcd);
	xrc_domains_lock();
	qp = *bucket_of(attr->qp_num);
	while (qp && (qp->progress.qpn != attr->qp_num || qp->xrc_domain != xrcd->domain))
		qp = qp->next_target;
	if (qp) {
		handle = create_handle(qp, context, xrcd,
				       attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT ? attr->qp_context
										  : NULL);
		error = ENOMEM;
	}
	xrc_domains_unlock();
	if (handle)
		return &handle->base.qp;
err:
	errno = error;
	return NULL;
}

/*
 * Unlinks handle from its QP, and the QP from the hash table after its last handle; then returns
 * true.  Called with the domains' lock held.
 */
static bool unlink_handle(struct xrc_qp_handle *handle)
{
	struct uroce_qp *qp = handle->qp, **target = bucket_of(qp->progress.qpn);
	bool stale = uroce_is_stale(qp->generation);

	if (!stale)
		pthread_mutex_lock(&qp->progress.lock);
	LIST_REMOVE(handle, link);
	if (!stale)
		pthread_mutex_unlock(&qp->progress.lock);
	if (!LIST_EMPTY(&qp->handles))
		return false;
	while (*target != qp)
		target = &(*target)->next_target;
	*target = qp->next_target;
	return true;
}

int uroce_xrc_qp_handle_close(struct xrc_qp_handle *handle)
{
	struct ibv_context *context = handle->base.qp.context;
	struct uroce_qp *qp = handle->qp;
	bool stale = uroce_is_stale(handle->generation), last;

	uroce_ctx_obj_del(&handle->ctx_obj);
	xrc_domains_lock();
	/* The QP must not remain in a context that may be closed: move it, or stop it. */
	if (!uroce_is_stale(qp->generation) && !move_to_other_handle(qp, handle) &&
	    (LIST_FIRST(&qp->handles) != handle || LIST_NEXT(handle, link)))
		uroce_qp_stop(qp);
	last = unlink_handle(handle);
	xrc_domains_unlock();
	if (!stale) {
		uroce_async_purge(to_uroce_context(context), &handle->base.qp);
		uroce_async_wait_acked(&handle->base.qp.mutex, &handle->base.qp.cond,
				       &handle->base.qp.events_completed,
				       &handle->async_events_reported);
	}
	if (last)
		uroce_qp_free(qp);
	atomic_fetch_sub(&handle->xrcd->users, 1);
	free_handle(handle, stale);
	uroce_context_release(context);
	return 0;
}
