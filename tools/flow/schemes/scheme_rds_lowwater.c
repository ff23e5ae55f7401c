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

static void init_state(struct scheme_state *s)
{
	s->limit = s->reported = s->depth;
	s->threshold = at_least(2, s->depth / 4);
}

static bool may_send(const struct scheme_state *s, enum flow_kind kind)
{
	(void)kind;
	return (int32_t)(s->limit - s->sent) > 1;
}

static void on_send(struct scheme_state *s, enum flow_kind kind, struct flow_update *update)
{
	(void)kind;
	s->sent++;
	s->reported = s->depth + s->posted;
	update->limit = s->reported;
}

static void on_receive(struct scheme_state *s, enum flow_kind kind,
		       const struct flow_update *update)
{
	(void)kind;
	s->received++;
	absolute_on_receive(s, update->limit);
}

static bool update_is_due(const struct scheme_state *s, bool waiting)
{
	uint32_t peer_has_left = s->reported - s->received;
	uint32_t peer_would_have = s->depth + s->posted - s->received;

	(void)waiting;
	return peer_has_left < s->threshold && peer_would_have >= 2 * s->threshold &&
	       before(s->sent, s->limit);
}

const struct scheme scheme_rds_lowwater = {
	.name = "rds-lowwater",
	.counted = "messages",
	.carried_by = "window in each message's header, updates",
	.reported = "when the sender has less than a quarter left",
	.reserved = "one, for an update",
	.source = "reply to the RDS patch, November 2007",
	.init = init_state,
	.may_send = may_send,
	.on_send = on_send,
	.on_receive = on_receive,
	.on_post = absolute_on_post,
	.update_is_due = update_is_due,
	.allowance = absolute_allowance,
	.unreported = absolute_unreported,
};
