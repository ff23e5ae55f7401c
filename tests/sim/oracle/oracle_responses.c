/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The oracle of the responder: its own record of the executed requests, from those that arrived in
 * order; every response must agree with it, and no response may be withheld.
 */
#include <inttypes.h>
#include <string.h>

#include "sim/oracle/oracle.h"
#include "sim/world.h"

/* Maximum number of unsolicited ACKs without new credits, see engine/recovery/retransmit.c */
#define SHOWN_MAX 5

#define FINAL_ACKS 3
/* Instead of a syndrome: the request puts the QP into ERR, and no NAK reports it. */
#define NO_NAK 0xff

static bool may_answer(const struct sim_end *end)
{
	return end->state == ENG_RTR || end->state == ENG_RTS || end->state == ENG_SQD;
}

/* rule C12: number of receive requests that a credit code allows, added to the current MSN. */
static uint64_t reach(const struct sim_end *end, uint32_t code)
{
	return end->oracle.answering.received + (uint64_t)oracle_credits(code);
}

static uint32_t receives_free(const struct sim_end *end)
{
	return queue_left(end->queue);
}

bool oracle_lacks_receives(const struct sim_end *end)
{
	const struct answering *answering = &end->oracle.answering;
	const struct script *script = end->peer->script;
	uint32_t index = script_find(script, answering->expected - 1);

	return !end->plan->hides_credits && receives_free(end) == 0 && index != NO_INDEX &&
	       answering->expected == message_end(&script->messages[index]) && answering->taken > 0;
}

/* Returns the NAK code of the bad message when its packet number at has arrived, or 0. */
static uint8_t fault_of(const struct sim_end *end, const struct wire_packet *packet, uint32_t at)
{
	const struct plan *plan = &end->world->plan;
	const struct receive *receive;

	switch (plan->trouble) {
	case TROUBLE_ACCESS:
		return 0x61;
	case TROUBLE_RKEY:
	case TROUBLE_BOUNDS:
	case TROUBLE_DEAD_WINDOW:
		return 0x62;
	case TROUBLE_REMOTE_INV:
		return wire_op_headers(packet->opcode) & WIRE_HAS_IETH ? NO_NAK : 0;
	case TROUBLE_SHORT_RECEIVE:
		receive = queue_receive(end->queue, end->oracle.answering.holding
							    ? end->oracle.answering.held
							    : end->queue->taken);
		/* rule C18 test */
		return at * plan->mtu + packet->payload_length > receive->length ? 0x61 : 0;
	default:
		return 0;
	}
}

static bool takes_receive(const struct message *message, uint32_t at)
{
	if (op_is_send(message->op))
		return at == 0;
	return message->op == ENG_WRITE_IMM && at == message->packets - 1;
}

static void note_fatal(struct sim_end *end, uint8_t syndrome)
{
	struct answering *answering = &end->oracle.answering;

	answering->fatal = true;
	/* rule S11 test: a SEND whose key cannot be invalidated has no NAK. */
	answering->fatal_owed = syndrome != NO_NAK;
	answering->fatal_syndrome = syndrome;
	end->oracle.may_be_in_error = true;
}

