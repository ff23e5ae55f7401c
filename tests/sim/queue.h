/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A receive queue as its consumer sees it: of one queue pair, or shared by some of a host.  The
 * requests come from a script; the oracle counts those that messages have taken.
 */
#ifndef UROCE_SIM_QUEUE_H
#define UROCE_SIM_QUEUE_H

#include "sim/plan/script.h"

/* As many as are posted and under way at a time, and more. */
#define QUEUE_BUFFERS 80

struct receive_queue {
	struct eng_ring ring;
	uint8_t *slots;
	struct script *script; /* whose receive requests are posted, with their memory */
	bool shared;
	uint32_t posted; /* so far: also the number of the next request */
	uint32_t taken;	 /* by messages, as the oracle counts */
	uint64_t next_post_at;
	/* Where the memory is used again: by which request, from its posting to its completion. */
	uint8_t *buffers; /* [number] */
	uint32_t buffers_room, next_buffer;
	bool in_use[QUEUE_BUFFERS];
};

/* depth requests may be posted at a time; the queue may have been used before. */
void queue_open(struct receive_queue *queue, uint32_t depth, uint32_t max_sge);
/* Nothing has been posted; the memory of the requests is that of script. */
void queue_start(struct receive_queue *queue, struct script *script);
void queue_free(struct receive_queue *queue);

/* Returns true if there is a request to post, and room for it. */
bool queue_has_room(const struct receive_queue *queue);
void queue_post(struct receive_queue *queue);
/* Its completion has come: the memory may be posted again. */
void queue_done(struct receive_queue *queue, uint32_t number);
/* The request with this number. */
const struct receive *queue_receive(const struct receive_queue *queue, uint32_t number);
/* Requests posted that no message has taken, as the oracle counts. */
static inline uint32_t queue_left(const struct receive_queue *queue)
{
	return queue->posted - queue->taken;
}

/* Rings of a power of two that hold depth entries. */
uint32_t queue_slots_of(uint32_t depth);
uint8_t *queue_slots_new(uint32_t slots, uint32_t slot_bytes);

#endif
