/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "sim/oracle/oracle_uc_ud.h"

#include <inttypes.h>
#include <string.h>

#include "sim/world.h"

static struct message *message_at(const struct sim_end *end, uint32_t index)
{
	return &end->script->messages[index];
}

void oracle_uc_ud_start(struct sim_end *end)
{
	struct listening *listening = &end->oracle.listening;

	memset(listening, 0, sizeof(*listening));
	listening->under_way = listening->due = NO_INDEX;
}

/*
 * Flushed messages take no position: of several messages with the same first position the last one
 * is returned.
 */
uint32_t oracle_uc_ud_find(const struct sim_end *end, int64_t position)
{
	uint32_t low = 0, high = end->oracle.asking.begun;

	if (position < 0 || position >= end->oracle.asking.high)
		return NO_INDEX;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (message_at(end, middle)->first <= position)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static void begin(struct sim_end *end)
{
	struct asking *asking = &end->oracle.asking;
	struct message *message = message_at(end, asking->begun);

	if (end->state == ENG_SQD)
		world_fail(end->world, "%s: message %u is begun in SQD", end->name, asking->begun);
	if (message->local_status != ENG_SUCCESS)
		world_fail(end->world, "%s: message %u is sent and not: %s", end->name,
			   asking->begun, eng_status_name(message->local_status));
	message->first = asking->high;
	asking->begun++;
}

static void check_datagram(struct sim_end *end, uint32_t index, const struct wire_packet *packet)
{
	const struct message *message = message_at(end, index);
	const struct sim_end *dest = &end->world->connections[message->dest].end[!end->side];
	const char *wrong = NULL;

	if (packet->dest_qpn != (message->grouped ? PLAN_GROUP_QPN : dest->qpn))
		wrong = "destination QP";
	else if (packet->src_qpn != end->qpn)
		wrong = "source QP";
	else if (packet->qkey != message->wire_qkey)
		wrong = "Q_Key";
	if (wrong)
		world_fail(end->world, "%s: %s of datagram %u is wrong", end->name, wrong, index);
}

/* rule S1 test, rule S6 test, rule S15 test */
static void check_form(struct sim_end *end, uint32_t index, int64_t position,
		       const struct wire_packet *packet)
{
	const struct message *message = message_at(end, index);
	uint32_t at = (uint32_t)(position - message->first);
	bool last = at == message->packets - 1;
	const char *wrong = NULL;

	if (packet->opcode != (oracle_service(end) | asking_opcode(message, at == 0, last)))
		wrong = "opcode";
	else if (packet->pkey != WIRE_DEFAULT_PKEY || !packet->migrated)
		wrong = "P_Key or MigReq";
	else if (packet->solicited !=
		 (last && op_takes_receive(message->op) && (message->flags & ENG_SOLICITED)))
		wrong = "solicited event";
	else if (packet->ack_request)
		wrong = "AckReq, which is not answered,";
	else if ((wire_op_headers(packet->opcode) & WIRE_HAS_IMMDT) &&
		 packet->immediate != message->immediate)
		wrong = "immediate data";
	else if (!asking_remote_right(message, packet, at * end->world->plan.mtu))
		wrong = "remote address, key or length";
	else if (!asking_payload_right(end, message, packet, at * end->world->plan.mtu))
		wrong = "payload";
	else if (end->type == ENG_UC && packet->dest_qpn != end->peer->qpn)
		wrong = "destination QP";
	if (wrong)
		world_fail(end->world, "%s: %s of message %u (%s), packet %u is wrong", end->name,
			   wrong, index, eng_op_name(message->op), at);
	if (end->type == ENG_UD)
		check_datagram(end, index, packet);
}

/* rule S2 test: each packet once, in order. */
void oracle_uc_ud_request(struct sim_end *end, const struct wire_packet *packet, bool taken_back)
{
	struct asking *asking = &end->oracle.asking;
	int64_t position = oracle_position(packet->psn, end->plan->psn, asking->high);

	(void)taken_back;
	end->world->last_progress = end->world->now;
	if (!asking_may_ask(end) || position != asking->next) {
		world_fail(end->world, "%s: request at position %" PRId64 ", next is %" PRId64,
			   end->name, position, asking->next);
		return;
	}
	if (position == asking->high) {
		if (asking->begun == 0 ||
		    position == message_end(message_at(end, asking->begun - 1))) {
			if (asking->begun == end->sent_posted) {
				world_fail(end->world, "%s: a request that was not posted",
					   end->name);
				return;
			}
			begin(end);
		}
		asking->high++;
	}
	asking->next = asking->unacked = position + 1;
	check_form(end, oracle_uc_ud_find(end, position), position, packet);
}

/* Requests that have been sent are complete. */
static void pass_sent(struct sim_end *end)
{
	struct asking *asking = &end->oracle.asking;

	while (asking->oldest < asking->begun &&
	       message_end(message_at(end, asking->oldest)) <= asking->next)
		asking->oldest++;
}

static void sent_error(struct sim_end *end, const struct eng_wc *wc)
{
	struct oracle *oracle = &end->oracle;
	struct asking *asking = &oracle->asking;
	uint32_t index = (uint32_t)wc->wr_id;
	struct message *message = message_at(end, index);

	/* Requests before it have completions of their own; those after it are never sent. */
	if (wc->status == ENG_WR_FLUSH_ERR) {
		if (!oracle->erred && !oracle->may_be_in_error && end->state != ENG_SQE)
			world_fail(end->world, "%s: message %u is flushed for no reason", end->name,
				   index);
	} else {
		if (oracle->erred || index != asking->oldest || wc->status == ENG_SUCCESS ||
		    (wc->status != message->local_status &&
		     !(wc->status == ENG_LOC_PROT_ERR && oracle_lacks_local(end, message))))
			world_fail(end->world, "%s: message %u ends with %s", end->name, index,
				   eng_status_name(wc->status));
		end->world->total.errors++;
		oracle->erred = true;
	}
	if (index >= asking->begun) {
		asking->begun = index + 1;
		message->first = asking->high;
		message->packets = 0;
	} else if (message_end(message) > asking->high) {
		message->packets = (uint32_t)(asking->high - message->first);
		message->cut = true;
	}
	oracle->completed = index + 1;
}

/* rule S9 test, rule S13 test: completed in order, when sent and not before. */
void oracle_uc_ud_sent(struct sim_end *end, const struct eng_wc *wc)
{
	pass_sent(end);
	oracle_sent_completion(end, wc, sent_error, "sent");
}

/*
 * rule S13 test: the send queue is flushed, and the QP stays in SQE until the consumer changes its
 * state.
 */
static void enter_sqe(struct sim_end *end)
{
	struct asking *asking = &end->oracle.asking;

	world_trace(end, "state SQE");
	end->state = ENG_SQE;
	if (!end->oracle.erred)
		world_fail(end->world, "%s: the QP went to SQE for no reason", end->name);
	if (end->oracle.completed != end->sent_posted)
		world_fail(end->world, "%s: in SQE, but not all sends are flushed", end->name);
	asking->next = asking->unacked = asking->high;
	end->next_state_at = end->world->now + 1 + random_skewed(&end->random, 20000);
}

/* Only a receive request with deregistered memory puts the QP into ERR. */
static void enter_error(struct sim_end *end)
{
	end->state = ENG_ERR;
	end->oracle.broke = true;
	if (!end->oracle.may_be_in_error)
		world_fail(end->world, "%s: the QP went to ERR for no reason", end->name);
	oracle_check_flushed(end);
}

void oracle_uc_ud_after_step(struct sim_end *end)
{
	enum eng_qp_state state = eng_qp_state(end->qp);

	if (state == ENG_SQE && end->state != ENG_SQE)
		enter_sqe(end);
	else if (state == ENG_ERR && end->state != ENG_ERR)
		enter_error(end);
	if (end->state == ENG_SQE && end->oracle.completed != end->sent_posted)
		pass_sent(end);
	if (end->state == ENG_RTS)
		end->oracle.erred = false;
	oracle_uc_ud_check_arrived(end);
}

/* Nothing waits for a peer: posted requests are sent, and sent requests complete. */
void oracle_uc_ud_nothing(struct sim_end *end, enum eng_tx reason)
{
	struct asking *asking = &end->oracle.asking;
	uint32_t told = end->oracle.completed;
	bool true_reason;

	if (!asking_may_ask(end))
		return;
	pass_sent(end);
	/* Until there is room, the engine does not complete sent requests either. */
	if (reason == ENG_TX_BACKPRESSURE && oracle_is_too_long(end))
		return;
	while (told < asking->oldest && !message_at(end, told)->signaled)
		told++;
	if (told < asking->oldest)
		world_fail(end->world, "%s: no completion for message %u", end->name, told);
	true_reason = asking->begun == asking->oldest &&
		      (reason == ENG_TX_DRAINED ? end->state == ENG_SQD
						: asking->begun == end->sent_posted);
	if (!true_reason)
		world_fail(end->world, "%s: has requests to send but waits for %s", end->name,
			   eng_tx_name(reason));
}

void oracle_uc_ud_event(struct sim_end *end, enum eng_event event)
{
	struct oracle *oracle = &end->oracle;

	if (event == ENG_EVENT_COMM_EST) {
		if (end->type == ENG_UD || !oracle->answering.established || oracle->comm_est ||
		    end->state != ENG_RTR)
			world_fail(end->world, "%s: an event COMM_EST too many", end->name);
		oracle->comm_est = true;
	} else if (event == ENG_EVENT_FIRST_REQUEST) {
		if (end->type == ENG_UD || !oracle->answering.established || oracle->comm_est ||
		    end->state == ENG_RTR)
			world_fail(end->world, "%s: a first request too many", end->name);
		oracle->comm_est = true;
	} else if (event == ENG_EVENT_SQ_DRAINED) {
		oracle->drained_events++;
		pass_sent(end);
		if (oracle->drained_events > oracle->drains || end->state != ENG_SQD ||
		    oracle->asking.oldest != oracle->asking.begun)
			world_fail(end->world, "%s: a drained event too many", end->name);
	} else if (!oracle->may_be_in_error) {
		world_fail(end->world, "%s: event %s for no reason", end->name,
			   eng_event_name(event));
	}
}

bool oracle_uc_ud_all_done(const struct sim_end *end)
{
	return end->oracle.asking.oldest == end->script->message_count;
}

/* The engine's counters must match the observed events. */
void oracle_uc_ud_final(struct sim_end *end)
{
	const struct oracle *oracle = &end->oracle;
	struct eng_qp_info view;
	const char *wrong = NULL;

	eng_qp_query(end->qp, &view);
	for (uint32_t i = 0; i < ENG_COUNTER_COUNT; i++)
		view.counters[i] -= end->at_start.counters[i];
	if (view.counters[ENG_COUNT_SENT_PACKETS] != end->packets_sent)
		wrong = "packets sent";
	else if (view.counters[ENG_COUNT_RECEIVES] != oracle->receives_completed)
		wrong = "receives";
	else if (end->type == ENG_UD &&
		 view.counters[ENG_COUNT_DROPPED] != oracle->listening.dropped)
		wrong = "drops";
	if (wrong)
		world_fail(end->world, "%s: the engine shows wrong %s", end->name, wrong);
}
