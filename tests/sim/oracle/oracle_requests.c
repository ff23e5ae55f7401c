/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The oracle of the requester: every request packet must be the right one at the right time, and
 * every pause must have a valid reason.
 */
#include <inttypes.h>
#include <string.h>

#include "sim/oracle/oracle_uc_ud.h"
#include "sim/world.h"

/* Number of packets in flight of which one must have AckReq. */
#define MOST_UNASKED 8
/* Maximum wait of a limited request for a credit update. */
#define MOST_WAIT_NS 2000000

static const struct message *message_at(const struct sim_end *end, uint32_t index)
{
	return &end->script->messages[index];
}

bool asking_may_ask(const struct sim_end *end)
{
	return end->state == ENG_RTS || end->state == ENG_SQD;
}

/* Number of READs and Atomics begun and not complete. */
static uint32_t outstanding(const struct sim_end *end)
{
	const struct asking *asking = &end->oracle.asking;
	uint32_t count = 0;

	for (uint32_t i = asking->oldest; i < asking->begun; i++)
		count += op_answers(message_at(end, i)->op);
	return count;
}

static bool beyond(const struct message *message, uint64_t credits)
{
	return message->takes_receive > credits;
}

/* rule C13: returns true if a response has arrived that shows the result of a limited request. */
static bool answered(const struct sim_end *end, const struct message *message)
{
	int64_t unacked = end->oracle.asking.unacked;

	return op_is_send(message->op) ? unacked > message->first : unacked >= message_end(message);
}

/* rule C13 test, rule C14 test, rule C15 test, rule C16 test, rule S12 test */
static void check_begin(struct sim_end *end, uint32_t index)
{
	struct asking *asking = &end->oracle.asking;
	struct message *message = &end->script->messages[index];
	uint32_t reads = outstanding(end);

	if (index != asking->begun)
		world_fail(end->world, "%s: message %u is begun before %u", end->name, index,
			   asking->begun);
	if (end->state == ENG_SQD)
		world_fail(end->world, "%s: message %u is begun in SQD", end->name, index);
	if ((message->flags & ENG_FENCE) && reads > 0)
		world_fail(end->world,
			   "%s: fenced message %u is begun with %u READs and Atomics open (C16)",
			   end->name, index, reads);
	if (op_answers(message->op) && reads >= end->plan->max_rd_atomic)
		world_fail(end->world, "%s: message %u is one more than max_rd_atomic %u (S12)",
			   end->name, index, end->plan->max_rd_atomic);
	if (index > 0 && beyond(message_at(end, index - 1), asking->allowed) &&
	    !answered(end, message_at(end, index - 1)))
		world_fail(end->world, "%s: message %u overtakes a limited request (C13, C15)",
			   end->name, index);
	message->limited = beyond(message, asking->allowed);
	/*
	 * Its wait had no result: the next request may wait only after a further unsolicited ACK
	 * with credits.
	 */
	if (message->limited && asking->news_from != ENG_NEVER)
		asking->volunteers = false;
	asking->news_from = ENG_NEVER;
	asking->limited += message->limited;
	asking->begun = index + 1;
}

/* rule C13 test, rule C17 test */
static void check_new(struct sim_end *end, uint32_t index, int64_t position,
		      const struct wire_packet *packet)
{
	struct asking *asking = &end->oracle.asking;
	const struct message *message = message_at(end, index);

	if (position == message->first) {
		check_begin(end, index);
		if (message->limited && op_is_send(message->op) && !packet->ack_request)
			world_fail(end->world, "%s: limited SEND %u does not ask for an ACK (C13)",
				   end->name, index);
	} else if (op_is_send(message->op) && beyond(message, asking->allowed) &&
		   !answered(end, message)) {
		world_fail(end->world, "%s: limited SEND %u goes on without a response (C13)",
			   end->name, index);
	}
	if (asking->unacked == asking->high)
		asking->timer_from = end->world->now;
}

