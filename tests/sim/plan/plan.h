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
	uint32_t loss_burst; /* a loss takes up to so many packets in a row */
	uint32_t duplicate;
	uint32_t corrupt;
	uint32_t reorder; /* packets held back by up to reorder_ns */
	uint64_t reorder_ns;
	uint64_t delay_ns;
	uint64_t jitter_ns;	    /* keeps the order */
	uint64_t ns_per_byte_x1000; /* of the bottleneck; 0: no bottleneck */
	uint32_t queue_bytes;	    /* that the bottleneck holds, with overhead for each packet */
	uint32_t overhead;
	/*
	 * The marker: a virtual queue that drains at mark_percent of the rate, and above mark_bytes
	 * of which packets that may be marked are (0: none are).
	 */
	uint32_t mark_bytes, mark_percent;
	uint64_t flow_delay_ns[PLAN_MAX_CONNECTIONS]; /* beyond delay_ns */
};

enum receive_habit {
	RECEIVES_EARLY,	  /* always as many as fit */
	RECEIVES_BURST,	  /* all at once when none is left */
	RECEIVES_LATE,	  /* some time after they have been used up, a few at a time */
	RECEIVES_TRICKLE, /* one at a time, at random times */
	RECEIVE_HABITS,
};

/* A thing that goes wrong on purpose, and ends the connection. */
enum trouble {
	TROUBLE_NONE,
	TROUBLE_RKEY,	       /* a message names an R_Key that is not there */
	TROUBLE_BOUNDS,	       /* a message reaches beyond the region */
	TROUBLE_ACCESS,	       /* the responder's QP does not allow the operation */
	TROUBLE_SHORT_RECEIVE, /* a message is longer than its receive buffer (rule C18) */
	TROUBLE_LKEY,	       /* a message is gathered from invalid memory */
	/* Troubles of temporary keys (plan_services.c). */
	TROUBLE_BIND,	     /* a window cannot be bound */
	TROUBLE_LOCAL_INV,   /* a key cannot be invalidated by its owner */
	TROUBLE_REMOTE_INV,  /* nor by the peer */
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
	uint32_t messages; /* at most so many */
	uint32_t sq_depth, rq_depth;
	uint32_t max_sge;
	uint32_t max_inline;
	bool rq_by_call;    /* the engine asks for receive requests by a call */
	bool rq_shared;	    /* reports no credits (rule C7) */
	bool hides_credits; /* reports no credits, by itself or by its attributes */
	bool signal_all;
	uint32_t signaled; /* chance */
	uint32_t cwnd_packets;
	uint32_t max_rd_atomic;
	uint32_t max_dest_rd_atomic;
	uint8_t rnr_timer_code;
	uint64_t share_bytes; /* that all QPs of the host may have under way; 0: no limit */
	uint32_t psn;	      /* first PSN of what this end sends */

	uint32_t op_weight[ENG_OPS];
	uint32_t max_length;
	uint32_t spoiled; /* chance of a message with a fault in it: UC and UD go on behind it */
	uint32_t short_receives; /* chance of a receive request that is too small for some */
	uint32_t fence;

	enum receive_habit receives;
	uint64_t receive_gap_ns;
	bool receives_before_rtr;
	uint32_t post_burst;
	uint64_t post_gap_ns;
	uint64_t ready_ns; /* when this end goes to RTR */
	uint64_t rts_ns;   /* and to RTS */
	uint64_t join_ns;  /* nothing is posted before */

	/* The host's habits. */
	uint32_t max_burst_packets, max_burst_bytes, staging_bytes, max_pieces;
	uint32_t gather_from;
	uint32_t max_bursts; /* in one visit */
	bool scheduled;	     /* as in production: posts are gathered, ACKs wait for company */
	uint32_t unsent;     /* chance that the socket takes nothing */
	uint32_t sleep;	     /* chance per visit */
	uint64_t sleep_ns;   /* at most */
	uint32_t drain;	     /* chance per post of a stay in SQD */
	uint64_t late_ns;    /* timers are served up to so late */
};

