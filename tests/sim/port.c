/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What the engine asks of the host: memory of keys, completions, events, receive requests.
 */
#include <string.h>

#include "sim/mutant.h"
#include "sim/world.h"

static void *map_local(void *owner, uint32_t lkey, uint64_t addr, uint32_t length, bool write)
{
	struct end *end = owner;

	if (lkey == end->script->source.key)
		return area_map(&end->script->source, lkey, addr, length,
				write ? ENG_LOCAL_WRITE : 0);
	if (lkey == end->queue->script->landing.key)
		return area_map(&end->queue->script->landing, lkey, addr, length,
				write ? ENG_LOCAL_WRITE : 0);
	return area_map(&end->script->landing, lkey, addr, length, write ? ENG_LOCAL_WRITE : 0);
}

static void *map_remote(void *owner, uint32_t rkey, uint64_t addr, uint32_t length, uint32_t need)
{
	struct end *end = owner;

	return area_map(&end->script->remote, rkey, addr, length, need);
}

static void complete(void *owner, const struct eng_wc *wc)
{
	struct end *end = owner;
	struct eng_wc changed = *wc;
	uint32_t times = mutant_completion(end, &changed);

	while (times-- > 0)
		oracle_completion(end, &changed);
}

static void event(void *owner, enum eng_event event)
{
	struct end *end = owner;

	oracle_event(end, event);
	if (event == ENG_EVENT_SQ_DRAINED)
		end->next_state_at =
			end->world->now + random_skewed(&end->random, end->plan->post_gap_ns);
}

static bool invalidate(void *owner, uint32_t key)
{
	oracle_invalidate(owner, key);
	return true;
}

static enum eng_take take_receive(void *owner, uint32_t srqn, struct eng_taken *taken,
				  struct eng_sge *sge)
{
	struct end *end = owner;
	const struct eng_recv_wqe *wqe = eng_ring_slot(&end->queue->ring, end->queue->ring.tail);

	(void)srqn;
	if (eng_ring_used(&end->queue->ring) == 0)
		return ENG_TAKE_EMPTY;
	taken->wr_id = wqe->wr_id;
	taken->length = wqe->length;
	taken->sge_count = wqe->sge_count;
	memcpy(sge, wqe->sge, wqe->sge_count * sizeof(sge[0]));
	end->queue->ring.tail++;
	return ENG_TAKEN;
}

/* One with a call for shared receive requests, one without. */
const struct eng_port end_ports[2] = {
	{
		.map_local = map_local,
		.map_remote = map_remote,
		.complete = complete,
		.event = event,
		.invalidate = invalidate,
	},
	{
		.map_local = map_local,
		.map_remote = map_remote,
		.complete = complete,
		.event = event,
		.invalidate = invalidate,
		.take_receive = take_receive,
	},
};
