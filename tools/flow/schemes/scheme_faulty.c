// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Negative controls: simple incremental schemes, each with a typical fault of credit schemes.  If
 * one of them does not fail, the checks of uroce-flow prove nothing.
 *
 *   naive        reserves nothing: an update needs a credit, and there may be none
 *   blind-imm    does not count WRITEs with immediate, which consume a receive as well
 *   grant-early  reports a receive when a message arrives, before it is reposted
 */
#include <stddef.h>

#include "scheme.h"

static void init_state(struct scheme_state *s)
{
	s->credits = s->depth;
	s->threshold = s->depth / 2;
}

static bool may_send(const struct scheme_state *s, enum flow_kind kind)
{
	(void)kind;
	return s->credits > 0;
}

/* The last credit is reserved for an update. */
static bool may_send_reserved(const struct scheme_state *s, enum flow_kind kind)
{
	(void)kind;
	return s->credits > 1;
}

static bool may_send_blind(const struct scheme_state *s, enum flow_kind kind)
{
	return kind == FLOW_IMMEDIATE || s->credits > 1;
}

static void on_send(struct scheme_state *s, enum flow_kind kind, struct flow_update *update)
{
	(void)kind;
	s->credits--;
	increment_report(s, UINT16_MAX, update);
}

static void on_send_blind(struct scheme_state *s, enum flow_kind kind, struct flow_update *update)
{
	if (kind != FLOW_IMMEDIATE)
		s->credits--;
	increment_report(s, UINT16_MAX, update);
}

static void on_post_blind(struct scheme_state *s, enum flow_kind kind)
{
	if (kind != FLOW_IMMEDIATE)
		s->unreported++;
}

static void on_receive_early(struct scheme_state *s, enum flow_kind kind,
			     const struct flow_update *update)
{
	increment_on_receive(s, kind, update);
	s->unreported++;
}

#define COMMON                                                                      \
	.flags = SCHEME_CONTROL, .counted = "receives posted",                      \
	.carried_by = "increment in each message's header, updates",                \
	.reported = "when half are unreported", .init = init_state,                 \
	.update_is_due = increment_update_is_due, .allowance = increment_allowance, \
	.unreported = increment_unreported

const struct scheme scheme_naive = {
	.name = "naive",
	COMMON,
	.reserved = "none, and an update needs a credit",
	.source = "checklist: both ends at zero",
	.may_send = may_send,
	.on_send = on_send,
	.on_receive = increment_on_receive,
	.on_post = increment_on_post,
};

const struct scheme scheme_blind_imm = {
	.name = "blind-imm",
	COMMON,
	.reserved = "one, for an update",
	.source = "checklist: uncounted messages that consume a receive",
	.may_send = may_send_blind,
	.on_send = on_send_blind,
	.on_receive = increment_on_receive,
	.on_post = on_post_blind,
};

const struct scheme scheme_grant_early = {
	.name = "grant-early",
	COMMON,
	.reserved = "one, for an update",
	.source = "checklist: a grant before the post",
	.may_send = may_send_reserved,
	.on_send = on_send,
	.on_receive = on_receive_early,
	.on_post = ignore_post,
};
