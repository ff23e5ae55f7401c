/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Two hosts with one queue pair or a few each, joined by a virtual network, in virtual time.  A
 * host does what the progress layer does: take packets through the rx demux, expire, post,
 * transmit; with habits that its plan gives it.  Every step is shown to the oracle.
 *
 * The world is made once and runs many seeds; a seed decides everything.
 */
#ifndef UROCE_SIM_WORLD_H
#define UROCE_SIM_WORLD_H

#include <stdarg.h>

#include "engine/engine.h"
#include "sim/flows.h"
#include "sim/net.h"
#include "sim/oracle/oracle.h"
#include "sim/plan/plan.h"
#include "sim/queue.h"
#include "sim/random.h"
#include "sim/plan/script.h"

#define WORLD_REASON_BYTES 400
/* SRQ number of the common queue of a side; the queue of connection n has this + 1 + n. */
#define WORLD_COMMON_SRQN 0xabcde0

struct connection;
struct mutant;

/* Maximum number of out-of-order requests kept for an end: the packets of a flow's window. */
#define SIM_KEPT 240

struct sim_end {
	struct world *world;
	struct sim_end *peer;
	struct connection *connection;
	uint32_t number; /* of the connection */
	uint32_t side;
	char name[4]; /* A, B; with several connections A1, B1 ... */
	enum eng_qp_type type;
	uint32_t qpn;
	bool repairs;			   /* the burst being sent is a retransmission */
	void *early_blocks[SIM_KEPT];	   /* allocated by ooo_alloc() */
	struct wire_packet kept[SIM_KEPT]; /* kept by the engine, unordered */
	uint32_t qkey;			   /* UD */
	struct eng_path cnp_path;
	struct eng_path paths[PLAN_MAX_CONNECTIONS]; /* UD: of its address handles, by peer */
	const struct end_plan *plan;
	struct script *script;
	struct eng_qp *qp;
	void *replay;
	struct eng_ring sq;
	uint8_t *sq_slots;
	struct receive_queue own_queue, *queue; /* queue: own_queue or the host's common queue */
	bool rq_shared;				/* the engine treats it as shared */
	uint32_t srqn; /* XRC: number of the receive queue that requests name */
	struct sim_random random;
	struct net_queue arrivals;

	uint32_t sent_posted; /* number of the script's messages posted */
	uint64_t next_send_at;
	uint64_t asleep_until, socket_full_until, paused_until;
	uint64_t round_at; /* next progress round of a scheduled end, which sends batched posts */
	uint64_t ack_waits_since; /* 0: no ACK is delayed */
	uint64_t ack_late_since;  /* when the delay of an ACK was first found too long, or 0 */
	bool posts;		  /* posted requests must be sent now, not in the next round */
	bool gathers;		  /* posts are batched for the next round */
	bool receives_wait;	  /* receives were posted, and there is nothing to send for them */
	uint64_t next_state_at;	  /* INIT to RTR, RTR to RTS, drained SQD to RTS */
	uint64_t late;		  /* delay with which the next timer is served, ns */
	enum eng_qp_state state;  /* requested by the host; or ERR or SQE, entered by the engine */
	uint32_t posted_in_error;
	uint32_t visits;
	uint64_t rounds;
	uint64_t packets_sent;
	struct eng_qp_info at_start;  /* RESET does not clear the counters */
	uint32_t requests_in_a_row;   /* number of request bursts while responses were pending */
	bool busy;		      /* one visit could not send everything */
	bool budget_waits;	      /* waits for the in-flight budget, without share_queue */
	bool is_unfinished;	      /* the last turn ended before everything was sent */
	bool is_served;		      /* share_queue_serve() serves it at this moment */
	bool may_fill;		      /* has found its ring full, or sends long bursts */
	uint64_t retry_at;	      /* time of the next attempt after its ring was full */
	bool ack_is_delayed;	      /* an ACK is delayed */
	bool ack_waits_for_recv_post; /* the delayed ACK waits for a receive to report */
	struct oracle oracle;
};