/* Executes a request at the expected position: rule C5 test, rule C6 test, rule C11 test */
static void execute(struct sim_end *end, const struct wire_packet *packet)
{
	struct answering *answering = &end->oracle.answering;
	struct script *script = end->peer->script;
	uint32_t index = script_find(script, answering->expected);
	const struct message *message = &script->messages[index];
	uint32_t at = (uint32_t)(answering->expected - message->first);
	uint8_t fault = index == script->bad ? fault_of(end, packet, at) : 0;
	uint32_t psns = op_is_read(message->op) ? message->packets : 1;
	bool needs = takes_receive(message, at);

	if (fault == 0)
		fault = oracle_lacks_remote(end->peer, message);

	/* rule S5 test: rights are checked before resources, these before keys and lengths. */
	if (fault != 0 && end->world->plan.trouble == TROUBLE_ACCESS) {
		note_fatal(end, fault);
		return;
	}
	/* With get_recv_wqe() the engine checks keys before it knows if a receive is left. */
	if (needs && receives_free(end) == 0 &&
	    !(fault == 0x62 && at == 0 && !op_is_send(message->op) && end->plan->rq_by_call &&
	      end->rq_shared)) {
		answering->rnr_owed = true;
		/* The peer repeats everything from there on: no hole needs to be reported. */
		if (answering->kept_count == 0)
			answering->ahead_to = answering->expected - 1;
		return;
	}
	if (fault != 0) {
		/* A WRITE that is refused at its first packet takes no receive request. */
		if (needs && (op_is_send(message->op) || at > 0))
			oracle_take(end);
		note_fatal(end, fault);
		return;
	}
	if (needs)
		oracle_take(end);
	if (op_is_read(message->op) || message->op == ENG_ATOMIC_WRITE)
		answering->starts[answering->expected] |= 1;
	answering->expected += psns;
	if (packet->ack_request)
		answering->ack_asked = answering->expected - 1;
	if (!op_answers(message->op))
		answering->asked++;
	if (answering->expected == message_end(message)) {
		answering->done++;
		answering->received += message->takes_receive != 0;
		answering->invalidated += message->op == ENG_SEND_INV;
	}
}

/* rule S4 test: a duplicate READ is executed again unless newer requests use its resource. */
static void asked_again(struct sim_end *end, const struct wire_packet *packet, int64_t position)
{
	struct answering *answering = &end->oracle.answering;
	const struct script *script = end->peer->script;
	uint32_t index = script_find(script, position), newer = 0;

	uint32_t packets = (packet->dma_length + end->world->plan.mtu - 1) / end->world->plan.mtu;

	answering->starts[position] |= 1;
	if (packets > 0 && position + packets <= answering->expected)
		answering->starts[position + packets - 1] |= 2;
	for (uint32_t i = index; i < script->message_count; i++) {
		if (script->messages[i].first >= answering->expected)
			break;
		newer += op_answers(script->messages[i].op);
	}
	if (newer <= end->plan->max_dest_rd_atomic &&
	    message_end(&script->messages[index]) > answering->again_to)
		answering->again_to = message_end(&script->messages[index]);
}

void oracle_kept(struct sim_end *end, const struct wire_packet *packet)
{
	struct answering *answering = &end->oracle.answering;

	for (uint32_t i = 0; i < answering->kept_count; i++)
		if (end->kept[i].psn == packet->psn)
			world_fail(end->world, "%s: keeps PSN %06x twice", end->name, packet->psn);
	if (answering->kept_count == SIM_KEPT)
		world_fail(end->world, "%s: keeps more than it has memory for", end->name);
	else
		end->kept[answering->kept_count++] = *packet;
}

/* Returns true if the next request in order is kept; removes it and those before it. */
static bool execute_ooo(struct sim_end *end, struct wire_packet *packet)
{
	struct answering *answering = &end->oracle.answering;
	bool found = false;

	for (uint32_t i = 0; i < answering->kept_count;) {
		struct wire_packet *kept = &end->kept[i];
		int64_t position =
			oracle_position(kept->psn, end->peer->plan->psn, answering->expected);

		if (position > answering->expected) {
			i++;
			continue;
		}
		if (position == answering->expected) {
			*packet = *kept;
			found = true;
		}
		*kept = end->kept[--answering->kept_count];
	}
	return found;
}

/*
 * After a hole was filled, kept requests are executed one by one: when a call from the engine shows
 * that, or after it has returned.
 */
bool oracle_kept_turn(struct sim_end *end)
{
	struct answering *answering = &end->oracle.answering;
	struct wire_packet packet;

	if (!answering->filled || answering->rnr_owed || answering->fatal ||
	    !execute_ooo(end, &packet))
		return false;
	answering->any_kept = true;
	execute(end, &packet);
	return true;
}

