/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The oracle of the requester, second part: what the responses acknowledge, and the reasons to send
 * again: NAKs, implied NAKs, RNR NAKs and justified timeouts.
 */
#include <inttypes.h>

#include "sim/oracle/oracle.h"
#include "sim/world.h"

#define PROBE_MIN_NS 300000
#define ASK_AFTER_NS 1000000
/* READ responses are placed only within this distance from the oldest missing one. */
#define MOST_AHEAD 1024

static const struct message *message_at(const struct sim_end *end, uint32_t index)
{
	return &end->script->messages[index];
}

/* No NAK reports the packets that the peer has dropped: a timeout must recover them. */
void asking_nak_useless(struct sim_end *end)
{
	end->oracle.asking.lost_response = end->oracle.asking.high - 1;
}

/*
 * The requester is about to send everything again: the peer has reported a loss, or never responds.
 */
static void goes_back(struct sim_end *end, bool told)
{
	end->oracle.asking.may_repeat = true;
	end->oracle.asking.told = told;
	end->oracle.asking.lossy = told;
	end->oracle.asking.probing = false;
}

static void note_cause(struct asking *asking)
{
	if (asking->nak_first < 0)
		asking->nak_first = asking->unacked;
	asking->nak_cause = asking->unacked;
}

/*
 * rule S8: a response beyond a missing READ or Atomic response is an implied NAK, and dropped.  The
 * engine goes back once; a timeout must recover the responses that it drops after that.
 */
static void implied_nak(struct sim_end *end, int64_t position)
{
	struct asking *asking = &end->oracle.asking;

	if (asking->retry_count > 0 && position > asking->lost_response)
		asking->lost_response = position;
	note_cause(asking);
	goes_back(end, true);
	asking->retry_count++;
}

/* Local requests are complete when all before them are. */
void asking_pass_locals(struct sim_end *end)
{
	struct asking *asking = &end->oracle.asking;

	while (asking->oldest < asking->begun && op_is_local(message_at(end, asking->oldest)->op))
		asking->oldest++;
}

/* Moves unacked to a position inside the oldest message or at its end. */
static void advance(struct sim_end *end, int64_t to)
{
	struct asking *asking = &end->oracle.asking;

	asking->unacked = to;
	asking->oldest += to == message_end(message_at(end, asking->oldest));
	asking_pass_locals(end);
}

/*
 * Acknowledges everything below to.  Returns false at a READ or Atomic whose response is missing.
 */
static bool acknowledge(struct sim_end *end, int64_t to)
{
	struct asking *asking = &end->oracle.asking;

	while (asking->unacked < to) {
		const struct message *message = message_at(end, asking->oldest);

		if (op_answers(message->op) && !asking->placed[asking->unacked])
			return false;
		if (op_answers(message->op)) {
			advance(end, asking->unacked + 1);
			continue;
		}
		advance(end, to < message_end(message) ? to : message_end(message));
	}
	return true;
}

/* Returns true if a READ response has been placed before a missing one. */
static bool responses_wait(const struct asking *asking)
{
	for (int64_t at = asking->unacked; at < asking->placed_to; at++)
		if (asking->placed[at])
			return true;
	return false;
}

/* Returns true for a valid response to a READ in flight, or to a part requested again. */
static bool answers_read(const struct sim_end *end, const struct wire_packet *packet,
			 int64_t position)
{
	const struct asking *asking = &end->oracle.asking;
	enum wire_position place = wire_op_position(packet->opcode);
	uint32_t index = script_find(end->script, position), mtu = end->world->plan.mtu, rest;
	bool ends = place == WIRE_LAST || place == WIRE_ONLY;
	const struct message *message;

	if (index == NO_INDEX || index >= asking->begun ||
	    wire_op_family(packet->opcode) != WIRE_FAMILY_READ_RESPONSE)
		return false;
	message = message_at(end, index);
	rest = message->length - (uint32_t)(position - message->first) * mtu;
	if (message->op != ENG_READ || packet->payload_length != (rest < mtu ? rest : mtu))
		return false;
	return ends == (position == message_end(message) - 1) ||
	       (ends && responses_wait(asking) && position < asking->parts_to);
}

