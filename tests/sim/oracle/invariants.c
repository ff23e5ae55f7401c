/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "invariants.h"

#include <assert.h>

#include "engine/base/aeth.h"
#include "engine/cc/cc.h"
#include "engine/recovery/read_retry.h"
#include "engine/rx/ooo_rx.h"
#include "engine/tx/sq.h"

/* Returns true if from <= at <= to; all three are free-running indexes. */
static bool index_is_between(uint32_t from, uint32_t at, uint32_t to)
{
	return at - from <= to - from;
}

static void check_send_queue(const struct eng_qp *qp)
{
	const struct requester *req = &qp->req;

	assert(eng_ring_used(qp->sq) <= qp->sq->limit);
	assert(index_is_between(qp->sq->tail, req->begun, qp->sq->head));
	assert(index_is_between(qp->sq->tail, req->next_wqe, req->begun) ||
	       req->begun == qp->sq->tail);
	assert(req->reads_outstanding <= req->begun - qp->sq->tail);
	/*
	 * rule S2: with more PSNs in flight a duplicate could not be distinguished from a new
	 * request.
	 */
	assert(sq_in_flight(qp) <= PSN_WINDOW);
	assert(psn_diff(req->next_psn, req->unacked_psn) >= 0);
	assert(psn_diff(req->end_psn, req->next_psn) >= 0);
	assert(psn_diff(req->posted_ssn, req->begun_ssn) >= 0);
	assert(!can_request(qp) || psn_diff(req->ackreq_psn, req->end_psn) < 0);
	/*
	 * Compared with 7, not with the attributes (3 bits), which modify_qp may have lowered
	 * since.
	 */
	assert(req->retries.used <= 7);
	assert(req->retries.rnr_used <= 7);
}

static void check_congestion(const struct eng_qp *qp)
{
	const struct requester *req = &qp->req;
	const struct cc_state *cc = &req->cc;

	assert(req->cost_next >= req->cost_unacked);
	assert(req->cwnd_limit >= CC_MIN_PACKETS * CC_FULL_PACKET);
	assert(req->cwnd <= req->cwnd_limit && req->cwnd > 0);
	assert(cc->marked <= cc->acked);
	assert(!cc->ack_has_ece || cc->peer_echoes_ce);
	assert(!qp->ecn.cnp_pending || qp->ecn.cnp);
	pacing_check(&qp->resp.pacing);
}

static void check_recovery(const struct eng_qp *qp)
{
	const struct loss *loss = &qp->req.loss;

	assert(loss->state < LOSS_STATES);
	assert(loss->resume == LOSS_OPEN || loss->resume == LOSS_GO_BACK);
	assert(loss->state == LOSS_OPEN || is_reliable(qp));
	assert(loss->action == LOSS_ACTION_NONE || sq_in_flight(qp) > 0);
	assert(loss->action != LOSS_ACTION_RETRANSMIT || loss->state == LOSS_RECOVERY);
	assert(loss->state != LOSS_RNR_WAIT || !sq_awaits_response(qp));
	assert(loss->ack_probe_at == 0 || loss->probes > 0);
	read_retry_check(&qp->req.read_retry);
}

static void check_credits(const struct eng_qp *qp)
{
	const struct credit *credit = &qp->req.credit;
	const struct responder *resp = &qp->resp;

	assert(credit->last_code <= CREDIT_CODE_UNLIMITED);
	assert(resp->credit_adv.code <= CREDIT_CODE_UNLIMITED);
	/* rule C1: credits exist on reliable connections only. */
	assert(is_reliable(qp) || credit->report != CREDIT_REPORT_COUNT);
	assert(resp->wqes_consumed - resp->wqes_done == (resp->taken ? 1 : 0));
}

static void check_ooo(const struct ooo_queue *ooo)
{
	assert(ooo->count <= ENG_AHEAD_PACKETS);
	assert((ooo->count == 0) == (ooo->first == NULL));
	assert((ooo->first == NULL) == (ooo->last == NULL));
	assert(ooo->peer_supports || ooo->count == 0);
	ooo_check(ooo);
}

static void check_responder(const struct eng_qp *qp)
{
	const struct responder *resp = &qp->resp;

	assert(resp->previous_opcode >= -1 && resp->previous_opcode <= UINT8_MAX);
	assert(resp->nak != NAK_STATE_PENDING || is_reliable(qp));
	assert(!resp->ack_pending || is_reliable(qp));
	assert(qp->rq_shared || eng_ring_used(qp->rq) <= qp->rq->limit);
	assert(resp->resp_res_pending <= qp->resp_res_slots);
	assert((resp->resp_res_pending == 0) == (resp->resp_res_oldest == resp->resp_res_head));
	assert(resp->resp_res_head - resp->resp_res_oldest <= qp->resp_res_slots);
	check_ooo(&resp->ooo);
}

void oracle_check_invariants(const struct eng_qp *qp)
{
	check_send_queue(qp);
	check_congestion(qp);
	check_recovery(qp);
	check_credits(qp);
	check_responder(qp);
	assert(qp->tx_sched.ack_due != 0 || qp->tx_sched.ack_wait == ACK_WAIT_MESSAGE_END);
}