/* The remaining packets are beyond another hole, which is NAKed at once. */
void oracle_kept_over(struct sim_end *end)
{
	struct answering *answering = &end->oracle.answering;

	while (oracle_kept_turn(end))
		;
	if (answering->any_kept) {
		answering->asked++;
		answering->nak_owed = !answering->rnr_owed && !answering->fatal &&
				      !answering->after_rnr &&
				      answering->ahead_to >= answering->expected;
	}
	/* After an RNR NAK the peer sends everything again without a NAK. */
	if (answering->came)
		answering->after_rnr = answering->rnr_owed;
	answering->came = false;
	answering->filled = false;
	answering->any_kept = false;
}

/* rule S4 test */
void answering_arrival(struct sim_end *end, const struct wire_packet *packet, uint64_t serial)
{
	struct answering *answering = &end->oracle.answering;
	const struct end_plan *asker = end->peer->plan;
	int64_t position = oracle_position(packet->psn, asker->psn, answering->expected);
	enum wire_family family = wire_op_family(packet->opcode);

	if (!may_answer(end) || answering->fatal)
		return;
	/* Duplicates do not show a hole. */
	if (position >= answering->expected && serial > answering->last_serial)
		answering->last_serial = serial;
	if (position > answering->expected) {
		if (!answering->nak_owed)
			answering->ahead_since = end->world->now;
		if (position > answering->ahead_to ||
		    (!answering->naked && !answering->rnr_owed && !answering->nak_owed &&
		     answering->kept_count == 0))
			answering->ahead_to = position;
		if (!answering->naked && !answering->rnr_owed)
			answering->nak_owed = true;
		else if (serial >= end->peer->oracle.asking.repeat_serial)
			asking_nak_useless(end->peer); /* dropped without a NAK */
	} else if (position < answering->expected) {
		if (family == WIRE_FAMILY_READ && position >= 0)
			asked_again(end, packet, position);
		answering->answers_again |= family == WIRE_FAMILY_READ ||
					    family == WIRE_FAMILY_ATOMIC ||
					    family == WIRE_FAMILY_ATOMIC_WRITE;
		asking_solicitation_came(end->peer, position, packet);
		if (family == WIRE_FAMILY_SEND || family == WIRE_FAMILY_WRITE) {
			answering->asked++;
			if (!answering->repeat_owed || position > answering->repeat_at)
				answering->repeat_at = position;
			answering->repeat_owed = !answering->nak_owed && !answering->rnr_owed;
		}
	} else {
		answering->naked = answering->rnr_owed = false;
		answering->came = true;
		answering->established = true;
		execute(end, packet);
		/* Packets that were dropped without a NAK so far may still be missing. */
		answering->nak_owed = answering->nak_owed && !answering->rnr_owed &&
				      !answering->fatal &&
				      answering->ahead_to >= answering->expected;
		if (!answering->rnr_owed && !answering->fatal && answering->kept_count > 0)
			answering->filled = true;
	}
}

/* Returns true if there is a READ or Atomic in positions [from, to). */
static bool answer_between(const struct sim_end *end, int64_t from, int64_t to)
{
	const struct script *script = end->peer->script;
	uint32_t index = script_find(script, from < 0 ? 0 : from);

	for (; from < to && index < script->message_count; index++) {
		const struct message *message = &script->messages[index];

		if (message->first >= to)
			return false;
		if (op_answers(message->op))
			return true;
	}
	return false;
}

/* rule C2 test, rule C4 test, rule C5 test, rule C7 test */
static void check_credits(struct sim_end *end, const struct wire_packet *packet)
{
	struct answering *answering = &end->oracle.answering;
	uint32_t code = packet->syndrome & 31;
	uint32_t right = end->plan->hides_credits ? 31 : oracle_credit_code(receives_free(end));

	if (packet->msn != answering->done)
		world_fail(end->world, "%s: MSN %u, but %u messages are executed (C11)", end->name,
			   packet->msn, answering->done);
	if (packet->syndrome >> 5 != 0)
		world_fail(end->world, "%s: a response with syndrome %02x", end->name,
			   packet->syndrome);
	else if (code != right && (code != 0 || (!answering->fatal && end->state != ENG_ERR)))
		world_fail(end->world, "%s: credit code %u, but %u receives are free: %u (C4, C5)",
			   end->name, code, receives_free(end), right);
	else if (code != 31 && reach(end, code) > answering->told)
		answering->told = reach(end, code);
}

