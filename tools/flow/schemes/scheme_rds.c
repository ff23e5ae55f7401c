// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * The connection-level window that was proposed for RDS in 2007.  Each message has a number and
 * carries the window: the last number received plus the posted receives.  A sender with fewer than
 * ACK_REQUEST_BELOW left requests an ACK in each message; the receiver also sends one after each
 * half ring of messages, and when a deferred refill has filled the ring again.  One number is
 * reserved for an ACK, but an ACK is sent even without it.
 *
 * In the patch an ACK consumes a number of its sender, but its receiver does not count it (number 0
 * on the wire).  So an endpoint that only sends ACKs uses up its window and deadlocks: this is
 * rds-literal, a negative control.  In "rds" the receiver counts ACKs.  The patch also begins with
 * a window of 16 regardless of the receives posted by the peer, and relies on the peer's first
 * message to correct it: this is rds-guess, another negative control.
 */
#include <stddef.h>

#include "scheme.h"

enum {
	ACK_REQUEST_BELOW = 16,
	FIRST_WINDOW = 16,
	FLAG_ACK_REQUIRED = 1,
};

static void init_state(struct scheme_state *s)
{
	s->limit = at_most(s->depth, FIRST_WINDOW);
	s->reported = s->limit;
	s->threshold = s->depth / 2;
}

static void init_guess(struct scheme_state *s)
{
	init_state(s);
	s->limit = s->reported = FIRST_WINDOW;
}

static uint32_t window_left(const struct scheme_state *s)
{
	int32_t left = (int32_t)(s->limit - s->sent) - 1;

	return left > 0 ? (uint32_t)left : 0;
}

static bool may_send(const struct scheme_state *s, enum flow_kind kind)
{
	(void)kind;
	return window_left(s) > 0;
}

static void on_send(struct scheme_state *s, enum flow_kind kind, struct flow_update *update)
{
	if (kind != FLOW_CONTROL && window_left(s) < ACK_REQUEST_BELOW)
		update->flags = FLAG_ACK_REQUIRED;
	s->sent++;
	update->number = kind == FLOW_CONTROL ? 0 : s->sent;
	s->reported = s->depth + s->posted;
	update->limit = s->reported;
	if (kind == FLOW_CONTROL)
		s->update_requested = false;
}

static void receive_window(struct scheme_state *s, const struct flow_update *update, bool counts)
{
	if (counts)
		s->received++;
	if (before(s->limit, update->limit))
		s->limit = update->limit;
	if (!before(s->received, s->threshold)) {
		s->threshold = s->received + s->depth / 2;
		s->update_requested = true;
	}
	if (update->flags & FLAG_ACK_REQUIRED)
		s->update_requested = true;
}

static void on_receive(struct scheme_state *s, enum flow_kind kind,
		       const struct flow_update *update)
{
	receive_window(s, update, true);
	s->report_pending |= kind != FLOW_CONTROL;
}

static void on_receive_literal(struct scheme_state *s, enum flow_kind kind,
			       const struct flow_update *update)
{
	receive_window(s, update, kind != FLOW_CONTROL);
	s->report_pending |= kind != FLOW_CONTROL;
}

static void on_post(struct scheme_state *s, enum flow_kind kind)
{
	(void)kind;
	s->posted++;
	/* All consumed receives have been reposted: end of a deferred refill. */
	if (s->report_pending && s->posted == s->received) {
		s->report_pending = false;
		s->update_requested = true;
	}
}

static void on_post_literal(struct scheme_state *s, enum flow_kind kind)
{
	if (kind != FLOW_CONTROL)
		on_post(s, kind);
}

static bool update_is_due(const struct scheme_state *s, bool waiting)
{
	(void)waiting;
	return s->update_requested;
}

#define COMMON                                                                                     \
	.counted = "messages, numbered", .carried_by = "window in each message's header, ACKs",    \
	.reported = "on request below 16, each half ring, after a deferred refill",                \
	.reserved = "one, for an ACK", .source = "RDS patch, November 2007", .may_send = may_send, \
	.on_send = on_send, .update_is_due = update_is_due, .allowance = absolute_allowance

const struct scheme scheme_rds = {
	.name = "rds",
	.flags = SCHEME_OVER_BY_ACK,
	COMMON,
	.init = init_state,
	.on_receive = on_receive,
	.on_post = on_post,
	.unreported = absolute_unreported,
};

const struct scheme scheme_rds_guess = {
	.name = "rds-guess",
	.flags = SCHEME_CONTROL,
	COMMON,
	.init = init_guess,
	.on_receive = on_receive,
	.on_post = on_post,
	.unreported = absolute_unreported,
};

const struct scheme scheme_rds_literal = {
	.name = "rds-literal",
	.flags = SCHEME_CONTROL | SCHEME_OVER_BY_ACK,
	COMMON,
	.init = init_state,
	.on_receive = on_receive_literal,
	.on_post = on_post_literal,
};
