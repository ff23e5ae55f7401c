// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * libfabric's verbs provider under rxm: credits are reported in separate messages, never with data.
 * One is sent when half of the receives are unreported; the last credit is reserved for it.  A new
 * connection has one credit, and each endpoint first reports the rest.
 */
#include <stddef.h>

#include "scheme.h"

static void begin(struct scheme_state *s)
{
	s->credits = 1;
	s->untold = s->depth - 1;
}

static bool may_send(const struct scheme_state *s, enum flow_kind kind)
{
	(void)kind;
	return s->credits > 1;
}

static void sending(struct scheme_state *s, enum flow_kind kind, struct flow_news *news)
{
	s->credits--;
	if (kind == FLOW_CONTROL)
		increment_tell(s, UINT16_MAX, news);
}

static bool wants_control(const struct scheme_state *s, bool waiting)
{
	(void)waiting;
	return s->untold >= s->depth / 2 && s->credits > 0;
}

const struct scheme scheme_rxm = {
	.name = "rxm",
	.counted = "receives posted",
	.travels = "increment in a message of its own",
	.told = "when half are untold",
	.reserved = "one, for an update",
	.source = "libfabric rxm and verbs",
	.begin = begin,
	.may_send = may_send,
	.sending = sending,
	.heard = increment_heard,
	.posted = increment_posted,
	.wants_control = wants_control,
	.allowance = increment_allowance,
	.hidden = increment_hidden,
};