/*
 * The last acknowledged request is a READ or Atomic, and the peer has reported no credits: it might
 * take an ACK for that PSN for the response, which may be lost (engine/credit.h).
 */
static bool spares_peer(const struct sim_end *end)
{
	int64_t settled = end->oracle.answering.settled;
	struct eng_qp_info view;

	eng_qp_query(end->qp, &view);
	return answer_between(end, settled, settled + 1) && (!view.credits_known || view.unlimited);
}

/* rule C8 test, rule C9 test, rule C10 test */
static void check_unsolicited(struct sim_end *end, const struct wire_packet *packet,
			      int64_t position)
{
	struct answering *answering = &end->oracle.answering;
	bool ends = answering->final_acks > 0 || end->oracle.broke ||
		    (answering->fatal && end->world->plan.trouble == TROUBLE_REMOTE_INV);

	answering->unsolicited++;
	if (spares_peer(end))
		world_fail(end->world, "%s: an ACK in the place of a READ or Atomic response",
			   end->name);
	/* A QP that ends (S13) acknowledges requests without AckReq: that ACK is unsolicited. */
	if (ends && position > answering->settled && position == answering->expected - 1)
		return;
	/* If a NAK has acknowledged more since, so must the ACK: the peer ignores older ones. */
	if (position != answering->settled)
		world_fail(end->world,
			   "%s: unsolicited ACK at position %" PRId64 ", acknowledged is %" PRId64
			   " (C8)",
			   end->name, position, answering->settled);
	if (answering->final_acks > 0) {
		answering->final_acks--;
		return;
	}
	/* ACKs after losses may bring no new credits: the peer then keeps early packets. */
	if ((end->plan->hides_credits || reach(end, packet->syndrome & 31) <= answering->told) &&
	    ++answering->shown > SHOWN_MAX)
		world_fail(end->world, "%s: an unsolicited ACK without news (C10)", end->name);
}

/* rule S11 test: memory was deregistered before it could be read; the requester gets a NAK. */
static bool refuses_read(const struct sim_end *end, const struct wire_packet *packet,
			 int64_t position)
{
	const struct script *script = end->peer->script;
	uint32_t index = script_find(script, position);
	const struct message *message = &script->messages[index];

	if (packet->syndrome != 0x62 || index == NO_INDEX || !op_is_read(message->op) ||
	    message->length == 0 || position >= end->oracle.answering.expected)
		return false;
	return end->script->remote.gone ||
	       (message->window != NO_INDEX && end->script->windows[message->window].ended);
}

/* A refused READ ends the connection, unless it has been answered before. */
static void note_refusal(struct sim_end *end, int64_t position)
{
	struct answering *answering = &end->oracle.answering;
	const struct script *script = end->peer->script;

	if (message_end(&script->messages[script_find(script, position)]) <=
	    answering->answered + 1)
		return;
	answering->rnr_owed = answering->nak_owed = answering->repeat_owed = false;
	answering->fatal_owed = false;
	answering->fatal = answering->naked = true;
	if (eng_qp_state(end->qp) != ENG_ERR)
		world_fail(end->world, "%s: a READ is refused, and yet the QP goes on", end->name);
}

