/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Engine callbacks of QPs, and the work that they leave to the progress thread. */
#include "qp.h"
#include "verbs/cq/cq.h"
#include "progress/gsi/gsi.h"
#include "srq.h"
#include "verbs/xrc/xrc.h"

/* Returns the PD of an SRQ of an XRC target, for comparison only; NULL if there is no such SRQ. */
static const struct uroce_pd *xrc_pd(const struct uroce_qp *qp, uint32_t srqn)
{
	const struct uroce_srq *srq = uroce_xrc_srq_get(qp, srqn);
	const struct uroce_pd *pd = srq ? srq->pd->domain : NULL;

	uroce_xrc_srq_put();
	return pd;
}

/*
 * XRC target: the protection domain is that of the SRQ.  Not inlined, and called last, so that
 * map_local() need not save registers for this rare case.
 */
static __attribute__((noinline)) void *map_xrc_target(struct uroce_qp *qp, struct mkey_cache *cache,
						      uint32_t key, uint64_t addr, uint32_t length,
						      uint32_t need)
{
	return mkey_table_map(cache, xrc_pd(qp, eng_current_srqn(qp->progress.engine)), key, addr,
			      length, need);
}

static void *map_local(void *owner, uint32_t lkey, uint64_t addr, uint32_t length, enum eng_use use)
{
	struct uroce_qp *qp = owner;
	struct mkey_cache *cache =
		use == ENG_USE_SEND ? &qp->lkey_read_cache : &qp->lkey_write_cache;
	uint32_t need = MKEY_LOCAL | (use == ENG_USE_SEND ? 0 : ENG_LOCAL_WRITE);
	const struct uroce_pd *pd = qp->pd;

	if (qp->type == ENG_XRC_RECV)
		return map_xrc_target(qp, cache, lkey, addr, length, need);
	if (use == ENG_USE_RECEIVE && qp->srq)
		pd = qp->srq->pd;
	return mkey_table_map(cache, pd->domain, lkey, addr, length, need);
}

static void *map_remote(void *owner, uint32_t rkey, uint64_t addr, uint32_t length, uint32_t need)
{
	struct uroce_qp *qp = owner;

	if (qp->type == ENG_XRC_RECV)
		return map_xrc_target(qp, &qp->rkey_cache, rkey, addr, length, need);
	return mkey_table_map(&qp->rkey_cache, qp->pd->domain, rkey, addr, length, need);
}

/* Only RC has FLUSH, so the owner is never an XRC target. */
static bool flush(void *owner, const struct eng_flush *flush)
{
	struct uroce_qp *qp = owner;

	return mkey_table_flush(&qp->rkey_cache, qp->pd->domain, flush);
}

/* Not inlined, as map_xrc_target(). */
static __attribute__((noinline)) void complete_xrc(const struct uroce_qp *qp,
						   const struct eng_wc *wc)
{
	struct eng_wc wc_with_srqn = *wc;
	const struct uroce_srq *srq = uroce_xrc_srq_get(qp, wc->srqn);

	/* src_qpn, which only datagrams use, has the SRQ number for uroce_cq_clean_srq(). */
	wc_with_srqn.src_qpn = wc->srqn;
	/* The SRQ may have been destroyed since the message began; the completion is dropped. */
	if (srq)
		uroce_cq_complete(srq->cq, qp->progress.qpn, &wc_with_srqn);
	uroce_xrc_srq_put();
}

static void complete(void *owner, const struct eng_wc *wc)
{
	struct uroce_qp *qp = owner;

	if (qp->type == ENG_XRC_RECV)
		complete_xrc(qp, wc);
	else
		uroce_cq_complete(wc->receive ? qp->recv_cq : qp->send_cq, qp->progress.qpn, wc);
}

static enum eng_rq_result take_xrc_receive(const struct uroce_qp *qp, uint32_t srqn,
					   struct eng_recv_desc *wqe, struct eng_sge *sge)
{
	struct uroce_srq *srq = uroce_xrc_srq_get(qp, srqn);
	enum eng_rq_result result = srq ? uroce_srq_take_receive(srq, wqe, sge) : ENG_RQ_DENIED;

	uroce_xrc_srq_put();
	return result;
}

