/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "fault_inject.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/types.h"

/* Maximum number of pieces of a send call; with more, the packet is copied. */
#define PIECES 256

/*
 * Packets to be sent later in one call; all have segment bytes, except the last, which may be
 * shorter.
 */
struct waiting {
	struct waiting *next;
	struct fault_path path;
	uint64_t due;
	unsigned int passed; /* reordering: number of packets that must still pass this one */
	uint32_t packets;
	uint32_t segment;
	uint32_t length;
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
	uint64_t n;	   /* number of packets so far */
	struct queue held; /* for reordering */
	struct queue late; /* delayed; all by the same time, so in the order of their due times */
	unsigned int waiting;
	atomic_uint_fast64_t deadline;
	struct iovec iov[PIECES];
	uint8_t packet[LINK_MAX_BYTES]; /* buffer for the packet being corrupted */
	uint8_t bytes[LINK_MAX_BYTES];	/* buffer for packets that differ from the burst */
};

/* Consecutive packets [from, end) of a burst without faults. */
struct stretch {
	const struct eng_burst *burst;
	struct fault_path path;
	uint32_t from;
	uint32_t end;
	uint64_t now;
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

/* Unlinks and returns the element to which *from points. */
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
	struct waiting *packet = unlink_at(queue, from);

	injector->waiting -= packet->packets;
	free(packet);
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

static void count(struct fault_injector *injector, enum progress_counter counter, uint32_t packets)
{
	while (packets-- > 0)
		injector->sink.count(injector->sink.arg, counter);
}

static void send_bytes(struct fault_injector *injector, const struct fault_path *path,
		       const uint8_t *bytes, uint32_t length, uint32_t packets, uint32_t segment)
{
	struct iovec piece = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = length };

	injector->sink.send(injector->sink.arg, path, &piece, 1, packets > 1 ? segment : 0);
}

static uint32_t packet_start(const struct eng_burst *burst, uint32_t index)
{
	return index == burst->packets ? burst->bytes : index * burst->segment;
}

static uint32_t stretch_bytes(const struct stretch *stretch)
{
	return packet_start(stretch->burst, stretch->end) -
	       packet_start(stretch->burst, stretch->from);
}

/*
 * Collects length bytes of the burst from byte start on, as pieces in iov, or as a copy if bytes is
 * not NULL.  Returns the number of pieces, or 0 if iov is too small.
 */
static unsigned int gather(const struct eng_burst *burst, uint32_t start, uint32_t length,
			   struct iovec iov[PIECES], uint8_t *bytes)
{
	const struct eng_piece *piece = burst->pieces;
	unsigned int count = 0;

	for (; start >= piece->length; piece++)
		start -= piece->length;
	for (; length > 0; piece++, start = 0) {
		uint32_t part = piece->length - start < length ? piece->length - start : length;

		if (bytes) {
			memcpy(bytes, piece->bytes + start, part);
			bytes += part;
		} else {
			if (count == PIECES)
				return 0;
			iov[count].iov_base = (void *)(uintptr_t)(piece->bytes + start);
			iov[count].iov_len = part;
		}
		count++;
		length -= part;
	}
	return count;
}

/*
 * Copies packets as they are sent in a call of their own: a packet whose index in the call differs
 * from that in the burst has another IPv4 ID, and so another ICRC.
 */
static void copy_out(const struct stretch *stretch, uint8_t *to)
{
	const struct eng_burst *burst = stretch->burst;
	uint32_t start = packet_start(burst, stretch->from);

	gather(burst, start, stretch_bytes(stretch), NULL, to);
	if (stretch->from == 0 || burst->path->wire.ipv6)
		return;
	for (uint32_t i = stretch->from; i < stretch->end; i++)
		wire_icrc_put(&burst->path->wire, (uint16_t)(i - stretch->from),
			      to + (packet_start(burst, i) - start),
			      packet_start(burst, i + 1) - packet_start(burst, i));
}

/* Drops all packets of the stretch. */
static void lose(struct fault_injector *injector, struct stretch stretch)
{
	count(injector, PROGRESS_COUNT_FAULT_DROPPED, stretch.end - stretch.from);
	for (uint32_t end = stretch.end; stretch.from < end; stretch.from++) {
		stretch.end = stretch.from + 1;
		copy_out(&stretch, injector->bytes);
		injector->sink.lost(injector->sink.arg, &stretch.path, injector->bytes,
				    stretch_bytes(&stretch));
	}
}

/*
 * Stores as many packets as there is room for, and drops the others.  Returns NULL if all are
 * dropped.
 */
static struct waiting *keep(struct fault_injector *injector, struct queue *queue,
			    struct stretch stretch, uint64_t due)
{
	uint32_t packets = stretch.end - stretch.from;
	uint32_t room = FAULT_MAX_WAITING - injector->waiting;
	struct waiting *kept = NULL;

	if (packets > room) {
		struct stretch rest = stretch;

		packets = room;
		stretch.end = stretch.from + packets;
		rest.from = stretch.end;
		lose(injector, rest);
	}
	if (packets > 0)
		kept = malloc(sizeof(*kept) + stretch_bytes(&stretch));
	if (!kept) {
		lose(injector, stretch);
		return NULL;
	}
	injector->waiting += packets;
	kept->path = stretch.path;
	kept->due = due;
	kept->passed = 0;
	kept->packets = packets;
	kept->segment = stretch.burst->segment;
	kept->length = stretch_bytes(&stretch);
	copy_out(&stretch, kept->bytes);
	append(queue, kept);
	return kept;
}

