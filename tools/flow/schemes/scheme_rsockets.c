// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * rsockets: the receiver reports a limit, the number of messages that may be sent since the start
 * modulo 2^16, when half of the receives are unreported.  The limit does not count the messages
 * that carry reports: the receiver posts four more receives for them.  (The original also limits
 * the bytes of the target buffer; here every message has a buffer.)
 */
#include <stddef.h>

#include "scheme.h"

enum { CONTROL_RECEIVES = 4 };

static uint32_t receives_of_depth(uint32_t depth)
{
	return depth + CONTROL_RECEIVES;
}

static void init_state(struct scheme_state *s)
{
	s->limit = s->reported = s->depth;
}

static bool may_send(const struct scheme_state *s, enum flow_kind kind)
{
	(void)kind;
	return (int16_t)(uint16_t)(s->limit - s->sent) > 0;
}

static void on_send(struct scheme_state *s, enum flow_kind kind, struct flow_update *update)
{
	if (kind != FLOW_CONTROL) {
		s->sent++;
		return;
	}
	s->reported = s->depth + s->posted;
	update->count = (uint16_t)s->reported;
}

static void on_receive(struct scheme_state *s, enum flow_kind kind,
		       const struct flow_update *update)
{
	if (kind == FLOW_CONTROL)
		absolute_on_receive(s, s->limit + (uint16_t)(update->count - (uint16_t)s->limit));
	else
		s->received++;
}

static void on_post(struct scheme_state *s, enum flow_kind kind)
{
	if (kind != FLOW_CONTROL)
		s->posted++;
}

static bool update_is_due(const struct scheme_state *s, bool waiting)
{
	(void)waiting;
	return absolute_unreported(s) >= (int32_t)(s->depth / 2);
}

const struct scheme scheme_rsockets = {
	.name = "rsockets",
	.counted = "messages",
	.carried_by = "absolute limit in a separate message",
	.reported = "when half are unreported",
	.reserved = "none: four more receives, not counted",
	.source = "librdmacm rsocket",
	.receives = receives_of_depth,
	.init = init_state,
	.may_send = may_send,
	.on_send = on_send,
	.on_receive = on_receive,
	.on_post = on_post,
	.update_is_due = update_is_due,
	.allowance = absolute_allowance,
	.unreported = absolute_unreported,
};
