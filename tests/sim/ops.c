/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Calls from the engine to the host: memory of keys, completions, events, receive requests. */
#include <stdlib.h>
#include <string.h>

#include "sim/mutant/mutant.h"
#include "sim/world.h"

static void *map(struct sim_end *end, const struct area *area, uint32_t key, uint64_t addr,
		 uint32_t length, uint32_t need)
{
	struct area kept = *area;

	if (!mutant_keeps_memory(end, area))
		return area_map(area, key, addr, length, need);
	kept.gone = false;
	return area_map(&kept, key, addr, length, need);
}

static void *map_local(void *owner, uint32_t lkey, uint64_t addr, uint32_t length, enum eng_use use)
{
	struct sim_end *end = owner;
	const struct area *area = &end->script->landing;

	if (lkey == end->script->source.key)
		area = &end->script->source;
	else if (lkey == end->queue->script->landing.key)
		area = &end->queue->script->landing;
	return map(end, area, lkey, addr, length, use == ENG_USE_SEND ? 0 : ENG_LOCAL_WRITE);
}

static void *map_remote(void *owner, uint32_t rkey, uint64_t addr, uint32_t length, uint32_t need)
{
	struct sim_end *end = owner;
	const struct area *remote = &end->script->remote;
	const struct window *window = script_window(end->script, rkey);
	uint64_t offset = addr - remote->base;

	if (!window)
		return map(end, remote, rkey, addr, length, need);
	if (!window->bound && !mutant_keeps_window(end, window))
		return NULL;
	if (window->bound && (offset < window->offset || length > window->length ||
			      offset - window->offset > window->length - length))
		return NULL;
	return map(end, remote, remote->key, addr, length, need);
}

static void complete(void *owner, const struct eng_wc *wc)
{
	struct sim_end *end = owner;
	struct eng_wc changed = *wc;
	uint32_t times = mutant_completion(end, &changed);

	while (times-- > 0)
		oracle_completion(end, &changed);
}

static void event(void *owner, enum eng_event event)
{
	struct sim_end *end = owner;

	if (mutant_hides(end, event))
		return;
	oracle_event(end, event);
	if (event == ENG_EVENT_SQ_DRAINED)
		end->next_state_at =
			end->world->now + random_skewed(&end->random, end->plan->post_gap_ns);
}

/* Returns true for the message that must fail by the plan. */
static bool is_bad(const struct script *script, enum eng_op op, uint32_t key)
{
	return script->bad != NO_INDEX && script->messages[script->bad].op == op &&
	       script->messages[script->bad].immediate == key;
}

static bool invalidate(void *owner, uint32_t key)
{
	struct sim_end *end = owner;
	struct window *window = script_window(end->script, key);

	if (is_bad(end->peer->script, ENG_SEND_INV, key) || is_bad(end->script, ENG_LOCAL_INV, key))
		return end->world->plan.trouble != TROUBLE_REMOTE_INV &&
		       end->world->plan.trouble != TROUBLE_LOCAL_INV;
	oracle_invalidate(end, key);
	if (window) {
		window->bound = false;
		window->ended = true;
	}
	return true;
}

static bool bind(void *owner, const struct eng_send_wqe *wqe)
{
	struct sim_end *end = owner;
	struct window *window = script_window(end->script, wqe->bind.rkey);

	if (is_bad(end->script, ENG_BIND_MW, wqe->bind.rkey))
		return false;
	oracle_bind(end, wqe);
	if (window)
		window->bound = true;
	return true;
}

static enum eng_rq_result get_recv_wqe(void *owner, uint32_t srqn, struct eng_recv_desc *taken,
				       struct eng_sge *sge)
{
	struct sim_end *end = owner;
	const struct eng_recv_wqe *wqe = eng_ring_slot(&end->queue->ring, end->queue->ring.tail);

	if (end->type == ENG_XRC_RECV && srqn != end->srqn)
		world_fail(end->world, "%s: takes a receive of queue %06x", end->name, srqn);
	if (eng_ring_used(&end->queue->ring) == 0)
		return ENG_RQ_EMPTY;
	taken->wr_id = wqe->wr_id;
	taken->length = wqe->length;
	taken->sge_count = wqe->sge_count;
	memcpy(sge, wqe->sge, wqe->sge_count * sizeof(sge[0]));
	if (!mutant_takes_again(end))
		end->queue->ring.tail++;
	return ENG_RQ_OK;
}

/*
 * Maximum number of out-of-order packets kept: few at some ends, so that memory runs out; for flows
 * as many as in production.
 */
static uint32_t early_most(const struct sim_end *end)
{
	static const uint32_t most[] = { 0, 3, 64, 64 };

	return end->world->plan.flows ? SIM_KEPT : most[end->qpn % 4];
}

static void *ooo_alloc(void *owner)
{
	struct sim_end *end = owner;

	for (uint32_t i = 0; i < early_most(end); i++) {
		if (end->early_blocks[i])
			continue;
		end->early_blocks[i] = malloc(eng_ooo_packet_bytes());
		return end->early_blocks[i];
	}
	return NULL;
}

static void ooo_free(void *owner, void *block)
{
	struct sim_end *end = owner;
	uint32_t i = 0;

	while (i < SIM_KEPT && end->early_blocks[i] != block)
		i++;
	if (i == SIM_KEPT) {
		world_fail(end->world, "%s: memory for early packets comes back twice", end->name);
		return;
	}
	end->early_blocks[i] = NULL;
	free(block);
}

/* Without and with a call for receive requests. */
const struct eng_ops end_ops[2] = {
	{
		.map_local = map_local,
		.map_remote = map_remote,
		.complete = complete,
		.event = event,
		.invalidate = invalidate,
		.bind = bind,
		.ooo_alloc = ooo_alloc,
		.ooo_free = ooo_free,
	},
	{
		.map_local = map_local,
		.map_remote = map_remote,
		.complete = complete,
		.event = event,
		.invalidate = invalidate,
		.bind = bind,
		.ooo_alloc = ooo_alloc,
		.ooo_free = ooo_free,
		.get_recv_wqe = get_recv_wqe,
	},
};
