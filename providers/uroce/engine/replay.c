/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "replay.h"

#include <assert.h>
#include <string.h>

#define WORD_BITS 64

_Static_assert(ENG_MAX_RD_ATOMIC <= sizeof(((struct responder *)0)->replay_burst) * 8,
	       "replay_burst has a bit for each");

/* A power of two, as indexes wrap by a mask. */
static uint32_t slots_for(uint32_t depth)
{
	uint32_t slots = depth > 0;

	while (slots < depth)
		slots *= 2;
	return slots;
}

size_t eng_replay_bytes(uint32_t depth)
{
	return slots_for(depth) * sizeof(struct replay);
}

/* Indexes run freely; the newest max_dest_rd_atomic of the entries count. */
static uint32_t slot_of(const struct eng_qp *qp, uint32_t index)
{
	return index & (qp->replay_slots - 1);
}

static struct replay *entry_at(const struct eng_qp *qp, uint32_t index)
{
	return &qp->replay[slot_of(qp, index)];
}

static uint32_t index_of(const struct eng_qp *qp, const struct replay *entry)
{
	uint32_t newest = qp->resp.replay_head - 1;

	return newest - slot_of(qp, newest - (uint32_t)(entry - qp->replay));
}

static uint32_t depth_of(const struct eng_qp *qp)
{
	assert(qp->attr.max_dest_rd_atomic <= qp->replay_slots);
	return qp->attr.max_dest_rd_atomic;
}

static bool is_pending(const struct replay *entry)
{
	return entry->kind != REPLAY_FREE && entry->next != entry->end;
}

/* An answer of entry is wanted: nothing older is looked for before it. */
static void note_pending(struct eng_qp *qp, const struct replay *entry)
{
	uint32_t index = index_of(qp, entry);

	qp->resp.replay_pending++;
	if ((int32_t)(index - qp->resp.replay_oldest) < 0)
		qp->resp.replay_oldest = index;
}

static void note_answered(struct eng_qp *qp)
{
	struct responder *resp = &qp->resp;

	resp->replay_pending--;
	while (resp->replay_oldest != resp->replay_head &&
	       !is_pending(entry_at(qp, resp->replay_oldest)))
		resp->replay_oldest++;
}

static void give_up(struct eng_qp *qp, struct replay *entry)
{
	if (!is_pending(entry))
		return;
	entry->next = entry->end;
	note_answered(qp);
}

static bool in_burst(const struct eng_qp *qp, uint32_t slot)
{
	return qp->resp.replay_burst[slot / WORD_BITS] >> slot % WORD_BITS & 1;
}

static void put_in_burst(struct eng_qp *qp, uint32_t slot)
{
	qp->resp.replay_burst[slot / WORD_BITS] |= UINT64_C(1) << slot % WORD_BITS;
}

/* What is known of requests before is taken along, as far as there is room. */
static void move_entries(struct eng_qp *to, const struct eng_qp *from)
{
	uint32_t head = from->resp.replay_head;

	for (uint32_t i = 1; i <= from->replay_slots && i <= to->replay_slots; i++) {
		*entry_at(to, head - i) = *entry_at(from, head - i);
		if (in_burst(from, slot_of(from, head - i)))
			put_in_burst(to, slot_of(to, head - i));
	}
}

void *eng_set_replay(struct eng_qp *qp, void *memory, uint32_t depth)
{
	void *before = qp->replay;
	const struct eng_qp old = *qp;

	assert(depth <= ENG_MAX_RD_ATOMIC && slots_for(depth) >= qp->replay_slots);
	qp->replay = memory;
	qp->replay_slots = slots_for(depth);
	memset(memory, 0, eng_replay_bytes(depth));
	replay_begin(qp);
	move_entries(qp, &old);
	return before;
}

/*
 * An entry that has not been answered yet is outstanding at the peer, which has then used up its
 * depth.  One whose answer is only repeated may be complete there: the peer may have got the first
 * answer.
 */
bool replay_has_room(const struct eng_qp *qp)
{
	const struct replay *victim;

	if (depth_of(qp) == 0)
		return false;
	victim = entry_at(qp, qp->resp.replay_head - depth_of(qp));
	return !is_pending(victim) || victim->again;
}

