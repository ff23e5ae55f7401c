// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Table of schemes, and functions shared by several of them. */
#include <stddef.h>
#include <string.h>

#include "scheme.h"

const struct scheme *const schemes[] = {
	&scheme_rnr,	      &scheme_credits,
	&scheme_rds,	      &scheme_rds_lowwater,
	&scheme_rds_mainline, &scheme_o2iblnd_v1,
	&scheme_o2iblnd_v2,   &scheme_smbd,
	&scheme_ucx,	      &scheme_rxm,
	&scheme_nccl,	      &scheme_rsockets,
	&scheme_perftest,     &scheme_o2iblnd_nonoop,
	&scheme_o2iblnd_hiw,  &scheme_rds_guess,
	&scheme_rds_literal,  &scheme_smbd_chatty,
	&scheme_naive,	      &scheme_blind_imm,
	&scheme_grant_early,  NULL,
};

const struct scheme *scheme_find(const char *name)
{
	for (const struct scheme *const *s = schemes; *s; s++)
		if (!strcmp((*s)->name, name))
			return *s;
	return NULL;
}

uint32_t scheme_receives(const struct scheme *scheme, uint32_t depth)
{
	return scheme->receives ? scheme->receives(depth) : depth;
}

uint32_t scheme_refill_at(const struct scheme *scheme, uint32_t depth)
{
	return scheme->refill_at ? scheme->refill_at(depth) : UINT32_MAX;
}

void scheme_begin(struct scheme_state *s, const struct scheme *scheme, uint32_t depth)
{
	memset(s, 0, sizeof(*s));
	s->scheme = scheme;
	s->depth = depth;
	scheme->init(s);
}

void ignore_post(struct scheme_state *s, enum flow_kind kind)
{
	(void)s;
	(void)kind;
}

bool no_update_is_due(const struct scheme_state *s, bool waiting)
{
	(void)s;
	(void)waiting;
	return false;
}

void increment_on_receive(struct scheme_state *s, enum flow_kind kind,
			  const struct flow_update *update)
{
	(void)kind;
	s->credits += update->count;
	if (s->credits > s->depth)
		s->bogus_updates++;
}

void increment_on_post(struct scheme_state *s, enum flow_kind kind)
{
	(void)kind;
	s->unreported++;
}

int32_t increment_allowance(const struct scheme_state *s)
{
	return (int32_t)s->credits;
}

int32_t increment_unreported(const struct scheme_state *s)
{
	return (int32_t)s->unreported;
}

bool increment_update_is_due(const struct scheme_state *s, bool waiting)
{
	(void)waiting;
	return s->unreported >= s->threshold && s->credits > 0;
}

void increment_report(struct scheme_state *s, uint32_t maximum, struct flow_update *update)
{
	uint32_t reported = at_most(maximum, s->unreported);

	update->count = (uint16_t)reported;
	s->unreported -= reported;
}

/* Older limits are ignored, so updates may be lost or reordered. */
bool absolute_on_receive(struct scheme_state *s, uint32_t limit)
{
	if (!before(s->limit, limit))
		return false;
	s->limit = limit;
	if (s->limit - s->sent > s->depth)
		s->bogus_updates++;
	return true;
}

void absolute_on_post(struct scheme_state *s, enum flow_kind kind)
{
	(void)kind;
	s->posted++;
}

int32_t absolute_allowance(const struct scheme_state *s)
{
	return (int32_t)(s->limit - s->sent);
}

int32_t absolute_unreported(const struct scheme_state *s)
{
	return (int32_t)(s->depth + s->posted - s->reported);
}