static void check_nak(struct sim_end *end, const struct wire_packet *packet, int64_t position)
{
	struct answering *answering = &end->oracle.answering;
	bool *owed = &answering->fatal_owed;
	uint8_t right = answering->fatal_syndrome;

	if (packet->syndrome >> 5 == 1) {
		owed = &answering->rnr_owed;
		right = 0x20 | end->plan->rnr_timer_code;
	} else if (packet->syndrome == 0x60) {
		owed = &answering->nak_owed;
		right = 0x60;
	}
	if (refuses_read(end, packet, position)) {
		note_refusal(end, position);
		return;
	}
	/* rule C6 test, rule S4 test, rule S11 test: one NAK for each reason. */
	if (!*owed || packet->syndrome != right)
		world_fail(end->world, "%s: NAK %02x without a reason, or once too often (S4)",
			   end->name, packet->syndrome);
	if (position != answering->expected || packet->msn != answering->done)
		world_fail(end->world,
			   "%s: NAK at position %" PRId64 " MSN %u, expected is %" PRId64 " MSN %u",
			   end->name, position, packet->msn, answering->expected, answering->done);
	*owed = false;
	answering->naked = true;
	answering->asked = 0;
	answering->repeat_owed = false;
	if (position - 1 > answering->settled)
		answering->settled = position - 1;
}

static void check_ack(struct sim_end *end, const struct wire_packet *packet, int64_t position)
{
	struct answering *answering = &end->oracle.answering;
	bool positive = packet->syndrome >> 5 == 0;

	/* rule S8 test: an ACK before a READ or Atomic response would be an implied NAK. */
	if (answer_between(end, answering->answered + 1, position + positive))
		world_fail(end->world, "%s: an ACK overtakes a READ or Atomic response (S8)",
			   end->name);
	if (!positive) {
		check_nak(end, packet, position);
		return;
	}
	answering->acks++;
	/* rule S7 test: nothing is acknowledged before it is executed. */
	if (position >= answering->expected)
		world_fail(end->world, "%s: an ACK for position %" PRId64 ", executed is %" PRId64,
			   end->name, position, answering->expected);
	if (answering->asked == 0)
		check_unsolicited(end, packet, position);
	check_credits(end, packet);
	answering->asked = 0;
	answering->repeat_owed = false;
}

/* rule S12 test */
static void check_read_response(struct sim_end *end, const struct wire_packet *packet,
				int64_t position, const struct message *message)
{
	const struct answering *answering = &end->oracle.answering;
	uint32_t at = (uint32_t)(position - message->first), mtu = end->world->plan.mtu;
	uint32_t length = op_is_read(message->op) ? message->length - at * mtu : 0;
	enum wire_position place = wire_op_position(packet->opcode);
	bool last = at == message->packets - 1;

	if (length > mtu)
		length = mtu;
	if (packet->payload_length != length || packet->pad_count != (-length & 3) ||
	    (last != (place == WIRE_LAST || place == WIRE_ONLY) &&
	     (last || !(answering->starts[position] & 2))))
		world_fail(end->world, "%s: READ response %u has the wrong form", end->name, at);
	if ((place == WIRE_FIRST || place == WIRE_ONLY) && !(answering->starts[position] & 1))
		world_fail(end->world, "%s: READ response begins at %u, where none was asked for",
			   end->name, at);
	if ((place == WIRE_MIDDLE || place == WIRE_LAST) && at == 0)
		world_fail(end->world, "%s: READ response does not begin with First", end->name);
	if (place != WIRE_MIDDLE)
		check_credits(end, packet);
}

static void check_answer(struct sim_end *end, const struct wire_packet *packet, int64_t position)
{
	const struct answering *answering = &end->oracle.answering;
	const struct script *script = end->peer->script;
	uint32_t index = script_find(script, position);
	const struct message *message = &script->messages[index];
	bool atomic = wire_op_family(packet->opcode) == WIRE_FAMILY_ATOMIC_ACK;

	if (index == NO_INDEX || position >= answering->expected || !op_answers(message->op) ||
	    atomic != op_is_atomic(message->op)) {
		world_fail(end->world, "%s: an answer to nothing, position %" PRId64, end->name,
			   position);
		return;
	}
	if (answer_between(end, answering->answered + 1, position))
		world_fail(end->world, "%s: an answer overtakes another one", end->name);
	if (!atomic) {
		check_read_response(end, packet, position, message);
		return;
	}
	check_credits(end, packet);
	/* rule S4 test: executed once, and answered from the saved result. */
	if (packet->original != message->original && !message->dead)
		world_fail(end->world, "%s: Atomic %u returns another value", end->name, index);
}

