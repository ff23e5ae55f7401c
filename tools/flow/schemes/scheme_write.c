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

static void init_nccl(struct scheme_state *s)
{
	s->limit = s->reported = 0;
	s->threshold = 1;
}

static void init_perftest(struct scheme_state *s)
{
	s->limit = s->reported = s->depth;
	s->threshold = s->depth / 3;
}

static bool may_send(const struct scheme_state *s, enum flow_kind kind)
{
	(void)kind;
	return before(s->sent, s->limit);
}

static void on_send_nccl(struct scheme_state *s, enum flow_kind kind, struct flow_update *update)
{
	if (kind == FLOW_CONTROL)
		update->limit = ++s->reported;
	else
		s->sent++;
}

static void on_send_perftest(struct scheme_state *s, enum flow_kind kind,
			     struct flow_update *update)
{
	if (kind == FLOW_CONTROL)
		update->limit = s->reported = s->depth + s->posted;
	else
		s->sent++;
}

static void on_receive(struct scheme_state *s, enum flow_kind kind,
		       const struct flow_update *update)
{
	if (kind == FLOW_CONTROL)
		absolute_on_receive(s, update->limit);
	else
		s->received++;
}

static bool update_is_due(const struct scheme_state *s, bool waiting)
{
	(void)waiting;
	return absolute_unreported(s) >= (int32_t)s->threshold;
}

#define COMMON                                                                                 \
	.flags = SCHEME_UPDATE_BY_WRITE, .carried_by = "RDMA WRITE of a count",                \
	.reserved = "none: a WRITE takes no receive", .may_send = may_send,                    \
	.on_receive = on_receive, .on_post = absolute_on_post, .update_is_due = update_is_due, \
	.allowance = absolute_allowance, .unreported = absolute_unreported

const struct scheme scheme_nccl = {
	.name = "nccl",
	COMMON,
	.counted = "receives posted, one by one",
	.reported = "for each receive",
	.source = "NCCL net_ib",
	.init = init_nccl,
	.on_send = on_send_nccl,
};

const struct scheme scheme_perftest = {
	.name = "perftest",
	COMMON,
	.counted = "messages",
	.reported = "at each third of the depth",
	.source = "perftest send_bw",
	.init = init_perftest,
	.on_send = on_send_perftest,
};