/*
 * rule S12 test: a response beyond a missing one is placed if the peer reports credits and there is
 * time to request the missing one.
 */
static bool is_placed(struct sim_end *end, const struct wire_packet *packet, int64_t position)
{
	struct asking *asking = &end->oracle.asking;
	const struct plan *plan = &end->world->plan;
	bool tells = asking->hears_credits;

	if (wire_op_headers(packet->opcode) & WIRE_HAS_AETH)
		tells = (packet->syndrome & 31) != 31;
	if (!tells || end->type != ENG_RC || plan->retry_count == 0 ||
	    plan->timeout_code < PLAN_PATIENT_CODE || position - asking->unacked >= MOST_AHEAD ||
	    !answers_read(end, packet, position) ||
	    oracle_lacks_local(end, message_at(end, script_find(end->script, position))))
		return false;
	if (!responses_wait(asking))
		asking->parts_to = asking->unacked;
	asking->lossy = asking->told = true;
	if (asking->placed[position])
		return true;
	asking->placed[position] = 1;
	if (position >= asking->placed_to)
		asking->placed_to = position + 1;
	asking->timer_from = end->world->now;
	return true;
}

static void answer_arrived(struct sim_end *end, const struct wire_packet *packet, int64_t position)
{
	struct asking *asking = &end->oracle.asking;
	bool atomic = wire_op_family(packet->opcode) == WIRE_FAMILY_ATOMIC_ACK;
	const struct message *message;

	if (!acknowledge(end, position)) {
		if (!is_placed(end, packet, position))
			implied_nak(end, position);
		return;
	}
	message = message_at(end, asking->oldest);
	if (message->op != ENG_ATOMIC_WRITE && op_answers(message->op) &&
	    oracle_lacks_local(end, message)) {
		end->oracle.may_be_in_error = true;
		return;
	}
	if (op_answers(message->op) && atomic == op_is_atomic(message->op))
		advance(end, position + 1);
}

static void rnr_arrived(struct sim_end *end, const struct wire_packet *packet, int64_t position)
{
	struct asking *asking = &end->oracle.asking;
	const struct message *message = message_at(end, script_find(end->script, position));

	if (asking->rnr_until > end->world->now)
		return;
	asking->rnr_naks++;
	asking->rnr_count++;
	asking->waited = true;
	asking->may_repeat = true;
	asking->last_rnr_ns = oracle_rnr_ns(packet->syndrome & 31);
	asking->rnr_until = end->world->now + asking->last_rnr_ns;
	/* The peer is not silent any more. */
	asking->probing = false;
	/* rule C3 test: a request that has a credit finds a receive request. */
	if (!message->limited && asking->allowed != UINT64_MAX)
		world_fail(end->world, "%s: RNR NAK for a request that had its credit (C4)",
			   end->name);
}

/*
 * Returns true if an RNR wait is allowed, also when an older response is missing; not for a
 * requester without retries left.
 */
static bool may_wait(const struct sim_end *end, bool progressed)
{
	const struct plan *plan = &end->world->plan;
	uint32_t waits = progressed ? 0 : end->oracle.asking.rnr_count;

	return plan->rnr_retry == 7 || waits < plan->rnr_retry;
}

static void ack_arrived(struct sim_end *end, const struct wire_packet *packet, int64_t position)
{
	struct asking *asking = &end->oracle.asking;
	int64_t before = asking->unacked;
	bool sequence = packet->syndrome == 0x60, answered;

	if (packet->syndrome >> 5 == 0) {
		if (acknowledge(end, position + 1))
			return;
		/* The ACK is remembered like the responses placed after the missing one. */
		if (responses_wait(asking) && position >= asking->placed_to)
			asking->placed_to = position + 1;
		implied_nak(end, position);
		return;
	}
	asking->naks += sequence;
	answered = acknowledge(end, position);
	if (packet->syndrome >> 5 == 1 && (answered || may_wait(end, asking->unacked != before))) {
		rnr_arrived(end, packet, position);
	} else if (sequence || !answered) {
		note_cause(asking);
		goes_back(end, true);
		asking->retry_count++;
	} else {
		end->oracle.may_be_in_error = true;
	}
}