uint8_t asking_opcode(const struct message *message, bool first, bool last)
{
	static const uint8_t sends[] = { WIRE_SEND_MIDDLE, WIRE_SEND_FIRST, WIRE_SEND_LAST,
					 WIRE_SEND_ONLY };
	static const uint8_t writes[] = { WIRE_WRITE_MIDDLE, WIRE_WRITE_FIRST, WIRE_WRITE_LAST,
					  WIRE_WRITE_ONLY };
	uint32_t place = (uint32_t)first + 2 * (uint32_t)last;

	switch (message->op) {
	case ENG_READ:
		return WIRE_READ_REQUEST;
	case ENG_COMPARE_SWAP:
		return WIRE_COMPARE_SWAP;
	case ENG_FETCH_ADD:
		return WIRE_FETCH_ADD;
	case ENG_ATOMIC_WRITE:
		return WIRE_ATOMIC_WRITE;
	case ENG_SEND:
	case ENG_SEND_IMM:
		/* The opcodes with immediate follow those without. */
		return sends[place] + (message->op == ENG_SEND_IMM && last);
	case ENG_SEND_INV:
		if (last)
			return first ? WIRE_SEND_ONLY_INVALIDATE : WIRE_SEND_LAST_INVALIDATE;
		return sends[place];
	default:
		return writes[place] + (message->op == ENG_WRITE_IMM && last);
	}
}

bool asking_remote_right(const struct message *message, const struct wire_packet *packet,
			 uint32_t offset)
{
	uint16_t headers = wire_op_headers(packet->opcode);

	if (headers & WIRE_HAS_RETH)
		return packet->va == message->va + offset && packet->rkey == message->rkey &&
		       packet->dma_length == message->length - offset;
	if (!(headers & WIRE_HAS_ATOMICETH))
		return true;
	if (packet->va != message->va || packet->rkey != message->rkey)
		return false;
	if (message->op == ENG_FETCH_ADD)
		return packet->swap_add == message->compare_add;
	return packet->swap_add == message->swap && packet->compare == message->compare_add;
}

bool asking_payload_right(const struct sim_end *end, const struct message *message,
			  const struct wire_packet *packet, uint32_t offset)
{
	uint32_t length = message->length - offset;

	if (op_is_read(message->op) || op_is_atomic(message->op))
		return packet->payload_length == 0 && packet->pad_count == 0;
	if (length > end->world->plan.mtu)
		length = end->world->plan.mtu;
	/* A message to be gathered from invalid memory is never sent. */
	return packet->payload_length == length && packet->pad_count == (-length & 3) &&
	       memcmp(packet->payload, end->script->blob + message->content + offset, length) == 0;
}

/*
 * rule S7 test, rule C13 test: a request has AckReq if something waits for its ACK.  Others may be
 * sent without if there is time for an ACK probe later, but not many packets in a row.
 */
static bool must_ask(const struct sim_end *end, const struct message *message, int64_t position,
		     bool last)
{
	const struct asking *asking = &end->oracle.asking;
	const struct plan *plan = &end->world->plan;
	bool patient = plan->timeout_code >= PLAN_PATIENT_CODE && plan->retry_count > 0;

	if (op_answers(message->op))
		return true;
	if (last && (message->signaled || beyond(message, asking->allowed) || !patient ||
		     asking->probing || position < asking->high))
		return true;
	return asking->asked < asking->unacked && position - asking->unacked + 1 >= MOST_UNASKED;
}

