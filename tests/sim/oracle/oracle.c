/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Common parts of the oracle: arithmetic and tables of its own, start and dispatch. */
#include "sim/oracle/oracle_uc_ud.h"

#include <stdlib.h>
#include <string.h>

#include "sim/world.h"

int64_t oracle_position(uint32_t psn, uint32_t start, int64_t near)
{
	int64_t wrap = INT64_C(1) << 24;
	int64_t distance = ((int64_t)psn - (int64_t)start - near) % wrap;

	if (distance < 0)
		distance += wrap;
	return near + (distance < wrap / 2 ? distance : distance - wrap);
}

/* rule C4 test: the table of credit codes: from 1 on, 2^n and 3 x 2^(n-1) alternate. */
uint32_t oracle_credits(uint32_t code)
{
	if (code < 2)
		return code;
	return code & 1 ? 3u << ((code - 3) / 2) : 2u << ((code - 2) / 2);
}

uint32_t oracle_credit_code(uint32_t credits)
{
	uint32_t code = 0;

	while (code < 30 && oracle_credits(code + 1) <= credits)
		code++;
	return code;
}

/*
 * RNR NAK timers in units of 10 us: 1 2 3 4 6 8 12 16 ..., like credit codes; code 0 is the value
 * after the last one.
 */
uint64_t oracle_rnr_ns(uint32_t code)
{
	return (uint64_t)(code == 0 ? 65536 : oracle_credits(code)) * 10000;
}

uint8_t oracle_service(const struct sim_end *end)
{
	static const uint8_t services[] = {
		[ENG_RC] = WIRE_RC,	   [ENG_UC] = WIRE_UC,	      [ENG_UD] = WIRE_UD,
		[ENG_XRC_SEND] = WIRE_XRC, [ENG_XRC_RECV] = WIRE_XRC,
	};

	return services[end->type];
}

/* rule C5 test */
void oracle_take(struct sim_end *end)
{
	struct answering *answering = &end->oracle.answering;

	answering->holding = true;
	answering->held = end->queue->taken++;
	answering->taken++;
}

void oracle_let_go(struct sim_end *end)
{
	struct answering *answering = &end->oracle.answering;

	answering->holding = false;
	queue_done(end->queue, answering->held);
}

static void clear_positions(uint8_t **bytes, uint32_t *room, int64_t positions)
{
	if (*room < positions + 1) {
		*room = 2 * (uint32_t)(positions + 1);
		*bytes = realloc(*bytes, *room);
		if (!*bytes)
			abort();
	}
	memset(*bytes, 0, (size_t)positions + 1);
}

void oracle_start(struct sim_end *end)
{
	struct asking *asking = &end->oracle.asking;
	struct answering *answering = &end->oracle.answering;
	uint8_t *handed_out = asking->handed_out, *placed = asking->placed,
		*starts = answering->starts;
	uint32_t room = asking->room, placed_room = asking->placed_room,
		 starts_room = answering->room;

	memset(&end->oracle, 0, sizeof(end->oracle));
	asking->handed_out = handed_out;
	asking->room = room;
	clear_positions(&asking->handed_out, &asking->room, end->script->positions);
	asking->placed = placed;
	asking->placed_room = placed_room;
	clear_positions(&asking->placed, &asking->placed_room, end->script->positions);
	asking->asked = -1;
	asking->nak_cause = asking->nak_first = asking->nak_cause_before = -1;
	asking->news_from = ENG_NEVER;
	asking->lost_response = asking->lost_repeat = asking->lost_last = -2;
	answering->starts = starts;
	answering->room = starts_room;
	clear_positions(&answering->starts, &answering->room, end->peer->script->positions);
	/* rule C9: the position before the first one counts as acknowledged. */
	answering->answered = answering->settled = answering->ack_asked = -1;
	answering->ahead_to = answering->again_to = answering->repeat_at = -1;
	oracle_uc_ud_start(end);
}

void oracle_free(struct sim_end *end)
{
	free(end->oracle.asking.handed_out);
	free(end->oracle.asking.placed);
	free(end->oracle.answering.starts);
}

void oracle_arrival(struct sim_end *end, const struct wire_packet *packet,
		    const struct net_packet *from)
{
	if (service_is_uc_ud(end->type))
		oracle_uc_ud_arrival(end, packet, from);
	else if (wire_op_is_request(packet->opcode))
		answering_arrival(end, packet, from->serial);
	else
		asking_arrival(end, packet);
}

void oracle_invalidate(struct sim_end *end, uint32_t key)
{
	const struct script *script = end->peer->script;
	uint32_t index;

	if (key & LOCAL_KEY) {
		asking_local(end, key);
		return;
	}
	do
		index = script_find(script, end->oracle.answering.expected - 1);
	while ((index == NO_INDEX || script->messages[index].op != ENG_SEND_INV ||
		script->messages[index].immediate != key) &&
	       oracle_kept_turn(end));
	world_trace(end, "  invalidates key %08x for the peer", key);
	end->oracle.invalidated++;
	if (index == NO_INDEX || script->messages[index].op != ENG_SEND_INV ||
	    script->messages[index].immediate != key)
		world_fail(end->world, "%s: key %08x is invalidated for no request", end->name,
			   key);
}

/* rule C15 test: bound as requested when all earlier requests are complete. */
void oracle_bind(struct sim_end *end, const struct eng_send_wqe *wqe)
{
	const struct script *script = end->script;
	const struct window *window = script_window(end->script, wqe->bind.rkey);

	if (!window || wqe->bind.addr != script->remote.base + window->offset ||
	    wqe->bind.length != window->length || wqe->bind.lkey != script->remote.key ||
	    wqe->bind.access != script->remote.access || window->bound || window->ended)
		world_fail(end->world, "%s: key %08x is bound to something else", end->name,
			   wqe->bind.rkey);
	asking_local(end, wqe->bind.rkey);
}

void oracle_nothing_to_send(struct sim_end *end, enum eng_tx reason, unsigned int sides)
{
	bool is_uc_ud = service_is_uc_ud(end->type);

	if ((sides & ENG_RESPONSES) && !is_uc_ud)
		answering_nothing(end);
	if (sides & ENG_REQUESTS)
		(is_uc_ud ? oracle_uc_ud_nothing : asking_nothing)(end, reason);
}
