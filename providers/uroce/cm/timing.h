/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Times of repetitions, as arithmetic without clock. */
#ifndef UROCE_CM_TIMING_H
#define UROCE_CM_TIMING_H

#include <stdbool.h>
#include <stdint.h>

/* Repetitions of one message.  Times in ns. */
struct timing {
	uint64_t interval; /* between repetitions after the first ones (CM_FIRST_RETRY_DELAYS) */
	uint64_t limit;	   /* maximum time from the first transmission to giving up */
	uint64_t repeat_at;
	uint64_t give_up_at;
	uint32_t repeated;
	bool extended; /* an MRA has extended the time, which is allowed once */
};

/*
 * Sets interval and limit.  response: how long the peer may take to reply; life: maximum one-way
 * delay; both time codes.  The interval is response + 2 life, and the limit retries + 1 intervals.
 */
void cm_timing_set(struct timing *timing, uint8_t response, uint8_t life, uint8_t retries);
/* Same, for messages without a packet life time in their attributes (REP, SIDR_REQ). */
void cm_timing_set_response(struct timing *timing, uint8_t response, uint8_t retries);

/* Starts the timers after the first transmission; at_most is an upper bound of the limit. */
void cm_timing_start(struct timing *timing, uint64_t at_most, uint64_t now);
/* Restarts the timer after a repetition. */
void cm_timing_repeated(struct timing *timing, uint64_t now);
/* Extends the time as requested by an MRA; service_time is a time code. */
void cm_timing_extend(struct timing *timing, uint8_t service_time, uint64_t now);

static inline uint64_t cm_timing_next(const struct timing *timing)
{
	return timing->repeat_at < timing->give_up_at ? timing->repeat_at : timing->give_up_at;
}

/* Returns the duration of timewait for this Local ACK Timeout (time code). */
uint64_t cm_timing_timewait(uint8_t ack_timeout);

#endif
