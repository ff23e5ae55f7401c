/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "qp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/urocedv.h>

#include "srq.h"
#include "ud.h"
#include "verbs/fork.h"
#include "verbs/xrc/xrc.h"

enum {
	CACHE_LINE = 64,
	ATOMIC_WRITE_BYTES = 8,
	/*
	 * Within this time the ACK of the last request arrives: a responder that is not polled
	 * delays it by at most one tick, and the requester solicits a missing ACK after one tick.
	 */
	ACK_WAIT_NS = 3 * PROGRESS_TICK_NS,
	ACK_POLL_US = 20,
};

/* Requests beyond the limits of the device fail here, not later (rule U1). */
static int check_cap(const struct ibv_qp_cap *cap)
{
	if (cap->max_send_wr > UROCE_MAX_QP_WR || cap->max_recv_wr > UROCE_MAX_QP_WR ||
	    cap->max_send_sge > UROCE_MAX_SGE || cap->max_recv_sge > UROCE_MAX_SGE ||
	    cap->max_inline_data > UROCE_MAX_INLINE)
		return EINVAL;
	return 0;
}

/* Slots are whole cache lines; cap is increased to the space that they have. */
static int alloc_rings(struct uroce_qp *qp)
{
	struct ibv_qp_cap *cap = &qp->cap;
	/* The payload of an ATOMIC_WRITE is always inline. */
	uint32_t inlined = cap->max_inline_data < ATOMIC_WRITE_BYTES ? ATOMIC_WRITE_BYTES
								     : cap->max_inline_data;
	uint32_t send_bytes = eng_send_slot_bytes(cap->max_send_sge, inlined);
	uint32_t recv_bytes = eng_recv_slot_bytes(cap->max_recv_sge);
	uint32_t room = send_bytes - (uint32_t)offsetof(struct eng_send_wqe, data);
	int error;

	if (qp->send_cq) {
		cap->max_inline_data = room < UROCE_MAX_INLINE ? room : UROCE_MAX_INLINE;
		cap->max_send_sge = room / (uint32_t)sizeof(struct eng_sge);
		if (cap->max_send_sge > UROCE_MAX_SGE)
			cap->max_send_sge = UROCE_MAX_SGE;
	}
	error = uroce_ring_alloc(&qp->sq, &qp->sq_buffer, qp->pd, UROCEDV_SEND_QUEUE,
				 cap->max_send_wr, send_bytes);
	if (!error)
		error = uroce_ring_alloc(&qp->own_rq, &qp->rq_buffer, qp->pd, UROCEDV_RECEIVE_QUEUE,
					 cap->max_recv_wr, recv_bytes);
	return error;
}

static void init_locks(struct uroce_qp *qp)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
	pthread_mutex_init(&qp->progress.lock, &attr);
	pthread_mutexattr_destroy(&attr);
	pthread_mutex_init(&qp->modify_lock, NULL);
	pthread_mutex_init(&qp->base.qp.mutex, NULL);
	pthread_cond_init(&qp->base.qp.cond, NULL);
}

static void free_rings(struct uroce_qp *qp)
{
	uroce_buffer_free(&qp->rq_buffer);
	uroce_buffer_free(&qp->sq_buffer);
}

static void free_memory(struct uroce_qp *qp)
{
	/* In a forked child a lock may be held by a thread of the parent, and is left as it is. */
	if (!uroce_is_stale(qp->generation)) {
		pthread_cond_destroy(&qp->base.qp.cond);
		pthread_mutex_destroy(&qp->base.qp.mutex);
		pthread_mutex_destroy(&qp->modify_lock);
		pthread_mutex_destroy(&qp->progress.lock);
	}
	free_rings(qp);
	free(qp->resp_res);
	free(qp->progress.engine);
	free(qp);
}

/* Engine type of a QP type, and the objects that the QP needs. */
struct type_row {
	bool supported;
	bool has_sq; /* has an SQ with its CQ, and a PD */
	bool has_rq; /* has an RQ or SRQ, with its CQ */
	bool is_xrc_target;
	enum eng_qp_type type;
};

static const struct type_row qp_types[] = {
	[IBV_QPT_RC] = { true, true, true, false, ENG_RC },
	[IBV_QPT_UC] = { true, true, true, false, ENG_UC },
	[IBV_QPT_UD] = { true, true, true, false, ENG_UD },
	[IBV_QPT_XRC_SEND] = { true, true, false, false, ENG_XRC_SEND },
	[IBV_QPT_XRC_RECV] = { true, false, false, true, ENG_XRC_RECV },
};

static const struct type_row *find_type_row(enum ibv_qp_type type)
{
	if ((size_t)type >= sizeof(qp_types) / sizeof(qp_types[0]) || !qp_types[type].supported)
		return NULL;
	return &qp_types[type];
}

