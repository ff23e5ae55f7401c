/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "rules.h"

const struct rule_row rule_rows[TRACE_RULE_COUNT] = {
#define ROW(id, rule, side, words) \
	[RULE_##id] = { .number = (rule), .text = (words), .by = RULE_BY_##side },
	TRACE_RULES(ROW)
#undef ROW
};

const char *rule_by_name(enum rule_by by)
{
	static const char *const names[] = {
		[RULE_BY_REQUESTER] = "requester",
		[RULE_BY_RESPONDER] = "responder",
		[RULE_BY_SENDER] = "sender",
	};

	return names[by];
}

void rule_hit(struct rule_hits *hits, uint32_t frame)
{
	/* A frame of several packets is stored once for each packet that violates the rule. */
	if (hits->count < RULE_EXAMPLES)
		hits->frames[hits->count] = frame;
	hits->count++;
}
