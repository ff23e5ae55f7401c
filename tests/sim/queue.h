/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A receive queue as its consumer sees it: of one queue pair, or shared by several of a host.  The
 * receive requests come from a script; the oracle counts those that messages have taken.
 */
#ifndef UROCE_SIM_QUEUE_H
#define UROCE_SIM_QUEUE_H

#include "sim/plan/script.h"

/* Number of buffers that are used again: more than requests can be posted or in use at a time. */
#define QUEUE_BUFFERS 80

struct receive_queue {
	struct eng_ring ring;
	uint8_t *slots;
	struct script *script; /* source of the receive requests and their memory */
	bool shared;
	uint32_t posted; /* number of requests posted; also the number of the next one */
	uint32_t taken;	 /* number of requests that messages took, as the oracle counts */
	uint64_t next_post_at;
	/*
	 * Used if script->receives_again.  A buffer is in use from the posting of a request to its
	 * completion.
	 */
	uint8_t *buffers; /* [number of the request]: its buffer */
	uint32_t buffers_room, next_buffer;
	bool in_use[QUEUE_BUFFERS];
};

/* depth requests may be posted at a time; the queue may have been used before. */
void queue_open(struct receive_queue *queue, uint32_t depth, uint32_t max_sge);
/* Restarts the numbers of requests at 0; the requests and their memory come from script. */
void queue_start(struct receive_queue *queue, struct script *script);
void queue_free(struct receive_queue *queue);

/* Returns true if there is a request to post, and room for it. */
bool queue_has_room(const struct receive_queue *queue);
void queue_post(struct receive_queue *queue);
/* To be called when the request has completed: its memory may be posted again. */
void queue_done(struct receive_queue *queue, uint32_t number);
/* Returns the request with this number. */
const struct receive *queue_receive(const struct receive_queue *queue, uint32_t number);
/* Number of posted requests that no message has taken, as the oracle counts. */
static inline uint32_t queue_left(const struct receive_queue *queue)
{
	return queue->posted - queue->taken;
}

/* Number of slots, a power of two, of a ring that holds depth entries; and memory for the ring. */
uint32_t queue_slots_of(uint32_t depth);
uint8_t *queue_slots_new(uint32_t slots, uint32_t slot_bytes);

#endif
