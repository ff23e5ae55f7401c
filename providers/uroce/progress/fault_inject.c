/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "fault_inject.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "engine/types.h"

struct waiting {
	struct waiting *next;
	struct link_peer *peer;
	uint64_t due;
	unsigned int passed; /* how many packets still have to pass by, in the list of held ones */
	size_t length;
	uint8_t bytes[];
};

struct queue {
	struct waiting *first;
	struct waiting **end;
};

struct fault_injector {
	struct fault_config config;
	struct fault_sink sink;
	pthread_mutex_t lock;
	uint64_t n;	   /* packets that have come so far */
	struct queue held; /* reordered */
	struct queue late; /* delayed; all for the same time, so in the order of their due times */
	unsigned int waiting;
	atomic_uint_fast64_t deadline;
	uint8_t packet[LINK_MAX_BYTES]; /* the one that is worked on */
};

int fault_open(struct fault_injector **injector, const struct fault_config *config,
	       const struct fault_sink *sink)
{
	struct fault_injector *made = calloc(1, sizeof(*made));

	if (!made)
		return -ENOMEM;
	made->config = *config;
	made->sink = *sink;
	pthread_mutex_init(&made->lock, NULL);
	made->held.end = &made->held.first;
	made->late.end = &made->late.first;
	atomic_init(&made->deadline, ENG_NEVER);
	*injector = made;
	return 0;
}

static void append(struct queue *queue, struct waiting *packet)
{
	packet->next = NULL;
	*queue->end = packet;
	queue->end = &packet->next;
}

/* Take out what *from points at. */
static struct waiting *unlink_at(struct queue *queue, struct waiting **from)
{
	struct waiting *packet = *from;

	*from = packet->next;
	if (queue->end == &packet->next)
		queue->end = from;
	return packet;
}

static void discard(struct fault_injector *injector, struct queue *queue, struct waiting **from)
{
	free(unlink_at(queue, from));
	injector->waiting--;
}

void fault_close(struct fault_injector *injector)
{
	while (injector->held.first)
		discard(injector, &injector->held, &injector->held.first);
	while (injector->late.first)
		discard(injector, &injector->late, &injector->late.first);
	pthread_mutex_destroy(&injector->lock);
	free(injector);
}

static struct waiting *keep(struct fault_injector *injector, struct queue *queue,
			    struct link_peer *peer, const uint8_t *bytes, size_t length,
			    uint64_t due)
{
	struct waiting *packet = NULL;

	if (injector->waiting < FAULT_MAX_WAITING)
		packet = malloc(sizeof(*packet) + length);
	if (!packet) {
		injector->sink.count(injector->sink.arg, PROGRESS_COUNT_FAULT_DROPPED);
		return NULL;
	}
	injector->waiting++;
	packet->peer = peer;
	packet->due = due;
	packet->passed = 0;
	packet->length = length;
	memcpy(packet->bytes, bytes, length);
	append(queue, packet);
	return packet;
}

/* Past the reordering: now, or after the delay. */
static void leave(struct fault_injector *injector, struct link_peer *peer, const uint8_t *bytes,
		  size_t length, uint64_t now)
{
	if (!injector->config.delay_ns) {
		injector->sink.send(injector->sink.arg, peer, bytes, length);
		return;
	}
	injector->sink.count(injector->sink.arg, PROGRESS_COUNT_FAULT_DELAYED);
	keep(injector, &injector->late, peer, bytes, length, now + injector->config.delay_ns);
}

static void leave_held(struct fault_injector *injector, struct waiting **from, uint64_t now)
{
	struct waiting *packet = unlink_at(&injector->held, from);

	injector->waiting--;
	leave(injector, packet->peer, packet->bytes, packet->length, now);
	free(packet);
}

/* A packet has gone: those that waited for it follow. */
static void pass_held(struct fault_injector *injector, uint64_t now)
{
	struct waiting **from = &injector->held.first;

	while (*from) {
		if (--(*from)->passed == 0)
			leave_held(injector, from, now);
		else
			from = &(*from)->next;
	}
}

