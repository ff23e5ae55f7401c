/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "engine/recovery/probe.h"

#include <assert.h>

#include "ack_req.h"
#include "engine/cc/cwnd.h"
#include "engine/recovery/rtt.h"
#include "engine/tx/sq.h"
#include "read_retry.h"
#include "retransmit.h"

/* The back-off ends at this fraction of the Local ACK Timeout, so that several probes fit in. */
#define PROBES_PER_TIMEOUT 8

static bool is_lossy(const struct eng_qp *qp)
{
	return qp->path_loss == ENG_PATH_LOSSY || qp->req.last_progress < qp->req.loss.lossy_until;
}

/*
 * Time in ns from the last progress or action to the next probe, doubled after each probe.  At most
 * half the timeout at first: the sample of an ACK that was sent late must not disable probes.
 */
static uint64_t wait_ns(const struct eng_qp *qp, uint64_t timeout, bool is_ack_probe)
{
	const struct loss *loss = &qp->req.loss;
	uint64_t wait = rtt_probe_timeout(&qp->req.rtt), most = timeout / PROBES_PER_TIMEOUT;

	if (is_ack_probe && wait < ACK_PROBE_AFTER_NS)
		wait = ACK_PROBE_AFTER_NS;
	if (wait > timeout / 2)
		wait = timeout / 2;
	if (most < wait)
		most = wait;
	for (uint32_t i = 0; i < loss->probes && wait < most; i++)
		wait *= 2;
	return wait < most ? wait : most;
}

uint64_t probe_deadline(const struct eng_qp *qp, uint64_t timeout)
{
	const struct requester *req = &qp->req;
	uint64_t from = req->last_progress, at;
	bool is_ack_probe = ack_probe_is_due(qp);

	if (!loss_has_probes(qp) || !(is_ack_probe || is_lossy(qp) || retransmit_path_is_known(qp)))
		return ENG_NEVER;
	if (is_ack_probe && req->loss.ack_probe_at == 0 && ack_probe_is_urgent(qp))
		return req->last_progress;
	if (req->loss.acted_at > from)
		from = req->loss.acted_at;
	at = from + wait_ns(qp, timeout, is_ack_probe);
	return at < req->last_progress + timeout ? at : ENG_NEVER;
}

/* Returns true if an ACK probe should be tried before a retransmission, and can show a loss. */
static bool may_probe_losses(const struct eng_qp *qp)
{
	const struct requester *req = &qp->req;

	return retransmit_path_is_known(qp) && req->loss.ack_probe_at == 0 &&
	       req->loss.state == LOSS_OPEN && req->next_psn == req->end_psn &&
	       retransmit_ack_shows_loss(qp);
}

static void send_oldest(struct eng_qp *qp, uint64_t now)
{
	struct loss *loss = &qp->req.loss;

	/* Responses that were in flight at the NAK of GO_BACK must not count as further NAKs. */
	if (loss->state == LOSS_GO_BACK)
		loss->resume = LOSS_GO_BACK;
	cwnd_loss(qp);
	loss_go_back(qp, LOSS_PROBE);
	loss->acted_at = now;
}

void probe_send(struct eng_qp *qp, uint64_t now)
{
	struct loss *loss = &qp->req.loss;

	assert(sq_awaits_response(qp));
	if (ack_probe_is_due(qp) || may_probe_losses(qp)) {
		ack_probe_begin(qp, now);
	} else {
		count(qp, ENG_COUNT_TAIL_LOSS_PROBES);
		if (!read_retry_timeout(qp, now) && !retransmit_on_timeout(qp, now))
			send_oldest(qp, now);
	}
	if (loss->probes < UINT8_MAX)
		loss->probes++;
}
