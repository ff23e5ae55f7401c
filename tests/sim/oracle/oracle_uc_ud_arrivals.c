/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <string.h>

#include "sim/oracle/oracle_uc_ud.h"
#include "sim/world.h"

static bool may_listen(const struct sim_end *end)
{
	return asking_may_ask(end) || end->state == ENG_RTR || end->state == ENG_SQE;
}

/*
 * Takes the next receive request, unless the message in progress has one.  Returns false if none is
 * left.
 */
static bool take(struct sim_end *end)
{
	if (end->oracle.answering.holding)
		return true;
	if (queue_left(end->queue) == 0)
		return false;
	oracle_take(end);
	return true;
}

static const struct receive *held(const struct sim_end *end)
{
	return queue_receive(end->queue, end->oracle.answering.held);
}

static void expect_received(struct sim_end *end, uint32_t offset, const uint8_t *bytes,
			    uint32_t length)
{
	area_expect_at(&end->queue->script->landing, held(end)->sge, held(end)->sge_count, offset,
		       bytes, length);
}

static void expect_written(struct sim_end *end, uint32_t offset, const uint8_t *bytes,
			   uint32_t length)
{
	memcpy(end->script->remote.image + offset, bytes, length);
	end->oracle.listening.written = (struct extent){ offset, length };
}

/* Returns true if the memory of the receive request is deregistered, which ends the QP. */
static bool breaks(struct sim_end *end, uint32_t length)
{
	if (length == 0 || !end->queue->script->landing.gone)
		return false;
	end->oracle.may_be_in_error = true;
	return true;
}

/* A message that its sender has aborted has no last packet: its end is never sent. */
static bool is_last(const struct message *message, uint32_t at)
{
	return at == message->packets - 1 && !message->cut;
}

/*
 * Accepts a packet of a message whose earlier packets have all arrived.  Returns false if the
 * message is lost.
 */
static bool accept(struct sim_end *end, const struct message *message, uint32_t at, uint32_t length)
{
	const struct script *script = end->peer->script;
	uint32_t offset = at * end->world->plan.mtu;
	const uint8_t *bytes = script->blob + message->content + offset;

	/* The range of a WRITE is checked as a whole, before a receive request is taken. */
	if (message->refused ||
	    (at == 0 && op_is_write(message->op) && oracle_lacks_remote(end->peer, message) != 0))
		return false;
	if (op_is_send(message->op)) {
		if (at == 0 && !take(end))
			return false;
		if (offset + length > held(end)->length)
			return false;
		expect_received(end, offset, bytes, length);
		return !breaks(end, length);
	}
	/* rule C6 test: without a receive request nothing is executed. */
	if (is_last(message, at) && message->op == ENG_WRITE_IMM && !take(end))
		return false;
	if (oracle_lacks_remote(end->peer, message) != 0)
		return false;
	expect_written(end, message->target + offset, bytes, length);
	return true;
}

static void due(struct sim_end *end, const struct sim_end *sender, uint32_t index)
{
	end->oracle.listening.due = index;
	end->oracle.listening.sender = sender;
	end->oracle.answering.received++;
}

/*
 * An old packet is dropped.  A packet after a hole aborts the message in progress; reception goes
 * on with the next packet that begins a message.
 */
static void uc_arrival(struct sim_end *end, const struct wire_packet *packet)
{
	struct listening *listening = &end->oracle.listening;
	int64_t position = oracle_position(packet->psn, end->peer->plan->psn, listening->expected);
	uint32_t index = oracle_uc_ud_find(end->peer, position), at;
	const struct message *message;

	if (!may_listen(end) || position < listening->expected)
		return;
	if (index == NO_INDEX) {
		world_fail(end->world, "%s: a packet comes that was not sent", end->name);
		return;
	}
	end->oracle.answering.established = true;
	message = &end->peer->script->messages[index];
	at = (uint32_t)(position - message->first);
	if (at > 0 && (listening->under_way != index || position > listening->expected))
		at = NO_INDEX;
	listening->expected = position + 1;
	listening->under_way = NO_INDEX;
	if (at == NO_INDEX || !accept(end, message, at, packet->payload_length))
		return;
	if (!is_last(message, at))
		listening->under_way = index;
	else if (message->op != ENG_WRITE)
		due(end, end->peer, index);
}

