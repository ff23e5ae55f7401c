// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * UCX over RC: the sender counts its messages down from a window.  At half of it a flag requests a
 * grant that is piggybacked on a reply, at a quarter another flag requests an immediate one.  A
 * grant is not a number but resets the window.  It means that messages have been polled, not that
 * receives are posted; overruns are left to RNR NAKs.
 */
#include <stddef.h>

#include "scheme.h"

enum {
	FLAG_SOFT = 1,
	FLAG_HARD = 2,
	FLAG_GRANT = 4,
};

static void init_state(struct scheme_state *s)
{
	s->credits = s->depth;
}

static bool may_send(const struct scheme_state *s, enum flow_kind kind)
{
	(void)kind;
	return s->credits > 0;
}

static void on_send(struct scheme_state *s, enum flow_kind kind, struct flow_update *update)
{
	if (s->update_requested || s->report_pending)
		update->flags |= FLAG_GRANT;
	s->update_requested = s->report_pending = false;
	if (kind == FLOW_CONTROL)
		return;
	s->credits--;
	if (s->credits == s->depth / 2)
		update->flags |= FLAG_SOFT;
	else if (s->credits == s->depth / 4)
		update->flags |= FLAG_HARD;
}

static void on_receive(struct scheme_state *s, enum flow_kind kind,
		       const struct flow_update *update)
{
	(void)kind;
	if (update->flags & FLAG_GRANT)
		s->credits = s->depth;
	if (update->flags & FLAG_SOFT)
		s->report_pending = true;
	if (update->flags & FLAG_HARD)
		s->update_requested = true;
}

static bool update_is_due(const struct scheme_state *s, bool waiting)
{
	(void)waiting;
	return s->update_requested;
}

const struct scheme scheme_ucx = {
	.name = "ucx",
	.flags = SCHEME_RNR_IS_PART | SCHEME_SHARES_RECEIVES,
	.counted = "messages since the last grant",
	.carried_by = "three bits of each message",
	.reported = "on request at half and at a quarter of the window",
	.reserved = "-",
	.source = "UCX uct/ib/rc",
	.init = init_state,
	.may_send = may_send,
	.on_send = on_send,
	.on_receive = on_receive,
	.on_post = ignore_post,
	.update_is_due = update_is_due,
};