/* Sends packets after the reordering stage: now, or after the delay. */
static void leave(struct fault_injector *injector, const struct stretch *stretch)
{
	const struct eng_burst *burst = stretch->burst;
	uint32_t packets = stretch->end - stretch->from;
	unsigned int pieces = 0;

	if (packets == 0)
		return;
	if (injector->config.delay_ns) {
		count(injector, PROGRESS_COUNT_FAULT_DELAYED, packets);
		keep(injector, &injector->late, *stretch, stretch->now + injector->config.delay_ns);
		return;
	}
	/* Packets at the front of the burst need no other ICRC. */
	if (stretch->from == 0)
		pieces = gather(burst, 0, stretch_bytes(stretch), injector->iov, NULL);
	if (pieces > 0) {
		injector->sink.send(injector->sink.arg, &stretch->path, injector->iov, pieces,
				    packets > 1 ? burst->segment : 0);
		return;
	}
	copy_out(stretch, injector->bytes);
	send_bytes(injector, &stretch->path, injector->bytes, stretch_bytes(stretch), packets,
		   burst->segment);
}

/* Sends stored packets from either queue. */
static void leave_late(struct fault_injector *injector, struct queue *queue, struct waiting **from)
{
	const struct waiting *packet = *from;

	send_bytes(injector, &packet->path, packet->bytes, packet->length, packet->packets,
		   packet->segment);
	discard(injector, queue, from);
}

/* Releases a held packet: sends it, or starts its delay. */
static void leave_held(struct fault_injector *injector, struct waiting **from, uint64_t now)
{
	struct waiting *packet;

	if (!injector->config.delay_ns) {
		leave_late(injector, &injector->held, from);
		return;
	}
	packet = unlink_at(&injector->held, from);
	count(injector, PROGRESS_COUNT_FAULT_DELAYED, packet->packets);
	packet->due = now + injector->config.delay_ns;
	append(&injector->late, packet);
}

/* Sends the packets collected so far and starts a new stretch after them. */
static void leave_calm(struct fault_injector *injector, struct stretch *calm)
{
	leave(injector, calm);
	calm->from = calm->end;
}

/*
 * Accounts for a packet that has passed (the last one of calm, or one that was sent), and releases
 * held packets that waited for it.
 */
static void pass_held(struct fault_injector *injector, struct stretch *calm)
{
	struct waiting **from = &injector->held.first;

	while (*from) {
		if (--(*from)->passed == 0) {
			leave_calm(injector, calm);
			leave_held(injector, from, calm->now);
		} else {
			from = &(*from)->next;
		}
	}
}

/* Applies the faults to one packet; the packets before it have been sent. */
static void meet_fate(struct fault_injector *injector, struct stretch one, struct fault_fate fate,
		      struct stretch *calm)
{
	uint32_t length = stretch_bytes(&one);
	struct eng_piece piece = { injector->packet, length };
	struct eng_burst corrupted = { .path = one.burst->path,
				       .pieces = &piece,
				       .piece_count = 1,
				       .packets = 1,
				       .segment = length,
				       .bytes = length };
	struct waiting *held;

	if (fate.corrupted) {
		count(injector, PROGRESS_COUNT_FAULT_CORRUPTED, 1);
		copy_out(&one, injector->packet);
		injector->packet[fate.random % length] ^= (uint8_t)(1 + (fate.random >> 24) % 255);
		one = (struct stretch){ &corrupted, one.path, 0, 1, one.now };
		one.path.corrupted = true;
	}
	count(injector, PROGRESS_COUNT_FAULT_DUPLICATED, fate.duplicated);
	for (int copies = fate.duplicated ? 2 : 1; copies > 0; copies--) {
		if (!fate.passed) {
			leave(injector, &one);
			pass_held(injector, calm);
			continue;
		}
		count(injector, PROGRESS_COUNT_FAULT_REORDERED, 1);
		held = keep(injector, &injector->held, one, one.now + FAULT_HOLD_NS);
		if (held)
			held->passed = fate.passed;
	}
}

static void take(struct fault_injector *injector, struct stretch *calm, uint32_t index)
{
	struct fault_fate fate = fault_fate(&injector->config, injector->n++);
	struct stretch one = *calm;

	if (!fate.dropped && !fate.duplicated && !fate.corrupted && !fate.passed) {
		calm->end = index + 1;
		pass_held(injector, calm);
		return;
	}
	leave_calm(injector, calm);
	calm->from = index + 1;
	calm->end = index + 1;
	one.from = index;
	one.end = index + 1;
	if (fate.dropped)
		lose(injector, one);
	else
		meet_fate(injector, one, fate, calm);
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

void fault_send(struct fault_injector *injector, struct link_peer *peer, uint32_t qpn,
		const struct eng_burst *burst, uint64_t now)
{
	struct stretch calm = { .burst = burst, .path = { .peer = peer, .qpn = qpn }, .now = now };

	pthread_mutex_lock(&injector->lock);
	for (uint32_t i = 0; i < burst->packets; i++)
		take(injector, &calm, i);
	leave_calm(injector, &calm);
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
		leave_late(injector, &injector->late, &injector->late.first);
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
		if ((*from)->path.peer != peer) {
			from = &(*from)->next;
			continue;
		}
		leave_late(injector, queue, from);
	}
}

void fault_flush(struct fault_injector *injector, struct link_peer *peer)
{
	pthread_mutex_lock(&injector->lock);
	/* Delayed packets are older than held ones. */
	flush_in(injector, &injector->late, peer);
	flush_in(injector, &injector->held, peer);
	set_deadline(injector);
	pthread_mutex_unlock(&injector->lock);
}
