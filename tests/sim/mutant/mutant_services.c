/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Deliberate faults of UC and UD, XRC, shared receive queues, and keys of memory and windows. */
#include "sim/mutant/mutant.h"
#include "sim/world.h"

/* Number of packets from the expected one to this one; negative: this one is old. */
static int32_t ahead(const struct sim_end *end, const struct wire_packet *packet)
{
	struct eng_qp_info view;

	eng_qp_query(end->qp, &view);
	return (int32_t)((packet->psn - view.expected_psn) << 8) >> 8;
}

static void pretend_expected(const struct sim_end *end, struct wire_packet *packet)
{
	packet->psn = (packet->psn - (uint32_t)ahead(end, packet)) & WIRE_24BIT_MASK;
}

static bool uc_takes_after_gap(struct sim_end *end, struct wire_packet *packet)
{
	enum wire_position position = wire_op_position(packet->opcode);

	if (end->type != ENG_UC || ahead(end, packet) <= 0 ||
	    (position != WIRE_MIDDLE && position != WIRE_LAST))
		return false;
	pretend_expected(end, packet);
	return true;
}

static bool uc_ends_after_gap(struct sim_end *end, struct wire_packet *packet)
{
	uint8_t operation = packet->opcode & WIRE_OPERATION_MASK;

	if (end->type != ENG_UC || ahead(end, packet) <= 0)
		return false;
	if (operation != WIRE_SEND_LAST && operation != WIRE_SEND_LAST_IMM)
		return false;
	packet->opcode = WIRE_UC | (operation == WIRE_SEND_LAST ? (uint8_t)WIRE_SEND_ONLY
								: (uint8_t)WIRE_SEND_ONLY_IMM);
	return true;
}

static bool uc_takes_duplicates(struct sim_end *end, struct wire_packet *packet)
{
	if (end->type != ENG_UC || ahead(end, packet) >= 0 ||
	    wire_op_position(packet->opcode) != WIRE_ONLY)
		return false;
	pretend_expected(end, packet);
	return true;
}

/* Completes a message that its sender has cut off, when the next message arrives. */
static bool uc_tells_cut(struct sim_end *end, struct wire_packet *packet)
{
	enum wire_position position = wire_op_position(packet->opcode);
	static const uint8_t end_of_it[4];
	struct wire_packet last = *packet;
	struct eng_qp_info view;

	eng_qp_query(end->qp, &view);
	if (end->type != ENG_UC || ahead(end, packet) != 0 || !view.in_message ||
	    (position != WIRE_FIRST && position != WIRE_ONLY))
		return false;
	last.opcode = WIRE_UC | (uint8_t)WIRE_SEND_LAST;
	last.payload = end_of_it;
	last.payload_length = 1;
	last.pad_count = 3;
	eng_receive(end->qp, &last, end->world->now);
	return true;
}

static bool xrc_names_another(struct sim_end *end, struct eng_send_wqe *wqe)
{
	wqe->xrc_srqn ^= 1;
	return end->type == ENG_XRC_SEND;
}

static uint32_t xrc_tells_another(struct sim_end *end, struct eng_wc *wc)
{
	if (end->type == ENG_XRC_RECV && wc->receive && wc->status == ENG_SUCCESS)
		wc->srqn ^= 1;
	return 1;
}

static bool xrc_answers_as_rc(struct sim_end *end, struct wire_packet *packet)
{
	if (end->type != ENG_XRC_RECV)
		return false;
	packet->opcode = (uint8_t)(WIRE_RC | (packet->opcode & WIRE_OPERATION_MASK));
	return true;
}

static bool uc_asks_for_ack(struct sim_end *end, struct wire_packet *packet)
{
	if (end->type != ENG_UC || wire_op_position(packet->opcode) != WIRE_LAST)
		return false;
	packet->ack_request = true;
	return true;
}

static bool uc_drops(struct sim_end *end, const struct wire_packet *packet)
{
	return end->type == ENG_UC && wire_op_is_request(packet->opcode) &&
	       random_chance(&end->world->mutant_random, 50);
}

static bool ud_ignores_qkey(struct sim_end *end, struct wire_packet *packet)
{
	if (end->type != ENG_UD || packet->qkey == end->qkey)
		return false;
	packet->qkey = end->qkey;
	return true;
}

static bool ud_forgets_header(struct sim_end *end, struct wire_packet *packet)
{
	packet->network_header = NULL;
	return end->type == ENG_UD;
}