/* rule C2 test, rule C8 test, rule C12 test: LSN derived differently, see struct asking */
static void credits_arrived(struct sim_end *end, const struct wire_packet *packet, bool news)
{
	struct asking *asking = &end->oracle.asking;
	uint64_t credits = UINT64_MAX;

	if (packet->msn > 0 && script_by_ssn(end->script, packet->msn) >= asking->begun) {
		world_fail(end->world, "%s: MSN %u, but only %u messages begun", end->name,
			   packet->msn, asking->begun);
		return;
	}
	if ((packet->syndrome & 31) != 31) {
		credits = 0;
		if (packet->msn > 0)
			credits = message_at(end, script_by_ssn(end->script, packet->msn))
					  ->receives_upto;
		credits += oracle_credits(packet->syndrome & 31);
	}
	if (credits > asking->allowed) {
		asking->allowed = credits;
		asking->news_from = ENG_NEVER;
	}
	asking->hears_credits |= news && credits != UINT64_MAX;
	if (news && credits > asking->granted)
		asking->granted = credits;
}

void asking_arrival(struct sim_end *end, const struct wire_packet *packet)
{
	struct asking *asking = &end->oracle.asking;
	int64_t position = oracle_position(packet->psn, end->plan->psn, asking->unacked);
	int64_t before = asking->unacked;
	bool ack = wire_op_family(packet->opcode) == WIRE_FAMILY_ACK;
	bool nak = ack && packet->syndrome >> 5 != 0, told = asking->told;
	uint64_t rnr_naks = asking->rnr_naks;
	/* rule C9 test: credits received before RTS are used for requests in RTS. */
	bool news = asking_may_ask(end) ? position >= before - ack : end->state == ENG_RTR;

	if ((wire_op_headers(packet->opcode) & WIRE_HAS_AETH) && packet->syndrome >> 5 == 0)
		credits_arrived(end, packet, news);
	/* Where losses are probed, the response to an ACK probe shows a loss as a NAK does. */
	asking->lossy |= plan_probes_losses(&end->world->plan) && asking->solicitation_sent &&
			 ack && !nak && position < before;
	asking->volunteers |= ack && !nak && position < before && (packet->syndrome & 31) != 31;
	/* A repeated READ is refused as a whole, although some responses have arrived (S8). */
	if (ack && position < before && (packet->syndrome == 0x60 || packet->syndrome == 0x62))
		asking_nak_useless(end);
	if (!ack && position < before)
		asking->repeated_at = end->world->now;
	if (!asking_may_ask(end) || position < before || position >= asking->high)
		return;
	asking->told = false;
	if (ack)
		ack_arrived(end, packet, position);
	else
		answer_arrived(end, packet, position);
	if (asking->unacked == before) {
		/*
		 * The engine has gone back for the missing response before it, and does so once
		 * (S8); the peer sends one NAK as well (S4).
		 */
		if (nak && position > before && told)
			asking_nak_useless(end);
		asking->told |= told;
		return;
	}
	asking->jumped |= asking->repaired_to > before && asking->unacked > asking->repaired_to;
	acknowledge(end, asking->placed_to);
	if (!responses_wait(asking))
		asking->placed_to = asking->unacked;
	asking->timer_from = end->world->now;
	asking->probing = asking->solicitation_sent = asking->solicitation_came = false;
	asking->probed = false;
	end->world->last_progress = end->world->now;
	/* An RNR NAK that acknowledges earlier requests counts as the first one. */
	asking->rnr_count = asking->rnr_naks != rnr_naks;
	asking->retry_count = asking->may_repeat;
}

/* Returns true if the peer expects this position and has received nothing after it. */
static bool has_seen_all_in_order(const struct answering *answering, int64_t position)
{
	return answering->expected == position && answering->ahead_to <= position &&
	       !answering->naked && !answering->nak_owed;
}

