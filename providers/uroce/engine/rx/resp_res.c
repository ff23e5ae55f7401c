/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "resp_res.h"

#include <assert.h>
#include <string.h>

#define WORD_BITS 64

_Static_assert(ENG_MAX_RD_ATOMIC <= sizeof(((struct responder *)0)->resp_res_burst) * 8,
	       "resp_res_burst has a bit for each");

/* Number of slots, a power of two, as indexes wrap by a mask. */
static uint32_t slots_for(uint32_t depth)
{
	uint32_t slots = depth > 0;

	while (slots < depth)
		slots *= 2;
	return slots;
}

size_t eng_resp_res_bytes(uint32_t depth)
{
	return slots_for(depth) * sizeof(struct resp_res);
}

/* Slot of an index.  Indexes run freely; the newest max_dest_rd_atomic entries are valid. */
static uint32_t slot_of(const struct eng_qp *qp, uint32_t index)
{
	return index & (qp->resp_res_slots - 1);
}

static struct resp_res *entry_at(const struct eng_qp *qp, uint32_t index)
{
	return &qp->resp_res[slot_of(qp, index)];
}

static uint32_t index_of(const struct eng_qp *qp, const struct resp_res *entry)
{
	uint32_t newest = qp->resp.resp_res_head - 1;

	return newest - slot_of(qp, newest - (uint32_t)(entry - qp->resp_res));
}

static uint32_t depth_of(const struct eng_qp *qp)
{
	assert(qp->attr.max_dest_rd_atomic <= qp->resp_res_slots);
	return qp->attr.max_dest_rd_atomic;
}

static bool is_pending(const struct resp_res *entry)
{
	return entry->kind != RESP_RES_FREE && entry->next != entry->end;
}

/*
 * Counts entry, which has got pending responses, and lets the search for pending ones start there
 * at the latest.
 */
static void mark_pending(struct eng_qp *qp, const struct resp_res *entry)
{
	uint32_t index = index_of(qp, entry);

	qp->resp.resp_res_pending++;
	if ((int32_t)(index - qp->resp.resp_res_oldest) < 0)
		qp->resp.resp_res_oldest = index;
}

static void count_response(struct eng_qp *qp)
{
	struct responder *resp = &qp->resp;

	resp->resp_res_pending--;
	while (resp->resp_res_oldest != resp->resp_res_head &&
	       !is_pending(entry_at(qp, resp->resp_res_oldest)))
		resp->resp_res_oldest++;
}

static void give_up(struct eng_qp *qp, struct resp_res *entry)
{
	if (!is_pending(entry))
		return;
	entry->next = entry->end;
	count_response(qp);
}

static bool in_burst(const struct eng_qp *qp, uint32_t slot)
{
	return qp->resp.resp_res_burst[slot / WORD_BITS] >> slot % WORD_BITS & 1;
}

static void put_in_burst(struct eng_qp *qp, uint32_t slot)
{
	qp->resp.resp_res_burst[slot / WORD_BITS] |= UINT64_C(1) << slot % WORD_BITS;
}

/* Copies entries of earlier requests, as many as there is room for. */
static void move_entries(struct eng_qp *to, const struct eng_qp *from)
{
	uint32_t head = from->resp.resp_res_head;

	for (uint32_t i = 1; i <= from->resp_res_slots && i <= to->resp_res_slots; i++) {
		*entry_at(to, head - i) = *entry_at(from, head - i);
		if (in_burst(from, slot_of(from, head - i)))
			put_in_burst(to, slot_of(to, head - i));
	}
}

void *eng_set_resp_res(struct eng_qp *qp, void *memory, uint32_t depth)
{
	void *before = qp->resp_res;
	const struct eng_qp old = *qp;

	assert(depth <= ENG_MAX_RD_ATOMIC && slots_for(depth) >= qp->resp_res_slots);
	qp->resp_res = memory;
	qp->resp_res_slots = slots_for(depth);
	memset(memory, 0, eng_resp_res_bytes(depth));
	resp_res_begin_burst(qp);
	move_entries(qp, &old);
	return before;
}

/*
 * An entry with a pending response is outstanding at the peer, which has then used up its depth.
 * But if that response is only repeated, the request may be complete there: the peer may have
 * received the first response.
 */
bool resp_res_has_room(const struct eng_qp *qp)
{
	const struct resp_res *victim;

	if (depth_of(qp) == 0)
		return false;
	victim = entry_at(qp, qp->resp.resp_res_head - depth_of(qp));
	return !is_pending(victim) || victim->again;
}

