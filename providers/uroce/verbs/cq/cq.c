/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "cq.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/urocedv.h>

#include "progress/base/helgrind.h"
#include "verbs/fork.h"
#include "verbs/abi/ops.h"

_Static_assert((int)ENG_SUCCESS == IBV_WC_SUCCESS && (int)ENG_LOC_LEN_ERR == IBV_WC_LOC_LEN_ERR &&
		       (int)ENG_LOC_QP_OP_ERR == IBV_WC_LOC_QP_OP_ERR &&
		       (int)ENG_LOC_PROT_ERR == IBV_WC_LOC_PROT_ERR &&
		       (int)ENG_WR_FLUSH_ERR == IBV_WC_WR_FLUSH_ERR &&
		       (int)ENG_MW_BIND_ERR == IBV_WC_MW_BIND_ERR &&
		       (int)ENG_BAD_RESP_ERR == IBV_WC_BAD_RESP_ERR &&
		       (int)ENG_LOC_ACCESS_ERR == IBV_WC_LOC_ACCESS_ERR &&
		       (int)ENG_REM_INV_REQ_ERR == IBV_WC_REM_INV_REQ_ERR &&
		       (int)ENG_REM_ACCESS_ERR == IBV_WC_REM_ACCESS_ERR &&
		       (int)ENG_REM_OP_ERR == IBV_WC_REM_OP_ERR &&
		       (int)ENG_RETRY_EXC_ERR == IBV_WC_RETRY_EXC_ERR &&
		       (int)ENG_RNR_RETRY_EXC_ERR == IBV_WC_RNR_RETRY_EXC_ERR &&
		       (int)ENG_FATAL_ERR == IBV_WC_FATAL_ERR,
	       "the engine's statuses are those of verbs");
_Static_assert((int)ENG_WC_GRH == IBV_WC_GRH && (int)ENG_WC_IMMEDIATE == IBV_WC_WITH_IMM &&
		       (int)ENG_WC_INVALIDATED == IBV_WC_WITH_INV,
	       "the engine's completion flags are those of verbs");

enum {
	/*
	 * Some programs create a CQ with as many entries as they have outstanding requests, and
	 * poll one CQE for each event (perftest's latency tests with events).  They work with
	 * adapters because those round up.
	 */
	MIN_ENTRIES = 256,
};

static const uint8_t send_opcodes[ENG_OPS] = {
	[ENG_SEND] = IBV_WC_SEND,
	[ENG_SEND_IMM] = IBV_WC_SEND,
	[ENG_SEND_INV] = IBV_WC_SEND,
	[ENG_WRITE] = IBV_WC_RDMA_WRITE,
	[ENG_WRITE_IMM] = IBV_WC_RDMA_WRITE,
	[ENG_READ] = IBV_WC_RDMA_READ,
	[ENG_COMPARE_SWAP] = IBV_WC_COMP_SWAP,
	[ENG_FETCH_ADD] = IBV_WC_FETCH_ADD,
	[ENG_ATOMIC_WRITE] = IBV_WC_ATOMIC_WRITE,
	[ENG_FLUSH] = ABI_WC_FLUSH,
	[ENG_LOCAL_INV] = IBV_WC_LOCAL_INV,
	[ENG_BIND_MW] = IBV_WC_BIND_MW,
};

static enum ibv_wc_opcode opcode_of(const struct eng_wc *wc)
{
	if (!wc->receive)
		return send_opcodes[wc->op];
	return wc->op == ENG_WRITE_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
}

/*
 * Struct ibv_wc has no field for the network type (IPv4 or IPv6) of a datagram.  Adapters report it
 * in the service level, which RoCE does not have, and UCX up to 1.18 relies on that.
 */
static uint8_t service_level(const struct eng_wc *wc)
{
	enum { NETWORK_IPV6 = 1, NETWORK_IPV4 = 2 };

	return wc->ipv6 ? NETWORK_IPV6 : NETWORK_IPV4;
}

