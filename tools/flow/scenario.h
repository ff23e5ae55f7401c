/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What is sent, when, and how fast it is consumed.  A scenario and a seed determine both ends'
 * messages, so the same traffic runs under every scheme.  Times are in nanoseconds.
 */
#ifndef UROCE_FLOW_SCENARIO_H
#define UROCE_FLOW_SCENARIO_H

#include <stdbool.h>
#include <stdint.h>

#include "scheme.h"

/* Side 0 begins, side 1 is the receiver of what goes one way. */
enum { FLOW_SIDES = 2, FLOW_LINKS = 64 };

enum flow_shape {
	SHAPE_STREAM, /* the next message is there as soon as the last one has gone */
	SHAPE_REQUESTS,
	SHAPE_BURSTS,
};

enum flow_op {
	OP_SEND,
	OP_WRITE_IMM,
	OP_WRITE,
	OP_READ,
	FLOW_OPS,
};

/* How a run ends. */
enum flow_verdict {
	VERDICT_RUNNING,
	VERDICT_OK,
	VERDICT_STUCK,	 /* deadlock: nothing is on its way, and nothing may be sent */
	VERDICT_STORM,	 /* all is done, and updates go on answering updates */
	VERDICT_OVERRUN, /* more was sent than there were receives */
	VERDICT_LOST,	 /* credits were lost or doubled */
	VERDICT_STALLED, /* no progress for the patience; not proven to be a deadlock */
	VERDICT_ERROR,	 /* the device, the set-up, an end that died */
	FLOW_VERDICTS,
};
const char *flow_verdict_name(enum flow_verdict verdict);

struct scenario {
	const char *name, *about;
	enum flow_shape shape;
	uint32_t links;			 /* connections */
	uint32_t depth;			 /* receives promised to each */
	uint32_t bytes;			 /* of a message */
	uint32_t count[FLOW_SIDES];	 /* messages of each side, on each connection */
	uint64_t service_ns[FLOW_SIDES]; /* to consume one message; one at a time */
	uint64_t pause_ns;		 /* nothing is consumed before */
	uint32_t requests;		 /* on their way at a time */
	uint64_t burst_gap_ns;
	uint32_t mixed_percent; /* of WRITE_IMM, of WRITE and of READ each */
	bool shared;		/* side 1 has one shared receive queue */
	uint32_t
		shared_percent; /* of its receives, where schemes can share: part of all promises */
	const char *faults;	/* UROCE_FAULT without its seed */
	bool in_turn;		/* side 1 begins when it has consumed all of side 0 */
	bool unreliable;	/* UC instead of RC */
	bool only_control;	/* made for a negative control */
};

/* The eight scenarios, then those of negative controls; ends with one without a name. */
extern const struct scenario scenarios[];
const struct scenario *scenario_find(const char *name);

/* The negative control of each scenario: what must fail, and how. */
struct flow_control_pair {
	const char *scenario, *scheme;
	enum flow_verdict predicted;
	const char *because;
};
extern const struct flow_control_pair control_pairs[];

enum flow_op scenario_op(const struct scenario *sc, uint64_t seed, uint32_t side, uint32_t link,
			 uint32_t index);
/* When a message of SHAPE_BURSTS is there, counted from the beginning. */
uint64_t scenario_burst_ns(const struct scenario *sc, uint32_t index);
/* Between half and one and a half of service_ns. */
uint64_t scenario_service_ns(const struct scenario *sc, uint64_t seed, uint32_t side,
			     uint32_t number);

#endif
