// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * rsockets: an absolute 16-bit limit, reported when half of the receives are unreported, in a
 * message that is not counted: the receiver posts four more receives for these.  (The original also
 * limits the bytes of the target buffer; here every message has a buffer.)
 */
#include <stddef.h>

#include "scheme.h"

enum { CONTROL_RECEIVES = 4 };

static uint32_t receives(uint32_t depth)
{
	return depth + CONTROL_RECEIVES;
}

static void begin(struct scheme_state *s)
{
	s->limit = s->told = s->depth;
}

static bool may_send(const struct scheme_state *s, enum flow_kind kind)
{
	(void)kind;
	return (int16_t)(uint16_t)(s->limit - s->sent) > 0;
}

static void sending(struct scheme_state *s, enum flow_kind kind, struct flow_news *news)
{
	if (kind != FLOW_CONTROL) {
		s->sent++;
		return;
	}
	s->told = s->depth + s->posted;
	news->count = (uint16_t)s->told;
}

static void heard(struct scheme_state *s, enum flow_kind kind, const struct flow_news *news)
{
	if (kind == FLOW_CONTROL)
		absolute_heard(s, s->limit + (uint16_t)(news->count - (uint16_t)s->limit));
	else
		s->received++;
}

static void posted(struct scheme_state *s, enum flow_kind kind)
{
	if (kind != FLOW_CONTROL)
		s->posted++;
}

static bool wants_control(const struct scheme_state *s, bool waiting)
{
	(void)waiting;
	return absolute_hidden(s) >= (int32_t)(s->depth / 2);
}

const struct scheme scheme_rsockets = {
	.name = "rsockets",
	.counted = "messages",
	.travels = "absolute limit in a message of its own",
	.told = "when half are untold",
	.reserved = "none: four receives more, not counted",
	.source = "librdmacm rsocket",
	.receives = receives,
	.begin = begin,
	.may_send = may_send,
	.sending = sending,
	.heard = heard,
	.posted = posted,
	.wants_control = wants_control,
	.allowance = absolute_allowance,
	.hidden = absolute_hidden,
};