/*
 * Returns true if all objects that the QP type uses belong to context or to a context that shares
 * its file (import).
 */
static bool objects_are_of(struct ibv_context *context, const struct type_row *row,
			   const struct ibv_qp_init_attr_ex *attr)
{
	if (row->has_sq && !(uroce_contexts_share_file(context, attr->pd->context) &&
			     uroce_contexts_share_file(context, attr->send_cq->context)))
		return false;
	if (row->has_rq &&
	    !(uroce_contexts_share_file(context, attr->recv_cq->context) &&
	      (!attr->srq || uroce_contexts_share_file(context, attr->srq->context))))
		return false;
	return !row->is_xrc_target || uroce_contexts_share_file(context, attr->xrcd->context);
}

/* Capabilities that the QP type uses; the others are ignored and become 0. */
static struct ibv_qp_cap effective_cap(const struct type_row *row,
				       const struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp_cap cap = attr->cap;

	if (!row->has_sq)
		memset(&cap, 0, sizeof(cap));
	if (!row->has_rq || attr->srq)
		cap.max_recv_wr = cap.max_recv_sge = 0;
	return cap;
}

/* Returns 0, EOPNOTSUPP or EINVAL. */
static int check_init_attr(struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr)
{
	const struct type_row *row = find_type_row(attr->qp_type);
	struct ibv_qp_cap cap;

	if (!row)
		return EOPNOTSUPP;
	if ((row->has_sq && (!attr->pd || !attr->send_cq)) || (row->has_rq && !attr->recv_cq))
		return EINVAL;
	if (row->is_xrc_target && !((attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) && attr->xrcd))
		return EINVAL;
	if (!objects_are_of(context, row, attr))
		return EINVAL;
	if (row->has_rq && attr->srq && uroce_srq_is_xrc(to_uroce_srq(attr->srq)))
		return EINVAL;
	cap = effective_cap(row, attr);
	return check_cap(&cap);
}

static void set_objects(struct uroce_qp *qp, const struct ibv_qp_init_attr_ex *attr)
{
	const struct type_row *row = find_type_row(attr->qp_type);

	qp->type = row->type;
	qp->cap = effective_cap(row, attr);
	if (row->has_sq) {
		qp->pd = to_uroce_pd(attr->pd);
		qp->send_cq = to_uroce_cq(attr->send_cq);
	}
	if (row->has_rq) {
		qp->recv_cq = to_uroce_cq(attr->recv_cq);
		qp->srq = attr->srq ? to_uroce_srq(attr->srq) : NULL;
	}
	if (row->is_xrc_target)
		qp->xrc_domain = to_uroce_xrcd(attr->xrcd)->domain;
}

/* Changes the user counts of the CQs and the SRQ of qp, which must not be destroyed before it. */
static void change_user_counts(struct uroce_qp *qp, int change)
{
	atomic_uint *const users[] = {
		qp->send_cq ? &qp->send_cq->users : NULL,
		qp->recv_cq ? &qp->recv_cq->users : NULL,
		qp->srq ? &qp->srq->users : NULL,
	};

	for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++) {
		if (users[i])
			atomic_fetch_add(users[i], (unsigned int)change);
	}
}

/* From now on, polling the CQs of qp makes progress for its worker. */
static void attach_to_cqs(struct uroce_qp *qp)
{
	if (qp->send_cq)
		uroce_cq_attach(qp->send_cq, qp->progress.worker);
	if (qp->recv_cq)
		uroce_cq_attach(qp->recv_cq, qp->progress.worker);
}

static void detach_from_cqs(struct uroce_qp *qp)
{
	if (qp->send_cq)
		uroce_cq_detach(qp->send_cq, qp->progress.worker);
	if (qp->recv_cq)
		uroce_cq_detach(qp->recv_cq, qp->progress.worker);
}

static void stop_qp(struct uroce_ctx_obj *ctx_obj);

static void set_public_fields(struct uroce_qp *qp, struct ibv_context *context,
			      const struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *public = &qp->base.qp;

	/* For QPs libibverbs leaves these fields to the provider. */
	public->context = context;
	public->qp_context = attr->qp_context;
	public->pd = qp->pd ? attr->pd : NULL;
	public->send_cq = qp->send_cq ? &qp->send_cq->base.cq : NULL;
	public->recv_cq = qp->recv_cq ? &qp->recv_cq->base.cq : NULL;
	public->srq = qp->srq ? &qp->srq->base.srq : NULL;
	public->qp_num = qp->progress.qpn;
	public->handle = qp->progress.qpn;
	public->qp_type = attr->qp_type;
	public->state = IBV_QPS_RESET;
}

