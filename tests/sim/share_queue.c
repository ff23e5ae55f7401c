/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Queue of a host for queue pairs that wait for the in-flight budget, like
 * progress/base/budget_queue.c and serve_budget_queue() of progress/loop.c: the first queue pair is
 * served whenever the host has done something, and at each tick, since budget may be freed without
 * a packet.
 */
#include <string.h>

#include "sim/world.h"

/* PROGRESS_TICK_NS */
#define TICK_NS 1000000
/* TX_BURSTS_BUDGET_QUEUE and BUDGET_QUEUE_SERVED */
#define BURSTS 2
#define SERVED 16

static struct share_queue *queue_of(const struct sim_end *end)
{
	return &end->world->share_queue[end->side];
}

bool share_queue_is_used(const struct sim_end *end)
{
	return end->world->plan.queues_share[end->side];
}

/* Returns true if QPs are queued and this end is not being served, so that it must wait too. */
bool share_queue_waits(const struct sim_end *end)
{
	return queue_of(end)->count > 0 && !end->is_served;
}

static void put(struct share_queue *queue, struct sim_end *end, uint32_t place)
{
	for (uint32_t i = 0; i < queue->count; i++)
		if (queue->ends[i] == end)
			return;
	memmove(&queue->ends[place + 1], &queue->ends[place],
		(queue->count - place) * sizeof(queue->ends[0]));
	queue->ends[place] = end;
	if (queue->count++ == 0)
		queue->look_at = end->world->now + TICK_NS;
}

void share_queue_add(struct sim_end *end)
{
	put(queue_of(end), end, queue_of(end)->count);
}

/* Returns true if the next end may be served as well. */
static bool serve_first(struct share_queue *queue)
{
	struct sim_end *end = queue->ends[0];
	enum eng_tx reason;

	if (end->asleep_until > end->world->now)
		return false;
	queue->count--;
	memmove(&queue->ends[0], &queue->ends[1], queue->count * sizeof(queue->ends[0]));
	end->is_served = true;
	reason = end_transmit(end, BURSTS);
	end->is_served = false;
	if (reason == ENG_TX_BURST || (reason == ENG_TX_BACKPRESSURE && ring_is_used(end)))
		share_queue_add(end);
	else if (reason == ENG_TX_BACKPRESSURE || reason == ENG_TX_BUDGET)
		put(queue, end, 0);
	return reason != ENG_TX_BUDGET && (reason != ENG_TX_BACKPRESSURE || ring_is_used(end));
}

void share_queue_serve(struct world *world, uint32_t side)
{
	struct share_queue *queue = &world->share_queue[side];

	for (uint32_t n = 0; n < SERVED && queue->count > 0 && !world->failed; n++)
		if (!serve_first(queue))
			break;
	queue->look_at = world->now + TICK_NS;
}

/*
 * Without a timeout a queue pair waits without limit for a peer in ERR, and its packets in flight
 * use the budget of the others.
 */
static bool share_is_held(const struct world *world, uint32_t side)
{
	for (uint32_t n = 0; n < world->plan.connections && world->plan.timeout_code == 0; n++) {
		const struct sim_end *end = &world->connections[n].end[side];
		const struct asking *asking = &end->oracle.asking;

		if (end->peer->state == ENG_ERR && end->state != ENG_ERR &&
		    asking->unacked < asking->next)
			return true;
	}
	return false;
}

bool share_queue_may_be_stuck(const struct sim_end *end)
{
	const struct share_queue *queue = queue_of(end);

	for (uint32_t i = 0; i < queue->count; i++)
		if (queue->ends[i] == end)
			return share_is_held(end->world, end->side);
	return false;
}

uint64_t share_queue_next_at(const struct world *world, uint32_t side)
{
	const struct share_queue *queue = &world->share_queue[side];

	return queue->count > 0 && !share_is_held(world, side) ? queue->look_at : ENG_NEVER;
}
