/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "sim/queue.h"

#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"

uint32_t queue_slots_of(uint32_t depth)
{
	uint32_t slots = 1;

	while (slots < depth)
		slots *= 2;
	return slots;
}

uint8_t *queue_slots_new(uint32_t slots, uint32_t slot_bytes)
{
	uint8_t *memory = aligned_alloc(64, ((size_t)slots * slot_bytes + 63) & ~(size_t)63);

	if (!memory)
		abort();
	return memory;
}

void queue_open(struct receive_queue *queue, uint32_t depth, uint32_t max_sge)
{
	uint32_t slots = queue_slots_of(depth), bytes = eng_recv_slot_bytes(max_sge);

	free(queue->slots);
	queue->slots = queue_slots_new(slots, bytes);
	eng_ring_init(&queue->ring, queue->slots, bytes, slots, depth);
}

void queue_start(struct receive_queue *queue, struct script *script)
{
	queue->script = script;
	queue->posted = queue->taken = 0;
	queue->next_post_at = 0;
}

void queue_free(struct receive_queue *queue)
{
	free(queue->slots);
}

bool queue_has_room(const struct receive_queue *queue)
{
	const struct script *script = queue->script;

	return (script->receives_again || queue->posted < script->receive_count) &&
	       !eng_ring_full(&queue->ring);
}

const struct receive *queue_receive(const struct receive_queue *queue, uint32_t number)
{
	return &queue->script->receives[number % queue->script->receive_count];
}

void queue_post(struct receive_queue *queue)
{
	const struct receive *receive = queue_receive(queue, queue->posted);
	struct eng_recv_wqe *wqe = eng_rq_next(&queue->ring);

	wqe->wr_id = ~(uint64_t)queue->posted;
	wqe->length = receive->length;
	wqe->sge_count = receive->sge_count;
	memcpy(wqe->sge, receive->sge, receive->sge_count * sizeof(wqe->sge[0]));
	queue->posted++;
	eng_rq_push(&queue->ring);
}
