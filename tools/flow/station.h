/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * One end of a run: its connections, what it still has to send, the messages that it has received
 * and not yet consumed.  Pure: time is passed in, and what is to be posted is handed out, to a loop
 * over verbs (end.c) or to a simulation.
 */
#ifndef UROCE_FLOW_STATION_H
#define UROCE_FLOW_STATION_H

#include "ledger.h"
#include "scenario.h"
#include "scheme.h"

enum {
	STATION_SQ = 64,	 /* requests in a send queue */
	STATION_SQ_CONTROL = 8,	 /* of these, only for updates */
	STATION_APP_QUEUE = 32,	 /* how far what is free may run ahead of what counts */
	STATION_ANSWERS = 1024,	 /* answers that wait on a connection */
	STATION_INBOX = 1 << 15, /* messages that wait to be consumed */
	STATION_SAMPLES = 1 << 16,
};
#define NEVER UINT64_MAX

/* A message, as it is handed out, and as its header brings it to the other end. */
struct flow_message {
	enum flow_op op;
	enum flow_kind kind;
	struct flow_news news;
	uint32_t link, bytes;
	uint64_t ready_ns;  /* when the application had it, by the clock of the first sender */
	uint64_t posted_ns; /* not sent: when it was handed out */
};

struct samples {
	uint32_t count;
	uint32_t ns[STATION_SAMPLES];
};

struct flow_link {
	struct scheme_state s;
	uint32_t to_send, next; /* messages of the plan, and the first that has not gone */
	uint32_t next_free;	/* the first WRITE or READ of it that has not gone */
	uint32_t to_consume, consumed;
	uint32_t open_requests;
	uint64_t head_ns;		   /* when the next message of the plan was there */
	uint64_t room_ns;		   /* when the last answer made room for a request */
	uint64_t blocked_ns;		   /* since when the head is blocked, or NEVER */
	uint64_t answers[STATION_ANSWERS]; /* times of the requests that wait for an answer */
	uint32_t answers_in, answers_out;
	uint32_t control_in_flight;
	uint32_t posted;	    /* receives that are posted now */
	uint32_t freed[FLOW_KINDS]; /* buffers that are free and not posted */
	uint64_t receives_taken;
	struct flow_message sq[STATION_SQ]; /* handed out and not complete, a ring */
	uint32_t sq_in, sq_out;
};

struct waiting_message {
	uint64_t arrived_ns, ready_ns;
	uint32_t link;
	enum flow_kind kind;
};

struct station {
	const struct scenario *sc;
	const struct scheme *scheme;
	uint64_t seed;
	uint32_t side, link_count;
	bool shared; /* the receives of this side are one shared queue */
	bool strict; /* promises are checked */
	struct side_ledger *mine, *peers;
	bool peer_seen; /* the peer's ledger is memory that it writes to */
	uint64_t started_ns, last_finish_ns;
	uint32_t inbox_in, inbox_out, consumed_number;
	uint64_t total_to_consume;
	uint32_t half_consumed[FLOW_LINKS];
	struct side_result result;
	struct flow_link link[FLOW_LINKS];
	struct waiting_message inbox[STATION_INBOX];
	struct samples latency, free_latency;
};

/* The receives of one connection, or of the shared queue, and of what depth the promise is. */
uint32_t station_receives(const struct scenario *sc, const struct scheme *scheme, uint32_t side);
uint32_t station_depth(const struct scenario *sc, const struct scheme *scheme, uint32_t side);
bool station_shares(const struct scenario *sc, uint32_t side);

void station_begin(struct station *st, const struct scenario *sc, const struct scheme *scheme,
		   uint64_t seed, uint32_t side, struct ledger *ledger);
/* The first receives have been posted: station_receives() for each connection, or for all. */
void station_first_posted(struct station *st);
void station_start(struct station *st, uint64_t now);

/* The next message of a connection that is to be posted now; it is accounted as sent. */
bool station_next(struct station *st, uint32_t link, uint64_t now, struct flow_message *out);
/* The oldest message of a connection that was handed out is complete. */
void station_completed(struct station *st, uint32_t link, uint64_t now);
/* A message came and took a receive, or an update came by RDMA WRITE (taken: false). */
void station_arrived(struct station *st, const struct flow_message *message, bool taken,
		     uint64_t now);
/* Consume what time allows. */
void station_advance(struct station *st, uint64_t now);
/* So many receives are to be posted; station_posted() when they are. */
uint32_t station_to_post(const struct station *st, uint32_t link);
void station_posted(struct station *st, uint32_t link, uint32_t count);

/* When to call again without an event; NEVER: not at all. */
uint64_t station_deadline(const struct station *st);
bool station_done(const struct station *st);
/* Nothing is complete or to be posted, and nothing waits to be consumed. */
bool station_quiet(const struct station *st);
/* Why the next message may not go, for people. */
void station_explain(const struct station *st, char *text, uint32_t size);
/* Results into the ledger. */
void station_end(struct station *st);

#endif
