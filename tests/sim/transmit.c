/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Splits bursts into packets of the virtual network, and checks the form of each burst. */
#include <string.h>

#include "sim/mutant/mutant.h"
#include "sim/world.h"
#include "wire/icrc.h"

#define SOCKET_FULL_NS 3000

static void copy_burst(const struct eng_burst *burst, uint32_t *piece, uint32_t *offset,
		       uint8_t *to, uint32_t length)
{
	while (length > 0 && *piece < burst->piece_count) {
		const struct eng_piece *from = &burst->pieces[*piece];
		uint32_t n = from->length - *offset;

		if (n > length)
			n = length;
		memcpy(to, from->bytes + *offset, n);
		to += n;
		length -= n;
		*offset += n;
		if (*offset == from->length) {
			*offset = 0;
			(*piece)++;
		}
	}
}

/* Returns true if the path is that of an address handle (UD), of CNPs, or of the connection. */
static bool path_is_right(const struct sim_end *end, const struct eng_burst *burst)
{
	const struct eng_path *path = burst->path;

	if (end->type == ENG_UD)
		return path >= end->paths && path < end->paths + PLAN_MAX_CONNECTIONS;
	if (burst->kind == ENG_BURST_CNP)
		return burst->path == &end->cnp_path;
	return path == &eng_qp_attr(end->qp)->path;
}

/* The rules of UDP_SEGMENT, and those of burst.h. */
static bool burst_is_sound(struct sim_end *end, const struct eng_burst *burst)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < burst->piece_count; i++)
		sum += burst->pieces[i].length;
	if (burst->packets > 0 && burst->packets <= burst->max_packets && sum == burst->bytes &&
	    burst->bytes > burst->segment * (burst->packets - 1) &&
	    burst->bytes <= burst->segment * burst->packets &&
	    burst->piece_count <= burst->max_pieces && burst->staged <= burst->staging_bytes &&
	    (burst->packets == 1 || burst->bytes <= burst->max_bytes) && path_is_right(end, burst))
		return true;
	world_fail(end->world, "%s: a burst of %u packets, %u bytes in %u pieces, is not sound",
		   end->name, burst->packets, burst->bytes, burst->piece_count);
	return false;
}

/*
 * Responses must be copied to staging: others may write to the memory that they come from, and the
 * ICRC would not match the sent bytes.
 */
static void check_staged(struct sim_end *end, const struct eng_burst *burst)
{
	if (burst->kind == ENG_BURST_REQUESTS || burst->kind == ENG_BURST_RETRANSMIT)
		return;
	for (uint32_t i = 0; i < burst->piece_count; i++)
		if (burst->pieces[i].bytes < burst->staging ||
		    burst->pieces[i].bytes >= burst->staging + burst->staging_bytes)
			world_fail(end->world, "%s: a response refers to memory of others",
				   end->name);
}

/*
 * Each burst costs a system call, so a burst of requests must not end before it has to.  Checked if
 * another burst follows at once, and only the number and size of packets limit the burst.
 */
static void check_cut(struct sim_end *end, const struct eng_burst *before,
		      const struct eng_burst *burst)
{
	uint32_t last = before->bytes - before->segment * (before->packets - 1);
	uint32_t first = burst->packets == 1 ? burst->bytes : burst->segment;

	if (before->kind != ENG_BURST_REQUESTS || burst->kind != ENG_BURST_REQUESTS ||
	    before->path != burst->path)
		return;
	if (before->packets == before->max_packets || last < before->segment ||
	    first > before->segment || before->bytes + first > before->max_bytes)
		return;
	if (before->staged + 2 * sizeof(struct net_packet) > before->staging_bytes ||
	    before->piece_count + 2 * ENG_MAX_SGE + 4 > before->max_pieces)
		return;
	world_fail(end->world, "%s: a burst of %u packets ends too early", end->name,
		   before->packets);
}

/*
 * rule S7 test: an ACK may be delayed to be sent with requests, but not for long.  An end that has
 * slept for longer may send requests first, as long as no time passes.
 */
