/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "timing.h"

#include "cm.h"

#define MAX_TIME_CODE 31
/*
 * Minimum interval and timewait, even if time codes of messages specify less: the process of the
 * peer must be woken, and may be one of many.
 */
#define MIN_INTERVAL (50 * CM_MS)
#define MIN_TIMEWAIT (50 * CM_MS)

static const uint64_t first_delays[] = CM_FIRST_RETRY_DELAYS;
#define FIRST_DELAYS (sizeof(first_delays) / sizeof(first_delays[0]))

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t cm_code_ns(uint8_t code)
{
	return UINT64_C(4096) << (code < MAX_TIME_CODE ? code : MAX_TIME_CODE);
}

uint8_t cm_ack_timeout(uint8_t ack_delay, uint8_t packet_life)
{
	unsigned int trip = packet_life + 1u, delay = ack_delay, code;

	/* Exponent of 2^trip + 2^delay, rounded up, without a term below half of the other. */
	if (trip >= delay)
		code = trip + (delay + 1 >= trip);
	else
		code = delay + (trip + 1 >= delay);
	return (uint8_t)(code < MAX_TIME_CODE ? code : MAX_TIME_CODE);
}

static void set_interval_and_limit(struct timing *timing, uint64_t interval, uint8_t retries)
{
	if (interval < MIN_INTERVAL)
		interval = MIN_INTERVAL;
	timing->interval = min_u64(interval, CM_GIVE_UP_NS);
	timing->limit = min_u64(timing->interval * (retries + 1u), CM_GIVE_UP_NS);
}

void cm_timing_set(struct timing *timing, uint8_t response, uint8_t life, uint8_t retries)
{
	set_interval_and_limit(timing, 2 * cm_code_ns(life) + cm_code_ns(response), retries);
}

void cm_timing_set_response(struct timing *timing, uint8_t response, uint8_t retries)
{
	set_interval_and_limit(timing, cm_code_ns(response), retries);
}

void cm_timing_start(struct timing *timing, uint64_t at_most, uint64_t now)
{
	timing->repeated = 0;
	timing->extended = false;
	timing->repeat_at = now + min_u64(first_delays[0], timing->interval);
	timing->give_up_at = now + min_u64(timing->limit, at_most);
}

void cm_timing_repeated(struct timing *timing, uint64_t now)
{
	uint64_t pause = timing->interval;

	timing->repeated++;
	if (timing->repeated < FIRST_DELAYS && !timing->extended)
		pause = min_u64(first_delays[timing->repeated], pause);
	timing->repeat_at = now + pause;
}

void cm_timing_extend(struct timing *timing, uint8_t service_time, uint64_t now)
{
	uint64_t until;

	if (timing->extended)
		return;
	timing->extended = true;
	until = now + min_u64(cm_code_ns(service_time) + timing->interval, CM_GIVE_UP_NS);
	if (until > timing->give_up_at)
		timing->give_up_at = until;
	timing->repeat_at = now + timing->interval;
}

uint64_t cm_timing_timewait(uint8_t ack_timeout)
{
	uint64_t time = min_u64(cm_code_ns(ack_timeout), CM_TIMEWAIT_MAX_NS);

	return time < MIN_TIMEWAIT ? MIN_TIMEWAIT : time;
}
