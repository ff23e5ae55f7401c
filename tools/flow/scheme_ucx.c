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

static void begin(struct scheme_state *s)
{
	s->credits = s->depth;
}

static bool may_send(const struct scheme_state *s, enum flow_kind kind)
{
	(void)kind;
	return s->credits > 0;
}

static void sending(struct scheme_state *s, enum flow_kind kind, struct flow_news *news)
{
	if (s->asked || s->owed)
		news->flags |= FLAG_GRANT;
	s->asked = s->owed = false;
	if (kind == FLOW_CONTROL)
		return;
	s->credits--;
	if (s->credits == s->depth / 2)
		news->flags |= FLAG_SOFT;
	else if (s->credits == s->depth / 4)
		news->flags |= FLAG_HARD;
}

static void heard(struct scheme_state *s, enum flow_kind kind, const struct flow_news *news)
{
	(void)kind;
	if (news->flags & FLAG_GRANT)
		s->credits = s->depth;
	if (news->flags & FLAG_SOFT)
		s->owed = true;
	if (news->flags & FLAG_HARD)
		s->asked = true;
}

static bool wants_control(const struct scheme_state *s, bool waiting)
{
	(void)waiting;
	return s->asked;
}

const struct scheme scheme_ucx = {
	.name = "ucx",
	.flags = SCHEME_RNR_IS_PART | SCHEME_POOLS,
	.counted = "messages since the last grant",
	.travels = "three bits of each message",
	.told = "asked for at half and at a quarter of the window",
	.reserved = "-",
	.source = "UCX uct/ib/rc",
	.begin = begin,
	.may_send = may_send,
	.sending = sending,
	.heard = heard,
	.posted = uncounted_posted,
	.wants_control = wants_control,
};