static void watch_ack_delay(struct sim_end *end, bool waits)
{
	uint64_t now = end->world->now;

	if (!waits || !end->ack_waits_since) {
		end->ack_waits_since = waits ? now : 0;
		end->ack_late_since = 0;
	} else if (now - end->ack_waits_since >= PLAN_ACK_DELAY_NS && end->ack_late_since != now) {
		if (!end->ack_late_since) {
			end->ack_late_since = now;
			return;
		}
		world_fail(end->world, "%s: an ACK has waited for %llu ns", end->name,
			   (unsigned long long)(now - end->ack_waits_since));
	}
}

/*
 * Requests must not hold up pending responses: for one burst at most, or for a scheduled end while
 * an ACK may be delayed.  But a transport that is nearly full accepts short bursts of requests and
 * no responses.
 */
static void check_fair(struct sim_end *end, const struct eng_burst *burst, bool full)
{
	bool holds_up = burst->kind == ENG_BURST_REQUESTS && !burst->has_ack && !full &&
			oracle_owes_answer(end);

	if (end->plan->scheduled) {
		watch_ack_delay(end, holds_up);
		return;
	}
	end->requests_in_a_row = holds_up ? end->requests_in_a_row + 1 : 0;
	if (end->requests_in_a_row > 1)
		world_fail(end->world, "%s: requests hold up the answers that are owed", end->name);
}

static bool parse_own(struct sim_end *end, const struct net_packet *from,
		      struct wire_packet *packet)
{
	uint16_t ip_id = from->ip_id;
	enum wire_error error = wire_parse(from->bytes, from->length, packet);

	if (error != WIRE_OK) {
		world_fail(end->world, "%s: a packet that does not parse: %s", end->name,
			   wire_error_name(error));
		return false;
	}
	if (wire_icrc_check(&from->path->wire, &ip_id, from->bytes, from->length) != WIRE_ICRC_OK) {
		world_fail(end->world, "%s: the ICRC of packet %u of a burst is wrong", end->name,
			   from->ip_id);
		return false;
	}
	return true;
}

static void show_packet(struct sim_end *end, struct net_packet *to, struct wire_packet *packet,
			bool taken_back)
{
	to->cnp = packet->opcode == WIRE_CNP_OPCODE;
	if (to->cnp) {
		world_trace(end, "-> CNP");
		if (!taken_back)
			oracle_cnp(end, packet);
		return;
	}
	to->request = wire_op_is_request(packet->opcode);
	to->psn = packet->psn;
	to->nak = wire_op_family(packet->opcode) == WIRE_FAMILY_ACK && packet->syndrome == 0x60;
	world_trace_packet(end, taken_back ? "-| not sent:" : "->", packet);
	if (to->request)
		(end->repairs ? oracle_repair : oracle_request)(end, packet, taken_back);
	else if (!taken_back)
		oracle_response(end, packet);
}

/* Datagrams are sent on the path of the address handle that they were posted with. */
static void address(struct sim_end *end, struct net_packet *to, const struct wire_packet *packet)
{
	struct sim_end *peer = world_find(end->world, !end->side, packet->dest_qpn);

	/* A multicast datagram reaches all members at the same time (deliver_to_members()). */
	if (packet->dest_qpn == PLAN_GROUP_QPN)
		peer = &end->world->connections[to->path - end->paths].end[!end->side];
	if (!peer || to->path != &end->paths[peer->number])
		world_fail(end->world, "%s: a datagram to QP %06x goes the wrong way", end->name,
			   packet->dest_qpn);
	else
		to->to = peer;
}

/*
 * Returns true if the packet is sent.  The oracle checks it in any case, since the engine made it.
 */
static bool examine(struct sim_end *end, struct net_packet *to, bool taken_back)
{
	struct wire_packet packet;
	enum mutant_way way;

	if (!parse_own(end, to, &packet))
		return false;
	if (end->type == ENG_UD)
		address(end, to, &packet);
	way = mutant_departure(end, to, &packet);
	if (way != MUTANT_UNSEEN)
		show_packet(end, to, &packet, taken_back);
	return way == MUTANT_SEND && !taken_back && !end->world->failed;
}

