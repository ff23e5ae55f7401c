/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Shared-memory transport between the hosts: at times the ring of a side is full, since its reader
 * does not get a processor, and nothing is lost.  The sender acts like is_full() and transmit_one()
 * of progress/tx/tx.c.
 */
#include "sim/world.h"

/* SHORT_BURST_PACKETS of progress/tx/tx.c */
#define SHORT_BURST_PACKETS 8
/* RETRY_NS of progress/thread.c; a thread that polls tries again sooner. */
#define RETRY_NS 50000

/* UD packets use no ring, since a UD QP has many peers. */
bool ring_is_used(const struct sim_end *end)
{
	return end->world->plan.lossless_transport && end->type != ENG_UD;
}

static bool is_full(const struct sim_end *end)
{
	return ring_is_used(end) && end->world->ring[end->side].full_until > end->world->now;
}

/*
 * After the ring was full, it has room for long enough that packets which waited can be
 * acknowledged.
 */
void ring_begin_turn(struct sim_end *end)
{
	const struct plan *plan = &end->world->plan;
	struct ring *ring = &end->world->ring[end->side];
	uint64_t now = end->world->now;

	end->retry_at = ENG_NEVER;
	if (!ring_is_used(end) || plan->full[end->side] == 0 || ring->has_room_until > now ||
	    !random_chance(&end->random, plan->full[end->side]))
		return;
	ring->full_until = now + 1 + random_skewed(&end->random, plan->full_ns[end->side]);
	ring->has_room_until = ring->full_until + plan->full_ns[end->side] + RETRY_NS;
	world_trace(end, "  the ring is full for %llu ns",
		    (unsigned long long)(ring->full_until - now));
}

bool ring_looks_full(const struct sim_end *end)
{
	return is_full(end) && end->may_fill;
}

/* A full ring may still have room for a short burst. */
bool ring_takes(struct sim_end *end, uint32_t packets)
{
	bool takes = !is_full(end) ||
		     (packets <= SHORT_BURST_PACKETS && random_chance(&end->random, 500));

	end->may_fill = packets > SHORT_BURST_PACKETS || !takes;
	return takes;
}

void ring_blocks(struct sim_end *end)
{
	end->may_fill = true;
	end->retry_at = end->world->now + 1 + random_below(&end->random, RETRY_NS);
}