void oracle_response(struct sim_end *end, const struct wire_packet *packet)
{
	struct answering *answering = &end->oracle.answering;
	int64_t position = oracle_position(packet->psn, end->peer->plan->psn, answering->expected);
	bool is_ack = wire_op_family(packet->opcode) == WIRE_FAMILY_ACK;

	if (service_is_uc_ud(end->type))
		world_fail(end->world, "%s: a response of UC or UD", end->name);
	/* rule S13 test: a QP that fails by itself acknowledges the requests received. */
	if (end->state == ENG_ERR && !answering->fatal && !refuses_read(end, packet, position) &&
	    !(end->oracle.broke && is_ack && position > answering->answered))
		world_fail(end->world, "%s: an answer of a QP that has failed", end->name);
	if ((packet->opcode & WIRE_SERVICE_MASK) != oracle_service(end) ||
	    packet->dest_qpn != end->peer->qpn || packet->pkey != WIRE_DEFAULT_PKEY ||
	    !packet->migrated || packet->solicited || packet->ack_request)
		world_fail(end->world, "%s: a response with a wrong BTH", end->name);
	if (is_ack) {
		check_ack(end, packet, position);
		if (packet->syndrome >> 5 != 0)
			return;
	} else {
		check_answer(end, packet, position);
		if (position + 1 >= answering->again_to)
			answering->again_to = -1;
		/* The response to a later request shows that this one has arrived (S8). */
		if (position > answering->repeat_at)
			answering->repeat_owed = false;
	}
	if (position > answering->answered)
		answering->answered = position;
	if (position > answering->settled)
		answering->settled = position;
}

/* rule C8 test: duplicates of the last positive ACK, in case that was lost. */
void oracle_final_acks(struct sim_end *end)
{
	if (!service_is_uc_ud(end->type) && may_answer(end) && !end->oracle.answering.fatal &&
	    end->oracle.answering.established)
		end->oracle.answering.final_acks = FINAL_ACKS;
}

bool oracle_has_answers(const struct sim_end *end)
{
	const struct answering *answering = &end->oracle.answering;

	/* Repeated responses are paced as well, and are sent before later ones (rule S8). */
	return !service_is_uc_ud(end->type) &&
	       (answering->again_to >= 0 ||
		answer_between(end, answering->settled + 1, answering->expected));
}

bool oracle_pauses(const struct sim_end *end)
{
	return may_answer(end) && oracle_has_answers(end);
}

bool oracle_owes_answer(const struct sim_end *end)
{
	const struct answering *answering = &end->oracle.answering;

	/* READ responses may pause, and everything after them. */
	if (service_is_uc_ud(end->type) || oracle_pauses(end))
		return false;
	return may_answer(end) && (answering->rnr_owed || answering->nak_owed ||
				   answering->ack_asked > answering->settled);
}

void answering_nothing(struct sim_end *end)
{
	const struct answering *answering = &end->oracle.answering;
	const char *what = NULL;

	if (answering->rnr_owed || answering->nak_owed || answering->fatal_owed)
		what = "a NAK";
	else if (!may_answer(end) || answering->fatal)
		return;
	else if (answering->ack_asked > answering->settled)
		what = "an answer to a request";
	else if (answering->repeat_owed)
		what = "the ACK of a duplicate";
	else if (!end->plan->hides_credits && !spares_peer(end) &&
		 answering->told <= answering->taken &&
		 reach(end, oracle_credit_code(receives_free(end))) > answering->taken)
		/* rule C9 test, rule C10 test, rule U2 test */
		what = "credits from a peer that has none (C10)";
	if (what)
		world_fail(end->world, "%s: withholds %s", end->name, what);
}
