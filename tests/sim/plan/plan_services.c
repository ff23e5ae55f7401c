/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Services other than RC.  Their choices come from their own random streams, so that a seed's
 * reliable connections are the same with and without them.
 */
#include <stdio.h>
#include <string.h>

#include "engine/engine.h"
#include "sim/plan/plan.h"
#include "sim/random.h"
#include "wire/packet.h"

#define MAX_LOOSE_BYTES 33000
#define MAX_SHARED_BYTES 33000

static void plan_uc_ud(struct sim_random *random, struct plan *plan, uint32_t side)
{
	static const enum eng_op ops[] = { ENG_SEND, ENG_SEND_IMM, ENG_WRITE, ENG_WRITE_IMM };
	static const uint32_t most_packets[] = { 1, 2, 3, 8 };
	struct end_plan *end = &plan->uc_ud[side];
	uint32_t packets = most_packets[random_below(random, 4)];

	/* The host has the same habits with all its queue pairs. */
	*end = plan->end[side];
	end->max_length = packets * plan->mtu + 1;
	if (end->max_length > MAX_LOOSE_BYTES)
		end->max_length = MAX_LOOSE_BYTES;
	end->messages = random_between(random, 1, 400 / (packets + 2));
	memset(end->op_weight, 0, sizeof(end->op_weight));
	for (uint32_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		end->op_weight[ops[i]] = 1 + random_below(random, 4);
	end->fence = 0;
	end->psn = random_chance(random, 500) ? (uint32_t)random_next(random) & WIRE_24BIT_MASK
					      : (0u - random_below(random, 200)) & WIRE_24BIT_MASK;
	/* UC and UD do not wait for a window, so it must not end a burst. */
	end->cwnd_packets = 0;
	end->rq_shared = false;
	end->rq_by_call = end->rq_by_call && plan->common_queue[side];
	end->hides_credits = true;
	end->spoiled = random_chance(random, 400) ? random_between(random, 5, 100) : 0;
	end->short_receives = random_chance(random, 400) ? random_between(random, 5, 200) : 0;
}

static void plan_qkeys(struct sim_random *random, struct plan *plan)
{
	uint32_t common = (uint32_t)random_next(random) & 0x7fffffff;

	for (uint32_t n = 0; n < PLAN_MAX_CONNECTIONS; n++)
		for (uint32_t side = 0; side < 2; side++)
			plan->qkey[n][side] = random_chance(random, 700)
						      ? common
						      : (uint32_t)random_next(random) & 0x7fffffff;
}

/* rule C7: a queue pair that shares its receive queue reports no credits. */
static void plan_common_queues(struct sim_random *random, struct plan *plan)
{
	/* In a common queue it would be unknown which receive request must be too short. */
	if (plan->trouble == TROUBLE_SHORT_RECEIVE || !random_chance(random, 200))
		return;
	if (plan->connections == 1)
		plan->connections = random_between(random, 2, 3);
	for (uint32_t side = 0; side < 2; side++) {
		struct end_plan *end = &plan->end[side];

		if (!random_chance(random, 700))
			continue;
		plan->common_queue[side] = true;
		end->rq_shared = end->hides_credits = true;
		end->rq_by_call = random_chance(random, 500);
		if (plan->end[!side].max_length > MAX_SHARED_BYTES)
			plan->end[!side].max_length = MAX_SHARED_BYTES;
	}
}

uint32_t plan_longest_receive(const struct plan *plan, uint32_t side)
{
	uint32_t connected = plan->end[!side].max_length;
	uint32_t datagram = ENG_GRH_BYTES + plan->mtu;

	if (plan->uc_shares && plan->uc_ud[!side].max_length > connected)
		connected = plan->uc_ud[!side].max_length;
	return connected > datagram ? connected : datagram;
}

/* Windows are bound on side A, and used and invalidated by side B. */
static void plan_keys(struct sim_random *random, struct plan *plan)
{
	if (random_chance(random, 200)) {
		plan->end[0].op_weight[ENG_BIND_MW] = random_between(random, 1, 4);
		plan->end[1].op_weight[ENG_SEND_INV] += 1;
		if (plan->end[0].messages == 0)
			plan->end[0].messages = 20;
		if (plan->trouble == TROUBLE_NONE && random_chance(random, 150)) {
			plan->trouble =
				(enum trouble)random_between(random, TROUBLE_BIND, TROUBLES - 1);
			plan->trouble_side = plan->trouble == TROUBLE_REMOTE_INV ||
					     plan->trouble == TROUBLE_DEAD_WINDOW;
		}
	}
	if (plan->trouble != TROUBLE_NONE || !random_chance(random, 120))
		return;
	plan->gone.area = (enum plan_area)random_between(random, AREA_SOURCE, AREA_REMOTE);
	plan->gone.connection = random_below(random, plan->connections);
	plan->gone.side = random_below(random, 2);
	plan->gone.visits = (uint32_t)random_skewed(random, 1000);
}

static void plan_uc_ud_services(struct sim_random *random, struct plan *plan)
{
	uint32_t kind, first, extra;

	if (!random_chance(random, 300))
		return;
	kind = random_below(random, 4);
	extra = random_between(random, 1, 3);
	/* Sometimes without RC. */
	first = random_chance(random, 150) ? 0 : plan->connections;
	/* With UD several ends send to one. */
	if (kind == 1 && extra == 1)
		extra = 2;
	plan->connections = first + extra;
	for (uint32_t n = first; n < plan->connections; n++) {
		if (kind < 2)
			plan->service[n] = kind == 0 ? ENG_UC : ENG_UD;
		else
			plan->service[n] = random_chance(random, 500) ? ENG_UC : ENG_UD;
	}
	for (uint32_t side = 0; side < 2; side++)
		plan_uc_ud(random, plan, side);
	plan_qkeys(random, plan);
}

void plan_services(struct plan *plan)
{
	struct sim_random random;

	random_seed(&random, plan->seed, 3);
	for (uint32_t n = 0; n < PLAN_MAX_CONNECTIONS; n++)
		plan->service[n] = ENG_RC;
	plan_common_queues(&random, plan);
	plan_uc_ud_services(&random, plan);
	random_seed(&random, plan->seed, 4);
	plan_keys(&random, plan);
}

/*
 * One end sends requests and gets responses; the other takes its receives from a queue that
 * requests name.
 */
static void plan_xrc(struct sim_random *random, struct plan *plan)
{
	struct end_plan *sender, *receiver;

	plan->xrc_sender = random_below(random, 2);
	memcpy(plan->xrc, plan->end, sizeof(plan->xrc));
	sender = &plan->xrc[plan->xrc_sender];
	receiver = &plan->xrc[!plan->xrc_sender];
	sender->op_weight[ENG_ATOMIC_WRITE] = 0;
	sender->op_weight[ENG_SEND]++;
	sender->rq_shared = sender->rq_by_call = false;
	receiver->messages = 0;
	receiver->rq_shared = receiver->hides_credits = true;
	receiver->rq_by_call = random_chance(random, 700);
	for (uint32_t n = 0; n < plan->connections; n++)
		if (plan->service[n] == ENG_RC && random_chance(random, 600))
			plan->service[n] = ENG_XRC_SEND;
}

void plan_second_generation(struct plan *plan)
{
	struct sim_random random;

	random_seed(&random, plan->seed, 6);
	plan->uc_shares = random_chance(&random, 500);
	/* Deliberate errors occur on RC connections. */
	if (plan->trouble == TROUBLE_NONE && random_chance(&random, 150))
		plan_xrc(&random, plan);
	plan->groups = random_chance(&random, 500);
	for (uint32_t n = 0; n < PLAN_MAX_CONNECTIONS; n++)
		for (uint32_t side = 0; side < 2; side++)
			plan->member[n][side] = random_chance(&random, 700);
}

void plan_print_services(const struct plan *plan)
{
	static const char *const areas[] = { "", "source", "landing", "remote" };

	printf("#");
	for (uint32_t n = 0; n < plan->connections; n++)
		printf(" %u: %s", n + 1, eng_qp_type_name(plan->service[n]));
	if (plan->xrc[0].max_length > 0)
		printf(", XRC sent by %c", 'A' + (int)plan->xrc_sender);
	for (uint32_t side = 0; side < 2; side++)
		if (plan->common_queue[side])
			printf("%s, one receive queue on side %c",
			       plan->uc_shares ? " (UC too)" : "", 'A' + (int)side);
	if (plan->gone.area != AREA_NONE)
		printf(", the %s memory of %c%u goes after %u visits", areas[plan->gone.area],
		       'A' + (int)plan->gone.side, plan->gone.connection + 1, plan->gone.visits);
	printf("\n");
	for (uint32_t side = 0; side < 2; side++)
		if (plan->uc_ud[side].messages > 0)
			printf("# %c, UC and UD: %u messages up to %u bytes, psn %u, spoiled %u, "
			       "short receives %u\n",
			       'A' + (int)side, plan->uc_ud[side].messages,
			       plan->uc_ud[side].max_length, plan->uc_ud[side].psn,
			       plan->uc_ud[side].spoiled, plan->uc_ud[side].short_receives);
}
