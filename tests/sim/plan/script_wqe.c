/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <string.h>

#include "sim/plan/script.h"

struct window *script_window(struct script *script, uint32_t key)
{
	for (uint32_t i = 0; i < script->window_count; i++)
		if (script->windows[i].key == key)
			return &script->windows[i];
	return NULL;
}

static void fill_bind(const struct script *script, const struct window *window,
		      struct eng_send_wqe *wqe)
{
	wqe->bind.addr = script->remote.base + window->offset;
	wqe->bind.length = window->length;
	wqe->bind.access = script->remote.access;
	wqe->bind.window = window->key ^ 1;
	wqe->bind.lkey = script->remote.key;
	wqe->bind.rkey = window->key;
}

void script_fill_send(const struct script *script, uint32_t index, struct eng_send_wqe *wqe)
{
	const struct message *message = &script->messages[index];

	wqe->wr_id = index;
	wqe->length = message->length;
	wqe->op = (uint8_t)message->op;
	wqe->flags = (uint8_t)message->flags;
	wqe->immediate = message->immediate;
	wqe->remote.va = message->va;
	wqe->remote.rkey = message->rkey;
	wqe->remote.compare_add = message->compare_add;
	wqe->remote.swap = message->swap;
	if (message->op == ENG_BIND_MW)
		fill_bind(script, &script->windows[message->window], wqe);
	if (message->flags & ENG_INLINE) {
		wqe->sge_count = 0;
		memcpy(wqe->data.bytes, script->blob + message->content, message->length);
	} else {
		wqe->sge_count = (uint8_t)message->sge_count;
		memcpy(wqe->data.sge, message->sge, message->sge_count * sizeof(wqe->data.sge[0]));
	}
}

uint32_t script_find(const struct script *script, int64_t position)
{
	uint32_t low = 0, high = script->message_count;

	if (position < 0 || position >= script->positions)
		return NO_INDEX;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (script->messages[middle].first <= position)
			low = middle;
		else
			high = middle;
	}
	return low;
}

uint32_t script_by_ssn(const struct script *script, uint32_t ssn)
{
	uint32_t low = 0, high = script->message_count;

	/* Finds the first message with this SSN: local requests after it have it too. */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (script->messages[middle].ssn < ssn)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}