struct resp_res *resp_res_new(struct eng_qp *qp, uint32_t psn, uint32_t packets)
{
	struct responder *resp = &qp->resp;
	struct resp_res *entry = entry_at(qp, resp->resp_res_head);

	assert(resp_res_has_room(qp));
	give_up(qp, entry_at(qp, resp->resp_res_head - depth_of(qp)));
	give_up(qp, entry);
	memset(entry, 0, sizeof(*entry));
	entry->kind = RESP_RES_READ;
	entry->psn = psn;
	entry->packets = packets;
	entry->end = packets;
	resp->resp_res_head++;
	mark_pending(qp, entry);
	return entry;
}

struct resp_res *resp_res_find(struct eng_qp *qp, uint32_t psn)
{
	for (uint32_t i = 1; i <= depth_of(qp); i++) {
		struct resp_res *entry = entry_at(qp, qp->resp.resp_res_head - i);

		if (entry->kind == RESP_RES_FREE)
			return NULL;
		if (psn_in(psn, entry->psn, entry->packets))
			return entry;
	}
	return NULL;
}

/* Returns next, or the end of the hole that begins there: the next pending packet. */
static uint32_t behind_hole(const struct resp_res *entry, uint32_t next)
{
	for (uint32_t i = 0; i < entry->holes; i++)
		if (next == entry->hole[i].from)
			return entry->hole[i].to;
	return next;
}

/* Adds a part behind the pending ones. */
static void add_part(struct resp_res *entry, uint32_t from, uint32_t end)
{
	if (from > entry->end && entry->holes < RESP_RES_HOLES) {
		entry->hole[entry->holes].from = entry->end;
		entry->hole[entry->holes].to = from;
		entry->holes++;
	}
	entry->end = end;
}

void resp_res_replay(struct eng_qp *qp, struct resp_res *entry, uint32_t from, uint32_t end)
{
	bool pending = is_pending(entry);

	/* A uroce peer may request several parts, in ascending order: all become pending. */
	if (pending && entry->again && entry->end < entry->packets && from >= entry->end) {
		add_part(entry, from, end);
		return;
	}
	entry->holes = 0;
	entry->from = from;
	entry->next = from;
	entry->end = end;
	if (pending)
		return;
	entry->again = true;
	mark_pending(qp, entry);
}

const struct resp_res *resp_res_peek(const struct eng_qp *qp)
{
	const struct resp_res *entry;

	if (qp->resp.resp_res_pending == 0)
		return NULL;
	entry = entry_at(qp, qp->resp.resp_res_oldest);
	assert(is_pending(entry));
	return entry;
}

struct resp_res *resp_res_pending(struct eng_qp *qp)
{
	return qp->resp.resp_res_pending > 0 ? entry_at(qp, qp->resp.resp_res_oldest) : NULL;
}

void resp_res_begin_burst(struct eng_qp *qp)
{
	memset(qp->resp.resp_res_burst, 0, sizeof(qp->resp.resp_res_burst));
}

bool resp_res_begins_part(const struct resp_res *entry)
{
	bool begins = entry->next == entry->from;

	for (uint32_t i = 0; i < entry->holes; i++)
		begins |= entry->next == entry->hole[i].to;
	return begins;
}

bool resp_res_ends_part(const struct resp_res *entry)
{
	uint32_t next = entry->next + 1;

	return next == entry->end || behind_hole(entry, next) != next;
}

void resp_res_sent(struct eng_qp *qp, struct resp_res *entry, uint32_t next)
{
	uint32_t slot = (uint32_t)(entry - qp->resp_res);

	assert(is_pending(entry) && next <= entry->end);
	if (!in_burst(qp, slot))
		entry->before = entry->next;
	put_in_burst(qp, slot);
	entry->next = behind_hole(entry, next);
	if (entry->next == entry->end)
		count_response(qp);
}

void resp_res_rollback(struct eng_qp *qp)
{
	for (uint32_t slot = 0; slot < qp->resp_res_slots; slot++) {
		struct resp_res *entry = &qp->resp_res[slot];
		bool answered = !is_pending(entry);

		if (!in_burst(qp, slot))
			continue;
		assert(entry->kind != RESP_RES_FREE && entry->before < entry->next);
		entry->next = entry->before;
		if (answered)
			mark_pending(qp, entry);
	}
	resp_res_begin_burst(qp);
}

void resp_res_cancel(struct eng_qp *qp)
{
	if (qp->resp_res)
		memset(qp->resp_res, 0, qp->resp_res_slots * sizeof(qp->resp_res[0]));
	qp->resp.resp_res_pending = 0;
	qp->resp.resp_res_oldest = qp->resp.resp_res_head;
	resp_res_begin_burst(qp);
}