static void fill_wc(struct ibv_wc *to, uint32_t qpn, const struct eng_wc *wc)
{
	to->wr_id = wc->wr_id;
	to->status = (enum ibv_wc_status)wc->status;
	to->opcode = opcode_of(wc);
	to->vendor_err = 0;
	to->byte_len = wc->byte_len;
	to->invalidated_rkey = wc->immediate;
	if (__builtin_expect(wc->flags & ENG_WC_IMMEDIATE, 0))
		to->imm_data = htonl(wc->immediate);
	to->qp_num = qpn;
	to->src_qp = wc->src_qpn;
	to->wc_flags = wc->flags;
	to->pkey_index = 0;
	to->slid = 0;
	to->sl = __builtin_expect(wc->flags & ENG_WC_GRH, 0) ? service_level(wc) : 0;
	to->dlid_path_bits = 0;
}

/* CQEs that have been polled need no event.  Called with cq->lock held. */
static void set_tail(struct uroce_cq *cq, uint32_t tail)
{
	atomic_store_explicit(&cq->tail, tail, memory_order_relaxed);
	if (!cq->channel)
		return;
	if (uroce_cq_is_after(tail, cq->notified_idx))
		cq->notified_idx = tail;
	if (uroce_cq_is_after(tail, cq->solicited_idx))
		cq->solicited_idx = tail;
}

/* Called with cq->lock held. */
static void set_overrun(struct uroce_cq *cq)
{
	atomic_store(&cq->dead, true);
	uroce_async_event(cq->context, IBV_EVENT_CQ_ERR, &cq->base.cq);
	uroce_qp_work_schedule();
}

static bool is_solicited(const struct eng_wc *wc)
{
	return wc->solicited || wc->status != ENG_SUCCESS;
}

/*
 * Called when the ring is full.  If overruns are ignored, drops the oldest CQE and returns true;
 * else fails the CQ.
 */
static __attribute__((noinline)) bool handle_full_ring(struct uroce_cq *cq, uint32_t tail)
{
	if (cq->ignore_overrun)
		set_tail(cq, tail + 1);
	else
		set_overrun(cq);
	return cq->ignore_overrun;
}

void uroce_cq_complete(struct uroce_cq *cq, uint32_t qpn, const struct eng_wc *wc)
{
	pthread_mutex_lock(&cq->lock);

	uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);

	/* Completions after an overrun are dropped. */
	if (!atomic_load_explicit(&cq->dead, memory_order_relaxed) &&
	    (head - tail <= cq->mask || handle_full_ring(cq, tail))) {
		fill_wc(&cq->ring[head & cq->mask], qpn, wc);
		if (cq->timestamps)
			cq->timestamps[head & cq->mask] = progress_now();
		atomic_store_explicit(&cq->head, head + 1, memory_order_release);
		if (is_solicited(wc))
			cq->solicited_idx = head + 1;
		if (cq->notify != UROCE_NOTIFY_NONE)
			uroce_cq_raise_event(cq, is_solicited(wc));
	}
	pthread_mutex_unlock(&cq->lock);
}

static bool wc_is_of_qp(const struct ibv_wc *wc, uint32_t qpn)
{
	return wc->qp_num == qpn;
}

/*
 * Receives of an XRC SRQ have its number in src_qp (engine_ops.c); datagrams have a QPN there, and
 * only they have a GRH.
 */
static bool wc_is_of_srq(const struct ibv_wc *wc, uint32_t srqn)
{
	return wc->src_qp == srqn && !(wc->wc_flags & IBV_WC_GRH);
}

static void clean_ring(struct uroce_cq *cq,
		       bool (*matches)(const struct ibv_wc *wc, uint32_t number), uint32_t number)
{
	pthread_mutex_lock(&cq->lock);

	uint32_t head = atomic_load(&cq->head), new_head = atomic_load(&cq->tail);
	uint32_t notified_idx = cq->notified_idx, solicited_idx = cq->solicited_idx;

	for (uint32_t i = new_head; i != head; i++) {
		uint32_t from = i & cq->mask, to = new_head & cq->mask;

		if (matches(&cq->ring[from], number)) {
			notified_idx -= uroce_cq_is_after(cq->notified_idx, i);
			solicited_idx -= uroce_cq_is_after(cq->solicited_idx, i);
			continue;
		}
		if (from != to) {
			cq->ring[to] = cq->ring[from];
			if (cq->timestamps)
				cq->timestamps[to] = cq->timestamps[from];
		}
		new_head++;
	}
	atomic_store(&cq->head, new_head);
	cq->notified_idx = notified_idx;
	cq->solicited_idx = solicited_idx;
	pthread_mutex_unlock(&cq->lock);
}

