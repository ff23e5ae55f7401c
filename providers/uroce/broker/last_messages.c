/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "last_messages.h"

#include <assert.h>
#include <stddef.h>

enum {
	/*
	 * Number of checks at the short interval: a process that ends closes its files one by one,
	 * so that its lock is released some time after its connection.
	 */
	FAST_CHECKS = 50,
};
#define FAST_CHECK_NS UINT64_C(20000000)
/* Interval of later checks: the client is stopped, or is connected to another broker. */
#define SLOW_CHECK_NS UINT64_C(1000000000)

/* Pause before each round, in ns.  The first one lets the client finish its exit. */
static const uint64_t round_pause_ns[] = { 2000000, 50000000, 250000000, 1000000000 };
#define ROUNDS (sizeof(round_pause_ns) / sizeof(round_pause_ns[0]))

_Static_assert(LAST_MESSAGES_ENTRIES % LAST_MESSAGES_CHUNK == 0, "the last chunk would be cut");

void last_messages_start(struct last_messages *last, uint64_t now)
{
	*last = (struct last_messages){
		.step = LAST_MESSAGES_CHECK_LOCK,
		.due = now + round_pause_ns[0],
	};
}

enum last_messages_step last_messages_next_step(const struct last_messages *last, uint64_t now)
{
	if (last->step != LAST_MESSAGES_DONE && now < last->due)
		return LAST_MESSAGES_WAIT;
	return last->step;
}

void last_messages_owner_runs(struct last_messages *last, uint64_t now)
{
	assert(last->step == LAST_MESSAGES_CHECK_LOCK);
	last->alive_checks++;
	last->due = now + (last->alive_checks < FAST_CHECKS ? FAST_CHECK_NS : SLOW_CHECK_NS);
}

void last_messages_owner_ended(struct last_messages *last)
{
	assert(last->step == LAST_MESSAGES_CHECK_LOCK);
	last->step = LAST_MESSAGES_SEND;
}

void last_messages_chunk_sent(struct last_messages *last, uint32_t count, uint64_t now)
{
	assert(last->step == LAST_MESSAGES_SEND);
	last->has_sent |= count > 0;
	last->position += LAST_MESSAGES_CHUNK;
	if (last->position < LAST_MESSAGES_ENTRIES)
		return;
	last->position = 0;
	last->round++;
	if (!last->has_sent || last->round == ROUNDS)
		last->step = LAST_MESSAGES_DONE;
	else
		last->due = now + round_pause_ns[last->round];
	last->has_sent = false;
}

bool last_messages_delay_requests(const struct last_messages *last)
{
	return last->step != LAST_MESSAGES_DONE && last->round == 0 &&
	       last->alive_checks < FAST_CHECKS;
}
