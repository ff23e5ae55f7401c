/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Creation of an end's queue pair, and its changes of state. */
#include <stdlib.h>
#include <string.h>

#include "sim/mutant/mutant.h"
#include "sim/world.h"

/* Access rights of the end; a bad message of the peer needs one that is missing. */
static uint32_t access_of(const struct sim_end *end)
{
	const struct script *peer = end->peer->script;
	uint32_t all = ENG_REMOTE_WRITE | ENG_REMOTE_READ | ENG_REMOTE_ATOMIC;

	if (end->type != ENG_RC || end->world->plan.trouble != TROUBLE_ACCESS ||
	    peer->bad == NO_INDEX)
		return all;
	if (op_is_read(peer->messages[peer->bad].op))
		return all & ~(uint32_t)ENG_REMOTE_READ;
	if (op_is_atomic(peer->messages[peer->bad].op))
		return all & ~(uint32_t)ENG_REMOTE_ATOMIC;
	return all & ~(uint32_t)ENG_REMOTE_WRITE;
}

static void set_attr(struct sim_end *end)
{
	const struct plan *plan = &end->world->plan;
	struct eng_attr *attr = eng_qp_attr(end->qp);

	attr->mtu = plan->mtu;
	attr->dest_qpn = end->peer->qpn;
	attr->rq_psn = end->peer->plan->psn;
	attr->sq_psn = end->plan->psn;
	attr->access = access_of(end);
	attr->pkey = WIRE_DEFAULT_PKEY;
	attr->timeout_code = plan->timeout_code;
	attr->retry_count = plan->retry_count;
	attr->rnr_retry = plan->rnr_retry;
	attr->min_rnr_timer = end->plan->rnr_timer_code;
	attr->max_rd_atomic = (uint8_t)end->plan->max_rd_atomic;
	attr->max_dest_rd_atomic = (uint8_t)end->plan->max_dest_rd_atomic;
	attr->sq_drained_event = true;
	memset(&attr->path, 0, sizeof(attr->path));
	attr->path.wire.src[10] = attr->path.wire.src[11] = 0xff;
	attr->path.wire.dst[10] = attr->path.wire.dst[11] = 0xff;
	attr->path.wire.src[15] = (uint8_t)(1 + end->side);
	attr->path.wire.dst[15] = (uint8_t)(2 - end->side);
	attr->path.wire.src_port = (uint16_t)(49152 + end->qpn % 1000);
	attr->path.wire.ipv6 = plan->seed % 3 == 0;
	if (plan->seed % 2)
		wire_icrc_precompute(&attr->path.wire);
	attr->qkey = end->qkey;
	for (uint32_t n = 0; n < PLAN_MAX_CONNECTIONS; n++) {
		end->paths[n] = attr->path;
		end->paths[n].wire.src_port += (uint16_t)(1 + n);
		end->paths[n].wire.icrc_state = 0;
	}
	mutant_attr(end, attr);
	if (ring_is_used(end))
		eng_set_path_loss(end->qp, ENG_PATH_LOSSLESS);
	else
		eng_set_path_loss(end->qp, plan->lossy_path ? ENG_PATH_LOSSY : ENG_PATH_USUAL);
	end->cnp_path = attr->path;
	end->cnp_path.wire.src_port += 100;
	end->cnp_path.wire.icrc_state = 0;
	if (!plan->flows)
		return;
	eng_set_ecn(end->qp, plan->ect ? &end->cnp_path : NULL);
	eng_set_cc(end->qp, ENG_CC_NETWORK);
}

void end_set_state(struct sim_end *end, enum eng_qp_state state)
{
	world_trace(end, "state %s", eng_qp_state_name(state));
	end->state = state;
	if (state == ENG_SQD)
		end->oracle.drains++;
	if (state == ENG_ERR)
		oracle_to_error(end);
	eng_set_state(end->qp, state, end->world->now);
	oracle_after_step(end);
}

/* In production UC and UD packets do not use the in-flight budget; before generation 3 they did. */
static bool shares(const struct sim_end *end)
{
	return end->plan->share_bytes > 0 &&
	       (end->world->plan.generation < 3 || !service_is_uc_ud(end->type));
}

static void create(struct sim_end *end)
{
	uint32_t sq_slots = queue_slots_of(end->plan->sq_depth);
	uint32_t send_bytes = eng_send_slot_bytes(end->plan->max_sge, end->plan->max_inline);
	struct eng_qp_init init = {
		.type = end->type,
		.qpn = end->qpn,
		.owner = end,
		.ops = &end_ops[end->plan->rq_by_call],
		.sq = &end->sq,
		.rq = &end->queue->ring,
		.max_recv_sge = end->queue == &end->own_queue ? end->plan->max_sge : ENG_MAX_SGE,
		.rq_shared = end->rq_shared,
		.credits_hidden = end->plan->hides_credits,
		.signal_all = end->plan->signal_all,
		.inflight_budget = shares(end) ? &end->world->share[end->side] : NULL,
		.cwnd_packets = end->plan->cwnd_packets,
	};

	free(end->sq_slots);
	end->sq_slots = queue_slots_new(sq_slots, send_bytes);
	eng_ring_init(&end->sq, end->sq_slots, send_bytes, sq_slots, end->plan->sq_depth);
	if (end->queue == &end->own_queue)
		queue_open(end->queue, end->plan->rq_depth, end->plan->max_sge);
	free(end->qp);
	end->qp = aligned_alloc(64, eng_qp_bytes(init.max_recv_sge));
	free(end->replay);
	end->replay = malloc(eng_resp_res_bytes(end->plan->max_dest_rd_atomic));
	if (!end->qp || !end->replay)
		abort();
	eng_qp_init(end->qp, &init);
	eng_set_resp_res(end->qp, end->replay, end->plan->max_dest_rd_atomic);
}

void end_start(struct sim_end *end, bool again)
{
	end->state = ENG_RESET;
	if (again)
		eng_set_state(end->qp, ENG_RESET, end->world->now);
	else
		create(end);
	/*
	 * rule C5 test: RESET drops the receive requests, but shared ones do not belong to the QP.
	 */
	if (end->queue == &end->own_queue) {
		if (end->rq_shared)
			end->queue->ring.head = end->queue->ring.tail = 0;
		queue_start(end->queue, end->script);
	}
	end->sent_posted = end->posted_in_error = end->visits = 0;
	end->next_send_at = end->world->round_began + end->plan->join_ns;
	end->asleep_until = end->socket_full_until = end->paused_until = 0;
	end->round_at = ENG_NEVER;
	end->ack_waits_since = 0;
	end->next_state_at = end->world->round_began + end->plan->ready_ns;
	end->packets_sent = 0;
	eng_qp_query(end->qp, &end->at_start);
	end->requests_in_a_row = 0;
	end->busy = end->budget_waits = end->is_unfinished = false;
	end->may_fill = end->ack_is_delayed = end->ack_waits_for_recv_post = false;
	end->retry_at = ENG_NEVER;
	end->late = 0;
	oracle_start(end);
	set_attr(end);
	end_set_state(end, ENG_INIT);
}
