/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Limits of the congestion window for flows that meet at a bottleneck.  A limit is for the worst of
 * a thousand plans, not for the usual one (that is in flows_print()).
 */
#include "sim/flows.h"
#include "sim/world.h"

/*
 * Number of packets per round trip without queues, for each flow, below which windows stay small.
 */
#define FEW_PACKETS 2
/*
 * A queue of this size drops no packets of flows that obey marks, if it has room for the initial
 * windows of all flows.
 */
#define AMPLE_QUEUE_BYTES 200000
#define FIRST_WINDOW_PACKETS 16
/* Bytes in a queue beyond the marker's limit: all flows see the mark a round trip later. */
#define QUEUE_SLACK_BYTES 20000
#define WINDOW_PACKETS 2
/* With marks and enough room in the queue, only random losses are sent again, at most twice. */
#define REPEATS_FOR_LOSS 2.2
#define REPEATS_MORE 0.01
/* A loss before our credits have been reported to the peer costs a window, once for each flow. */
#define REPEATS_AT_FIRST 16
/*
 * Retransmissions for each packet in a storm: responses to retransmissions that are mistaken for
 * reports of a loss cause more of them.
 */
#define REPEATS_OF_A_STORM 1.0

struct limits {
	double jain, line;
	double least; /* lowest throughput / that of two packets per round trip, or the share */
};

/* Limits of marked flows without a loss. */
static const struct limits near_limits = { .jain = 0.85, .line = 0.7, .least = 0.4 };
static const struct limits far_limits = { .jain = 0.4, .line = 0.2, .least = 0.4 };
/* Limits of all others, by the highest loss rate for which they hold. */
static const struct {
	uint32_t loss;
	struct limits limits;
} lossy_limits[] = {
	{ 1, { .line = 0.06 } },
	{ 10, { .line = 0.05 } },
	{ 50, { .line = 0.02 } },
};
/* Limits of flows with forged congestion notifications. */
static const struct limits forged_limits = { .line = 0.005 };

static bool has_reads(const struct plan *plan)
{
	for (uint32_t n = 0; n < plan->connections; n++)
		if (plan->flow_op[n] == ENG_READ)
			return true;
	return false;
}

/* Returns true if only marks determine the windows. */
static bool is_governed(const struct plan *plan)
{
	return plan->ect && plan->net[0].loss == 0 && !has_reads(plan);
}

/* Time that the bottleneck takes for the payload of a packet. */
static uint64_t packet_ns(const struct plan *plan)
{
	return (uint64_t)plan->mtu * plan->net[0].ns_per_byte_x1000 / 1000;
}

/* Returns true if both delays of the longest path take less than FEW_PACKETS of each flow. */
static bool is_near(const struct plan *plan)
{
	uint64_t delays = flows_round_trip_ns(plan) -
			  plan->net[0].mark_bytes * plan->net[0].ns_per_byte_x1000 / 1000;

	return delays < FEW_PACKETS * packet_ns(plan) * plan->connections;
}

/* Returns the part of a flow's share that two packets per round trip make, at most 1. */
static double floor_share(const struct plan *plan)
{
	double share = (double)(WINDOW_PACKETS * plan->connections * packet_ns(plan)) /
		       (double)flows_round_trip_ns(plan);

	return share < 1 ? share : 1;
}

static void check_least(struct world *world, double part)
{
	double wanted = part * floor_share(&world->plan);
	double least = world->flows.figures.least;

	if (least < wanted)
		world_fail(world, "a flow starves: it gets %.3f of its share, and not %.3f", least,
			   wanted);
}

static void check_queue(struct world *world)
{
	const struct net_plan *net = &world->plan.net[0];
	const struct flow_figures *figures = &world->flows.figures;
	uint64_t limit = net->mark_bytes, least_windows;

	/* Flows that have all cut their windows to two packets still fill a queue. */
	least_windows = (uint64_t)world->plan.connections * WINDOW_PACKETS *
			(world->plan.mtu + net->overhead + WIRE_MAX_HEADER_BYTES);
	if (limit < least_windows)
		limit = least_windows;
	limit += QUEUE_SLACK_BYTES;
	if (figures->queue_p95 > limit)
		world_fail(world, "with marks the queue holds %llu bytes, and not %llu",
			   (unsigned long long)figures->queue_p95, (unsigned long long)limit);
}

static void check_shares(struct world *world, const struct limits *limits)
{
	const struct flow_figures *figures = &world->flows.figures;

	if (figures->jain < limits->jain)
		world_fail(world, "flows share by a Jain index of %.3f, and not %.3f",
			   figures->jain, limits->jain);
	if (figures->line < limits->line)
		world_fail(world, "flows get %.3f of the line, and not %.3f", figures->line,
			   limits->line);
	if (limits->least > 0)
		check_least(world, limits->least);
}

/* Repairs send missing packets, not everything after them. */
static void check_repeats(struct world *world)
{
	const struct plan *plan = &world->plan;
	double repeat = world->flows.figures.repeat;
	double limit = plan->net[0].loss * REPEATS_FOR_LOSS / 1000 + REPEATS_MORE;

	limit += (double)(REPEATS_AT_FIRST * plan->connections) /
		 (double)world->flows.figures.packets;
	if (plan->ect && !plan->forged_ns && !has_reads(plan) &&
	    plan->net[0].queue_bytes >= AMPLE_QUEUE_BYTES && repeat > limit)
		world_fail(world, "%.3f of the packets are sent again, and not %.3f", repeat,
			   limit);
}

static const struct limits *other_limits(const struct plan *plan)
{
	uint32_t row = 0;

	if (plan->forged_ns)
		return &forged_limits;
	while (plan->net[0].loss > lossy_limits[row].loss)
		row++;
	return &lossy_limits[row].limits;
}

/* Bytes that flows send if all start at once, before any mark can have arrived. */
static uint64_t first_windows_bytes(const struct plan *plan)
{
	return (uint64_t)plan->connections * FIRST_WINDOW_PACKETS *
	       (plan->mtu + plan->net[0].overhead + WIRE_MAX_HEADER_BYTES);
}

void oracle_flows(struct world *world)
{
	const struct plan *plan = &world->plan;
	const struct flow_figures *figures = &world->flows.figures;
	bool ample = plan->net[0].queue_bytes >= AMPLE_QUEUE_BYTES &&
		     plan->net[0].queue_bytes >= first_windows_bytes(plan);

	if (figures->ns < flows_slot_ns(plan))
		return;
	if (figures->repeat > REPEATS_OF_A_STORM)
		world_fail(world, "%.3f repeats for each packet: a storm", figures->repeat);
	if (!is_governed(plan) || (world->net.dropped > 0 && !ample)) {
		check_shares(world, other_limits(plan));
		check_repeats(world);
		return;
	}
	/* Forged CNPs slow a flow down, but do not stop it. */
	if (plan->forged_ns)
		check_least(world, far_limits.least);
	else
		check_shares(world, is_near(plan) ? &near_limits : &far_limits);
	check_queue(world);
	if (ample && world->net.dropped > 0)
		world_fail(world, "with marks %llu packets find no room",
			   (unsigned long long)world->net.dropped);
}
