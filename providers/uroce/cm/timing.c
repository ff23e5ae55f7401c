/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "timing.h"

#include "cm.h"

#define LONGEST_CODE 31
/*
 * Lower bounds on what the time codes of messages specify: the process of the peer must be woken,
 * and may be one of many.
 */
#define SHORTEST_INTERVAL (50 * CM_MS)
#define SHORTEST_TIMEWAIT (50 * CM_MS)

static const uint64_t early[] = CM_EARLY_RETRIES;
#define EARLY (sizeof(early) / sizeof(early[0]))

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t cm_code_ns(uint8_t code)
{
	return UINT64_C(4096) << (code < LONGEST_CODE ? code : LONGEST_CODE);
}

uint8_t cm_ack_timeout(uint8_t ack_delay, uint8_t packet_life)
{
	unsigned int trip = packet_life + 1u, delay = ack_delay, code;

	/*
	 * Exponent of 2^trip + 2^delay, rounded up; a term less than half of the other is
	 * neglected.
	 */
	if (trip >= delay)
		code = trip + (delay + 1 >= trip);
	else
		code = delay + (trip + 1 >= delay);
	return (uint8_t)(code < LONGEST_CODE ? code : LONGEST_CODE);
}

static void set_interval(struct timing *timing, uint64_t interval, uint8_t retries)
{
	if (interval < SHORTEST_INTERVAL)
		interval = SHORTEST_INTERVAL;
	timing->interval = smaller(interval, CM_GIVE_UP_NS);
	timing->limit = smaller(timing->interval * (retries + 1u), CM_GIVE_UP_NS);
}

void cm_timing_set(struct timing *timing, uint8_t response, uint8_t life, uint8_t retries)
{
	set_interval(timing, 2 * cm_code_ns(life) + cm_code_ns(response), retries);
}

void cm_timing_set_response(struct timing *timing, uint8_t response, uint8_t retries)
{
	set_interval(timing, cm_code_ns(response), retries);
}

void cm_timing_start(struct timing *timing, uint64_t at_most, uint64_t now)
{
	timing->repeated = 0;
	timing->stretched = false;
	timing->repeat_at = now + smaller(early[0], timing->interval);
	timing->give_up_at = now + smaller(timing->limit, at_most);
}

void cm_timing_repeated(struct timing *timing, uint64_t now)
{
	uint64_t pause = timing->interval;

	timing->repeated++;
	if (timing->repeated < EARLY && !timing->stretched)
		pause = smaller(early[timing->repeated], pause);
	timing->repeat_at = now + pause;
}

void cm_timing_stretch(struct timing *timing, uint8_t service_time, uint64_t now)
{
	uint64_t until;

	if (timing->stretched)
		return;
	timing->stretched = true;
	until = now + smaller(cm_code_ns(service_time) + timing->interval, CM_GIVE_UP_NS);
	if (until > timing->give_up_at)
		timing->give_up_at = until;
	timing->repeat_at = now + timing->interval;
}

uint64_t cm_timing_timewait(uint8_t ack_timeout)
{
	uint64_t time = smaller(cm_code_ns(ack_timeout), CM_TIMEWAIT_MAX_NS);

	return time < SHORTEST_TIMEWAIT ? SHORTEST_TIMEWAIT : time;
}
