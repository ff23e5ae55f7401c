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

static uint32_t refill_at_half(uint32_t depth)
{
	return depth / 2;
}

static void init_state(struct scheme_state *s)
{
	s->credits = s->depth;
	s->threshold = at_most(ACK_AT, s->depth / 2);
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
	increment_report(s, MAX_ADVERTISED, update);
}

const struct scheme scheme_rds_mainline = {
	.name = "rds-mainline",
	.counted = "receives posted",
	.carried_by = "increment in each message's header, ACKs",
	.reported = "when 16, or half of the ring, are unreported",
	.reserved = "the last one only with an increment",
	.source = "Linux net/rds",
	.refill_at = refill_at_half,
	.init = init_state,
	.may_send = may_send,
	.on_send = on_send,
	.on_receive = increment_on_receive,
	.on_post = increment_on_post,
	.update_is_due = increment_update_is_due,
	.allowance = increment_allowance,
	.unreported = increment_unreported,
};
