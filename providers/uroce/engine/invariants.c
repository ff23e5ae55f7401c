/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <assert.h>

#include "codes.h"
#include "early.h"
#include "law.h"
#include "sendqueue.h"

#define WORD_BITS 64

/* Returns true if from, at and to follow each other in free-running indexes. */
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
	/* rule S2: an old request would look like a new one. */
	assert(sendqueue_in_flight(qp) <= PSN_WINDOW);
	assert(psn_diff(req->next_psn, req->unacked_psn) >= 0);
	assert(psn_diff(req->end_psn, req->next_psn) >= 0);
	assert(psn_diff(req->posted_ssn, req->begun_ssn) >= 0);
	assert(!can_request(qp) || psn_diff(req->ackreq_psn, req->end_psn) < 0);
	assert(req->retries_left <= qp->attr.retry_count);
	assert(req->rnr_left <= qp->attr.rnr_retry);
}

static void check_congestion(const struct eng_qp *qp)
{
	const struct requester *req = &qp->req;
	const struct network_law *law = &req->network;

	assert(req->cost_next >= req->cost_unacked);
	assert(req->cwnd_limit >= LAW_MIN_PACKETS * LAW_FULL_PACKET);
	assert(req->cwnd <= req->cwnd_limit && req->cwnd > 0);
	assert(law->marked <= law->acked);
	assert(!law->echoed || law->echoes);
	assert(!qp->ecn.cnp_owed || qp->ecn.cnp);
	pacing_check(&qp->resp.pacing);
}

static uint32_t count_placed(const struct gaps *gaps)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < ENG_AHEAD_PACKETS / WORD_BITS; i++)
		count += (uint32_t)__builtin_popcountll(gaps->placed[i]);
	return count;
}

static void check_recovery(const struct eng_qp *qp)
{
	const struct loss *loss = &qp->req.loss;

	assert(loss->state < LOSS_STATES);
	assert(loss->resume == LOSS_OPEN || loss->resume == LOSS_GO_BACK);
	assert(loss->state == LOSS_OPEN || is_reliable(qp));
	assert(loss->action == LOSS_ACTION_NONE || sendqueue_in_flight(qp) > 0);
	assert(loss->action != LOSS_ACTION_REPAIR || loss->state == LOSS_RECOVERY);
	assert(loss->state != LOSS_RNR_WAIT || !sendqueue_awaits_answer(qp));
	assert(loss->solicited_at == 0 || loss->probes > 0);
	assert(qp->req.gaps.count == count_placed(&qp->req.gaps));
}

static void check_credits(const struct eng_qp *qp)
{
	const struct credit *credit = &qp->req.credit;
	const struct responder *resp = &qp->resp;

	assert(credit->last_code <= CREDIT_CODE_UNLIMITED);
	assert(resp->advert.code <= CREDIT_CODE_UNLIMITED);
	/* rule C1: credits exist on reliable connections only. */
	assert(is_reliable(qp) || credit->report != CREDIT_REPORT_COUNT);
	assert(resp->wqes_taken - resp->wqes_done == (resp->taken ? 1 : 0));
}

static void check_early(const struct early *early)
{
	assert(early->count <= ENG_AHEAD_PACKETS);
	assert((early->count == 0) == (early->first == NULL));
	assert((early->first == NULL) == (early->last == NULL));
	assert(early->understood || early->count == 0);
	early_check(early);
}

static void check_responder(const struct eng_qp *qp)
{
	const struct responder *resp = &qp->resp;

	assert(resp->previous_opcode >= -1 && resp->previous_opcode <= UINT8_MAX);
	assert(resp->nak != NAK_STATE_PENDING || is_reliable(qp));
	assert(!resp->ack_owed || is_reliable(qp));
	assert(qp->rq_shared || eng_ring_used(qp->rq) <= qp->rq->limit);
	assert(resp->replay_pending <= qp->replay_slots);
	assert((resp->replay_pending == 0) == (resp->replay_oldest == resp->replay_head));
	assert(resp->replay_head - resp->replay_oldest <= qp->replay_slots);
	check_early(&resp->early);
}

void eng_check(const struct eng_qp *qp)
{
	check_send_queue(qp);
	check_congestion(qp);
	check_recovery(qp);
	check_credits(qp);
	check_responder(qp);
	assert(qp->schedule.ack_due != 0 || qp->schedule.ack_wait == ACK_WAIT_REST);
}