static void emit(struct sim_end *end, const struct eng_burst *burst, bool taken_back)
{
	struct world *world = end->world;
	struct wire_packet first = { .psn = burst->first_psn };
	uint32_t piece = 0, offset = 0;

	end->repairs = burst->kind == ENG_BURST_RETRANSMIT || burst->kind == ENG_BURST_READ_RETRY;
	for (uint32_t i = 0; i < burst->packets && !world->failed; i++) {
		bool last = i + 1 == burst->packets;
		struct net_packet *to = net_packet_new(&world->net);

		to->length = last ? burst->bytes - burst->segment * i : burst->segment;
		to->from = end;
		to->to = end->peer;
		to->path = burst->path;
		to->ip_id = (uint16_t)i;
		to->flow = world->plan.flows ? end->number : 0;
		if (world->plan.ect && burst->kind != ENG_BURST_CNP)
			to->ecn = NET_ECT0;
		to->serial = ++world->serial;
		if (to->length > sizeof(to->bytes)) {
			world_fail(world, "%s: a packet of %u bytes", end->name, to->length);
			to->length = 0;
		}
		copy_burst(burst, &piece, &offset, to->bytes, to->length);
		if (!world->failed && examine(end, to, taken_back))
			net_send(&world->net, end->side, to, world->now);
		else
			net_packet_free(&world->net, to);
	}
	oracle_burst_ends(end);
	if (taken_back && burst->kind == ENG_BURST_REQUESTS)
		oracle_taken_back(end, &first);
}

/* Inputs of the engine; those of a scheduled end are like those of a real host. */
static struct eng_tx_ctx hint_of(struct sim_end *end, unsigned int sides)
{
	struct eng_tx_ctx ctx = {
		.now = end->world->now,
		.trigger = ENG_TX_TRIGGER_FINAL,
		.sides = sides,
		.round = end->rounds,
		.budget_waits = share_queue_waits(end),
		.full = ring_looks_full(end),
	};

	if (!end->plan->scheduled)
		return ctx;
	ctx.trigger = end->posts ? ENG_TX_TRIGGER_POST : ENG_TX_TRIGGER_POLL;
	ctx.polled = end->plan->post_burst & 1;
	ctx.watched = ctx.polled || end->plan->max_bursts & 1;
	return ctx;
}

static enum eng_tx ask_engine(struct sim_end *end, struct eng_burst *burst, unsigned int sides)
{
	const struct eng_tx_ctx ctx = hint_of(end, sides);

	return eng_transmit(end->qp, burst, &ctx);
}

void end_posted(struct sim_end *end)
{
	const struct eng_tx_ctx ctx = hint_of(end, 0);

	if (!end->plan->scheduled || eng_sq_kick(end->qp, &ctx) == ENG_TX_BURST) {
		end->posts = true;
		return;
	}
	end->gathers = true;
	if (end->round_at == ENG_NEVER)
		end->round_at = end->world->now + random_skewed(&end->random, PLAN_ROUND_NS);
}

static void trace_reason(const struct sim_end *end, enum eng_tx reason)
{
	struct eng_qp_info view;

	if (!end->world->verbose)
		return;
	eng_qp_query(end->qp, &view);
	world_trace(end, "  nothing to send: %s (SSN sent %u, LSN %u%s, MSN %u, owed %d)",
		    eng_tx_name(reason), view.sent_ssn, view.lsn,
		    view.unlimited ? " unlimited" : "", view.msn, (int)eng_resp_pending(end->qp));
}

/*
 * Returns the sides that have nothing to send.  Responses are not among them if READ responses are
 * paced or wait for room, or an ACK is delayed.  Responses that wait for room hide why requests
 * wait, so the engine is asked again for requests alone.
 */
static unsigned int sides_silent(struct sim_end *end, struct eng_burst *burst,
				 enum eng_tx *requests)
{
	unsigned int sides = ENG_REQUESTS | ENG_RESPONSES;
	enum eng_tx responses = ask_engine(end, burst, ENG_RESPONSES);

