/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "engine/recovery/loss_state.h"

#include <assert.h>

#include "engine/recovery/rtt.h"
#include "engine/tx/sq.h"

/* Time in ns after a reported loss during which silence of the peer causes probes. */
#define LOSSY_NS UINT64_C(1000000000)

#define TO(state) (1u << (state))

struct loss_state_row {
	const char *name;
	unsigned int next; /* set of 1 << enum loss_state */
};

static const struct loss_state_row rows[LOSS_STATES] = {
	[LOSS_OPEN] = { "open", TO(LOSS_OPEN) | TO(LOSS_RECOVERY) | TO(LOSS_GO_BACK) |
					TO(LOSS_PROBE) | TO(LOSS_RNR_WAIT) },
	[LOSS_RECOVERY] = { "recovery", TO(LOSS_OPEN) | TO(LOSS_RECOVERY) | TO(LOSS_GO_BACK) |
						TO(LOSS_PROBE) | TO(LOSS_RNR_WAIT) },
	[LOSS_GO_BACK] = { "go-back",
			   TO(LOSS_OPEN) | TO(LOSS_RECOVERY) | TO(LOSS_PROBE) | TO(LOSS_RNR_WAIT) },
	[LOSS_PROBE] = { "probe", TO(LOSS_OPEN) | TO(LOSS_RECOVERY) | TO(LOSS_GO_BACK) |
					  TO(LOSS_PROBE) | TO(LOSS_RNR_WAIT) },
	[LOSS_RNR_WAIT] = { "rnr-wait", TO(LOSS_OPEN) | TO(LOSS_GO_BACK) },
};

const char *loss_state_name(enum loss_state state)
{
	assert(state < LOSS_STATES);
	return rows[state].name;
}

void loss_enter(struct eng_qp *qp, enum loss_state to)
{
	struct loss *loss = &qp->req.loss;

	assert(to < LOSS_STATES);
	assert(rows[loss->state].next & TO(to));
	loss->state = to;
}

void loss_go_back(struct eng_qp *qp, enum loss_state to)
{
	loss_enter(qp, to);
	sq_go_back(qp);
	rtt_cancel(&qp->req.rtt);
	assert(!loss_acts(qp));
	assert(!sq_awaits_response(qp));
}

void loss_act(struct eng_qp *qp, enum loss_action action, uint64_t now)
{
	struct loss *loss = &qp->req.loss;

	assert(action != LOSS_ACTION_NONE);
	assert(sq_in_flight(qp) > 0);
	loss->acted_at = now;
	if (action != LOSS_ACTION_ACK_PROBE || !loss_acts(qp))
		loss->action = action;
	/*
	 * No RTT sample: the next ACK may be for the timed packet, for its repetition or for the
	 * probe.
	 */
	rtt_cancel(&qp->req.rtt);
}

void loss_rollback(struct eng_qp *qp, enum loss_action action)
{
	struct loss *loss = &qp->req.loss;
	bool is_needed = action == LOSS_ACTION_RETRANSMIT ? loss->state == LOSS_RECOVERY
							  : sq_in_flight(qp) > 0;

	if (is_needed && !loss_acts(qp))
		loss->action = action;
}

void loss_reported(struct eng_qp *qp, uint64_t now)
{
	qp->req.loss.lossy_until = now + LOSSY_NS;
}