/*
 * A lost request is reported by a NAK as soon as a later request arrives, so a timeout needs a
 * better reason: rule S4 test
 */
static bool timeout_justified(const struct sim_end *end)
{
	const struct asking *asking = &end->oracle.asking;
	const struct sim_end *peer = end->peer;
	const struct answering *answering = &peer->oracle.answering;
	bool tail = asking->lost_last >= asking->unacked &&
		    (asking->lost_serial > answering->last_serial ||
		     has_seen_all_in_order(answering, asking->unacked));

	if (!end->world->plan.patient || peer->state == ENG_ERR)
		return true;
	/*
	 * READ responses at the lowest rate, some requested again, may take as long as the timeout.
	 */
	if (end->world->plan.forged_ns > 0)
		return true;
	if (end->world->plan.ect && asking->repeated_at > asking->timer_from &&
	    end->world->now - asking->repeated_at < UINT64_C(1024) << end->world->plan.timeout_code)
		return true;
	/* The NAK may be on its way. */
	if (end->world->now - answering->ahead_since < UINT64_C(2048)
							       << end->world->plan.timeout_code)
		return true;
	/* The response to a probe may be, too; a probe does not restart the timer (S10). */
	if (asking->probed_at > asking->timer_from &&
	    end->world->now - asking->probed_at < UINT64_C(1024) << end->world->plan.timeout_code)
		return true;
	/* Packets without AckReq get no ACK while all ACK probes are lost. */
	return tail || (asking->solicitation_sent && !asking->solicitation_came) ||
	       asking->lost_response >= asking->unacked || asking->lost_repeat >= asking->unacked;
}

/* The timer has expired: end of an RNR wait or of a wait for credits, a probe, or a timeout. */
void oracle_before_expiry(struct sim_end *end)
{
	struct asking *asking = &end->oracle.asking;

	if (service_is_uc_ud(end->type))
		world_fail(end->world, "%s: a timer of a service that waits for nothing",
			   end->name);
	/* A timeout counts as a retry; oracle_after_expiry() corrects other cases. */
	asking->retry_count++;
	if (asking->rnr_until != 0 && asking->rnr_until <= end->world->now) {
		asking->rnr_until = 0;
		asking->timer_from = end->world->now;
	}
}

/* rule S10 test */
void oracle_after_expiry(struct sim_end *end, bool timeout)
{
	struct asking *asking = &end->oracle.asking;
	uint64_t now = end->world->now;
	uint64_t timeout_ns = UINT64_C(4096) << end->world->plan.timeout_code;

	if (!timeout) {
		asking->retry_count--;
		return;
	}
	world_trace(end, "TIMEOUT at position %" PRId64, asking->unacked);
	if (asking->unacked == asking->high)
		world_fail(end->world, "%s: a timeout with nothing under way", end->name);
	if (end->world->plan.timeout_code == 0 || now < asking->timer_from + timeout_ns)
		world_fail(end->world, "%s: a timeout after only %" PRIu64 " ns (S10)", end->name,
			   now - asking->timer_from);
	if (!timeout_justified(end))
		world_fail(end->world,
			   "%s: a timeout at position %" PRId64 " where a NAK would have healed",
			   end->name, asking->unacked);
	asking->timeouts++;
	asking->waited = true;
	goes_back(end, false);
	asking->timer_from = now;
}

/* Returns true if anything waits for packets without AckReq. */
static bool is_waited_for(const struct sim_end *end)
{
	const struct asking *asking = &end->oracle.asking;
	const struct message *last;

	if (end->state == ENG_SQD || end->script->source.gone || end->script->landing.gone ||
	    (end->script->bad != NO_INDEX && end->script->bad <= asking->begun))
		return true;
	if (asking->begun == 0)
		return false;
	last = message_at(end, asking->begun - 1);
	return op_is_local(last->op) && last->signaled;
}

/* Returns true if there has been no response for that time. */
static bool silent_for(const struct sim_end *end, uint64_t ns)
{
	return end->world->now >= end->oracle.asking.timer_from + ns;
}

