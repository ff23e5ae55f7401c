/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * When messages are repeated and when that ends, as numbers.
 */
#ifndef UROCE_CM_TIMING_H
#define UROCE_CM_TIMING_H

#include <stdbool.h>
#include <stdint.h>

/* The repetitions of one message. */
struct timing {
	uint64_t interval; /* between repetitions that are not early, ns */
	uint64_t limit;	   /* how long it is tried, ns */
	uint64_t repeat_at;
	uint64_t give_up_at;
	uint32_t repeated;
	bool stretched; /* the peer has asked for more time, which it may do once */
};

/*
 * response: how long the peer may take; life: the longest one-way trip; both IBA time codes.  The
 * time of an answer is two trips and the response, and it is tried retries + 1 times that.
 */
void cm_timing_set(struct timing *timing, uint8_t response, uint8_t life, uint8_t retries);
/* For what has no trip of its own in its attributes (REP, SIDR_REQ). */
void cm_timing_set_response(struct timing *timing, uint8_t response, uint8_t retries);

/* The message has just been sent for the first time; at_most bounds the limit. */
void cm_timing_start(struct timing *timing, uint64_t at_most, uint64_t now);
/* It has been repeated. */
void cm_timing_repeated(struct timing *timing, uint64_t now);
/* The peer says that its answer takes this long (code). */
void cm_timing_stretch(struct timing *timing, uint8_t service_time, uint64_t now);

static inline uint64_t cm_timing_next(const struct timing *timing)
{
	return timing->repeat_at < timing->give_up_at ? timing->repeat_at : timing->give_up_at;
}

/* How long a connection with this ACK timeout (code) is remembered when it is closed. */
uint64_t cm_timing_timewait(uint8_t ack_timeout);

#endif
