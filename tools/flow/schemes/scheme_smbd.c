// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * SMB Direct: each message grants credits for the receives posted since the last one.  Receives are
 * refilled together when few are left.  The last credit may only be used by a message that grants
 * credits.  After a refill an empty message grants them, unless only one receive was missing:
 * without that exception two idle endpoints would answer each other's empty messages without end
 * (smbd-chatty, a negative control).
 */
#include <stddef.h>

#include "scheme.h"

static uint32_t refill_at(uint32_t depth)
{
	return at_least(2, depth / 4);
}

static void init_state(struct scheme_state *s)
{
	s->credits = s->depth;
}

static bool may_send(const struct scheme_state *s, enum flow_kind kind)
{
	(void)kind;
	return s->credits > (s->unreported ? 0 : 1);
}

static void on_send(struct scheme_state *s, enum flow_kind kind, struct flow_update *update)
{
	(void)kind;
	s->credits--;
	increment_report(s, UINT16_MAX, update);
}

static bool empty_is_due(const struct scheme_state *s, bool waiting)
{
	return s->unreported > 1 && s->credits > 0 && !waiting;
}

static bool empty_is_due_always(const struct scheme_state *s, bool waiting)
{
	return s->unreported > 0 && s->credits > 0 && !waiting;
}

#define COMMON                                                                                    \
	.counted = "receives posted",                                                             \
	.carried_by = "increment in each message's header, empty messages",                       \
	.reserved = "the last one only with a grant", .source = "SMB Direct", .init = init_state, \
	.may_send = may_send, .on_send = on_send, .on_receive = increment_on_receive,             \
	.on_post = increment_on_post, .allowance = increment_allowance,                           \
	.unreported = increment_unreported

const struct scheme scheme_smbd = {
	.name = "smbd",
	COMMON,
	.reported = "after a refill of more than one",
	.refill_at = refill_at,
	.update_is_due = empty_is_due,
};

const struct scheme scheme_smbd_chatty = {
	.name = "smbd-chatty",
	.flags = SCHEME_CONTROL,
	COMMON,
	.reported = "after each refill",
	.update_is_due = empty_is_due_always,
};
