/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * One endpoint of a run: its connections, the messages still to be sent, and those received and not
 * yet consumed.  Pure: the caller, a loop over verbs (device/runner.c) or a simulation, passes in
 * the time and posts the messages that endpoint_next() returns.
 */
#ifndef UROCE_FLOW_ENDPOINT_H
#define UROCE_FLOW_ENDPOINT_H

#include "shared_stats.h"
#include "scenario.h"
#include "scheme.h"

enum {
	ENDPOINT_SQ = 64,	    /* size of a send queue in WQEs */
	ENDPOINT_SQ_CONTROL = 8,    /* number of these WQEs that are reserved for updates */
	ENDPOINT_APP_QUEUE = 32,    /* maximum lead of WRITEs and READs over counted messages */
	ENDPOINT_RESPONSES = 1024,  /* maximum number of pending responses of a connection */
	ENDPOINT_INBOX = 1 << 15,   /* maximum number of messages to be consumed */
	ENDPOINT_SAMPLES = 1 << 16, /* maximum number of latency samples */
};
#define NEVER UINT64_MAX

/* A message to be posted, or received with the fields of its header. */
struct flow_message {
	enum flow_op op;
	enum flow_kind kind;
	struct flow_update update;
	uint32_t link, bytes;
	/*
	 * time at which the application had the message; FLOW_RESPONSE: had the request.  By the
	 * local clock, but in requests and responses by the requester's.
	 */
	uint64_t ready_ns;
};

/* Latency samples in ns; further ones are ignored. */
struct samples {
	uint32_t count;
	uint32_t ns[ENDPOINT_SAMPLES];
};

/* State of one connection. */
struct flow_link {
	struct scheme_state s;
	uint32_t to_send, next;	 /* plan: number of messages, next that consumes a receive */
	uint32_t next_uncounted; /* index of the next WRITE or READ of the plan */
	uint32_t to_consume, consumed;
	uint32_t outstanding_requests;
	uint64_t ready_since_ns;   /* SHAPE_STREAM: time at which the next message was ready */
	uint64_t last_response_ns; /* time at which the last response was consumed */
	uint64_t blocked_ns;	   /* time since which the next message is blocked, or NEVER */
	uint64_t responses[ENDPOINT_RESPONSES]; /* ready_ns of requests to be answered, a ring */
	uint32_t responses_in, responses_out;
	uint32_t updates_in_flight;
	uint32_t posted;	    /* receives posted at present */
	uint32_t freed[FLOW_KINDS]; /* number of free buffers to be reposted, by kind of message */
	struct flow_message sq[ENDPOINT_SQ]; /* messages posted and not completed, a ring */
	uint32_t sq_in, sq_out;
};

/* A received message that has not been consumed. */
struct waiting_message {
	uint64_t arrived_ns, ready_ns;
	uint32_t link;
	enum flow_kind kind;
};

struct flow_endpoint {
	const struct scenario *sc;
	const struct scheme *scheme;
	uint64_t seed;
	uint32_t side, link_count;
	bool shared; /* this side has an SRQ */
	bool strict; /* exceeding the posted receives is a fault */
	struct endpoint_stats *mine, *peer_stats;
	bool stats_shared; /* peer_stats is in shared memory */
	uint64_t started_ns, last_finish_ns;
	uint32_t inbox_in, inbox_out, consumed_number;
	uint64_t total_to_consume;
	uint32_t half_consumed[FLOW_LINKS];
	struct endpoint_result result;
	struct flow_link link[FLOW_LINKS];
	struct waiting_message inbox[ENDPOINT_INBOX];
	struct samples latency, free_latency;
};

/* Returns the number of receives of a connection, or of the SRQ. */
uint32_t endpoint_receives(const struct scenario *sc, const struct scheme *scheme, uint32_t side);
/* Returns true if the side has an SRQ. */
bool endpoint_has_srq(const struct scenario *sc, uint32_t side);

/* sc, scheme, seed and side have been set, everything else is 0. */
void endpoint_init(struct flow_endpoint *st, struct run_stats *stats);
/*
 * Called when the first endpoint_receives() receives have been posted to each connection, or to the
 * SRQ: counts them.
 */
void endpoint_receives_posted(struct flow_endpoint *st);
void endpoint_start(struct flow_endpoint *st, uint64_t now);

/*
 * Stores the next message that must be posted on a connection in *out, and counts it as sent.
 * Returns false if there is none.
 */
bool endpoint_next(struct flow_endpoint *st, uint32_t link, uint64_t now, struct flow_message *out);
/* Called when the oldest posted message of a connection has completed: frees its send WQE. */
void endpoint_completed(struct flow_endpoint *st, uint32_t link, uint64_t now);
/* Handles a message that consumed a receive (taken), or an update by RDMA WRITE (not taken). */
void endpoint_arrived(struct flow_endpoint *st, const struct flow_message *message, bool taken,
		      uint64_t now);
/* Consumes all messages whose service time has passed. */
void endpoint_advance(struct flow_endpoint *st, uint64_t now);
/*
 * Returns the number of receives that must be posted; when they are, endpoint_posted() must be
 * called.
 */
uint32_t endpoint_to_post(const struct flow_endpoint *st, uint32_t link);
void endpoint_posted(struct flow_endpoint *st, uint32_t link, uint32_t count);

/* Returns the time at which the endpoint must be called if no event occurs before, or NEVER. */
uint64_t endpoint_deadline(const struct flow_endpoint *st);
/* Returns true if all messages have been sent, completed and consumed, except updates. */
bool endpoint_is_done(const struct flow_endpoint *st);
/*
 * Returns true if nothing can happen without an event: no deadline, no message posted, no receive
 * to post.
 */
bool endpoint_is_idle(const struct flow_endpoint *st);
/* Stores in text why the next message may not be sent. */
void endpoint_explain(const struct flow_endpoint *st, char *text, uint32_t size);
/* Computes the results and writes them to the stats. */
void endpoint_finish(struct flow_endpoint *st);

#endif
