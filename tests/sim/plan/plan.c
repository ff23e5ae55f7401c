/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "sim/plan/plan.h"

#include <stdio.h>
#include <string.h>

#include "engine/engine.h"
#include "sim/random.h"
#include "wire/packet.h"

#define MICROSECOND UINT64_C(1000)
#define MAX_MESSAGE_BYTES (128u << 10)
/* Approximate number of packets that an end sends: limited by the time for ten thousand seeds. */
#define PACKETS_WANTED 500

const char *trouble_name(enum trouble trouble)
{
	static const char *const names[TROUBLES] = {
		[TROUBLE_NONE] = "none",
		[TROUBLE_RKEY] = "wrong R_Key",
		[TROUBLE_BOUNDS] = "out of bounds",
		[TROUBLE_ACCESS] = "operation not allowed",
		[TROUBLE_SHORT_RECEIVE] = "receive too small",
		[TROUBLE_LKEY] = "wrong L_Key",
		[TROUBLE_BIND] = "refused bind",
		[TROUBLE_LOCAL_INV] = "refused invalidation",
		[TROUBLE_REMOTE_INV] = "refused invalidation by the peer",
		[TROUBLE_DEAD_WINDOW] = "window after its end",
	};

	return names[trouble];
}

static void plan_losses(struct sim_random *random, struct net_plan *net)
{
	uint32_t most = random_chance(random, 250) ? 300 : 40;

	if (random_chance(random, 700))
		net->loss = (uint32_t)random_skewed(random, most);
	if (random_chance(random, 200))
		net->loss_burst = random_between(random, 2, 8);
	if (random_chance(random, 400))
		net->duplicate = (uint32_t)random_skewed(random, 150);
	if (random_chance(random, 300))
		net->corrupt = (uint32_t)random_skewed(random, 50);
	if (random_chance(random, 400)) {
		net->reorder = (uint32_t)random_skewed(random, 200);
		net->reorder_ns = random_skewed(random, 100 * MICROSECOND);
	}
}

static void plan_net(struct sim_random *random, struct net_plan *net, bool lossless)
{
	net->loss_burst = 1;
	/* Approximate number of bytes that a socket buffer charges for a packet beyond its own. */
	net->overhead = 100;
	net->delay_ns = 200 + random_skewed(random, 100 * MICROSECOND);
	net->jitter_ns = random_chance(random, 500) ? random_skewed(random, net->delay_ns) : 0;
	if (random_chance(random, 250)) {
		net->ns_per_byte_x1000 = random_between(random, 50, 4000);
		net->queue_bytes = lossless
					   ? 64u << 20
					   : random_between(random, 3, 200) * WIRE_MAX_PACKET_BYTES;
	}
	if (!lossless)
		plan_losses(random, net);
}

static void plan_ops(struct sim_random *random, struct end_plan *end)
{
	static const enum eng_op ops[] = { ENG_SEND,	    ENG_SEND_IMM, ENG_WRITE,
					   ENG_WRITE_IMM,   ENG_READ,	  ENG_COMPARE_SWAP,
					   ENG_FETCH_ADD,   ENG_SEND_INV, ENG_LOCAL_INV,
					   ENG_ATOMIC_WRITE };
	const uint32_t count = sizeof(ops) / sizeof(ops[0]);

	if (random_chance(random, 300)) {
		/* Only one or two operations, like a benchmark. */
		end->op_weight[ops[random_below(random, count)]] = 1;
		end->op_weight[ops[random_below(random, count)]] += 3;
		return;
	}
	for (uint32_t i = 0; i < count; i++)
		end->op_weight[ops[i]] = 1 + random_below(random, 4);
}

static void plan_work(struct sim_random *random, struct end_plan *end, uint32_t mtu)
{
	static const uint32_t most_packets[] = { 1, 1, 2, 4, 8, 40 };
	uint32_t packets = most_packets[random_below(random, 6)];

	end->max_length = random_chance(random, 200) ? 64 : packets * mtu + 1;
	if (end->max_length > MAX_MESSAGE_BYTES)
		end->max_length = MAX_MESSAGE_BYTES;
	end->messages = random_between(random, 1, 2 * PACKETS_WANTED / (packets + 4));
	/* Short runs are easier to read, long ones find more. */
	if (random_chance(random, 300))
		end->messages *= random_between(random, 2, 12);
	plan_ops(random, end);
	end->fence = random_chance(random, 300) ? random_between(random, 10, 300) : 0;
	end->signal_all = random_chance(random, 200);
	end->signaled = random_chance(random, 300) ? 1000 : random_between(random, 50, 900);
	end->post_burst = random_between(random, 1, 32);
	end->post_gap_ns = random_chance(random, 500) ? 0 : random_skewed(random, 50 * MICROSECOND);
	end->receives = (enum receive_habit)random_below(random, RECEIVE_HABITS);
	if (random_chance(random, 300))
		end->receives = RECEIVES_EARLY;
	end->receive_gap_ns = random_skewed(random, 300 * MICROSECOND);
	end->receives_before_rtr = random_chance(random, 500);
}