void uroce_cq_clean_qp(struct uroce_cq *cq, uint32_t qpn)
{
	clean_ring(cq, wc_is_of_qp, qpn);
}

void uroce_cq_clean_srq(struct uroce_cq *cq, uint32_t srqn)
{
	clean_ring(cq, wc_is_of_srq, srqn);
}

/* Without cq->lock, so that threads that poll an empty CQ do not delay those that fill it. */
static bool is_empty(const struct uroce_cq *cq)
{
	return atomic_load_explicit(&cq->head, memory_order_relaxed) ==
	       atomic_load_explicit(&cq->tail, memory_order_relaxed);
}

static __attribute__((noinline)) int poll_ring(struct uroce_cq *cq, int count, struct ibv_wc *wc,
					       uint64_t *timestamps)
{
	struct progress *worker;
	uint32_t other_workers;
	int polled = 0;

	pthread_mutex_lock(&cq->lock);

	uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);

	for (; polled < count && tail != head; polled++, tail++) {
		wc[polled] = cq->ring[tail & cq->mask];
		if (timestamps)
			timestamps[polled] = cq->timestamps ? cq->timestamps[tail & cq->mask] : 0;
	}
	set_tail(cq, tail);
	pthread_mutex_unlock(&cq->lock);
	worker = cq->workers.own;
	other_workers = uroce_cq_other_workers(&cq->workers);
	do
		progress_wait_responses(worker);
	while ((worker = uroce_worker_set_next(&other_workers)));
	return polled;
}

int uroce_cq_poll_ring(struct uroce_cq *cq, int count, struct ibv_wc *wc, uint64_t *timestamps)
{
	return is_empty(cq) ? 0 : poll_ring(cq, count, wc, timestamps);
}

/* Makes progress, since the CQ was empty, and polls again. */
static __attribute__((noinline)) int poll_empty(struct uroce_cq *cq, int count, struct ibv_wc *wc,
						uint64_t *timestamps)
{
	struct progress *worker = cq->workers.own;
	uint32_t other_workers = uroce_cq_other_workers(&cq->workers);
	int saved_errno;

	if (count <= 0)
		return 0;
	if (atomic_load_explicit(&cq->dead, memory_order_relaxed))
		return -1;
	/* The system calls set errno to EAGAIN if no packet has arrived. */
	saved_errno = errno;
	do
		progress_poll(worker);
	while ((worker = uroce_worker_set_next(&other_workers)));
	errno = saved_errno;
	return uroce_cq_poll_ring(cq, count, wc, timestamps);
}

int uroce_cq_poll(struct uroce_cq *cq, int count, struct ibv_wc *wc, uint64_t *timestamps)
{
	struct progress *worker = cq->workers.own;
	uint32_t other_workers = uroce_cq_other_workers(&cq->workers);
	int polled;

	if (uroce_is_stale(cq->generation))
		return 0;
	if (is_empty(cq))
		return poll_empty(cq, count, wc, timestamps);
	polled = poll_ring(cq, count, wc, timestamps);
	if (polled > 0) {
		do
			progress_note_poll(worker);
		while ((worker = uroce_worker_set_next(&other_workers)));
	}
	/* Another thread may have polled the CQEs. */
	return polled ? polled : poll_empty(cq, count, wc, timestamps);
}

int uroce_poll_cq(struct ibv_cq *ibv_cq, int count, struct ibv_wc *wc)
{
	return uroce_cq_poll(to_uroce_cq(ibv_cq), count, wc, NULL);
}

int uroce_req_notify_cq(struct ibv_cq *ibv_cq, int solicited_only)
{
	struct uroce_cq *cq = to_uroce_cq(ibv_cq);
	struct progress *worker = cq->workers.own;
	uint32_t other_workers;

	if (uroce_is_stale(cq->generation))
		return EIO;
	/* If the timer cannot be created, the event of existing CQEs is sent at once. */
	if (cq->channel && !atomic_load(&cq->moderation.has_timer) &&
	    atomic_load(&cq->head) != atomic_load(&cq->tail))
		uroce_cq_create_timer(cq);
	pthread_mutex_lock(&cq->lock);
	/* A CQ armed for any completion must not be restricted to solicited ones. */
	if (!solicited_only)
		cq->notify = UROCE_NOTIFY_ANY;
	else if (cq->notify == UROCE_NOTIFY_NONE)
		cq->notify = UROCE_NOTIFY_SOLICITED;
	uroce_cq_raise_missed_event(cq);
	other_workers = uroce_cq_other_workers(&cq->workers);
	pthread_mutex_unlock(&cq->lock);
	do
		progress_notify_armed(worker);
	while ((worker = uroce_worker_set_next(&other_workers)));
	return 0;
}

