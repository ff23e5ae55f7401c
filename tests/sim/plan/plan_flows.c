/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Plans of flows: one to four flows, each with its own queue pair at both ends, go in the same
 * direction through one bottleneck, for long enough that their windows determine their throughput.
 * Hosts behave as in production; only the network and the work differ from seed to seed.
 */
#include <stdio.h>
#include <string.h>

#include "engine/engine.h"
#include "sim/flows.h"
#include "sim/plan/plan.h"
#include "sim/random.h"
#include "wire/packet.h"

#define MICROSECOND UINT64_C(1000)
#define MILLISECOND UINT64_C(1000000)
/* Number of packets of all flows together: limited by the time for a test. */
#define FLOW_PACKETS 5000
#define FLOW_LONGEST (2000 * MILLISECOND)
/* Ethernet, IP and UDP headers, which a queue counts in addition to the UDP payload. */
#define FRAME_BYTES 42
/* Headers of most packets: BTH and ICRC. */
#define HEADER_BYTES 16
/* Capacity of the queue of the reverse path, for ACKs: enough for all of them. */
#define ACK_QUEUE_BYTES (4u << 20)
#define MEGABIT_NS 8000000 /* thousandths of a nanosecond for a byte, at one megabit a second */

static uint32_t pick(struct sim_random *random, const uint32_t *from, uint32_t count)
{
	return from[random_below(random, count)];
}

#define PICK(random, ...)                               \
	pick(random, (const uint32_t[]){ __VA_ARGS__ }, \
	     sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))

static void plan_path(struct sim_random *random, struct plan *plan)
{
	struct net_plan *there = &plan->net[0], *back = &plan->net[1];
	uint32_t megabits = PICK(random, 50, 100, 200, 200, 400);
	bool one_distance = random_chance(random, 600);

	plan->mtu = PICK(random, 1024, 2048, 4096, 4096, 4096);
	there->ns_per_byte_x1000 = MEGABIT_NS / (megabits * plan->mtu / 4096);
	there->overhead = FRAME_BYTES;
	there->queue_bytes = PICK(random, 60000, 100000, 200000, 500000);
	there->mark_percent = 96;
	there->mark_bytes = random_chance(random, 600) ? PICK(random, 20000, 30000, 60000) : 0;
	there->loss = random_chance(random, 600) ? 0 : PICK(random, 1, 10, 50);
	there->loss_burst = 1;
	there->delay_ns = PICK(random, 20, 100, 500, 1000, 3000) * MICROSECOND;
	/* Without jitter, packets of ACK-clocked flows arrive in the same order again and again. */
	there->jitter_ns = random_between(random, 20, 200) * MICROSECOND;
	*back = *there;
	back->queue_bytes = ACK_QUEUE_BYTES;
	back->mark_bytes = 0;
	back->loss = random_chance(random, 500) ? there->loss : 0;
	for (uint32_t n = 0; n < plan->connections; n++)
		if (!one_distance)
			there->flow_delay_ns[n] = random_skewed(random, there->delay_ns);
}

/* A host as in production, with queue pairs like those of perftest. */
static void plan_host(struct sim_random *random, struct end_plan *end, uint32_t length)
{
	memset(end, 0, sizeof(*end));
	end->sq_depth = length > 128 * 1024 ? 8 : (1u << 20) / length;
	if (end->sq_depth > 128)
		end->sq_depth = 128;
	end->rq_depth = 512;
	end->max_sge = 1;
	end->cwnd_packets = 240;
	end->max_rd_atomic = end->max_dest_rd_atomic = 16;
	end->rnr_timer_code = 12;
	end->psn = (uint32_t)random_next(random) & WIRE_24BIT_MASK;
	end->receives = RECEIVES_EARLY;
	end->receives_before_rtr = true;
	end->post_burst = random_between(random, 1, 16);
	end->max_burst_packets = 128;
	end->max_burst_bytes = 65507;
	end->staging_bytes = 65536;
	end->max_pieces = 600;
	end->gather_from = random_chance(random, 500) ? UINT32_MAX : 2048;
	end->max_bursts = 1000;
	end->scheduled = true;
	end->late_ns = random_skewed(random, 50 * MICROSECOND);
}