static void plan_qp(struct sim_random *random, struct end_plan *end)
{
	static const uint32_t windows[] = { 0, 0, 4, 16, 50, 200, 1000 };
	bool shallow = random_chance(random, 300);

	end->sq_depth = random_between(random, 1, shallow ? 4 : 64);
	end->rq_depth = random_between(random, 1, shallow ? 4 : 64);
	end->max_sge = random_chance(random, 500) ? random_between(random, 1, 4)
						  : random_between(random, 1, ENG_MAX_SGE);
	end->max_inline =
		random_chance(random, 500) ? 0 : random_between(random, 1, ENG_MAX_INLINE);
	end->rq_shared = random_chance(random, 80);
	end->rq_by_call = end->rq_shared && random_chance(random, 500);
	end->hides_credits = end->rq_shared || random_chance(random, 80);
	if (random_chance(random, 200))
		end->share_bytes = random_between(random, 5000, 400000);
	end->cwnd_packets = windows[random_below(random, 7)];
	end->max_dest_rd_atomic = random_between(random, 1, 16);
	end->rnr_timer_code =
		(uint8_t)random_between(random, 1, random_chance(random, 100) ? 24 : 14);
	/* Half of the ends start shortly before the PSN wraps. */
	end->psn = random_chance(random, 500) ? (uint32_t)random_next(random) & WIRE_24BIT_MASK
					      : (0u - random_below(random, 300)) & WIRE_24BIT_MASK;
}

static void plan_host(struct sim_random *random, struct end_plan *end, bool lossless)
{
	end->max_burst_packets = random_chance(random, 300) ? 1 : random_between(random, 1, 128);
	end->max_burst_bytes =
		random_chance(random, 300) ? random_between(random, 5000, 65507) : 65507;
	end->staging_bytes =
		random_chance(random, 300) ? random_between(random, 6000, 65536) : 65536;
	end->max_pieces = random_between(random, 2 * ENG_MAX_SGE + 4, 600);
	end->gather_from =
		random_chance(random, 500) ? UINT32_MAX : random_between(random, 1, 4096);
	end->max_bursts = random_chance(random, 500) ? 1000 : random_between(random, 1, 8);
	end->scheduled = !random_chance(random, 600);
	/* An unused number, drawn so that kept seeds still mean the same plans. */
	if (end->scheduled)
		random_skewed(random, 20 * MICROSECOND);
	end->late_ns = random_chance(random, 500) ? 0 : random_skewed(random, 20 * MICROSECOND);
	if (random_chance(random, 300))
		end->unsent = random_between(random, 1, 200);
	if (random_chance(random, 200))
		end->drain = random_between(random, 1, 50);
	if (!lossless && random_chance(random, 200)) {
		end->sleep = random_between(random, 1, 10);
		end->sleep_ns = random_skewed(random, 2000 * MICROSECOND);
	}
}

/* Longest time until a response if nothing is lost. */
static uint64_t worst_round_trip(const struct plan *plan)
{
	uint64_t worst = 10 * MICROSECOND;
	uint64_t most = 2u << 20;

	/* A service without acknowledgements sends at once. */
	for (uint32_t n = 0; n < plan->connections; n++)
		if (service_is_uc_ud(plan->service[n]))
			most += (uint64_t)plan->uc_ud[0].messages * plan->uc_ud[0].max_length +
				(uint64_t)plan->uc_ud[1].messages * plan->uc_ud[1].max_length;
	for (uint32_t side = 0; side < 2; side++) {
		const struct net_plan *net = &plan->net[side];
		const struct end_plan *end = &plan->end[side];
		uint64_t queued = net->queue_bytes;

		/* A queue without limit holds at most what both ends send on a shared line. */
		if (queued > most)
			queued = most;
		worst += net->delay_ns + net->jitter_ns + net->reorder_ns;
		worst += queued * net->ns_per_byte_x1000 / 1000;
		worst += (end->scheduled ? PLAN_ACK_DELAY_NS : 0) + 2 * end->late_ns +
			 (end->sleep ? end->sleep_ns : 0);
	}
	return worst;
}

static void plan_timers(struct sim_random *random, struct plan *plan)
{
	uint64_t worst = worst_round_trip(plan);
	uint8_t code = 1;

	plan->patient = plan->lossless || random_chance(random, 850);
	while ((UINT64_C(4096) << code) < (plan->patient ? 4 * worst : worst / 2))
		code++;
	plan->timeout_code = (uint8_t)(code + random_below(random, 3));
	if (plan->lossless && plan->trouble == TROUBLE_NONE && random_chance(random, 200))
		plan->timeout_code = 0; /* never */
	plan->retry_count = 7;
	plan->rnr_retry = random_chance(random, 50) ? (uint8_t)random_below(random, 7) : 7;
	for (uint32_t side = 0; side < 2; side++) {
		struct end_plan *end = &plan->end[side];
		uint64_t timeout = UINT64_C(4096) << plan->timeout_code;

		/* An end that has not started receives nothing: requests are lost. */
		end->ready_ns = plan->lossless ? 0 : random_skewed(random, timeout);
		end->rts_ns = end->ready_ns + random_skewed(random, 20 * MICROSECOND);
		plan->uc_ud[side].ready_ns = end->ready_ns;
		plan->uc_ud[side].rts_ns = end->rts_ns;
	}
}

