// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * A change that was proposed to the RDS window: updates without requests.  The receiver computes
 * the sender's remaining window from the limit it has reported and the messages it has received,
 * and sends an update when that is below a low-water mark.  The mark must cover the messages of a
 * round trip, otherwise the sender stalls.
 *
 * The proposal assumes that the ring is refilled at once.  If receives are reposted one by one, an
 * update would follow each of them while the sender is below the mark; so an update is delayed
 * until it raises the window to twice the mark.
 */
#include <stddef.h>

#include "scheme.h"

static void begin(struct scheme_state *s)
{
	s->limit = s->told = s->depth;
	s->mark = at_least(2, s->depth / 4);
}

static bool may_send(const struct scheme_state *s, enum flow_kind kind)
{
	(void)kind;
	return (int32_t)(s->limit - s->sent) > 1;
}

static void sending(struct scheme_state *s, enum flow_kind kind, struct flow_news *news)
{
	(void)kind;
	s->sent++;
	s->told = s->depth + s->posted;
	news->limit = s->told;
}

static void heard(struct scheme_state *s, enum flow_kind kind, const struct flow_news *news)
{
	(void)kind;
	s->received++;
	absolute_heard(s, news->limit);
}

static bool wants_control(const struct scheme_state *s, bool waiting)
{
	uint32_t peer_has_left = s->told - s->received;
	uint32_t peer_would_have = s->depth + s->posted - s->received;

	(void)waiting;
	return peer_has_left < s->mark && peer_would_have >= 2 * s->mark &&
	       before(s->sent, s->limit);
}

const struct scheme scheme_rds_lowwater = {
	.name = "rds-lowwater",
	.counted = "messages",
	.travels = "window in each message's header, updates",
	.told = "when the receiver knows that the sender has less than a quarter",
	.reserved = "one, for an update",
	.source = "answer to the RDS patch, November 2007",
	.begin = begin,
	.may_send = may_send,
	.sending = sending,
	.heard = heard,
	.posted = absolute_posted,
	.wants_control = wants_control,
	.allowance = absolute_allowance,
	.hidden = absolute_hidden,
};