/* rule S1 test, rule S6 test, rule S15 test: the packet is a function of (message, position). */
static void check_form(struct sim_end *end, uint32_t index, int64_t position,
		       const struct wire_packet *packet)
{
	const struct message *message = message_at(end, index);
	uint32_t at = (uint32_t)(position - message->first);
	uint32_t offset = at * end->world->plan.mtu;
	bool first = at == 0, last = at == message->packets - 1 || op_answers(message->op);
	const char *wrong = NULL;

	if (packet->opcode != (oracle_service(end) | asking_opcode(message, first, last)))
		wrong = "opcode";
	else if (end->type == ENG_XRC_SEND && packet->xrc_srqn != end->peer->srqn)
		wrong = "receive queue";
	else if (packet->dest_qpn != end->peer->qpn)
		wrong = "destination QP";
	else if (packet->pkey != WIRE_DEFAULT_PKEY || !packet->migrated)
		wrong = "P_Key or MigReq";
	else if (packet->solicited !=
		 (last && op_takes_receive(message->op) && (message->flags & ENG_SOLICITED)))
		wrong = "solicited event";
	else if (!packet->ack_request && must_ask(end, message, position, last))
		wrong = "AckReq";
	else if (!asking_remote_right(message, packet, offset))
		wrong = "remote address, key, length or operand";
	else if ((wire_op_headers(packet->opcode) & WIRE_HAS_IMMDT) &&
		 packet->immediate != message->immediate)
		wrong = "immediate data";
	else if ((wire_op_headers(packet->opcode) & WIRE_HAS_IETH) &&
		 packet->invalidate_rkey != message->immediate)
		wrong = "key to invalidate";
	else if (!asking_payload_right(end, message, packet, offset))
		wrong = "payload";
	if (wrong)
		world_fail(end->world, "%s: %s of message %u (%s), packet %u is wrong", end->name,
			   wrong, index, eng_op_name(message->op), at);
}

/*
 * The requester goes back once for a hole, and not again for further NAKs of it.  If several NAKs
 * arrive before it goes back, with progress between them, the first one is the reason; a later one
 * may be the reason to go back again.
 */
static void check_again(struct sim_end *end, int64_t position)
{
	struct asking *asking = &end->oracle.asking;

	if (!asking->waited && asking->nak_cause == asking->nak_cause_before)
		world_fail(end->world, "%s: goes back to %" PRId64 " twice without a timeout",
			   end->name, position);
	asking->nak_cause_before = asking->waited ? -1 : asking->nak_first;
	asking->nak_first = -1;
	asking->waited = false;
}

/* Returns true if the next request packet may be at position: rule S2 test, rule S3 test */
static bool in_order(struct sim_end *end, int64_t position)
{
	struct asking *asking = &end->oracle.asking;
	int64_t next = asking->next > asking->unacked ? asking->next : asking->unacked;

	if (position == next)
		return true;
	if (position == asking->unacked && asking->may_repeat) {
		asking->may_repeat = false;
		asking->repeat_serial = end->world->serial;
		asking->asked = -1;
		check_again(end, position);
		return true;
	}
	world_fail(end->world,
		   "%s: request at position %" PRId64 ", next is %" PRId64 ", unacked %" PRId64,
		   end->name, position, next, asking->unacked);
	return false;
}

/* rule C15 test: a local request is executed between the packets before and after it. */
void asking_locals(struct sim_end *end)
{
	struct asking *asking = &end->oracle.asking;

	while (asking->locals_seen < asking->local_count) {
		uint32_t key = asking->local_keys[asking->locals_seen % ASKING_LOCALS];
		uint32_t index = asking->begun;
		const struct message *message = message_at(end, index);

		if (index >= end->sent_posted || !op_is_local(message->op) ||
		    message->immediate != key || message->first != asking->high)
			return;
		world_trace(end, "  executes local request %u", index);
		asking->locals_seen++;
		check_begin(end, index);
		asking_pass_locals(end);
	}
}

/* Packets of the same burst may not have been passed in yet: then the request is checked later. */
void asking_local(struct sim_end *end, uint32_t key)
{
	struct asking *asking = &end->oracle.asking;

	if (asking->local_count - asking->locals_seen == ASKING_LOCALS)
		world_fail(end->world, "%s: more local requests than the queue holds", end->name);
	asking->local_keys[asking->local_count++ % ASKING_LOCALS] = key;
	asking_locals(end);
}

