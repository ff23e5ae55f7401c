// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * The connection-level window that was proposed for RDS in 2007.  Each message has a number and
 * carries the window: the last number received plus the posted receives.  A sender with fewer than
 * ASK_BELOW left requests an ACK in each message; the receiver also sends one after each half ring
 * of messages, and when a deferred refill has filled the ring again.  One number is reserved for an
 * ACK, but an ACK is sent even without it.
 *
 * In the patch an ACK consumes a number of its sender, but its receiver does not count it (number 0
 * on the wire).  So an endpoint that only sends ACKs uses up its window for ever: this is
 * rds-literal, a negative control.  In "rds" the receiver counts ACKs.  The patch also begins with
 * a window of 16 regardless of the receives posted by the peer, and relies on the peer's first
 * message to correct it: this is rds-guess, another negative control.
 */
#include <stddef.h>

#include "scheme.h"

enum {
	ASK_BELOW = 16,
	FIRST_WINDOW = 16,
	FLAG_ACK_REQUIRED = 1,
};

static void begin(struct scheme_state *s)
{
	s->limit = at_most(s->depth, FIRST_WINDOW);
	s->told = s->limit;
	s->mark = s->depth / 2;
}

static void begin_guess(struct scheme_state *s)
{
	begin(s);
	s->limit = s->told = FIRST_WINDOW;
}

static uint32_t ready(const struct scheme_state *s)
{
	int32_t left = (int32_t)(s->limit - s->sent) - 1;

	return left > 0 ? (uint32_t)left : 0;
}

static bool may_send(const struct scheme_state *s, enum flow_kind kind)
{
	(void)kind;
	return ready(s) > 0;
}

static void sending(struct scheme_state *s, enum flow_kind kind, struct flow_news *news)
{
	if (kind != FLOW_CONTROL && ready(s) < ASK_BELOW)
		news->flags = FLAG_ACK_REQUIRED;
	s->sent++;
	news->number = kind == FLOW_CONTROL ? 0 : s->sent;
	s->told = s->depth + s->posted;
	news->limit = s->told;
	if (kind == FLOW_CONTROL)
		s->asked = false;
}

static void hear(struct scheme_state *s, const struct flow_news *news, bool counts)
{
	if (counts)
		s->received++;
	if (before(s->limit, news->limit))
		s->limit = news->limit;
	if (!before(s->received, s->mark)) {
		s->mark = s->received + s->depth / 2;
		s->asked = true;
	}
	if (news->flags & FLAG_ACK_REQUIRED)
		s->asked = true;
}

static void heard(struct scheme_state *s, enum flow_kind kind, const struct flow_news *news)
{
	hear(s, news, true);
	s->owed |= kind != FLOW_CONTROL;
}

static void heard_literal(struct scheme_state *s, enum flow_kind kind, const struct flow_news *news)
{
	hear(s, news, kind != FLOW_CONTROL);
	s->owed |= kind != FLOW_CONTROL;
}

static void posted(struct scheme_state *s, enum flow_kind kind)
{
	(void)kind;
	s->posted++;
	/* All consumed receives have been reposted: end of a deferred refill. */
	if (s->owed && s->posted == s->received) {
		s->owed = false;
		s->asked = true;
	}
}

static void posted_literal(struct scheme_state *s, enum flow_kind kind)
{
	if (kind != FLOW_CONTROL)
		posted(s, kind);
}

static bool wants_control(const struct scheme_state *s, bool waiting)
{
	(void)waiting;
	return s->asked;
}

#define COMMON                                                                                     \
	.counted = "messages, numbered", .travels = "window in each message's header, ACKs",       \
	.told = "asked for below 16, each half ring, after a late refill",                         \
	.reserved = "one, for an ACK", .source = "RDS patch, November 2007", .may_send = may_send, \
	.sending = sending, .wants_control = wants_control, .allowance = absolute_allowance

const struct scheme scheme_rds = {
	.name = "rds",
	.flags = SCHEME_OVER_BY_ACK,
	COMMON,
	.begin = begin,
	.heard = heard,
	.posted = posted,
	.hidden = absolute_hidden,
};

const struct scheme scheme_rds_guess = {
	.name = "rds-guess",
	.flags = SCHEME_CONTROL,
	COMMON,
	.begin = begin_guess,
	.heard = heard,
	.posted = posted,
	.hidden = absolute_hidden,
};

const struct scheme scheme_rds_literal = {
	.name = "rds-literal",
	.flags = SCHEME_CONTROL | SCHEME_OVER_BY_ACK,
	COMMON,
	.begin = begin,
	.heard = heard_literal,
	.posted = posted_literal,
};