	if (responses == ENG_TX_BURST)
		world_fail(end->world, "%s: has responses to send after all", end->name);
	watch_ack_delay(end, responses == ENG_TX_ACK_DELAY);
	oracle_responses_wait(end, responses);
	if (responses == ENG_TX_PACING || responses == ENG_TX_ACK_DELAY ||
	    responses == ENG_TX_BACKPRESSURE)
		sides &= ~(unsigned int)ENG_RESPONSES;
	if (*requests == ENG_TX_BACKPRESSURE) {
		*requests = ask_engine(end, burst, ENG_REQUESTS);
		/* The reason may be a local error, which has put the QP into an error state. */
		oracle_after_step(end);
	}
	if (*requests == ENG_TX_BURST)
		world_fail(end->world, "%s: has requests to send after all", end->name);
	/*
	 * If an ACK is on its way, requests may wait until the window has room for a whole burst.
	 */
	if (*requests == ENG_TX_CWND && end->plan->scheduled)
		sides &= ~(unsigned int)ENG_REQUESTS;
	return sides;
}

static enum eng_tx transmit(struct sim_end *end, struct eng_burst *burst)
{
	if (mutant_answers_last(end) && ask_engine(end, burst, ENG_REQUESTS) == ENG_TX_BURST)
		return ENG_TX_BURST;
	return ask_engine(end, burst, ENG_REQUESTS | ENG_RESPONSES);
}

/* Checks why the engine has nothing to send now. */
static void note_silence(struct sim_end *end, struct eng_burst *burst, enum eng_tx reason)
{
	bool queues = share_queue_is_used(end);
	unsigned int sides;

	end->budget_waits = reason == ENG_TX_BUDGET && !queues;
	oracle_burst_ends(end);
	oracle_tells(end);
	trace_reason(end, reason);
	sides = sides_silent(end, burst, &reason);
	oracle_nothing_to_send(end, reason, sides);
}

/* Rolls back a burst that the transport did not accept. */
static void take_back(struct sim_end *end, const struct eng_burst *burst)
{
	eng_tx_rollback(end->qp, burst);
	/* It would not have accepted an ACK either, whose delay starts again. */
	end->ack_waits_since = 0;
	if (ring_is_used(end)) {
		ring_blocks(end);
		return;
	}
	end->socket_full_until = end->world->now + random_below(&end->random, SOCKET_FULL_NS);
	end->busy = true;
}

enum eng_tx end_transmit(struct sim_end *end, uint32_t most)
{
	struct world *world = end->world;
	const struct end_plan *plan = end->plan;
	struct eng_burst burst = {
		.staging = world->staging,
		.staging_bytes = plan->staging_bytes,
		.pieces = world->pieces,
		.max_pieces = plan->max_pieces,
		.max_packets = plan->max_burst_packets,
		.max_bytes = plan->max_burst_bytes,
		.gather_from = plan->gather_from,
	};

	if (end->socket_full_until > world->now) {
		end->busy = true;
		return ENG_TX_BACKPRESSURE;
	}
	ring_begin_turn(end);
	end->is_unfinished = true;
	for (uint32_t i = 0; i < most && !world->failed; i++) {
		struct eng_burst before = burst;
		bool shared = share_queue_waits(end), full = ring_looks_full(end);
		enum eng_tx reason = transmit(end, &burst);
		bool taken_back = random_chance(&end->random, plan->unsent);

		oracle_after_step(end);
		if (reason != ENG_TX_BURST) {
			note_silence(end, &burst, reason);
			end->is_unfinished = reason == ENG_TX_BACKPRESSURE;
			if (end->is_unfinished)
				ring_blocks(end);
			return reason;
		}
		if (!burst_is_sound(end, &burst))
			return reason;
		taken_back |= ring_is_used(end) && !ring_takes(end, burst.packets);
		oracle_burst_minds(end, &burst, shared, full);
		check_staged(end, &burst);
		check_fair(end, &burst, full);
		if (i > 0)
			check_cut(end, &before, &burst);
		emit(end, &burst, taken_back);
		oracle_in_flight(end);
		if (!taken_back)
			end->packets_sent += burst.packets;
		end->budget_waits = false;
		if (taken_back) {
			take_back(end, &burst);
			return ENG_TX_BACKPRESSURE;
		}
	}
	return ENG_TX_BURST;
}