uint32_t uroce_cq_entries(int cqe)
{
	uint32_t entries = MIN_ENTRIES;

	if (cqe < 1 || cqe > UROCE_MAX_CQE)
		return 0;
	while (entries < (uint32_t)cqe)
		entries *= 2;
	return entries;
}

int uroce_cq_init(struct uroce_cq *cq, uint32_t entries, bool timestamps)
{
	pthread_mutexattr_t attr;

	size_t ring_bytes = entries * sizeof(*cq->ring);
	size_t timestamp_bytes = timestamps ? entries * sizeof(*cq->timestamps) : 0;
	int error = uroce_buffer_alloc(&cq->buffer, cq->pd, ring_bytes + timestamp_bytes,
				       UROCEDV_COMPLETION_QUEUE);

	if (error)
		return error;
	cq->ring = cq->buffer.memory;
	cq->timestamps = timestamps ? (void *)((uint8_t *)cq->buffer.memory + ring_bytes) : NULL;
	cq->mask = entries - 1;
	cq->generation = uroce_generation;
	HELGRIND_IS_ATOMIC(cq->head);
	HELGRIND_IS_ATOMIC(cq->tail);
	HELGRIND_IS_ATOMIC(cq->dead);
	HELGRIND_IS_ATOMIC(cq->workers.other_workers);
	/* Held for tens of ns, so spin first; but sleep if the holder has been preempted. */
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
	pthread_mutex_init(&cq->lock, &attr);
	pthread_mutexattr_destroy(&attr);
	pthread_mutex_init(&cq->poll_lock, NULL);
	return 0;
}

void uroce_cq_fini(struct uroce_cq *cq)
{
	/* In a forked child a lock may be held by a thread of the parent, and is left as it is. */
	if (!uroce_is_stale(cq->generation)) {
		pthread_mutex_destroy(&cq->poll_lock);
		pthread_mutex_destroy(&cq->lock);
	}
	uroce_buffer_free(&cq->buffer);
}

/* After return cq raises no more events, and its unread events have been removed. */
static void stop_events(struct uroce_cq *cq)
{
	uroce_cq_destroy_timer(cq);
	if (cq->channel) {
		/* A running progress cycle may have deferred an event of cq. */
		progress_sync_all();
		uroce_channel_purge(cq->channel, cq);
	}
	uroce_async_purge(cq->context, &cq->base.cq);
	uroce_qp_work_put(cq->context->progress);
}

static void stop_cq(struct uroce_ctx_obj *ctx_obj)
{
	struct uroce_cq *cq = container_of(ctx_obj, struct uroce_cq, ctx_obj);

	stop_events(cq);
	cq->generation = UROCE_GEN_STOPPED;
}

struct uroce_cq *uroce_cq_create(struct ibv_context *context, int cqe,
				 struct ibv_comp_channel *channel, int comp_vector,
				 const struct uroce_cq_options *options)
{
	uint32_t entries = uroce_cq_entries(cqe);
	struct uroce_cq *cq;
	int error = EINVAL;

	if (!entries || comp_vector < 0 || comp_vector >= context->num_comp_vectors ||
	    (channel && !uroce_contexts_share_file(context, channel->context)))
		goto err;
	error = uroce_fork_init();
	if (!error)
		error = uroce_object_add(context, UROCE_OBJECT_CQ);
	if (error)
		goto err;
	cq = calloc(1, sizeof(*cq));
	error = ENOMEM;
	if (!cq)
		goto err_remove;
	cq->pd = options->pd;
	cq->ignore_overrun = options->ignore_overrun;
	cq->single_threaded = options->single_threaded;
	error = uroce_cq_init(cq, entries, options->timestamps);
	if (error)
		goto err_free;
	cq->context = to_uroce_context(context);
	cq->channel = (struct uroce_comp_channel *)channel;
	cq->workers.own = uroce_cq_choose_worker(cq->context, comp_vector);
	error = uroce_qp_work_get(cq->context->progress);
	if (error)
		goto err_fini;
	cq->base.cq.cqe = (int)entries;
	if (cq->pd)
		uroce_pd_get(cq->pd);
	uroce_ctx_obj_add(&cq->ctx_obj, UROCE_CTX_OBJ_CQ, cq->context, stop_cq);
	return cq;

err_fini:
	uroce_cq_fini(cq);
err_free:
	free(cq);
err_remove:
	uroce_object_remove(context, UROCE_OBJECT_CQ);
err:
	errno = error;
	return NULL;
}