void oracle_burst_ends(struct sim_end *end)
{
	struct asking *asking = &end->oracle.asking;

	asking_locals(end);
	if (asking->locals_seen != asking->local_count)
		world_fail(end->world, "%s: a local request out of order, next is message %u",
			   end->name, asking->begun);
}

/*
 * Returns true for a SEND of 0 bytes at the position before unacked: the peer does not execute it,
 * but acknowledges everything received.
 */
static bool is_of_the_past(const struct sim_end *end, int64_t position,
			   const struct wire_packet *packet)
{
	return position == end->oracle.asking.unacked - 1 && packet->ack_request &&
	       packet->opcode == (oracle_service(end) | WIRE_SEND_ONLY) &&
	       packet->payload_length == 0 && packet->dest_qpn == end->peer->qpn &&
	       packet->pkey == WIRE_DEFAULT_PKEY && packet->migrated && !packet->solicited;
}

/* Returns true for an ACK probe, which is sent once for each reason.  rule S4 test */
static bool is_solicitation(struct sim_end *end, int64_t position, const struct wire_packet *packet,
			    bool taken_back)
{
	struct asking *asking = &end->oracle.asking;

	if (!asking->may_ask || !is_of_the_past(end, position, packet))
		return false;
	asking->may_ask = taken_back;
	asking->solicitation_sent |= !taken_back;
	return true;
}

/* rule S12 test: a READ is requested again from one missing response to another. */
static uint32_t check_part(struct sim_end *end, const struct message *message, int64_t position,
			   struct wire_packet *packet)
{
	const struct asking *asking = &end->oracle.asking;
	uint32_t mtu = end->world->plan.mtu, offset = (uint32_t)(position - message->first) * mtu;

	uint32_t psns = packet->dma_length / mtu;

	if (psns == 0 || packet->dma_length >= message->length - offset ||
	    packet->dma_length % mtu != 0)
		return (uint32_t)(message_end(message) - position);
	if (asking->placed[position] || asking->placed[position + psns - 1])
		world_fail(end->world, "%s: asks for what has come, at position %" PRId64,
			   end->name, position);
	packet->dma_length = message->length - offset;
	return psns;
}

/*
 * A repair: packets in flight are sent again, all with AckReq.  The position of the next request
 * does not change.
 */
void oracle_repair(struct sim_end *end, const struct wire_packet *packet, bool taken_back)
{
	struct asking *asking = &end->oracle.asking;
	int64_t position = oracle_position(packet->psn, end->plan->psn, asking->high);
	uint32_t index = script_find(end->script, position), psns = 1;
	struct wire_packet whole = *packet;

	/* To a peer not known to keep out-of-order packets everything may be sent again then. */
	if (plan_probes_losses(&end->world->plan) && asking->solicitation_sent && !asking->jumped)
		asking->may_repeat = true;
	if (!asking_may_ask(end) || !asking->lossy || position < asking->unacked ||
	    position >= asking->high || asking->rnr_until > end->world->now ||
	    !packet->ack_request) {
		world_fail(end->world, "%s: a repair without a reason, at position %" PRId64,
			   end->name, position);
		return;
	}
	if (op_is_read(message_at(end, index)->op))
		psns = check_part(end, message_at(end, index), position, &whole);
	if (position + psns > asking->parts_to)
		asking->parts_to = position + psns;
	check_form(end, index, position, &whole);
	asking->repeats += !taken_back;
	asking->repeat_serial = end->world->serial;
	asking->waited = true;
	asking->repaired_to = position + psns;
	for (uint32_t i = 0; i < psns && !taken_back; i++)
		if (asking->handed_out[position + i] < UINT8_MAX)
			asking->handed_out[position + i]++;
}

