/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "cwnd.h"

#include "cc.h"

/* On a host a READ request weighs this fraction of its responses. */
#define READ_COST_DIVISOR 4

static uint64_t under_way(const struct requester *req)
{
	return req->cost_next - req->cost_unacked;
}

void budget_publish(struct eng_qp *qp)
{
	struct requester *req = &qp->req;
	uint64_t now = under_way(req);

	if (!qp->inflight_budget || now == req->cost_published)
		return;
	__atomic_fetch_add(&qp->inflight_budget->under_way, now - req->cost_published,
			   __ATOMIC_RELAXED);
	req->cost_published = now;
}

/* Sets the initial window, within the limit. */
static void start_cc(struct eng_qp *qp)
{
	struct requester *req = &qp->req;

	req->cwnd = (uint64_t)CC_DEFAULT_PACKETS * CC_FULL_PACKET;
	req->cwnd_recovery_psn = req->unacked_psn;
	qp->cc_ops->start(qp);
	if (req->cwnd > req->cwnd_limit)
		req->cwnd = req->cwnd_limit;
}

void cwnd_reset(struct eng_qp *qp)
{
	struct requester *req = &qp->req;
	uint32_t packets = qp->cwnd_packets ? qp->cwnd_packets : CC_DEFAULT_PACKETS;

	cwnd_reset_inflight(qp);
	if (packets < CC_MIN_PACKETS)
		packets = CC_MIN_PACKETS;
	req->cwnd_limit = (uint64_t)packets * CC_FULL_PACKET;
	req->cost_next = 0;
	req->cost_unacked = 0;
	start_cc(qp);
}

uint64_t cwnd_cost(const struct eng_qp *qp, const struct eng_send_wqe *wqe, uint32_t packets)
{
	uint64_t bytes = packets == wqe->packets ? wqe->length : (uint64_t)packets * qp->attr.mtu;
	uint64_t cost = bytes + (uint64_t)packets * CC_PACKET_OVERHEAD;

	/*
	 * On a host a READ weighs little, since the responder paces its responses: several may be
	 * in flight.
	 */
	return wqe->op == ENG_READ && !cc_is_network(qp) ? cost / READ_COST_DIVISOR : cost;
}

/*
 * Returns the weight of sent packets without READ responses that were placed out of order, as these
 * are no longer in any queue.  Subtracts nothing on a host, where they weigh little, and after
 * going back, when some of them may lie ahead of next_psn.
 */
static __attribute__((noinline)) uint64_t without_placed(const struct eng_qp *qp, uint64_t sent)
{
	const struct read_retry *read_retry = &qp->req.read_retry;
	uint64_t placed = (uint64_t)read_retry->count * (qp->attr.mtu + CC_PACKET_OVERHEAD);

	if (!cc_is_network(qp) || psn_diff(qp->req.next_psn, read_retry->placed_max_psn) < 0)
		return sent;
	return sent > placed ? sent - placed : 0;
}

static uint64_t in_flight(const struct eng_qp *qp)
{
	uint64_t sent = under_way(&qp->req);

	return __builtin_expect(qp->req.read_retry.count > 0, false) ? without_placed(qp, sent)
								     : sent;
}

/* A QP with nothing in flight may always send, since no ACK would ever open its window. */
bool cwnd_open(const struct eng_qp *qp, uint64_t cost)
{
	uint64_t now = in_flight(qp);

	return now == 0 || (qp->req.loss.state != LOSS_PROBE && now + cost <= qp->req.cwnd);
}

bool cwnd_closes(const struct eng_qp *qp, uint64_t cost)
{
	return qp->req.loss.state == LOSS_PROBE || in_flight(qp) + 2 * cost > qp->req.cwnd;
}

uint64_t cwnd_room(const struct eng_qp *qp)
{
	uint64_t now = in_flight(qp);

	return now < qp->req.cwnd ? qp->req.cwnd - now : 0;
}

/*
 * Checked once for a burst, not for each packet: single packets would cost a system call each.  So
 * all QPs together may exceed the limit by a burst each.
 */
inline bool budget_is_open(const struct eng_qp *qp)
{
	const struct eng_inflight_budget *share = qp->inflight_budget;

	/*
	 * A QP with nothing in flight waits only if the owner calls it again (queued), and one
	 * without AckReq in flight never, as no ACK would end the wait.
	 */
	if (!share || (under_way(&qp->req) == 0 ? !share->queued : !ack_req_in_flight(qp)))
		return true;
	return __atomic_load_n(&share->under_way, __ATOMIC_RELAXED) <
	       __atomic_load_n(&share->limit, __ATOMIC_RELAXED);
}

bool budget_is_contended(const struct eng_qp *qp)
{
	const struct eng_inflight_budget *share = qp->inflight_budget;

	return share &&
	       __atomic_load_n(&share->under_way, __ATOMIC_RELAXED) != qp->req.cost_published;
}

void cwnd_sent(struct eng_qp *qp, uint64_t cost)
{
	qp->req.cost_next += cost;
}

void cwnd_rollback(struct eng_qp *qp, uint64_t cost)
{
	qp->req.cost_next -= cost;
}

void cwnd_reset_inflight(struct eng_qp *qp)
{
	cwnd_rollback(qp, under_way(&qp->req));
	budget_publish(qp);
}

inline void cwnd_progress(struct eng_qp *qp, uint64_t cost)
{
	struct requester *req = &qp->req;

	/* After going back, packets sent before may be acknowledged ahead of next_psn. */
	req->cost_unacked += cost;
	if (req->cost_next < req->cost_unacked)
		req->cost_next = req->cost_unacked;
	if (psn_diff(req->unacked_psn, req->cwnd_recovery_psn) > 0)
		req->cwnd_recovery_psn = req->unacked_psn;
	qp->cc_ops->acked(qp, cost);
	if (req->cwnd > req->cwnd_limit)
		req->cwnd = req->cwnd_limit;
}

void cwnd_first_loss(struct eng_qp *qp)
{
	if (cwnd_begins_recovery(qp))
		qp->cc_ops->lost(qp);
}

void cwnd_loss(struct eng_qp *qp)
{
	if (!cwnd_is_recovering(qp)) {
		cwnd_first_loss(qp);
	} else if (qp->req.next_psn != qp->req.unacked_psn && qp->cc_ops->cuts_again) {
		qp->req.cwnd_recovery_psn = qp->req.end_psn;
		qp->cc_ops->lost(qp);
	}
}

bool cwnd_congested(struct eng_qp *qp)
{
	if (!qp->cc_ops->congested)
		return false;
	if (cwnd_begins_recovery(qp))
		qp->cc_ops->congested(qp);
	return true;
}

void eng_set_cc(struct eng_qp *qp, enum eng_cc_algo algo)
{
	if (qp->cc_ops == &cc_ops_table[algo])
		return;
	qp->cc_ops = &cc_ops_table[algo];
	start_cc(qp);
}