static void meet_fate(struct fault_injector *injector, struct link_peer *peer, size_t length,
		      uint64_t now)
{
	struct fault_fate fate = fault_fate(&injector->config, injector->n++);
	const struct fault_sink *sink = &injector->sink;
	struct waiting *held;

	if (fate.dropped) {
		sink->count(sink->arg, PROGRESS_COUNT_FAULT_DROPPED);
		return;
	}
	if (fate.corrupted && length) {
		sink->count(sink->arg, PROGRESS_COUNT_FAULT_CORRUPTED);
		injector->packet[fate.random % length] ^= (uint8_t)(1 + (fate.random >> 24) % 255);
	}
	if (fate.duplicated)
		sink->count(sink->arg, PROGRESS_COUNT_FAULT_DUPLICATED);
	for (int copies = fate.duplicated ? 2 : 1; copies > 0; copies--) {
		if (!fate.passed) {
			leave(injector, peer, injector->packet, length, now);
			pass_held(injector, now);
			continue;
		}
		sink->count(sink->arg, PROGRESS_COUNT_FAULT_REORDERED);
		held = keep(injector, &injector->held, peer, injector->packet, length,
			    now + FAULT_HOLD_NS);
		if (held)
			held->passed = fate.passed;
	}
}

static void set_deadline(struct fault_injector *injector)
{
	uint64_t deadline = ENG_NEVER;

	if (injector->held.first)
		deadline = injector->held.first->due;
	if (injector->late.first && injector->late.first->due < deadline)
		deadline = injector->late.first->due;
	atomic_store(&injector->deadline, deadline);
}

/* Where the walk over the pieces of a run stands. */
struct cursor {
	const struct eng_run *run;
	uint32_t piece;
	uint32_t offset;
};

static void copy_out(struct cursor *cursor, uint8_t *to, uint32_t length)
{
	while (length) {
		const struct eng_piece *piece = &cursor->run->pieces[cursor->piece];
		uint32_t part = piece->length - cursor->offset;

		if (part > length)
			part = length;
		memcpy(to, piece->bytes + cursor->offset, part);
		to += part;
		length -= part;
		cursor->offset += part;
		if (cursor->offset == piece->length) {
			cursor->piece++;
			cursor->offset = 0;
		}
	}
}

void fault_send(struct fault_injector *injector, struct link_peer *peer, const struct eng_run *run,
		uint64_t now)
{
	struct cursor cursor = { .run = run };
	uint32_t left = run->bytes;

	pthread_mutex_lock(&injector->lock);
	for (uint32_t i = 0; i < run->packets; i++) {
		uint32_t length = left < run->segment ? left : run->segment;

		copy_out(&cursor, injector->packet, length);
		left -= length;
		/* In the run it would have had identification i. */
		if (i > 0 && !run->path->wire.ipv6)
			wire_icrc_put(&run->path->wire, 0, injector->packet, length);
		meet_fate(injector, peer, length, now);
	}
	set_deadline(injector);
	pthread_mutex_unlock(&injector->lock);
}

bool fault_release(struct fault_injector *injector, uint64_t now)
{
	bool sent = false;

	if (fault_deadline(injector) > now)
		return false;
	pthread_mutex_lock(&injector->lock);
	while (injector->held.first && injector->held.first->due <= now) {
		leave_held(injector, &injector->held.first, now);
		sent = true;
	}
	while (injector->late.first && injector->late.first->due <= now) {
		struct waiting *packet = unlink_at(&injector->late, &injector->late.first);

		injector->waiting--;
		injector->sink.send(injector->sink.arg, packet->peer, packet->bytes,
				    packet->length);
		free(packet);
		sent = true;
	}
	set_deadline(injector);
	pthread_mutex_unlock(&injector->lock);
	return sent;
}

uint64_t fault_deadline(const struct fault_injector *injector)
{
	return atomic_load(&injector->deadline);
}

static void flush_in(struct fault_injector *injector, struct queue *queue, struct link_peer *peer)
{
	struct waiting **from = &queue->first;

	while (*from) {
		if ((*from)->peer != peer) {
			from = &(*from)->next;
			continue;
		}
		injector->sink.send(injector->sink.arg, peer, (*from)->bytes, (*from)->length);
		discard(injector, queue, from);
	}
}

void fault_flush(struct fault_injector *injector, struct link_peer *peer)
{
	pthread_mutex_lock(&injector->lock);
	/* What is late has been on its way for longer. */
	flush_in(injector, &injector->late, peer);
	flush_in(injector, &injector->held, peer);
	set_deadline(injector);
	pthread_mutex_unlock(&injector->lock);
}