void oracle_request(struct sim_end *end, const struct wire_packet *packet, bool taken_back)
{
	struct asking *asking = &end->oracle.asking;
	int64_t position = oracle_position(packet->psn, end->plan->psn, asking->high);
	uint32_t index = script_find(end->script, position);
	uint32_t psns = 1;

	if (service_is_uc_ud(end->type)) {
		oracle_uc_ud_request(end, packet, taken_back);
		return;
	}
	if (is_solicitation(end, position, packet, taken_back))
		return;
	asking_locals(end);
	if (index == NO_INDEX || index >= end->sent_posted || !asking_may_ask(end)) {
		world_fail(end->world, "%s: a request that was not posted, position %" PRId64,
			   end->name, position);
		return;
	}
	if (!in_order(end, position))
		return;
	if (asking->probing && position != asking->unacked)
		world_fail(end->world, "%s: a request behind a probe, at position %" PRId64,
			   end->name, position);
	/* rule S10 test: after an RNR NAK at least the named time passes. */
	if (asking->rnr_until > end->world->now)
		world_fail(end->world, "%s: a request before the RNR timer is over (S10)",
			   end->name);
	if (asking->rnr_until != 0) {
		asking->rnr_until = 0;
		asking->timer_from = end->world->now;
	}
	check_form(end, index, position, packet);
	if (op_is_read(message_at(end, index)->op))
		psns = (uint32_t)(message_end(message_at(end, index)) - position);
	if (position == asking->high) {
		check_new(end, index, position, packet);
		asking->high += psns;
	} else if (asking->handed_out[position] > 0 && !taken_back) {
		asking->repeats++;
	}
	if (packet->ack_request)
		asking->asked = position + psns - 1;
	asking->next = position + psns;
	for (uint32_t i = 0; i < psns && !taken_back; i++)
		if (asking->handed_out[position + i] < UINT8_MAX)
			asking->handed_out[position + i]++;
}

/* Counts from unacked to next; READs count with the length of their responses. */
uint64_t asking_under_way(const struct sim_end *end, bool share, uint32_t *requests)
{
	const struct asking *asking = &end->oracle.asking;
	uint32_t mtu = end->world->plan.mtu, count = 0;
	bool flows = end->world->plan.flows;
	uint64_t bytes = 0;

	if (service_is_uc_ud(end->type))
		return 0;
	for (uint32_t i = asking->oldest; i < asking->begun; i++) {
		const struct message *message = message_at(end, i);
		int64_t from = message->first, to = message_end(message);

		if (from < asking->unacked)
			from = asking->unacked;
		if (to > asking->next)
			to = asking->next;
		for (int64_t at = from; at < to; at++) {
			uint32_t rest = message->length - (uint32_t)(at - message->first) * mtu;
			uint64_t weight = 116 + (rest < mtu ? rest : mtu);

			/*
			 * On a network placed responses are not in flight, but count in the budget.
			 */
			if (flows && !share && asking->placed[at])
				continue;

			/* READ responses are paced by their sender and count a quarter. */
			bytes += op_is_read(message->op) && !(flows && share) ? weight / 4 : weight;
			count += at == from || !op_is_read(message->op);
		}
	}
	if (requests)
		*requests = count;
	return bytes;
}

/* A single request in flight may exceed the window. */
void oracle_in_flight(struct sim_end *end)
{
	uint64_t packets = end->plan->cwnd_packets ? end->plan->cwnd_packets : 90;
	uint64_t limit = (packets < 4 ? 4 : packets) * (WIRE_MAX_MTU + 116), bytes;
	uint32_t requests = 0;

	bytes = asking_under_way(end, false, &requests);
	if (bytes > limit && requests > 1)
		world_fail(end->world, "%s: %llu bytes are under way, the window is %llu",
			   end->name, (unsigned long long)bytes, (unsigned long long)limit);
}

