// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * libfabric's verbs provider under rxm: credits are reported in separate messages, never with data.
 * One is sent when half of the receives are unreported; the last credit is reserved for it.  A new
 * connection has one credit, and each endpoint first reports the rest.
 */
#include <stddef.h>

#include "scheme.h"

static void init_state(struct scheme_state *s)
{
	s->credits = 1;
	s->unreported = s->depth - 1;
}

static bool may_send(const struct scheme_state *s, enum flow_kind kind)
{
	(void)kind;
	return s->credits > 1;
}

static void on_send(struct scheme_state *s, enum flow_kind kind, struct flow_update *update)
{
	s->credits--;
	if (kind == FLOW_CONTROL)
		increment_report(s, UINT16_MAX, update);
}

static bool update_is_due(const struct scheme_state *s, bool waiting)
{
	(void)waiting;
	return s->unreported >= s->depth / 2 && s->credits > 0;
}

const struct scheme scheme_rxm = {
	.name = "rxm",
	.counted = "receives posted",
	.carried_by = "increment in a separate message",
	.reported = "when half are unreported",
	.reserved = "one, for an update",
	.source = "libfabric rxm and verbs",
	.init = init_state,
	.may_send = may_send,
	.on_send = on_send,
	.on_receive = increment_on_receive,
	.on_post = increment_on_post,
	.update_is_due = update_is_due,
	.allowance = increment_allowance,
	.unreported = increment_unreported,
};