/*
 * With a long timeout not every ACK has to be requested at once.  Uses its own random stream, so
 * that this changes nothing else in a seed.
 */
static void plan_patience(struct plan *plan)
{
	struct sim_random random;

	random_seed(&random, plan->seed, 5);
	if (plan->timeout_code > 0 && plan->timeout_code < PLAN_PATIENT_CODE &&
	    random_chance(&random, 500))
		plan->timeout_code = (uint8_t)(PLAN_PATIENT_CODE + random_below(&random, 3));
}

void plan_make(struct plan *plan, uint64_t seed, uint32_t generation)
{
	struct sim_random random;

	memset(plan, 0, sizeof(*plan));
	random_seed(&random, seed, 0);
	plan->seed = seed;
	plan->generation = generation;
	plan->rounds = random_chance(&random, 100) ? 2 : 1;
	plan->connections = random_chance(&random, 150) ? random_between(&random, 2, 3) : 1;
	plan->mtu = 256u << random_below(&random, 5);
	plan->lossless = random_chance(&random, 350);
	if (random_chance(&random, 70)) {
		plan->trouble = (enum trouble)random_between(&random, 1, TROUBLE_LKEY);
		plan->trouble_side = random_below(&random, 2);
		plan->lossless = random_chance(&random, 700);
	}
	for (uint32_t side = 0; side < 2; side++) {
		plan_net(&random, &plan->net[side], plan->lossless);
		plan_work(&random, &plan->end[side], plan->mtu);
		plan_qp(&random, &plan->end[side]);
		plan_host(&random, &plan->end[side], plan->lossless);
		if (generation >= 2 && plan->end[side].max_dest_rd_atomic == 16)
			plan->end[side].max_dest_rd_atomic = ENG_MAX_RD_ATOMIC;
	}
	for (uint32_t side = 0; side < 2; side++)
		plan->end[side].max_rd_atomic =
			random_between(&random, 1, plan->end[!side].max_dest_rd_atomic);
	if (random_chance(&random, 200))
		plan->end[random_below(&random, 2)].messages = 0;
	plan_services(plan);
	plan_timers(&random, plan);
	plan_patience(plan);
	if (generation >= 2)
		plan_second_generation(plan);
	if (generation >= 3)
		plan_third_generation(plan);
}

static void print_net(char name, const struct net_plan *net)
{
	printf("# from %c: delay %llu+%llu ns, loss %u/1000 x%u, duplicate %u, corrupt %u, "
	       "reorder %u by %llu ns, %llu ps/byte, queue %u bytes\n",
	       name, (unsigned long long)net->delay_ns, (unsigned long long)net->jitter_ns,
	       net->loss, net->loss_burst, net->duplicate, net->corrupt, net->reorder,
	       (unsigned long long)net->reorder_ns, (unsigned long long)net->ns_per_byte_x1000,
	       net->queue_bytes);
}

static void print_end(char name, const struct end_plan *end)
{
	static const char *const habits[RECEIVE_HABITS] = { "early", "burst", "late", "trickle" };

	printf("# %c: sq %u rq %u%s, reads %u/%u, psn %u, rnr timer code %u, window %u, receives "
	       "%s gap %llu ns, share %llu, burst %u packets, gather %u%s, unsent %u, sleep %u "
	       "x %llu ns, drain %u, late %llu ns, rtr %llu rts %llu ns\n",
	       name, end->sq_depth, end->rq_depth,
	       end->rq_shared	    ? " shared"
	       : end->hides_credits ? " without credits"
				    : "",
	       end->max_rd_atomic, end->max_dest_rd_atomic, end->psn, end->rnr_timer_code,
	       end->cwnd_packets, habits[end->receives], (unsigned long long)end->receive_gap_ns,
	       (unsigned long long)end->share_bytes, end->max_burst_packets, end->gather_from,
	       end->scheduled ? ", scheduled" : "", end->unsent, end->sleep,
	       (unsigned long long)end->sleep_ns, end->drain, (unsigned long long)end->late_ns,
	       (unsigned long long)end->ready_ns, (unsigned long long)end->rts_ns);
}

void plan_print(const struct plan *plan)
{
	printf("# seed %llu, generation %u: %u rounds, %u connections, mtu %u, timeout code %u, "
	       "retry %u, rnr "
	       "retry %u, "
	       "%s, %s, trouble: %s on side %c\n",
	       (unsigned long long)plan->seed, plan->generation, plan->rounds, plan->connections,
	       plan->mtu, plan->timeout_code, plan->retry_count, plan->rnr_retry,
	       plan->lossless ? "lossless" : "lossy", plan->patient ? "patient" : "impatient",
	       trouble_name(plan->trouble), 'A' + (int)plan->trouble_side);
	for (uint32_t side = 0; side < 2; side++) {
		print_net((char)('A' + side), &plan->net[side]);
		print_end((char)('A' + side), &plan->end[side]);
	}
	plan_print_services(plan);
	plan_print_progress(plan);
}