void oracle_taken_back(struct sim_end *end, const struct wire_packet *first)
{
	struct asking *asking = &end->oracle.asking;

	asking->next = oracle_position(first->psn, end->plan->psn, asking->high);
	if (asking->asked >= asking->next)
		asking->asked = -1;
}

/* rule C15 test: the reason ENG_TX_CREDIT is returned only without credits. */
static bool credit_missing(const struct sim_end *end)
{
	const struct asking *asking = &end->oracle.asking;
	const struct message *message;

	if (asking->begun == 0)
		return false;
	message = message_at(end, asking->begun - 1);
	if (!beyond(message, asking->granted))
		return false;
	if (asking->high < message_end(message))
		return op_is_send(message->op) && !answered(end, message);
	return asking->unacked < message_end(message);
}

uint64_t asking_wait_ns(const struct sim_end *end)
{
	const struct asking *asking = &end->oracle.asking;

	if (!asking->volunteers)
		return 0;
	return asking->last_rnr_ns < MOST_WAIT_NS ? asking->last_rnr_ns : MOST_WAIT_NS;
}

/*
 * rule C10 test, rule C13 test: the next request may wait for a credit update, but not for long,
 * and a timer must end the wait.
 */
static bool awaits_news(struct sim_end *end)
{
	struct asking *asking = &end->oracle.asking;
	uint64_t wait = asking_wait_ns(end);

	if (wait == 0 || asking->begun == end->sent_posted ||
	    !beyond(message_at(end, asking->begun), asking->granted))
		return false;
	if (asking->news_from == ENG_NEVER)
		asking->news_from = end->world->now;
	if (eng_timer(end->qp) > asking->news_from + wait)
		world_fail(end->world, "%s: nothing ends the wait for credits", end->name);
	return end->world->now < asking->news_from + wait;
}

/* Liveness: every pause has a reason, and the reason is true. */
void asking_nothing(struct sim_end *end, enum eng_tx reason)
{
	const struct asking *asking = &end->oracle.asking;
	const struct script *script = end->script;
	int64_t next = asking->next > asking->unacked ? asking->next : asking->unacked;
	bool more = asking->begun < end->sent_posted;
	bool fenced = more && (script->messages[asking->begun].flags & ENG_FENCE);
	bool true_reason = false;

	if (!asking_may_ask(end))
		return;
	switch (reason) {
	/* The reason of waiting responses is returned if no requests wait. */
	case ENG_TX_IDLE:
	case ENG_TX_ACK_DELAY:
	case ENG_TX_PACING:
		true_reason = !more && next == asking->high;
		break;
	case ENG_TX_CREDIT:
		true_reason = credit_missing(end) || awaits_news(end);
		break;
	case ENG_TX_FENCE:
		true_reason = fenced && outstanding(end) > 0;
		break;
	case ENG_TX_READ_DEPTH:
		true_reason = more && outstanding(end) >= end->plan->max_rd_atomic;
		break;
	case ENG_TX_CWND:
		true_reason = asking->unacked < asking->high;
		break;
	case ENG_TX_BUDGET:
		true_reason = oracle_share_is_used_up(end) &&
			      (share_queue_is_used(end) || asking->unacked < asking->high);
		break;
	case ENG_TX_BACKPRESSURE:
		true_reason = oracle_is_too_long(end);
		break;
	case ENG_TX_RNR:
		true_reason = asking->rnr_until > end->world->now;
		break;
	case ENG_TX_DRAINED:
		true_reason = end->state == ENG_SQD;
		break;
	case ENG_TX_LOCAL_ERROR:
		true_reason = (script->bad != NO_INDEX && script->bad <= asking->begun) ||
			      script->source.gone || script->landing.gone;
		break;
	default:
		break;
	}
	if (!true_reason)
		world_fail(end->world, "%s: has requests to send but waits for %s", end->name,
			   eng_tx_name(reason));
}
