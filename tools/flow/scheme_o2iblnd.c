// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Lustre's o2iblnd: a credit is a message slot of the peer; every message returns the number of
 * freed slots in a byte of its header.  The cost of a message depends on its type: a request
 * consumes a credit and one of the local receives reserved for responses; a response is free.  If
 * the freed slots reach the high-water mark and there is no message to return them, a NOOP does.
 * In version 1 a NOOP costs a credit, so data leaves the last one for it; in version 2 it is free,
 * and two more receives are posted for it.
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

static uint32_t receives(uint32_t depth)
{
	return 2 * depth + OOB_RECEIVES;
}

static void begin(struct scheme_state *s)
{
	s->credits = s->depth;
	s->reserved = s->depth;
	s->mark = s->depth / 2;
}

static void begin_v1(struct scheme_state *s)
{
	begin(s);
	s->mark = s->depth * 7 / 8;
}

static void begin_hiw(struct scheme_state *s)
{
	begin(s);
	s->mark = s->depth + 1;
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

static void sending(struct scheme_state *s, enum flow_kind kind, struct flow_news *news)
{
	if (kind != FLOW_RESPONSE && kind != FLOW_CONTROL)
		s->credits--;
	if (kind == FLOW_REQUEST)
		s->reserved--;
	increment_tell(s, MAX_RETURNED, news);
}

static void sending_v1(struct scheme_state *s, enum flow_kind kind, struct flow_news *news)
{
	if (kind == FLOW_CONTROL)
		s->credits--;
	sending(s, kind, news);
}

static void posted(struct scheme_state *s, enum flow_kind kind)
{
	if (kind == FLOW_RESPONSE)
		s->reserved++;
	else if (kind != FLOW_CONTROL)
		s->untold++;
}

static void posted_v1(struct scheme_state *s, enum flow_kind kind)
{
	if (kind == FLOW_CONTROL)
		s->untold++;
	else
		posted(s, kind);
}

static bool wants_noop(const struct scheme_state *s, bool waiting)
{
	return s->untold >= s->mark && (!waiting || !s->credits);
}

static bool wants_noop_v1(const struct scheme_state *s, bool waiting)
{
	if (s->untold < s->mark || !s->credits)
		return false;
	return !waiting || s->credits == 1;
}

#define COMMON                                                                             \
	.counted = "message slots, by type",                                               \
	.travels = "increment in each message's header, NOOP", .source = "Lustre o2iblnd", \
	.receives = receives, .heard = increment_heard, .allowance = increment_allowance,  \
	.hidden = increment_hidden

#define VERSION_2 COMMON, .may_send = may_send, .sending = sending, .posted = posted

const struct scheme scheme_o2iblnd_v1 = {
	.name = "o2iblnd-v1",
	COMMON,
	.told = "when 7 of 8 are freed and nothing goes that way",
	.reserved = "the last one, for a NOOP",
	.begin = begin_v1,
	.may_send = may_send_v1,
	.sending = sending_v1,
	.posted = posted_v1,
	.wants_control = wants_noop_v1,
};

const struct scheme scheme_o2iblnd_v2 = {
	.name = "o2iblnd-v2",
	VERSION_2,
	.told = "when half are freed and nothing goes that way",
	.reserved = "none: a NOOP is free, with receives of its own",
	.begin = begin,
	.wants_control = wants_noop,
};

const struct scheme scheme_o2iblnd_nonoop = {
	.name = "o2iblnd-nonoop",
	.flags = SCHEME_CONTROL,
	VERSION_2,
	.told = "only by messages that go that way",
	.reserved = "none",
	.begin = begin,
	.wants_control = wants_no_control,
};

const struct scheme scheme_o2iblnd_hiw = {
	.name = "o2iblnd-hiw",
	.flags = SCHEME_CONTROL,
	VERSION_2,
	.told = "above a mark that is beyond the depth",
	.reserved = "none",
	.begin = begin_hiw,
	.wants_control = wants_noop,
};
