/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The oracle of the scheduler: each delay has a deadline that the host gets, and the host's inputs
 * are obeyed.  The host's duties are in engine.h, at struct eng_tx_ctx and the functions.
 */
#include "sim/oracle/oracle.h"
#include "sim/world.h"

/* Number of packets of a burst that a nearly full transport still accepts. */
#define SHORT_BURST_PACKETS 8
/* Maximum pause between READ responses, at the lowest rate of a host and of a network. */
#define PAUSE_NS 1000000
#define NETWORK_PAUSE_NS 10000000

/*
 * rule S7 test: the host calls the engine again at eng_deadline(), if nothing else happens.  READ
 * responses are not paced on a transport that makes its sender wait (ENG_PATH_LOSSLESS).
 */
void oracle_responses_wait(struct sim_end *end, enum eng_tx reason)
{
	uint64_t now = end->world->now, latest = ENG_NEVER;

	if (reason == ENG_TX_ACK_DELAY)
		latest = now + PLAN_ACK_DELAY_NS;
	if (reason == ENG_TX_PACING)
		latest = now + (end->world->plan.flows ? NETWORK_PAUSE_NS : PAUSE_NS);
	if (reason == ENG_TX_PACING && end->world->plan.lossless_transport)
		world_fail(end->world, "%s: READ responses pause on a transport that waits",
			   end->name);
	if (reason == ENG_TX_BACKPRESSURE &&
	    !(ring_looks_full(end) &&
	      (oracle_has_answers(end) || end->oracle.answering.answers_again)))
		world_fail(end->world, "%s: responses wait for room that there is", end->name);
	if (latest != ENG_NEVER && eng_deadline(end->qp) > latest)
		world_fail(end->world, "%s: nothing ends the wait of responses: %s", end->name,
			   eng_tx_name(reason));
	if (reason == ENG_TX_IDLE)
		end->oracle.answering.answers_again = false;
	/*
	 * A delayed ACK waits for a receive if none could be reported when the delay started, with
	 * all received messages complete.
	 */
	if (reason != ENG_TX_ACK_DELAY)
		end->ack_waits_for_recv_post = end->ack_is_delayed = false;
	else if (!end->ack_is_delayed)
		end->ack_waits_for_recv_post = oracle_lacks_receives(end);
	else if (!oracle_lacks_receives(end))
		end->ack_waits_for_recv_post = false;
	end->ack_is_delayed = reason == ENG_TX_ACK_DELAY;
}

/* Returns true if a message has been received in part: an ACK then waits for the rest. */
static bool is_amid_message(const struct sim_end *end)
{
	struct eng_qp_info view;

	eng_qp_query(end->qp, &view);
	return view.in_message;
}

/*
 * rule C10 test: eng_transmit() need not be called after receives were posted; so the peer does not
 * lack credits that could be reported, and no ACK is delayed to report some.
 */
void oracle_receives_say_nothing(struct sim_end *end)
{
	if (service_is_uc_ud(end->type))
		return;
	if (!end->ack_is_delayed) {
		if (!oracle_pauses(end))
			answering_nothing(end);
	} else if (end->ack_waits_for_recv_post && !is_amid_message(end)) {
		world_fail(end->world, "%s: an ACK still waits for a receive", end->name);
	}
}

/*
 * Returns true if the budget is used up, or other QPs wait for it; the host calls the engine again
 * when there is room.
 */
bool oracle_share_is_used_up(const struct sim_end *end)
{
	const struct world *world = end->world;
	uint64_t bytes = 0;

	/* Before generation 3 UC and UD bursts counted until the engine was called again. */
	if (share_queue_waits(end) || world->plan.generation < 3)
		return true;
	for (uint32_t n = 0; n < world->plan.connections; n++)
		bytes += asking_under_way(&world->connections[n].end[end->side], true, NULL);
	return bytes >= world->plan.end[end->side].share_bytes;
}

/* Returns true if more packets are unsent than a nearly full transport accepts. */
bool oracle_is_too_long(const struct sim_end *end)
{
	const struct asking *asking = &end->oracle.asking;
	bool acked = !service_is_uc_ud(end->type) && asking->unacked > asking->next;
	int64_t next = acked ? asking->unacked : asking->next;
	int64_t unsent = asking->high - (asking->may_repeat ? asking->unacked : next);

	if (asking->begun > 0)
		unsent += message_end(&end->script->messages[asking->begun - 1]) - asking->high;
	for (uint32_t i = asking->begun; i < end->sent_posted; i++)
		unsent += end->script->messages[i].packets;
	return ring_looks_full(end) && unsent > SHORT_BURST_PACKETS;
}

/*
 * Returns true if no packet in flight has AckReq: the next packet requests the ACK that frees
 * budget.
 */
static bool holds_room_unasked(const struct asking *asking)
{
	return asking->next > asking->unacked && asking->asked < asking->unacked;
}

/*
 * The engine was informed that others wait for the budget, or that there is no room for a long
 * burst.
 */
void oracle_burst_minds(struct sim_end *end, const struct eng_burst *burst, bool shared, bool full)
{
	/* An ACK that is rolled back is delayed again, if there is a reason then. */
	if (burst->has_ack || burst->kind == ENG_BURST_ACK)
		end->ack_waits_for_recv_post = end->ack_is_delayed = false;
	if (shared && burst->kind == ENG_BURST_REQUESTS && !service_is_uc_ud(end->type) &&
	    !holds_room_unasked(&end->oracle.asking))
		world_fail(end->world, "%s: requests overtake those that wait for the share",
			   end->name);
	if (full && (burst->kind == ENG_BURST_READ_ATOMIC_RESP ||
		     (burst->kind == ENG_BURST_REQUESTS &&
		      burst->packets - burst->has_ack > SHORT_BURST_PACKETS)))
		world_fail(end->world, "%s: a burst of %u packets for a transport without room",
			   end->name, burst->packets);
}