/* Ends of a host that wait for the in-flight budget, in order (share_queue.c). */
struct share_queue {
	struct sim_end *ends[PLAN_MAX_CONNECTIONS];
	uint32_t count;
	uint64_t look_at;
};

/* Ring of a side, where hosts share memory (ring.c). */
struct ring {
	uint64_t full_until, has_room_until;
};

struct connection {
	struct sim_end end[2];
	struct script script[2];
};

struct world {
	struct plan plan;
	uint32_t generation; /* generation of the plans */
	bool plans_flows;    /* by plan_make_flows() instead of plan_make() */
	struct net net;
	struct flows flows; /* used if plan.flows */
	struct connection connections[PLAN_MAX_CONNECTIONS];
	uint64_t now;
	uint64_t round_began;
	uint64_t serial;
	uint64_t last_progress; /* time of the last progress of any end */
	bool failed;
	char reason[WORLD_REASON_BYTES];
	bool verbose;
	const struct mutant *mutant;
	uint32_t mutations; /* number of faults that the mutant has caused */
	struct sim_random mutant_random;
	struct eng_inflight_budget share[2];
	struct share_queue share_queue[2];
	struct ring ring[2];
	struct receive_queue common_queue[2];
	struct script common_script[2]; /* receive requests of common_queue, and their memory */
	uint8_t *staging;
	struct eng_piece *pieces;
	/* Totals of all seeds. */
	struct {
		uint64_t packets, lost, damaged, slipped, messages, timeouts, repeated;
		uint64_t uc_ud_sent, uc_ud_received, shared_received, windows_bound, gone;
		uint64_t xrc_sent;
		uint64_t naks, rnr_naks, limited, unsolicited, errors, drains, virtual_ns;
	} total;
};

struct world *world_new(void);
void world_free(struct world *world);
/* Returns true if all checks passed; otherwise world->reason is the failure. */
bool world_run(struct world *world, uint64_t seed);

/* Records a failure, which ends the run.  Only the first one is kept. */
void world_fail(struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));
void world_trace(const struct sim_end *end, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void world_trace_packet(const struct sim_end *end, const char *what,
			const struct wire_packet *packet);

/* The end of a side that has this queue pair number, or NULL. */
struct sim_end *world_find(struct world *world, uint32_t side, uint32_t qpn);

/* host.c: one visit of a host to an end, and the time of the next one. */
void end_visit(struct sim_end *end);
uint64_t end_next_visit(const struct sim_end *end);
/* host_start.c; again: the QP of the last round is used again, from RESET on. */
void end_start(struct sim_end *end, bool again);
void end_set_state(struct sim_end *end, enum eng_qp_state state);
/* ops.c: [0] without eng_ops.get_recv_wqe, [1] with it. */
extern const struct eng_ops end_ops[2];
/*
 * transmit.c; most: maximum number of bursts.  Returns ENG_TX_BURST if there may be more to send,
 * ENG_TX_BACKPRESSURE if the transport has no room, or why nothing is sent.
 */
enum eng_tx end_transmit(struct sim_end *end, uint32_t most);
/* To be called after requests have been posted, which may be batched for the next round. */
void end_posted(struct sim_end *end);
/* share_queue.c: inputs of the engine, and actions when it waits for the in-flight budget. */
bool share_queue_is_used(const struct sim_end *end);
bool share_queue_waits(const struct sim_end *end);
void share_queue_add(struct sim_end *end);
void share_queue_serve(struct world *world, uint32_t side);
/* Returns true if the end waits for budget that may never be freed. */
bool share_queue_may_be_stuck(const struct sim_end *end);
uint64_t share_queue_next_at(const struct world *world, uint32_t side);
/* ring.c: start of a turn of end; its inputs to the engine; whether the ring accepts a burst. */
bool ring_is_used(const struct sim_end *end);
void ring_begin_turn(struct sim_end *end);
bool ring_looks_full(const struct sim_end *end);
bool ring_takes(struct sim_end *end, uint32_t packets);
/*
 * To be called if the ring did not accept a burst, or the engine did not build one for a full ring.
 */
void ring_blocks(struct sim_end *end);

#endif