struct ibv_cq *uroce_create_cq(struct ibv_context *context, int cqe,
			       struct ibv_comp_channel *channel, int comp_vector)
{
	static const struct uroce_cq_options none;
	struct uroce_cq *cq = uroce_cq_create(context, cqe, channel, comp_vector, &none);

	return cq ? &cq->base.cq : NULL;
}

int uroce_resize_cq(struct ibv_cq *ibv_cq, int cqe)
{
	struct uroce_cq *cq = to_uroce_cq(ibv_cq);
	uint32_t entries = uroce_cq_entries(cqe);
	struct uroce_cq resized = { .pd = cq->pd };
	struct uroce_buffer old_buffer;
	int error;

	if (!entries)
		return EINVAL;
	if (uroce_is_stale(cq->generation))
		return EIO;
	error = uroce_cq_init(&resized, entries, cq->timestamps);
	if (error)
		return error;

	pthread_mutex_lock(&cq->lock);
	/* ibv_resize_cq(3): cqe must be at least the number of unpolled entries. */
	uint32_t used = cq->head - cq->tail;

	if (used > (uint32_t)cqe) {
		pthread_mutex_unlock(&cq->lock);
		uroce_cq_fini(&resized);
		return EINVAL;
	}
	for (uint32_t i = cq->tail; i != cq->head; i++) {
		resized.ring[i & resized.mask] = cq->ring[i & cq->mask];
		if (cq->timestamps)
			resized.timestamps[i & resized.mask] = cq->timestamps[i & cq->mask];
	}
	old_buffer = cq->buffer;
	cq->buffer = resized.buffer;
	cq->ring = resized.ring;
	cq->timestamps = resized.timestamps;
	cq->mask = resized.mask;
	cq->base.cq.cqe = (int)entries;
	pthread_mutex_unlock(&cq->lock);

	resized.buffer = old_buffer;
	uroce_cq_fini(&resized);
	return 0;
}

/* Called by libibverbs in the thread that has read an event, before the application gets it. */
void uroce_cq_event(struct ibv_cq *ibv_cq)
{
	struct uroce_cq *cq = to_uroce_cq(ibv_cq);

	atomic_fetch_add(&cq->comp_events_reported, 1);
	if (!uroce_is_stale(cq->generation))
		uroce_channel_event_read(cq->channel);
}

/* Waits until the application has acknowledged all events that it has read. */
static void wait_for_event_acks(struct uroce_cq *cq)
{
	struct ibv_cq *base = &cq->base.cq;

	pthread_mutex_lock(&base->mutex);
	while (base->comp_events_completed != atomic_load(&cq->comp_events_reported) ||
	       base->async_events_completed != atomic_load(&cq->async_events_reported))
		pthread_cond_wait(&base->cond, &base->mutex);
	pthread_mutex_unlock(&base->mutex);
}

int uroce_destroy_cq(struct ibv_cq *ibv_cq)
{
	struct uroce_cq *cq = to_uroce_cq(ibv_cq);
	struct ibv_context *context = ibv_cq->context;

	if (atomic_load(&cq->users))
		return EBUSY;
	uroce_ctx_obj_del(&cq->ctx_obj);
	/* In a forked child the events and the progress thread belong to the parent. */
	if (uroce_is_stale(cq->generation)) {
		uroce_cq_destroy_timer(cq);
	} else {
		stop_events(cq);
		wait_for_event_acks(cq);
	}
	uroce_cq_fini(cq);
	if (cq->pd)
		uroce_pd_put(cq->pd);
	free(cq);
	uroce_object_remove(context, UROCE_OBJECT_CQ);
	return 0;
}
