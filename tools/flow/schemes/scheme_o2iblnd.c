// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Lustre's o2iblnd: a credit is a receive of the peer; every message returns the number of freed
 * receives in a byte of its header.  The cost of a message depends on its type: a request consumes
 * a credit and one of the local receives reserved for responses; a response is free.  If the freed
 * receives reach the high-water mark and there is no message to return them, a NOOP does.  In
 * version 1 a NOOP costs a credit, so data leaves the last one for it; in version 2 it is free, as
 * two more receives are posted for it.
 *
 * Negative controls: o2iblnd-nonoop has no NOOP and deadlocks with one-way traffic; o2iblnd-hiw has
 * a mark that cannot be reached, like one that is not derived from the negotiated depth.
 */
#include <stddef.h>

#include "scheme.h"

enum {
	OOB_RECEIVES = 2,
	MAX_RETURNED = 255,
};

static uint32_t receives_of_depth(uint32_t depth)
{
	return 2 * depth + OOB_RECEIVES;
}

static void init_state(struct scheme_state *s)
{
	s->credits = s->depth;
	s->reserved = s->depth;
	s->threshold = s->depth / 2;
}

static void init_v1(struct scheme_state *s)
{
	init_state(s);
	s->threshold = s->depth * 7 / 8;
}

static void init_hiw(struct scheme_state *s)
{
	init_state(s);
	s->threshold = s->depth + 1;
}

static bool may_send(const struct scheme_state *s, enum flow_kind kind)
{
	if (kind == FLOW_RESPONSE)
		return true;
	if (kind == FLOW_REQUEST && !s->reserved)
		return false;
	return s->credits > 0;
}

static bool may_send_v1(const struct scheme_state *s, enum flow_kind kind)
{
	return may_send(s, kind) && (kind == FLOW_RESPONSE || s->credits > 1);
}

static void on_send(struct scheme_state *s, enum flow_kind kind, struct flow_update *update)
{
	if (kind != FLOW_RESPONSE && kind != FLOW_CONTROL)
		s->credits--;
	if (kind == FLOW_REQUEST)
		s->reserved--;
	increment_report(s, MAX_RETURNED, update);
}

static void on_send_v1(struct scheme_state *s, enum flow_kind kind, struct flow_update *update)
{
	if (kind == FLOW_CONTROL)
		s->credits--;
	on_send(s, kind, update);
}

static void on_post(struct scheme_state *s, enum flow_kind kind)
{
	if (kind == FLOW_RESPONSE)
		s->reserved++;
	else if (kind != FLOW_CONTROL)
		s->unreported++;
}

static void on_post_v1(struct scheme_state *s, enum flow_kind kind)
{
	if (kind == FLOW_CONTROL)
		s->unreported++;
	else
		on_post(s, kind);
}

static bool noop_is_due(const struct scheme_state *s, bool waiting)
{
	return s->unreported >= s->threshold && (!waiting || !s->credits);
}

static bool noop_is_due_v1(const struct scheme_state *s, bool waiting)
{
	if (s->unreported < s->threshold || !s->credits)
		return false;
	return !waiting || s->credits == 1;
}

#define COMMON                                                                                \
	.counted = "message slots, by type",                                                  \
	.carried_by = "increment in each message's header, NOOP", .source = "Lustre o2iblnd", \
	.receives = receives_of_depth, .on_receive = increment_on_receive,                    \
	.allowance = increment_allowance, .unreported = increment_unreported

#define VERSION_2 COMMON, .may_send = may_send, .on_send = on_send, .on_post = on_post

const struct scheme scheme_o2iblnd_v1 = {
	.name = "o2iblnd-v1",
	COMMON,
	.reported = "when 7 of 8 are freed and no message goes back",
	.reserved = "the last one, for a NOOP",
	.init = init_v1,
	.may_send = may_send_v1,
	.on_send = on_send_v1,
	.on_post = on_post_v1,
	.update_is_due = noop_is_due_v1,
};

const struct scheme scheme_o2iblnd_v2 = {
	.name = "o2iblnd-v2",
	VERSION_2,
	.reported = "when half are freed and no message goes back",
	.reserved = "none: a NOOP is free and has receives of its own",
	.init = init_state,
	.update_is_due = noop_is_due,
};

const struct scheme scheme_o2iblnd_nonoop = {
	.name = "o2iblnd-nonoop",
	.flags = SCHEME_CONTROL,
	VERSION_2,
	.reported = "only with messages that go back",
	.reserved = "none",
	.init = init_state,
	.update_is_due = no_update_is_due,
};

const struct scheme scheme_o2iblnd_hiw = {
	.name = "o2iblnd-hiw",
	.flags = SCHEME_CONTROL,
	VERSION_2,
	.reported = "at a threshold above the depth",
	.reserved = "none",
	.init = init_hiw,
	.update_is_due = noop_is_due,
};
