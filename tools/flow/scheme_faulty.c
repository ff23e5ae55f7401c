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

static void begin(struct scheme_state *s)
{
	s->credits = s->depth;
	s->mark = s->depth / 2;
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

static void sending(struct scheme_state *s, enum flow_kind kind, struct flow_news *news)
{
	(void)kind;
	s->credits--;
	increment_tell(s, UINT16_MAX, news);
}

static void sending_blind(struct scheme_state *s, enum flow_kind kind, struct flow_news *news)
{
	if (kind != FLOW_IMMEDIATE)
		s->credits--;
	increment_tell(s, UINT16_MAX, news);
}

static void posted_blind(struct scheme_state *s, enum flow_kind kind)
{
	if (kind != FLOW_IMMEDIATE)
		s->untold++;
}

static void heard_early(struct scheme_state *s, enum flow_kind kind, const struct flow_news *news)
{
	increment_heard(s, kind, news);
	s->untold++;
}

#define COMMON                                                                                    \
	.flags = SCHEME_CONTROL, .counted = "receives posted",                                    \
	.travels = "increment in each message's header, updates", .told = "when half are untold", \
	.begin = begin, .wants_control = increment_wants_control,                                 \
	.allowance = increment_allowance, .hidden = increment_hidden

const struct scheme scheme_naive = {
	.name = "naive",
	COMMON,
	.reserved = "none, and an update needs a credit",
	.source = "checklist: both ends at zero",
	.may_send = may_send,
	.sending = sending,
	.heard = increment_heard,
	.posted = increment_posted,
};

const struct scheme scheme_blind_imm = {
	.name = "blind-imm",
	COMMON,
	.reserved = "one, for an update",
	.source = "checklist: what takes a receive and is not counted",
	.may_send = may_send_blind,
	.sending = sending_blind,
	.heard = increment_heard,
	.posted = posted_blind,
};

const struct scheme scheme_grant_early = {
	.name = "grant-early",
	COMMON,
	.reserved = "one, for an update",
	.source = "checklist: a grant before the post",
	.may_send = may_send_reserved,
	.sending = sending,
	.heard = heard_early,
	.posted = uncounted_posted,
};