static bool ud_leaves_member_out(struct sim_end *end, const struct wire_packet *packet)
{
	return wire_op_is_request(packet->opcode) && packet->dest_qpn == PLAN_GROUP_QPN &&
	       end->number % 2 == 1;
}

static uint32_t ud_wrong_source(struct sim_end *end, struct eng_wc *wc)
{
	if (end->type == ENG_UD && wc->receive && wc->status == ENG_SUCCESS)
		wc->src_qpn ^= 1;
	return 1;
}

static uint32_t sqe_forgets_flush(struct sim_end *end, struct eng_wc *wc)
{
	return service_is_uc_ud(end->type) && eng_qp_state(end->qp) == ENG_SQE &&
			       wc->status == ENG_WR_FLUSH_ERR
		       ? 0
		       : 1;
}

static bool gives_receive_twice(struct sim_end *end)
{
	return end->queue->shared && random_chance(&end->world->mutant_random, 100);
}

static bool shared_promises_credits(struct sim_end *end, struct wire_packet *packet)
{
	if (!end->rq_shared || !(wire_op_headers(packet->opcode) & WIRE_HAS_AETH) ||
	    packet->syndrome != 31)
		return false;
	packet->syndrome = 1;
	return true;
}

static bool hides_last_wqe(struct sim_end *end, enum eng_event event)
{
	(void)end;
	return event == ENG_EVENT_LAST_WQE_REACHED;
}

static bool binds_too_much(struct sim_end *end, struct eng_send_wqe *wqe)
{
	(void)end;
	if (wqe->op != ENG_BIND_MW)
		return false;
	wqe->bind.length++;
	return true;
}

const struct mutant mutants_of_services[] = {
	{ .name = "uc-takes-after-gap",
	  .fault = "UC: goes on with a message that has a gap",
	  .arrival = uc_takes_after_gap },
	{ .name = "uc-ends-after-gap",
	  .fault = "UC: tells the end of a message without its beginning",
	  .arrival = uc_ends_after_gap },
	{ .name = "uc-takes-duplicates",
	  .fault = "UC: receives what has been received (S4)",
	  .arrival = uc_takes_duplicates },
	{ .name = "uc-tells-cut",
	  .fault = "UC: tells a message that its sender has cut off",
	  .arrival = uc_tells_cut,
	  .seed = 1280230 },
	{ .name = "uc-asks-for-ack",
	  .fault = "UC: asks for ACKs that no receiver sends",
	  .departure = uc_asks_for_ack },
	{ .name = "uc-drops", .fault = "UC: loses packets that have come", .swallows = uc_drops },
	{ .name = "ud-ignores-qkey",
	  .fault = "UD: takes datagrams with a wrong Q_Key (S14)",
	  .arrival = ud_ignores_qkey },
	{ .name = "ud-forgets-header",
	  .fault = "UD: leaves the first 40 bytes empty",
	  .arrival = ud_forgets_header },
	{ .name = "ud-leaves-member-out",
	  .fault = "UD: does not give a member what goes to the group",
	  .swallows = ud_leaves_member_out },
	{ .name = "ud-wrong-source",
	  .fault = "UD: tells a wrong sender",
	  .completion = ud_wrong_source },
	{ .name = "sqe-forgets-flush",
	  .fault = "UC, UD: SQE flushes nothing (S13)",
	  .completion = sqe_forgets_flush },
	{ .name = "xrc-names-another",
	  .fault = "XRC: names another receive queue",
	  .post = xrc_names_another },
	{ .name = "xrc-tells-another",
	  .fault = "XRC: tells another receive queue",
	  .completion = xrc_tells_another },
	{ .name = "xrc-answers-as-rc",
	  .fault = "XRC: answers with opcodes of RC",
	  .departure = xrc_answers_as_rc },
	{ .name = "gives-receive-twice",
	  .fault = "gives a shared receive request to two messages",
	  .takes_again = gives_receive_twice },
	{ .name = "shared-promises",
	  .fault = "reports credits of a shared receive queue (C7)",
	  .departure = shared_promises_credits },
	{ .name = "hides-last-wqe",
	  .fault = "does not tell that the last receive was reached",
	  .hides = hides_last_wqe },
	{ .name = "binds-too-much",
	  .fault = "binds a window that is too large",
	  .post = binds_too_much },
	{ .name = "memory-outlives-key",
	  .fault = "uses memory that has been deregistered",
	  .keeps_memory = true },
	{ .name = "window-outlives-end",
	  .fault = "lets in requests that use an invalidated window",
	  .keeps_windows = true },
};
const uint32_t mutants_of_services_count =
	sizeof(mutants_of_services) / sizeof(mutants_of_services[0]);
