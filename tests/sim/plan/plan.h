/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Meaning of a seed: the network, the attributes of the queue pairs, the behaviour of the two hosts
 * and the kind of work.  Only choices; nothing here runs.  Times are in nanoseconds, probabilities
 * per mille unless a name shows another unit.
 */
#ifndef UROCE_SIM_PLAN_H
#define UROCE_SIM_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/types.h"
#include "engine/base/wqe.h"

#define PLAN_MAX_CONNECTIONS 6

struct net_plan {
	uint32_t loss;
	uint32_t loss_burst; /* maximum number of packets lost in a row */
	uint32_t duplicate;
	uint32_t corrupt;
	uint32_t reorder; /* packets held back by up to reorder_ns */
	uint64_t reorder_ns;
	uint64_t delay_ns;
	uint64_t jitter_ns;	    /* does not reorder packets */
	uint64_t ns_per_byte_x1000; /* time of the bottleneck for 1000 bytes; 0: no bottleneck */
	uint32_t queue_bytes;	    /* capacity of the bottleneck, with overhead for each packet */
	uint32_t overhead;
	/*
	 * Marker: a virtual queue that drains at mark_percent of the rate.  ECN-capable packets are
	 * marked while it holds more than mark_bytes (0: never).
	 */
	uint32_t mark_bytes, mark_percent;
	uint64_t flow_delay_ns[PLAN_MAX_CONNECTIONS]; /* in addition to delay_ns */
};

enum receive_habit {
	RECEIVES_EARLY,	  /* always as many as fit */
	RECEIVES_BURST,	  /* all at once when none is left */
	RECEIVES_LATE,	  /* a few at a time, at random times */
	RECEIVES_TRICKLE, /* one at a time, at random times */
	RECEIVE_HABITS,
};

/* A deliberate error, which ends the connection. */
enum trouble {
	TROUBLE_NONE,
	TROUBLE_RKEY,	       /* a message has an invalid R_Key */
	TROUBLE_BOUNDS,	       /* a message reaches beyond the region */
	TROUBLE_ACCESS,	       /* the responder's QP does not allow the operation */
	TROUBLE_SHORT_RECEIVE, /* a message is longer than its receive buffer (rule C18) */
	TROUBLE_LKEY,	       /* a message is gathered from invalid memory */
	/* Troubles of temporary keys (plan_services.c). */
	TROUBLE_BIND,	     /* a window cannot be bound */
	TROUBLE_LOCAL_INV,   /* a key cannot be invalidated by its owner */
	TROUBLE_REMOTE_INV,  /* a key cannot be invalidated by the peer */
	TROUBLE_DEAD_WINDOW, /* a message uses a window that has been invalidated */
	TROUBLES,
};
const char *trouble_name(enum trouble trouble);

enum plan_area {
	AREA_NONE,
	AREA_SOURCE,
	AREA_LANDING,
	AREA_REMOTE,
};

struct end_plan {
	uint32_t messages; /* maximum number */
	uint32_t sq_depth, rq_depth;
	uint32_t max_sge;
	uint32_t max_inline;
	bool rq_by_call;    /* receive requests are taken by eng_ops.get_recv_wqe */
	bool rq_shared;	    /* reports no credits (rule C7) */
	bool hides_credits; /* reports no credits, because of rq_shared or by choice */
	bool signal_all;
	uint32_t signaled; /* chance of a signaled request */
	uint32_t cwnd_packets;
	uint32_t max_rd_atomic;
	uint32_t max_dest_rd_atomic;
	uint8_t rnr_timer_code;
	uint64_t share_bytes; /* in-flight budget of all QPs of the host; 0: no limit */
	uint32_t psn;	      /* first PSN of what this end sends */

	uint32_t op_weight[ENG_OPS];
	uint32_t max_length;
	uint32_t spoiled; /* chance of a message with an error, after which UC and UD go on */
	uint32_t short_receives; /* chance of a receive request too small for some messages */
	uint32_t fence;

	enum receive_habit receives;
	uint64_t receive_gap_ns;
	bool receives_before_rtr;
	uint32_t post_burst;
	uint64_t post_gap_ns;
	uint64_t ready_ns; /* when this end goes to RTR */
	uint64_t rts_ns;   /* when this end goes to RTS */
	uint64_t join_ns;  /* no send request is posted before this time */

	/* Behavior of the host. */
	uint32_t max_burst_packets, max_burst_bytes, staging_bytes, max_pieces;
	uint32_t gather_from;
	uint32_t max_bursts; /* maximum number of bursts in one visit */
	bool scheduled;	     /* as in production: posts are batched, ACKs are delayed */
	uint32_t unsent;     /* chance that the transport does not accept a burst */
	uint32_t sleep;	     /* chance per visit that the host sleeps */
	uint64_t sleep_ns;   /* maximum duration of a sleep */
	uint32_t drain;	     /* chance per post that the QP enters SQD */
	uint64_t late_ns;    /* maximum delay of timers */
};

/* Timeout code (16.8 ms) from which on AckReq may be omitted, and ACKs requested later. */
#define PLAN_PATIENT_CODE 12
/* Maximum delay of an ACK: the sum of both delays of engine/tx/tx_sched.c. */
#define PLAN_ACK_DELAY_NS 60000
/* Batched posts are sent in the next round, which starts at most this much later. */
#define PLAN_ROUND_NS 100000

