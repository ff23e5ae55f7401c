// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * RDS of Linux: increments of at most 255 in a byte of each header.  The last credit may only be
 * used by a message that carries an increment.  After ACK_AT unreported receives an ACK is sent,
 * which consumes a credit.  Linux has 1024 receives; with fewer than 32 receives the threshold here
 * is half of them, since it would never be reached otherwise.
 */
#include <stddef.h>

#include "scheme.h"

enum {
	ACK_AT = 16,
	MAX_ADVERTISED = 255,
};

static uint32_t half(uint32_t depth)
{
	return depth / 2;
}

static void begin(struct scheme_state *s)
{
	s->credits = s->depth;
	s->mark = at_most(ACK_AT, s->depth / 2);
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
	increment_tell(s, MAX_ADVERTISED, news);
}

const struct scheme scheme_rds_mainline = {
	.name = "rds-mainline",
	.counted = "receives posted",
	.travels = "increment in each message's header, ACKs",
	.told = "when 16, or half of the ring, are untold",
	.reserved = "the last one only with news",
	.source = "Linux net/rds",
	.refill_at = half,
	.begin = begin,
	.may_send = may_send,
	.sending = sending,
	.heard = increment_heard,
	.posted = increment_posted,
	.wants_control = increment_wants_control,
	.allowance = increment_allowance,
	.hidden = increment_hidden,
};
