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
	queue->next_buffer = 0;
	memset(queue->in_use, 0, sizeof(queue->in_use));
}

void queue_free(struct receive_queue *queue)
{
	free(queue->slots);
	free(queue->buffers);
}

bool queue_has_room(const struct receive_queue *queue)
{
	const struct script *script = queue->script;

	return (script->receives_again || queue->posted < script->receive_count) &&
	       !eng_ring_full(&queue->ring);
}

const struct receive *queue_receive(const struct receive_queue *queue, uint32_t number)
{
	if (queue->script->receives_again)
		number = queue->buffers[number];
	return &queue->script->receives[number];
}

static void choose_buffer(struct receive_queue *queue)
{
	if (queue->posted == queue->buffers_room) {
		queue->buffers_room = queue->buffers_room ? 2 * queue->buffers_room : 1024;
		queue->buffers = realloc(queue->buffers, queue->buffers_room);
		if (!queue->buffers)
			abort();
	}
	while (queue->in_use[queue->next_buffer])
		queue->next_buffer = (queue->next_buffer + 1) % queue->script->receive_count;
	queue->in_use[queue->next_buffer] = true;
	queue->buffers[queue->posted] = (uint8_t)queue->next_buffer;
}

void queue_done(struct receive_queue *queue, uint32_t number)
{
	if (queue->script->receives_again)
		queue->in_use[queue->buffers[number]] = false;
}

void queue_post(struct receive_queue *queue)
{
	struct eng_recv_wqe *wqe = eng_rq_next(&queue->ring);
	const struct receive *receive;

	if (queue->script->receives_again)
		choose_buffer(queue);
	receive = queue_receive(queue, queue->posted);
	wqe->wr_id = ~(uint64_t)queue->posted;
	wqe->length = receive->length;
	wqe->sge_count = receive->sge_count;
	memcpy(wqe->sge, receive->sge, receive->sge_count * sizeof(wqe->sge[0]));
	queue->posted++;
	eng_rq_push(&queue->ring);
}