static enum eng_rq_result get_recv_wqe(void *owner, uint32_t srqn, struct eng_recv_desc *wqe,
				       struct eng_sge *sge)
{
	struct uroce_qp *qp = owner;

	if (qp->type == ENG_XRC_RECV)
		return take_xrc_receive(qp, srqn, wqe, sge);
	return uroce_srq_take_receive(qp->srq, wqe, sge);
}

static void raise_async_event(struct uroce_qp *qp, enum ibv_event_type type)
{
	struct xrc_qp_handle *handle;

	if (qp->type != ENG_XRC_RECV)
		uroce_async_event(qp->context, type, &qp->base.qp);
	/* Only an XRC target has handles. */
	LIST_FOREACH(handle, &qp->handles, link)
		uroce_async_event(to_uroce_context(handle->base.qp.context), type,
				  &handle->base.qp);
}

/* Returns true if cq has overrun, and reports it once: the application sees only its effects. */
static bool cq_has_overrun(struct uroce_cq *cq)
{
	if (!cq || !atomic_load(&cq->dead))
		return false;
	if (!atomic_exchange(&cq->overrun_reported, true))
		uroce_err("a completion queue with room for %d entries has overrun, its queue "
			  "pairs are now in error: poll it more often or make it larger",
			  cq->base.cq.cqe);
	return true;
}

static void fail_on_cq_overrun(struct progress_qp *progress_qp)
{
	struct uroce_qp *qp = to_uroce_qp_of_progress(progress_qp);

	if (!cq_has_overrun(qp->send_cq) && !cq_has_overrun(qp->recv_cq))
		return;
	switch (eng_qp_state(progress_qp->engine)) {
	case ENG_RESET:
	case ENG_ERR:
		return;
	default:
		eng_set_state(progress_qp->engine, ENG_ERR, progress_now());
		raise_async_event(qp, IBV_EVENT_QP_FATAL);
		progress_qp_changed(progress_qp->worker, progress_qp);
	}
}

static void run_qp_work(struct progress_qp *progress_qp, void *arg)
{
	(void)arg;
	fail_on_cq_overrun(progress_qp);
	uroce_path_mtu_run_scheduled(to_uroce_qp_of_progress(progress_qp));
}

__attribute__((constructor)) static void register_qp_work(void)
{
	uroce_qp_work_set(run_qp_work);
}

static void event(void *owner, enum eng_event event)
{
	struct uroce_qp *qp = owner;
	static const enum ibv_event_type types[] = {
		[ENG_EVENT_COMM_EST] = IBV_EVENT_COMM_EST,
		[ENG_EVENT_SQ_DRAINED] = IBV_EVENT_SQ_DRAINED,
		[ENG_EVENT_QP_FATAL] = IBV_EVENT_QP_FATAL,
		[ENG_EVENT_QP_REQ_ERR] = IBV_EVENT_QP_REQ_ERR,
		[ENG_EVENT_QP_ACCESS_ERR] = IBV_EVENT_QP_ACCESS_ERR,
		[ENG_EVENT_LAST_WQE_REACHED] = IBV_EVENT_QP_LAST_WQE_REACHED,
		[ENG_EVENT_SRQ_LIMIT] = IBV_EVENT_SRQ_LIMIT_REACHED,
	};

	gsi_report_qp_event(qp->context->progress, qp->progress.qpn, event);
	if (event != ENG_EVENT_FIRST_REQUEST && event != ENG_EVENT_CREDITS_HIDDEN)
		raise_async_event(qp, types[event]);
}

static void *ooo_alloc(void *owner)
{
	const struct uroce_qp *qp = owner;

	return qp->context->settings.ooo_dropped ? NULL : ooo_pool_alloc();
}

static void ooo_free(void *owner, void *block)
{
	(void)owner;
	ooo_pool_free(block);
}

const struct eng_ops uroce_engine_ops = {
	.map_local = map_local,
	.map_remote = map_remote,
	.flush = flush,
	.complete = complete,
	.event = event,
	.get_recv_wqe = get_recv_wqe,
	.ooo_alloc = ooo_alloc,
	.ooo_free = ooo_free,
	.invalidate = uroce_mw_invalidate,
	.bind = uroce_mw_bind,
};