/*
 * Limits of the bytes in flight, counted as a socket charges them: of a QP, and of all QPs of a
 * worker, since the socket buffers of peers drop what does not fit.  Peers are assumed to have
 * socket buffers of our size, of which seven eighths are used; more than CWND_PACKETS packets in
 * flight do not increase throughput.
 */
enum {
	PACKET_CHARGE = 4212, /* charge of a full packet: CC_FULL_PACKET of the engine */
	CWND_PACKETS = 240,
	/* SO_RCVBUF of a default system, as the kernel counts it. */
	DEFAULT_RECEIVE_BUFFER = 425984,
};
/* In-flight budgets by worker. */
static struct {
	_Alignas(CACHE_LINE) struct eng_inflight_budget budget;
} inflight_budgets[PROGRESS_WORKERS] = {
	[0 ... PROGRESS_WORKERS -
	 1] = { { .limit = DEFAULT_RECEIVE_BUFFER / 8 * 7, .queued = true } },
};

static struct eng_inflight_budget *inflight_budget(const struct progress *worker)
{
	return &inflight_budgets[progress_worker_number(worker)].budget;
}

void uroce_set_inflight_budget(const struct progress *worker, uint32_t receive_buffer)
{
	uint64_t limit = (uint64_t)receive_buffer / 8 * 7;

	if (limit > (uint64_t)CWND_PACKETS * PACKET_CHARGE)
		limit = (uint64_t)CWND_PACKETS * PACKET_CHARGE;
	__atomic_store_n(&inflight_budget(worker)->limit, limit, __ATOMIC_RELAXED);
}

/* Returns true if the QP receives from shared receive queues (rule C7). */
static bool rq_is_shared(const struct uroce_qp *qp)
{
	return qp->srq || qp->type == ENG_XRC_RECV;
}

/* An XRC target takes receive requests from any SRQ of its XRC domain. */
static uint32_t max_recv_sge(const struct uroce_qp *qp)
{
	if (qp->type == ENG_XRC_RECV)
		return UROCE_MAX_SGE;
	return qp->srq ? qp->srq->max_sge : qp->cap.max_recv_sge;
}

/* An XRC target has no CQ of its own: its completions go to the CQ of an SRQ. */
static struct progress *choose_worker(const struct uroce_qp *qp)
{
	if (qp->recv_cq)
		return qp->recv_cq->workers.own;
	return qp->send_cq ? qp->send_cq->workers.own : qp->context->progress;
}

/* Assigns the QPN and creates the engine, under the QP's lock so that no cycle uses it yet. */
static int start_engine(struct uroce_qp *qp)
{
	uint32_t sge = max_recv_sge(qp);
	int error;

	qp->progress.engine = aligned_alloc(CACHE_LINE, eng_qp_bytes(sge));
	if (!qp->progress.engine)
		return ENOMEM;
	pthread_mutex_lock(&qp->progress.lock);
	error = -progress_qp_add(choose_worker(qp), &qp->progress);
	if (!error)
		eng_qp_init(
			qp->progress.engine,
			&(struct eng_qp_init){
				.type = qp->type,
				.qpn = qp->progress.qpn,
				.owner = qp,
				.ops = &uroce_engine_ops,
				.sq = &qp->sq,
				.rq = &qp->own_rq,
				.max_recv_sge = sge,
				.rq_shared = rq_is_shared(qp),
				.signal_all = qp->signal_all,
				.credits_hidden = qp->context->settings.credits_hidden,
				/* UC and UD packets are not acknowledged, so not in flight. */
				.inflight_budget = qp->progress.unreliable
							   ? NULL
							   : inflight_budget(qp->progress.worker),
				.cwnd_packets = CWND_PACKETS,
			});
	pthread_mutex_unlock(&qp->progress.lock);
	return error;
}

struct uroce_qp *uroce_qp_create(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	struct uroce_qp *qp = NULL;
	int error = check_init_attr(context, attr);

	if (!error)
		error = uroce_object_add(context, UROCE_OBJECT_QP);
	if (error)
		goto err;
	error = ENOMEM;
	qp = aligned_alloc(CACHE_LINE, (sizeof(*qp) + CACHE_LINE - 1) & ~(CACHE_LINE - 1ul));
	if (!qp)
		goto err_remove;
	memset(qp, 0, sizeof(*qp));
	qp->context = to_uroce_context(context);
	qp->generation = uroce_generation;
	set_objects(qp, attr);
	qp->rkey_cache.user = qp;
	qp->signal_all = attr->sq_sig_all;
	qp->progress.unreliable = qp->type == ENG_UC || qp->type == ENG_UD;
	init_locks(qp);
	ooo_pool_init();
	error = alloc_rings(qp);
	if (!error)
		error = start_engine(qp);
	if (error)
		goto err_free;
	set_public_fields(qp, context, attr);
	if (qp->pd)
		uroce_pd_get(qp->pd);
	change_user_counts(qp, 1);
	attach_to_cqs(qp);
	if (qp->type != ENG_XRC_RECV)
		uroce_ctx_obj_add(&qp->ctx_obj, UROCE_CTX_OBJ_QP, qp->context, stop_qp);
	attr->cap = qp->cap;
	return qp;

err_free:
	free_memory(qp);
err_remove:
	uroce_object_remove(context, UROCE_OBJECT_QP);
err:
	errno = error;
	return NULL;
}

