// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Two schemes with updates by RDMA WRITE: the receiver writes a count into memory that the sender
 * polls.  A WRITE consumes no receive, so an update can neither cause an RNR NAK nor wait for
 * credits, and no deadlock is possible.
 *
 * NCCL writes an entry for each posted receive, without which nothing may be sent, since the entry
 * has the address for the message.  perftest begins with depth, and writes the number of reposted
 * receives at each third of the depth.
 */
#include <stddef.h>

#include "scheme.h"

static void begin_nccl(struct scheme_state *s)
{
	s->limit = s->told = 0;
	s->mark = 1;
}

static void begin_perftest(struct scheme_state *s)
{
	s->limit = s->told = s->depth;
	s->mark = s->depth / 3;
}

static bool may_send(const struct scheme_state *s, enum flow_kind kind)
{
	(void)kind;
	return before(s->sent, s->limit);
}

static void sending_nccl(struct scheme_state *s, enum flow_kind kind, struct flow_news *news)
{
	if (kind == FLOW_CONTROL)
		news->limit = ++s->told;
	else
		s->sent++;
}

static void sending_perftest(struct scheme_state *s, enum flow_kind kind, struct flow_news *news)
{
	if (kind == FLOW_CONTROL)
		news->limit = s->told = s->depth + s->posted;
	else
		s->sent++;
}

static void heard(struct scheme_state *s, enum flow_kind kind, const struct flow_news *news)
{
	if (kind == FLOW_CONTROL)
		absolute_heard(s, news->limit);
	else
		s->received++;
}

static bool wants_control(const struct scheme_state *s, bool waiting)
{
	(void)waiting;
	return absolute_hidden(s) >= (int32_t)s->mark;
}

#define COMMON                                                                              \
	.flags = SCHEME_BY_WRITE, .travels = "RDMA WRITE of a count",                       \
	.reserved = "none: a WRITE takes no receive", .may_send = may_send, .heard = heard, \
	.posted = absolute_posted, .wants_control = wants_control,                          \
	.allowance = absolute_allowance, .hidden = absolute_hidden

const struct scheme scheme_nccl = {
	.name = "nccl",
	COMMON,
	.counted = "receives posted, one by one",
	.told = "for each receive",
	.source = "NCCL net_ib",
	.begin = begin_nccl,
	.sending = sending_nccl,
};

const struct scheme scheme_perftest = {
	.name = "perftest",
	COMMON,
	.counted = "messages",
	.told = "at each third of the depth",
	.source = "perftest send_bw",
	.begin = begin_perftest,
	.sending = sending_perftest,
};