/* Newer generations of plans have more choices; within its generation a seed keeps its meaning. */
#define PLAN_GENERATION 3

struct plan {
	uint64_t seed;
	uint32_t generation;
	uint32_t rounds; /* after the first the QPs go back to RESET and start again */
	uint32_t connections;
	uint32_t mtu;
	uint8_t timeout_code;
	uint8_t retry_count;
	uint8_t rnr_retry;
	enum trouble trouble;
	uint32_t trouble_side;
	bool lossless;		/* no packet is lost, reordered, duplicated or damaged */
	bool patient;		/* without a loss every response arrives before the timeout */
	struct net_plan net[2]; /* [side]: what that side sends */
	struct end_plan end[2];

	/* Services other than RC (plan_services.c). */
	enum eng_qp_type service[PLAN_MAX_CONNECTIONS];
	struct end_plan uc_ud[2]; /* the ends of services without responses: UC and UD */
	uint32_t qkey[PLAN_MAX_CONNECTIONS][2];
	struct {
		enum plan_area area; /* memory that is deregistered during traffic */
		uint32_t connection, side;
		uint32_t visits; /* number of visits of its owner before that */
	} gone;
	bool common_queue[2]; /* [side]: all RC and UD QPs take their receives from one queue */
	/* Generation 2. */
	bool uc_shares;	     /* UC QPs use common_queue too */
	uint32_t xrc_sender; /* side of the ENG_XRC_SEND ends */
	struct end_plan xrc[2];
	bool groups; /* some datagrams are multicast to all UD ends that are members */
	bool member[PLAN_MAX_CONNECTIONS][2];
	/* Generation 3 (plan_progress.c); [side] is that of the sender. */
	bool lossless_transport; /* like shared memory: senders wait for room, nothing is lost */
	bool lossy_path;	 /* both ends know that the path loses packets */
	uint32_t full[2];	 /* chance per turn that the transport becomes full */
	uint64_t full_ns[2];	 /* maximum time for which it is full */
	bool queues_share[2];	 /* QPs without in-flight budget are queued (share_queue.c) */
	bool tells_receives[2];	 /* the engine is informed of posted receives */

	/* Flows of reliable connections that meet at one bottleneck (plan_flows.c). */
	bool flows;
	bool ect;	    /* packets are sent ECN-capable */
	bool hides_echoes;  /* ACKs do not echo marks, as with other implementations */
	uint64_t forged_ns; /* interval of forged CNPs to the first flow's side 0; 0: none */
	struct end_plan flow[PLAN_MAX_CONNECTIONS][2];
	uint32_t flow_messages[PLAN_MAX_CONNECTIONS]; /* number of messages, all of one length */
	enum eng_op flow_op[PLAN_MAX_CONNECTIONS];
	uint32_t flow_length[PLAN_MAX_CONNECTIONS];
};

/* Returns the requester's side: data flow from side 0 to side 1, so side 1 requests READs. */
static inline uint32_t flow_asker(enum eng_op op)
{
	return op == ENG_READ;
}

#define PLAN_GROUP_QPN 0xffffff

/* Returns the length of the longest message to a common queue. */
uint32_t plan_longest_receive(const struct plan *plan, uint32_t side);

/* Returns true for a service without responses and retries. */
static inline bool service_is_uc_ud(enum eng_qp_type service)
{
	return service == ENG_UC || service == ENG_UD;
}
static inline const struct end_plan *plan_of(const struct plan *plan, uint32_t connection,
					     uint32_t side)
{
	if (plan->flows)
		return &plan->flow[connection][side];
	if (plan->service[connection] == ENG_XRC_SEND)
		return &plan->xrc[side];
	return service_is_uc_ud(plan->service[connection]) ? &plan->uc_ud[side] : &plan->end[side];
}

/* Returns the type of an end; an XRC connection has a sending and a receiving end. */
static inline enum eng_qp_type plan_type(const struct plan *plan, uint32_t connection,
					 uint32_t side)
{
	if (plan->service[connection] == ENG_XRC_SEND && side != plan->xrc_sender)
		return ENG_XRC_RECV;
	return plan->service[connection];
}

/* Returns true if senders probe whether packets are lost: on a network and on a lossy path. */
static inline bool plan_probes_losses(const struct plan *plan)
{
	return plan->flows || plan->lossy_path;
}

/* Adds connections of other services to those of RC, or replaces these. */
void plan_services(struct plan *plan);
/* XRC, UC on shared receive queues, multicast. */
void plan_second_generation(struct plan *plan);
void plan_print_services(const struct plan *plan);
/* Inputs of the progress layer to the engine. */
void plan_third_generation(struct plan *plan);
void plan_print_progress(const struct plan *plan);

void plan_make(struct plan *plan, uint64_t seed, uint32_t generation);
void plan_print(const struct plan *plan);
/* Instead of plan_make(): one to four long flows through a bottleneck. */
void plan_make_flows(struct plan *plan, uint64_t seed, uint32_t generation);

#endif