void uroce_qp_clean_cqs(struct uroce_qp *qp)
{
	if (qp->send_cq)
		uroce_cq_clean_qp(qp->send_cq, qp->progress.qpn);
	if (qp->recv_cq && qp->recv_cq != qp->send_cq)
		uroce_cq_clean_qp(qp->recv_cq, qp->progress.qpn);
}

void uroce_qp_receive_pending(struct uroce_qp *qp)
{
	enum eng_qp_state state;

	pthread_mutex_lock(&qp->progress.lock);
	state = eng_qp_state(qp->progress.engine);
	pthread_mutex_unlock(&qp->progress.lock);
	if (state != ENG_RESET && state != ENG_INIT && state != ENG_ERR)
		progress_receive_all(qp->progress.worker);
}

static bool awaits_ack(struct uroce_qp *qp)
{
	bool awaits;

	pthread_mutex_lock(&qp->progress.lock);
	awaits = eng_awaits_response(qp->progress.engine, progress_now(), ACK_WAIT_NS);
	pthread_mutex_unlock(&qp->progress.lock);
	return awaits;
}

void uroce_qp_wait_acks(struct uroce_qp *qp)
{
	uint64_t until = progress_now() + ACK_WAIT_NS;

	while (awaits_ack(qp) && progress_now() < until) {
		usleep(ACK_POLL_US);
		progress_receive_all(qp->progress.worker);
	}
}

/* Adds the counters of qp, which is being stopped, to those of its device. */
static void accumulate_counters(const struct uroce_qp *qp)
{
	struct uroce_device *device = qp->context->device;
	struct eng_qp_info info;

	eng_qp_query(qp->progress.engine, &info);
	pthread_mutex_lock(&device->port_lock);
	for (unsigned int i = 0; i < ENG_COUNTER_COUNT; i++)
		device->destroyed_qp_counters[i] += info.counters[i];
	pthread_mutex_unlock(&device->port_lock);
}

/* Removes qp from the network and from its CQs, and drops its unread events. */
static void stop_traffic(struct uroce_qp *qp)
{
	uroce_qp_receive_pending(qp);
	/* The peer may still wait for the ACK of the last message. */
	pthread_mutex_lock(&qp->progress.lock);
	eng_send_final_acks(qp->progress.engine);
	progress_qp_changed(qp->progress.worker, &qp->progress);
	pthread_mutex_unlock(&qp->progress.lock);
	uroce_mcast_detach_all(qp);
	progress_qp_remove(qp->progress.worker, &qp->progress);
	uroce_ud_release_all(qp);
	accumulate_counters(qp);
	/* Returns the packets in flight to the budget of the worker. */
	eng_set_state(qp->progress.engine, ENG_RESET, 0);
	uroce_async_purge(qp->context, &qp->base.qp);
	uroce_qp_clean_cqs(qp);
	detach_from_cqs(qp);
}

void uroce_qp_stop(struct uroce_qp *qp)
{
	stop_traffic(qp);
	qp->generation = UROCE_GEN_STOPPED;
}

static void stop_qp(struct uroce_ctx_obj *ctx_obj)
{
	uroce_qp_stop(container_of(ctx_obj, struct uroce_qp, ctx_obj));
}

void uroce_qp_free(struct uroce_qp *qp)
{
	struct uroce_context *context = qp->context;

	uroce_ctx_obj_del(&qp->ctx_obj);
	/* In a forked child the QP itself remains in use by the parent. */
	if (!uroce_is_stale(qp->generation)) {
		stop_traffic(qp);
		uroce_async_wait_acked(&qp->base.qp.mutex, &qp->base.qp.cond,
				       &qp->base.qp.events_completed, &qp->async_events_reported);
	}
	/* A later QP may get the same address, but must not get the windows of this one. */
	if (qp->has_windows)
		mkey_table_unbind_user(qp);
	free_rings(qp);
	change_user_counts(qp, -1);
	if (qp->pd)
		uroce_pd_put(qp->pd);
	free_memory(qp);
	uroce_object_remove(&context->base.context, UROCE_OBJECT_QP);
}