/* Timeout code, 16.8 ms: from there on ACKs may be asked for late. */
#define PLAN_PATIENT_CODE 12
/* The longest that an engine lets an ACK wait for company, for both reasons that it has. */
#define PLAN_ACK_DELAY_NS 60000
/* A post that was gathered leaves with the next round, which comes after this time at the latest.
 */
#define PLAN_ROUND_NS 100000

/* Plans have gained choices; a seed keeps its meaning in the generation it was run in. */
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
	bool lossless;		/* nothing is lost, overtaken, repeated or damaged */
	bool patient;		/* the timeout is longer than anything takes when nothing is lost */
	struct net_plan net[2]; /* [side]: what that side sends */
	struct end_plan end[2];

	/* Others than RC (plan_services.c). */
	enum eng_qp_type service[PLAN_MAX_CONNECTIONS];
	struct end_plan uc_ud[2]; /* the ends of services without responses: UC and UD */
	uint32_t qkey[PLAN_MAX_CONNECTIONS][2];
	struct {
		enum plan_area area; /* registered memory that goes in the middle of it all */
		uint32_t connection, side;
		uint32_t visits; /* after so many of its owner */
	} gone;
	bool common_queue[2]; /* [side]: all RC and UD QPs take their receives from one queue */
	/* Generation 2. */
	bool uc_shares;	     /* ... and those of UC too */
	uint32_t xrc_sender; /* side of ENG_XRC_SEND, where services are that */
	struct end_plan xrc[2];
	bool groups; /* some datagrams go to all UD ends that are members */
	bool member[PLAN_MAX_CONNECTIONS][2];
	/* Generation 3 (plan_progress.c), [side] being the one that sends. */
	bool lossless_transport; /* as shared memory: a sender waits for room, and nothing is lost
				  */
	bool lossy_path;	 /* both ends know that packets are lost */
	uint32_t full[2];	 /* chance per turn that it has no room, */
	uint64_t full_ns[2];	 /* ... for so long at most */
	bool queues_share[2];	 /* one that meets a share that is used up has its turn */
	bool tells_receives[2];	 /* the engine is informed of posted receives */

	/* Flows of reliable connections that meet at one bottleneck (plan_flows.c). */
	bool flows;
	bool ect;	    /* their packets may be marked */
	bool hides_echoes;  /* ... and ACKs do not echo marks, as those of other implementations */
	uint64_t forged_ns; /* so often a CNP comes to the sender of the first flow; 0: never */
	struct end_plan flow[PLAN_MAX_CONNECTIONS][2];
	uint32_t flow_messages[PLAN_MAX_CONNECTIONS]; /* all of the same size: */
	enum eng_op flow_op[PLAN_MAX_CONNECTIONS];
	uint32_t flow_length[PLAN_MAX_CONNECTIONS];
};

/* All data go from side 0 to side 1, so READs are asked for by the latter. */
static inline uint32_t flow_asker(enum eng_op op)
{
	return op == ENG_READ;
}

#define PLAN_GROUP_QPN 0xffffff

/* The longest that the receive requests of a common queue must have room for. */
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

/* Type of an end: a connection of XRC has two halves. */
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

/* Connections of other services beside those of RC, or instead of them. */
void plan_services(struct plan *plan);
/* XRC, UC on shared receive queues, multicast. */
void plan_second_generation(struct plan *plan);
void plan_print_services(const struct plan *plan);
/* Inputs of the progress layer to the engine. */
void plan_third_generation(struct plan *plan);
void plan_print_progress(const struct plan *plan);

void plan_make(struct plan *plan, uint64_t seed, uint32_t generation);
void plan_print(const struct plan *plan);
/* Instead: a bottleneck that one to four long flows go through. */
void plan_make_flows(struct plan *plan, uint64_t seed, uint32_t generation);

#endif