static void plan_flow(struct sim_random *random, struct plan *plan, uint32_t n, uint64_t volume,
		      uint64_t join_ns)
{
	static const enum eng_op ops[] = { ENG_WRITE, ENG_WRITE, ENG_SEND, ENG_READ };
	uint32_t packets = PICK(random, 1, 4, 16, 64, 256);

	plan->service[n] = ENG_RC;
	plan->flow_op[n] = ops[random_below(random, 4)];
	while ((uint64_t)packets * plan->mtu * 20 > volume)
		packets /= 2;
	plan->flow_length[n] = packets * plan->mtu;
	plan->flow_messages[n] = (uint32_t)(volume / plan->flow_length[n]);
	for (uint32_t side = 0; side < 2; side++) {
		plan_host(random, &plan->flow[n][side], plan->flow_length[n]);
		plan->flow[n][side].max_length = plan->flow_length[n];
		plan->flow[n][side].share_bytes = plan->end[side].share_bytes;
	}
	plan->flow[n][flow_asker(plan->flow_op[n])].messages = plan->flow_messages[n];
	plan->flow[n][flow_asker(plan->flow_op[n])].join_ns = join_ns;
}

/*
 * Flows join one after the other, and all end at the same time if they share fairly.  The last one
 * joins before the middle.
 */
static void plan_work(struct sim_random *random, struct plan *plan)
{
	const struct net_plan *net = &plan->net[0];
	uint64_t frame = plan->mtu + HEADER_BYTES + FRAME_BYTES;
	uint64_t frame_ns = frame * net->ns_per_byte_x1000 / 1000;
	uint64_t all = FLOW_PACKETS * frame_ns;
	uint64_t joins[PLAN_MAX_CONNECTIONS + 1] = { 0 };

	if (all > FLOW_LONGEST)
		all = FLOW_LONGEST;
	if (all < 4 * flows_settle_ns(plan))
		all = 4 * flows_settle_ns(plan);
	for (uint32_t n = 1; n < plan->connections; n++)
		joins[n] = joins[n - 1] + random_below(random, (uint32_t)(all / 8));
	joins[plan->connections] = all;
	for (uint32_t n = 0; n < plan->connections; n++) {
		uint64_t volume = 0;

		for (uint32_t at = n; at < plan->connections; at++)
			volume += (joins[at + 1] - joins[at]) / frame_ns * plan->mtu / (at + 1);
		plan_flow(random, plan, n, volume, joins[n]);
	}
}

/* No round trip without a loss takes as long as the timeout. */
static void plan_timeout(struct plan *plan)
{
	const struct net_plan *there = &plan->net[0];
	uint64_t worst = 4 * there->delay_ns + 2 * there->jitter_ns + 3 * PLAN_ACK_DELAY_NS;

	worst += there->queue_bytes * there->ns_per_byte_x1000 / 1000;
	plan->timeout_code = 14;
	while ((UINT64_C(4096) << plan->timeout_code) < 4 * worst)
		plan->timeout_code++;
	plan->patient = true;
	plan->retry_count = 7;
	plan->rnr_retry = 7;
}

void plan_make_flows(struct plan *plan, uint64_t seed, uint32_t generation)
{
	struct sim_random random;

	memset(plan, 0, sizeof(*plan));
	random_seed(&random, seed, 7);
	plan->seed = seed;
	plan->generation = generation;
	plan->flows = true;
	plan->rounds = 1;
	plan->connections = PICK(&random, 1, 2, 2, 2, 3, 4);
	plan_path(&random, plan);
	/*
	 * Flows of one host share an in-flight budget of what the peer's buffers hold; flows of
	 * several hosts do not.
	 */
	if (random_chance(&random, 500))
		plan->end[0].share_bytes = plan->end[1].share_bytes = 240 * 4212;
	plan->ect = plan->net[0].mark_bytes > 0;
	plan->hides_echoes = plan->ect && random_chance(&random, 300);
	plan->forged_ns = plan->ect && random_chance(&random, 200)
				  ? random_between(&random, 5, 500) * MICROSECOND
				  : 0;
	plan_work(&random, plan);
	plan_timeout(plan);
	for (uint32_t side = 0; side < 2; side++)
		plan->end[side] = plan->flow[0][side];
	if (generation >= 3)
		plan_third_generation(plan);
}
