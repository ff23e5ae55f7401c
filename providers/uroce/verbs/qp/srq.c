/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "srq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/urocedv.h>

#include "qp.h"
#include "verbs/fork.h"
#include "verbs/abi/ops.h"
#include "verbs/xrc/xrc.h"

_Static_assert(UROCE_MAX_SGE <= ENG_MAX_SGE, "a QP keeps the SGEs of the request under way");

/*
 * Raises IBV_EVENT_SRQ_LIMIT_REACHED if armed and due, and disarms it: ibv_modify_srq(3).  Called
 * with srq->lock held.
 */
static void check_limit(struct uroce_srq *srq)
{
	if (eng_ring_used(&srq->ring) >= srq->limit)
		return;
	srq->limit = 0;
	uroce_async_event(srq->context, IBV_EVENT_SRQ_LIMIT_REACHED, &srq->base.srq);
}

enum eng_rq_result uroce_srq_take_receive(struct uroce_srq *srq, struct eng_recv_desc *wqe,
					  struct eng_sge *sge)
{
	enum eng_rq_result result = ENG_RQ_EMPTY;
	const struct eng_recv_wqe *entry;

	pthread_mutex_lock(&srq->lock);
	if (eng_ring_used(&srq->ring) > 0) {
		entry = eng_ring_slot(&srq->ring, srq->ring.tail);
		wqe->wr_id = entry->wr_id;
		wqe->length = entry->length;
		wqe->sge_count = entry->sge_count;
		memcpy(sge, entry->sge, entry->sge_count * sizeof(*sge));
		srq->ring.tail++;
		check_limit(srq);
		result = ENG_RQ_OK;
	}
	pthread_mutex_unlock(&srq->lock);
	return result;
}

int uroce_post_srq_recv(struct ibv_srq *ibv_srq, struct ibv_recv_wr *wr,
			struct ibv_recv_wr **bad_wr)
{
	struct uroce_srq *srq = to_uroce_srq(ibv_srq);
	int error = 0;

	if (uroce_is_stale(srq->generation)) {
		*bad_wr = wr;
		return EIO;
	}
	pthread_mutex_lock(&srq->lock);
	for (; wr; wr = wr->next) {
		error = uroce_push_recv_wqe(&srq->ring, srq->max_sge, wr);
		if (error)
			break;
	}
	pthread_mutex_unlock(&srq->lock);
	if (error)
		*bad_wr = wr;
	return error;
}

/* Enforces the limits of the device (rule U1). */
static int check_attr(const struct ibv_srq_attr *attr)
{
	if (!attr->max_wr || attr->max_wr > UROCE_MAX_SRQ_WR || attr->max_sge > UROCE_MAX_SGE)
		return EINVAL;
	return 0;
}

static int check_init_attr(struct ibv_context *context, const struct ibv_srq_init_attr_ex *attr,
			   enum ibv_srq_type *type)
{
	const uint32_t basic = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
	const uint32_t xrc = basic | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;

	*type = attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE ? attr->srq_type : IBV_SRQT_BASIC;
	if (*type > IBV_SRQT_XRC || (attr->comp_mask & ~xrc))
		return EOPNOTSUPP;
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd)
		return EINVAL;
	if (*type == IBV_SRQT_XRC && ((attr->comp_mask & xrc) != xrc || !attr->xrcd || !attr->cq))
		return EINVAL;
	if (!uroce_contexts_share_file(context, attr->pd->context))
		return EINVAL;
	if (*type == IBV_SRQT_XRC && !(uroce_contexts_share_file(context, attr->xrcd->context) &&
				       uroce_contexts_share_file(context, attr->cq->context)))
		return EINVAL;
	return check_attr(&attr->attr);
}

/* For create_srq_ex the provider initialises these fields; for create_srq libibverbs does, too. */
static void set_public_fields(struct uroce_srq *srq, struct ibv_context *context,
			      const struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq *public = &srq->base.srq;

	public->context = context;
	public->srq_context = attr->srq_context;
	public->pd = attr->pd;
	pthread_mutex_init(&public->mutex, NULL);
	pthread_cond_init(&public->cond, NULL);
}

static void free_memory(struct uroce_srq *srq)
{
	if (!uroce_is_stale(srq->generation))
		pthread_mutex_destroy(&srq->lock);
	uroce_buffer_free(&srq->buffer);
	free(srq);
}

static int alloc_ring(struct uroce_srq *srq, struct eng_ring *ring, struct uroce_buffer *buffer,
		      uint32_t max_wr)
{
	return uroce_ring_alloc(ring, buffer, srq->pd, UROCEDV_SHARED_RECEIVE_QUEUE, max_wr,
				eng_recv_slot_bytes(srq->max_sge));
}

static struct uroce_srq *alloc_srq(struct uroce_pd *pd, const struct ibv_srq_attr *attr)
{
	struct uroce_srq *srq = calloc(1, sizeof(*srq));

	if (!srq)
		return NULL;
	pthread_mutex_init(&srq->lock, NULL);
	srq->generation = uroce_generation;
	srq->pd = pd;
	srq->max_sge = attr->max_sge;
	if (alloc_ring(srq, &srq->ring, &srq->buffer, attr->max_wr)) {
		free_memory(srq);
		return NULL;
	}
	return srq;
}

