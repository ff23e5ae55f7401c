/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Traffic of a run: messages, their times, and how fast they are consumed.  A scenario and a seed
 * determine the messages of both endpoints, so every scheme gets the same traffic.  Times are in
 * nanoseconds.
 */
#ifndef UROCE_FLOW_SCENARIO_H
#define UROCE_FLOW_SCENARIO_H

#include <stdbool.h>
#include <stdint.h>

#include "scheme.h"

/* Side 0 is the active side, side 1 the receiver of one-way traffic. */
enum { FLOW_SIDES = 2, FLOW_LINKS = 64 };

enum flow_shape {
	SHAPE_STREAM,	/* the next message is ready when the previous one has been sent */
	SHAPE_REQUESTS, /* requests, each with a response; a limited number outstanding */
	SHAPE_BURSTS,	/* bursts at fixed times */
};

enum flow_op {
	OP_SEND,
	OP_WRITE_IMM,
	OP_WRITE,
	OP_READ,
	FLOW_OPS,
};

/* Result of a run. */
enum flow_verdict {
	VERDICT_RUNNING,
	VERDICT_OK,
	VERDICT_STUCK,	 /* deadlock: nothing is in flight and nothing may be sent */
	VERDICT_STORM,	 /* all work is done, but updates keep causing updates */
	VERDICT_OVERRUN, /* more messages sent than receives posted */
	VERDICT_LOST,	 /* credits were lost or duplicated */
	VERDICT_STALLED, /* no progress for stall_timeout_ns; not proven to be a deadlock */
	VERDICT_ERROR,	 /* error of the device or the set-up, or an endpoint has crashed */
	FLOW_VERDICTS,
};
const char *flow_verdict_name(enum flow_verdict verdict);

struct scenario {
	const char *name, *about;
	enum flow_shape shape;
	uint32_t links;			 /* number of connections */
	uint32_t depth;			 /* receives promised to each connection */
	uint32_t bytes;			 /* message size */
	uint32_t count[FLOW_SIDES];	 /* messages of each side on each connection */
	uint64_t service_ns[FLOW_SIDES]; /* mean time to consume a message, one at a time */
	uint64_t pause_ns;		 /* consumption begins after this time */
	uint32_t requests;		 /* maximum number of outstanding requests */
	uint64_t burst_gap_ns;		 /* time between bursts */
	uint32_t mixed_percent;		 /* share of each of WRITE_IMM, WRITE and READ */
	bool shared;			 /* side 1 has an SRQ */
	/* SRQ size in percent of all promises, if the scheme can share or only_control is set */
	uint32_t shared_percent;
	const char *faults; /* UROCE_FAULT without the seed */
	bool in_turn;	    /* side 1 starts when it has consumed all messages of side 0 */
	bool unreliable;    /* UC instead of RC */
	bool only_control;  /* only for a negative control */
};

/* The eight scenarios, then those of negative controls; the last entry has name NULL. */
extern const struct scenario scenarios[];
const struct scenario *scenario_find(const char *name);

/* A negative control: the scheme must fail under the scenario, with the predicted verdict. */
struct flow_control_pair {
	const char *scenario, *scheme;
	enum flow_verdict predicted;
	const char *reason;
};
extern const struct flow_control_pair control_pairs[];

enum flow_op scenario_op(const struct scenario *sc, uint64_t seed, uint32_t side, uint32_t link,
			 uint32_t index);
/* SHAPE_BURSTS: returns the time from the start at which message index is ready. */
uint64_t scenario_burst_ns(const struct scenario *sc, uint32_t index);
/* Returns the time to consume message number: between 0.5 and 1.5 times service_ns. */
uint64_t scenario_service_ns(const struct scenario *sc, uint64_t seed, uint32_t side,
			     uint32_t number);

#endif
