// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * SMB Direct: each message grants credits for the receives posted since the last one.  Receives are
 * refilled together when few are left.  The last credit may only be used by a message that grants
 * credits.  After a refill an empty message grants them, unless only one receive was missing:
 * without that exception two idle endpoints would answer each other's empty messages for ever
 * (smbd-chatty, a negative control).
 */
#include <stddef.h>

#include "scheme.h"

static uint32_t refill_at(uint32_t depth)
{
	return at_least(2, depth / 4);
}

static void begin(struct scheme_state *s)
{
	s->credits = s->depth;
}

static bool may_send(const struct scheme_state *s, enum flow_kind kind)
{
	(void)kind;
	return s->credits > (s->untold ? 0 : 1);
}

static void sending(struct scheme_state *s, enum flow_kind kind, struct flow_news *news)
{
	(void)kind;
	s->credits--;
	increment_tell(s, UINT16_MAX, news);
}

static bool wants_empty(const struct scheme_state *s, bool waiting)
{
	return s->untold > 1 && s->credits > 0 && !waiting;
}

static bool wants_empty_always(const struct scheme_state *s, bool waiting)
{
	return s->untold > 0 && s->credits > 0 && !waiting;
}

#define COMMON                                                                                \
	.counted = "receives posted",                                                         \
	.travels = "increment in each message's header, empty messages",                      \
	.reserved = "the last one only with a grant", .source = "SMB Direct", .begin = begin, \
	.may_send = may_send, .sending = sending, .heard = increment_heard,                   \
	.posted = increment_posted, .allowance = increment_allowance, .hidden = increment_hidden

const struct scheme scheme_smbd = {
	.name = "smbd",
	COMMON,
	.told = "after a refill of more than one",
	.refill_at = refill_at,
	.wants_control = wants_empty,
};

const struct scheme scheme_smbd_chatty = {
	.name = "smbd-chatty",
	.flags = SCHEME_CONTROL,
	COMMON,
	.told = "after each refill",
	.wants_control = wants_empty_always,
};
