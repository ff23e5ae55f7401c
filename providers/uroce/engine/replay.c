/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "replay.h"

#include <assert.h>
#include <string.h>

_Static_assert((ENG_MAX_RD_ATOMIC & (ENG_MAX_RD_ATOMIC - 1)) == 0, "indexes wrap by a mask");
_Static_assert(ENG_MAX_RD_ATOMIC <= 32, "replay_run has a bit for each");

/* Indexes run freely; the newest max_dest_rd_atomic of the entries count. */
static struct replay *entry_at(struct eng_qp *qp, uint32_t index)
{
	return &qp->resp.replay[index & (ENG_MAX_RD_ATOMIC - 1)];
}

static bool is_pending(const struct replay *entry)
{
	return entry->valid && entry->next != entry->end;
}

/*
 * An entry that is to be answered for the first time is under way at the peer, who may not ask for
 * more.  One that is only repeated may be done with there: the peer got the first answer.
 */
bool replay_has_room(const struct eng_qp *qp)
{
	const struct replay *victim;

	if (qp->attr.max_dest_rd_atomic == 0)
		return false;
	victim = &qp->resp.replay[(qp->resp.replay_head - qp->attr.max_dest_rd_atomic) &
				  (ENG_MAX_RD_ATOMIC - 1)];
	return !is_pending(victim) || victim->again;
}

struct replay *replay_new(struct eng_qp *qp, uint32_t psn, uint32_t packets)
{
	struct responder *resp = &qp->resp;
	struct replay *entry = entry_at(qp, resp->replay_head);
	struct replay *oldest = entry_at(qp, resp->replay_head - qp->attr.max_dest_rd_atomic);

	assert(replay_has_room(qp));
	if (is_pending(oldest)) {
		oldest->next = oldest->end;
		resp->replay_pending--;
	}
	memset(entry, 0, sizeof(*entry));
	entry->valid = true;
	entry->psn = psn;
	entry->packets = packets;
	entry->end = packets;
	resp->replay_head++;
	resp->replay_pending++;
	return entry;
}

struct replay *replay_find(struct eng_qp *qp, uint32_t psn)
{
	for (uint32_t i = 1; i <= qp->attr.max_dest_rd_atomic; i++) {
		struct replay *entry = entry_at(qp, qp->resp.replay_head - i);

		if (!entry->valid)
			return NULL;
		if (psn_in(psn, entry->psn, entry->packets))
			return entry;
	}
	return NULL;
}

void replay_again(struct eng_qp *qp, struct replay *entry, uint32_t from, uint32_t end)
{
	if (!is_pending(entry)) {
		qp->resp.replay_pending++;
		entry->again = true;
	}
	entry->from = from;
	entry->next = from;
	entry->end = end;
}

const struct replay *replay_look(const struct eng_qp *qp)
{
	if (qp->resp.replay_pending == 0)
		return NULL;
	for (uint32_t i = qp->attr.max_dest_rd_atomic; i > 0; i--) {
		uint32_t index = (qp->resp.replay_head - i) & (ENG_MAX_RD_ATOMIC - 1);

		if (is_pending(&qp->resp.replay[index]))
			return &qp->resp.replay[index];
	}
	return NULL;
}

struct replay *replay_pending(struct eng_qp *qp)
{
	const struct replay *entry = replay_look(qp);

	return entry ? &qp->resp.replay[entry - qp->resp.replay] : NULL;
}

void replay_begin(struct eng_qp *qp)
{
	qp->resp.replay_run = 0;
}

void replay_sent(struct eng_qp *qp, struct replay *entry, uint32_t next)
{
	uint32_t bit = UINT32_C(1) << (entry - qp->resp.replay);

	assert(is_pending(entry) && next <= entry->end);
	if (!(qp->resp.replay_run & bit))
		entry->before = entry->next;
	qp->resp.replay_run |= bit;
	entry->next = next;
	if (next == entry->end)
		qp->resp.replay_pending--;
}

void replay_unsent(struct eng_qp *qp)
{
	for (uint32_t i = 0; i < ENG_MAX_RD_ATOMIC; i++) {
		struct replay *entry = &qp->resp.replay[i];

		if (!(qp->resp.replay_run & UINT32_C(1) << i))
			continue;
		assert(entry->valid && entry->before < entry->next);
		if (!is_pending(entry))
			qp->resp.replay_pending++;
		entry->next = entry->before;
	}
	qp->resp.replay_run = 0;
}

void replay_cancel(struct eng_qp *qp)
{
	memset(qp->resp.replay, 0, sizeof(qp->resp.replay));
	qp->resp.replay_pending = 0;
	qp->resp.replay_run = 0;
}