static void stop_srq(struct uroce_ctx_obj *ctx_obj)
{
	struct uroce_srq *srq = container_of(ctx_obj, struct uroce_srq, ctx_obj);

	/* An XRC target of another context may still use the SRQ. */
	if (uroce_srq_is_xrc(srq))
		uroce_xrc_unlink_srq(srq);
	srq->generation = UROCE_GEN_STOPPED;
}

struct ibv_srq *uroce_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	enum ibv_srq_type type;
	struct uroce_srq *srq = NULL;
	int error = check_init_attr(context, attr, &type);

	if (!error)
		error = uroce_object_add(context, UROCE_OBJECT_SRQ);
	if (error)
		goto err;
	srq = alloc_srq(to_uroce_pd(attr->pd), &attr->attr);
	error = ENOMEM;
	if (!srq)
		goto err_remove;
	srq->context = to_uroce_context(context);
	srq->base.srq_type = (uint32_t)type;
	set_public_fields(srq, context, attr);
	if (type == IBV_SRQT_XRC) {
		error = uroce_xrc_add_srq(srq, attr->xrcd, attr->cq);
		if (error)
			goto err_free;
	}
	uroce_pd_get(srq->pd);
	uroce_ctx_obj_add(&srq->ctx_obj, UROCE_CTX_OBJ_SRQ, srq->context, stop_srq);
	return &srq->base.srq;

err_free:
	free_memory(srq);
err_remove:
	uroce_object_remove(context, UROCE_OBJECT_SRQ);
err:
	errno = error;
	return NULL;
}

struct ibv_srq *uroce_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex ex = {
		.srq_context = attr->srq_context,
		.attr = attr->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_PD,
		.pd = pd,
	};

	return uroce_create_srq_ex(pd->context, &ex);
}

/* Called with srq->lock held. */
static int resize_ring(struct uroce_srq *srq, uint32_t max_wr)
{
	struct eng_ring old = srq->ring, new_ring;
	struct uroce_buffer buffer;
	int error;

	if (!max_wr || max_wr > UROCE_MAX_SRQ_WR || max_wr < eng_ring_used(&old))
		return EINVAL;
	error = alloc_ring(srq, &new_ring, &buffer, max_wr);
	if (error)
		return error;
	for (uint32_t i = old.tail; i != old.head; i++)
		memcpy(eng_ring_slot(&new_ring, new_ring.head++), eng_ring_slot(&old, i),
		       old.slot_bytes);
	srq->ring = new_ring;
	uroce_buffer_free(&srq->buffer);
	srq->buffer = buffer;
	return 0;
}

int uroce_modify_srq(struct ibv_srq *ibv_srq, struct ibv_srq_attr *attr, int mask)
{
	struct uroce_srq *srq = to_uroce_srq(ibv_srq);
	uint32_t max_wr;
	int error = 0;

	if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return EINVAL;
	if (uroce_is_stale(srq->generation))
		return EIO;
	pthread_mutex_lock(&srq->lock);
	max_wr = mask & IBV_SRQ_MAX_WR ? attr->max_wr : srq->ring.limit;
	if ((mask & IBV_SRQ_LIMIT) && attr->srq_limit > max_wr)
		error = EINVAL;
	if (!error && (mask & IBV_SRQ_MAX_WR))
		error = resize_ring(srq, max_wr);
	if (!error && (mask & IBV_SRQ_LIMIT)) {
		srq->limit = attr->srq_limit;
		/* Fewer WQEs than the limit may be left already. */
		check_limit(srq);
	}
	pthread_mutex_unlock(&srq->lock);
	return error;
}

int uroce_query_srq(struct ibv_srq *ibv_srq, struct ibv_srq_attr *attr)
{
	struct uroce_srq *srq = to_uroce_srq(ibv_srq);

	if (uroce_is_stale(srq->generation))
		return EIO;
	pthread_mutex_lock(&srq->lock);
	attr->max_wr = srq->ring.limit;
	attr->max_sge = srq->max_sge;
	attr->srq_limit = srq->limit;
	pthread_mutex_unlock(&srq->lock);
	return 0;
}

int uroce_destroy_srq(struct ibv_srq *ibv_srq)
{
	struct uroce_srq *srq = to_uroce_srq(ibv_srq);
	struct ibv_context *context = ibv_srq->context;
	struct uroce_pd *pd;

	if (atomic_load(&srq->users))
		return EBUSY;
	uroce_ctx_obj_del(&srq->ctx_obj);
	if (uroce_srq_is_xrc(srq))
		uroce_xrc_remove_srq(srq);
	if (!uroce_is_stale(srq->generation)) {
		uroce_async_purge(srq->context, ibv_srq);
		uroce_async_wait_acked(&ibv_srq->mutex, &ibv_srq->cond, &ibv_srq->events_completed,
				       &srq->async_events_reported);
	}
	pd = srq->pd;
	free_memory(srq);
	uroce_pd_put(pd);
	uroce_object_remove(context, UROCE_OBJECT_SRQ);
	return 0;
}

int uroce_get_srq_num(struct ibv_srq *ibv_srq, uint32_t *number)
{
	struct uroce_srq *srq = to_uroce_srq(ibv_srq);

	if (!uroce_srq_is_xrc(srq))
		return EINVAL;
	*number = srq->base.srq_num;
	return 0;
}