struct replay *replay_new(struct eng_qp *qp, uint32_t psn, uint32_t packets)
{
	struct responder *resp = &qp->resp;
	struct replay *entry = entry_at(qp, resp->replay_head);

	assert(replay_has_room(qp));
	give_up(qp, entry_at(qp, resp->replay_head - depth_of(qp)));
	give_up(qp, entry);
	memset(entry, 0, sizeof(*entry));
	entry->kind = REPLAY_READ;
	entry->psn = psn;
	entry->packets = packets;
	entry->end = packets;
	resp->replay_head++;
	note_pending(qp, entry);
	return entry;
}

struct replay *replay_find(struct eng_qp *qp, uint32_t psn)
{
	for (uint32_t i = 1; i <= depth_of(qp); i++) {
		struct replay *entry = entry_at(qp, qp->resp.replay_head - i);

		if (entry->kind == REPLAY_FREE)
			return NULL;
		if (psn_in(psn, entry->psn, entry->packets))
			return entry;
	}
	return NULL;
}

/* The first packet from next on that is wanted. */
static uint32_t behind_skip(const struct replay *entry, uint32_t next)
{
	for (uint32_t i = 0; i < entry->skips; i++)
		if (next == entry->skip[i].from)
			return entry->skip[i].to;
	return next;
}

/* A further part, behind those that are wanted. */
static void add_part(struct replay *entry, uint32_t from, uint32_t end)
{
	if (from > entry->end && entry->skips < REPLAY_SKIPS) {
		entry->skip[entry->skips].from = entry->end;
		entry->skip[entry->skips].to = from;
		entry->skips++;
	}
	entry->end = end;
}

void replay_again(struct eng_qp *qp, struct replay *entry, uint32_t from, uint32_t end)
{
	bool pending = is_pending(entry);

	/* Of several parts that a uroce asks for, one behind the other, all are wanted. */
	if (pending && entry->again && entry->end < entry->packets && from >= entry->end) {
		add_part(entry, from, end);
		return;
	}
	entry->skips = 0;
	entry->from = from;
	entry->next = from;
	entry->end = end;
	if (pending)
		return;
	entry->again = true;
	note_pending(qp, entry);
}

const struct replay *replay_look(const struct eng_qp *qp)
{
	const struct replay *entry;

	if (qp->resp.replay_pending == 0)
		return NULL;
	entry = entry_at(qp, qp->resp.replay_oldest);
	assert(is_pending(entry));
	return entry;
}

struct replay *replay_pending(struct eng_qp *qp)
{
	return qp->resp.replay_pending > 0 ? entry_at(qp, qp->resp.replay_oldest) : NULL;
}

void replay_begin(struct eng_qp *qp)
{
	memset(qp->resp.replay_burst, 0, sizeof(qp->resp.replay_burst));
}

bool replay_begins_part(const struct replay *entry)
{
	bool begins = entry->next == entry->from;

	for (uint32_t i = 0; i < entry->skips; i++)
		begins |= entry->next == entry->skip[i].to;
	return begins;
}

bool replay_ends_part(const struct replay *entry)
{
	uint32_t next = entry->next + 1;

	return next == entry->end || behind_skip(entry, next) != next;
}

void replay_sent(struct eng_qp *qp, struct replay *entry, uint32_t next)
{
	uint32_t slot = (uint32_t)(entry - qp->replay);

	assert(is_pending(entry) && next <= entry->end);
	if (!in_burst(qp, slot))
		entry->before = entry->next;
	put_in_burst(qp, slot);
	entry->next = behind_skip(entry, next);
	if (entry->next == entry->end)
		note_answered(qp);
}

void replay_unsent(struct eng_qp *qp)
{
	for (uint32_t slot = 0; slot < qp->replay_slots; slot++) {
		struct replay *entry = &qp->replay[slot];
		bool answered = !is_pending(entry);

		if (!in_burst(qp, slot))
			continue;
		assert(entry->kind != REPLAY_FREE && entry->before < entry->next);
		entry->next = entry->before;
		if (answered)
			note_pending(qp, entry);
	}
	replay_begin(qp);
}

void replay_cancel(struct eng_qp *qp)
{
	if (qp->replay)
		memset(qp->replay, 0, qp->replay_slots * sizeof(qp->replay[0]));
	qp->resp.replay_pending = 0;
	qp->resp.replay_oldest = qp->resp.replay_head;
	replay_begin(qp);
}