/* rule S14 test: the Q_Key is checked before anything else. */
static void ud_arrival(struct sim_end *end, const struct wire_packet *packet,
		       const struct sim_end *sender)
{
	struct listening *listening = &end->oracle.listening;
	int64_t position =
		oracle_position(packet->psn, sender->plan->psn, sender->oracle.asking.high);
	uint32_t index = oracle_uc_ud_find(sender, position);
	const struct message *message;

	if (index == NO_INDEX) {
		world_fail(end->world, "%s: a datagram comes that was not sent", end->name);
		return;
	}
	message = &sender->script->messages[index];
	if (!may_listen(end) || message->wire_qkey != end->qkey || !take(end) ||
	    ENG_GRH_BYTES + message->length > held(end)->length) {
		listening->dropped++;
		return;
	}
	if (breaks(end, ENG_GRH_BYTES))
		return;
	expect_received(end, 0, packet->network_header, ENG_GRH_BYTES);
	expect_received(end, ENG_GRH_BYTES, sender->script->blob + message->content,
			message->length);
	due(end, sender, index);
}

void oracle_uc_ud_arrival(struct sim_end *end, const struct wire_packet *packet,
			  const struct net_packet *from)
{
	end->oracle.listening.written.length = 0;
	if (!wire_op_is_request(packet->opcode))
		world_fail(end->world, "%s: an answer comes of a service without any", end->name);
	else if (end->type == ENG_UD)
		ud_arrival(end, packet, from->from);
	else
		uc_arrival(end, packet);
}

/* rule S6 test */
static const char *wrong_receive(const struct sim_end *end, const struct eng_wc *wc,
				 const struct message *message)
{
	const struct sim_end *sender = end->oracle.listening.sender;
	bool immediate = message->op != ENG_SEND;
	uint32_t flags = immediate ? ENG_WC_IMMEDIATE : 0, header = 0;

	if (end->type == ENG_UD) {
		header = ENG_GRH_BYTES;
		flags |= ENG_WC_GRH;
	}
	if (!area_list_right(&end->queue->script->landing, held(end)->sge, held(end)->sge_count))
		return "data";
	if (wc->byte_len != header + message->length)
		return "length";
	if (wc->flags != flags || (immediate && wc->immediate != message->immediate))
		return "immediate data";
	if (wc->solicited != ((message->flags & ENG_SOLICITED) != 0))
		return "solicited event";
	if (wc->op != message->op)
		return "operation";
	if (end->type == ENG_UD && wc->src_qpn != sender->qpn)
		return "source QP";
	return NULL;
}

void oracle_uc_ud_received(struct sim_end *end, const struct eng_wc *wc)
{
	struct oracle *oracle = &end->oracle;
	struct listening *listening = &oracle->listening;
	uint64_t number = ~wc->wr_id;
	const char *wrong;

	if (wc->status != ENG_SUCCESS) {
		oracle_receive_error(end, wc);
		return;
	}
	if (listening->due == NO_INDEX || number != oracle->answering.held) {
		world_fail(end->world, "%s: receive %llu completes for no message", end->name,
			   (unsigned long long)number);
		return;
	}
	wrong = wrong_receive(end, wc, &listening->sender->script->messages[listening->due]);
	if (wrong)
		world_fail(end->world, "%s: receive %llu has the wrong %s", end->name,
			   (unsigned long long)number, wrong);
	listening->due = NO_INDEX;
	oracle_let_go(end);
	oracle->receives_completed++;
}

void oracle_uc_ud_check_arrived(struct sim_end *end)
{
	const struct area *remote = &end->script->remote;
	struct extent written = end->oracle.listening.written;

	if (end->oracle.listening.due != NO_INDEX)
		world_fail(end->world, "%s: all of message %u has come, but it is not told",
			   end->name, end->oracle.listening.due);
	if (memcmp(remote->bytes + written.offset, remote->image + written.offset,
		   written.length) != 0)
		world_fail(end->world, "%s: a WRITE has not put its bytes in place", end->name);
}