static void check_early(struct sim_end *end, const char *what, bool reason)
{
	const struct plan *plan = &end->world->plan;

	if (end->oracle.asking.unacked == end->oracle.asking.high)
		world_fail(end->world, "%s: a %s with nothing under way", end->name, what);
	else if (!reason || plan->retry_count == 0 || plan->timeout_code == 0)
		world_fail(end->world, "%s: a %s without a reason", end->name, what);
}

/* Where losses are probed, an ACK probe may detect a loss, or that a READ has arrived. */
static bool may_ask_for_losses(struct sim_end *end)
{
	const struct asking *asking = &end->oracle.asking;

	return plan_probes_losses(&end->world->plan) && asking->unacked != asking->high &&
	       silent_for(end, PROBE_MIN_NS);
}

/*
 * An ACK probe is sent before the timeout and is not a retry: a packet that the peer has received
 * before requests an ACK of packets sent without AckReq.  rule S10 test
 */
void oracle_solicitation(struct sim_end *end)
{
	struct asking *asking = &end->oracle.asking;

	world_trace(end, "SOLICITATION at position %" PRId64, asking->unacked);
	check_early(end, "solicitation",
		    may_ask_for_losses(end) ||
			    (asking->asked < asking->unacked &&
			     silent_for(end, is_waited_for(end) ? 0 : ASK_AFTER_NS)));
	asking->solicitations++;
	asking->may_ask = true;
}

void asking_solicitation_came(struct sim_end *end, int64_t position,
			      const struct wire_packet *packet)
{
	struct asking *asking = &end->oracle.asking;

	if ((packet->opcode & WIRE_OPERATION_MASK) == WIRE_SEND_ONLY &&
	    packet->payload_length == 0 && position == asking->unacked - 1 &&
	    end->peer->oracle.answering.expected > asking->unacked)
		asking->solicitation_came = true;
}

/*
 * A tail loss probe is not a retry either: the oldest packet is sent again when the peer has
 * reported a loss, and where losses are probed also without that.
 * rule S10 test
 */
void oracle_tlp(struct sim_end *end, bool repair)
{
	struct asking *asking = &end->oracle.asking;

	asking->lossy |= plan_probes_losses(&end->world->plan);
	world_trace(end, "PROBE at position %" PRId64, asking->unacked);
	check_early(end, "probe", asking->lossy && silent_for(end, PROBE_MIN_NS));
	asking->probes++;
	asking->probed_at = end->world->now;
	asking->waited = true;
	asking->may_repeat = true;
	/* Other packets may follow a repair.  The probe before a repair may still be unanswered. */
	asking->probing = !repair;
	asking->probed |= !repair;
}

void oracle_lost(struct sim_end *end, const struct net_packet *packet)
{
	struct asking *asking = &end->oracle.asking;
	int64_t position, last;
	uint32_t index;

	if (packet->copy || packet->cnp || service_is_uc_ud(end->type))
		return;
	if (!packet->request) {
		asking = &end->peer->oracle.asking;
		position = oracle_position(packet->psn, end->peer->plan->psn, asking->unacked);
		/* If a NAK is lost, the packets that the peer dropped are lost as well. */
		if (packet->nak)
			position = asking->high - 1;
		if (position > asking->lost_response)
			asking->lost_response = position;
		return;
	}
	position = oracle_position(packet->psn, end->plan->psn, asking->high);
	index = script_find(end->script, position);
	last = index != NO_INDEX && op_is_read(message_at(end, index)->op)
		       ? message_end(message_at(end, index)) - 1
		       : position;
	/* The loss of an ACK probe does not count. */
	if (last < asking->unacked)
		return;
	if (index != NO_INDEX && asking->handed_out[position] > 1 && last > asking->lost_repeat)
		asking->lost_repeat = last;
	/*
	 * A packet at a lower position was sent again, and does not show that the higher one has
	 * arrived.
	 */
	if (packet->serial > asking->lost_serial && last >= asking->lost_last) {
		asking->lost_serial = packet->serial;
		asking->lost_last = last;
	}
}
