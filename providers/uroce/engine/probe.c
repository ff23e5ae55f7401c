/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "probe.h"

#include "op.h"
#include "requester.h"

/* Above what two busy processes of a host take to answer. */
#define PROBE_MIN_NS UINT64_C(300000)
#define PROBE_ROUND_TRIPS 4
#define LOSSY_NS UINT64_C(1000000000)
/* A longer round trip counts at once, a shorter one by and by. */
#define ROUND_TRIP_DECAY 8

void probe_told_of_loss(struct eng_qp *qp, uint64_t now)
{
	qp->req.probe.lossy_until = now + LOSSY_NS;
}

void probe_stop(struct eng_qp *qp)
{
	struct probe *probe = &qp->req.probe;

	probe->lossy_until = 0;
	probe->marked = false;
	probe->alone = false;
	probe->sent = 0;
}

/*
 * A round trip, or most of it, has passed when what had been sent at some time is acknowledged.  No
 * measure when some of it was sent again.
 */
void probe_progress(struct eng_qp *qp, uint64_t now)
{
	struct requester *req = &qp->req;
	struct probe *probe = &req->probe;

	probe->sent = 0;
	probe->alone = false;
	if (probe->marked && psn_diff(req->unacked_psn, probe->mark_psn) < 0)
		return;
	if (probe->marked) {
		uint64_t took = now - probe->marked_at;

		probe->round_trip_ns -= probe->round_trip_ns / ROUND_TRIP_DECAY;
		if (took > probe->round_trip_ns)
			probe->round_trip_ns = took;
	}
	probe->marked = req->next_psn == req->end_psn;
	probe->mark_psn = req->end_psn;
	probe->marked_at = now;
}

static bool oldest_may_be_repeated(const struct eng_qp *qp)
{
	return !op_is_read_or_atomic(sq_at(qp, qp->sq->tail)->op);
}

uint64_t probe_deadline(const struct eng_qp *qp, uint64_t timeout_ns)
{
	const struct requester *req = &qp->req;
	const struct probe *probe = &req->probe;
	uint64_t wait = probe->round_trip_ns * PROBE_ROUND_TRIPS;

	if (req->last_progress >= probe->lossy_until || qp->attr.retry_count == 0)
		return ENG_NEVER;
	if (wait < PROBE_MIN_NS)
		wait = PROBE_MIN_NS;
	wait <<= probe->sent;
	if (wait >= timeout_ns || !oldest_may_be_repeated(qp))
		return ENG_NEVER;
	return req->last_progress + wait;
}

void probe_begin(struct eng_qp *qp, uint64_t timeout_ns, uint64_t now)
{
	struct probe *probe = &qp->req.probe;

	/* Asked late, those that would have been due meanwhile are this one. */
	do
		probe->sent++;
	while (probe_deadline(qp, timeout_ns) <= now);
	probe->marked = false;
	probe->alone = true;
	count(qp, ENG_COUNT_PROBES);
	requester_go_back(qp);
}
