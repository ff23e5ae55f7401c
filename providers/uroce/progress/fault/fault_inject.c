/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "fault_inject.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/types.h"

/* Maximum number of pieces of a send call; packets with more pieces are copied. */
#define PIECES 256

/*
 * Packets to be sent later in one call; all have segment bytes, except the last, which may be
 * shorter.
 */
struct stored_packets {
	struct stored_packets *next;
	struct fault_path path;
	uint64_t due;
	unsigned int hold_packets; /* reordering: number of packets that must still pass this one */
	uint32_t packets;
	uint32_t segment;
	uint32_t length;
	uint8_t bytes[];
};

struct queue {
	struct stored_packets *first;
	struct stored_packets **end;
};

struct fault_injector {
	struct fault_config config;
	struct fault_sink sink;
	pthread_mutex_t lock;
	uint64_t n;	      /* number of packets so far */
	struct queue held;    /* for reordering */
	struct queue delayed; /* all delayed by the same time, so in the order of their due times */
	unsigned int stored_count;
	atomic_uint_fast64_t deadline;
	struct iovec iov[PIECES];
	uint8_t packet[LINK_MAX_BYTES]; /* buffer for the packet being corrupted */
	uint8_t bytes[LINK_MAX_BYTES];	/* buffer for packets that differ from the burst */
};

/* Consecutive packets [from, end) of a burst without faults. */
struct range {
	const struct eng_burst *burst;
	struct fault_path path;
	uint32_t from;
	uint32_t end;
	uint64_t now;
};

int fault_open(struct fault_injector **injector, const struct fault_config *config,
	       const struct fault_sink *sink)
{
	struct fault_injector *new_injector = calloc(1, sizeof(*new_injector));

	if (!new_injector)
		return -ENOMEM;
	new_injector->config = *config;
	new_injector->sink = *sink;
	pthread_mutex_init(&new_injector->lock, NULL);
	new_injector->held.end = &new_injector->held.first;
	new_injector->delayed.end = &new_injector->delayed.first;
	atomic_init(&new_injector->deadline, ENG_NEVER);
	*injector = new_injector;
	return 0;
}

static void append_to_queue(struct queue *queue, struct stored_packets *packet)
{
	packet->next = NULL;
	*queue->end = packet;
	queue->end = &packet->next;
}

/* Unlinks and returns the element to which *from points. */
static struct stored_packets *unlink_packets(struct queue *queue, struct stored_packets **from)
{
	struct stored_packets *packet = *from;

	*from = packet->next;
	if (queue->end == &packet->next)
		queue->end = from;
	return packet;
}

static void discard_packets(struct fault_injector *injector, struct queue *queue,
			    struct stored_packets **from)
{
	struct stored_packets *packet = unlink_packets(queue, from);

	injector->stored_count -= packet->packets;
	free(packet);
}

void fault_close(struct fault_injector *injector)
{
	while (injector->held.first)
		discard_packets(injector, &injector->held, &injector->held.first);
	while (injector->delayed.first)
		discard_packets(injector, &injector->delayed, &injector->delayed.first);
	pthread_mutex_destroy(&injector->lock);
	free(injector);
}

static void count_fault(struct fault_injector *injector, enum progress_counter counter,
			uint32_t packets)
{
	while (packets-- > 0)
		injector->sink.count(injector->sink.arg, counter);
}

/* segment is 0 for a single packet. */
static void send_bytes(struct fault_injector *injector, const struct fault_path *path,
		       const uint8_t *bytes, uint32_t length, uint32_t segment)
{
	struct iovec piece = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = length };

	injector->sink.send(injector->sink.arg, path, &piece, 1, segment);
}

static uint32_t packet_start(const struct eng_burst *burst, uint32_t index)
{
	return index == burst->packets ? burst->bytes : index * burst->segment;
}

static uint32_t range_bytes(const struct range *range)
{
	return packet_start(range->burst, range->end) - packet_start(range->burst, range->from);
}

/*
 * Collects length bytes of the burst from byte start on, as pieces in iov, or as a copy if bytes is
 * not NULL.  Returns the number of pieces, or 0 if iov is too small.
 */
static unsigned int gather_pieces(const struct eng_burst *burst, uint32_t start, uint32_t length,
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
 * Copies the packets of range for a send call of their own, with right ICRCs: a packet whose index
 * in the call differs from that in the burst has another IPv4 ID, which the ICRC covers.
 */
static void copy_range(const struct range *range, uint8_t *to)
{
	const struct eng_burst *burst = range->burst;
	uint32_t start = packet_start(burst, range->from);

	gather_pieces(burst, start, range_bytes(range), NULL, to);
	if (range->from == 0 || burst->path->wire.ipv6)
		return;
	for (uint32_t i = range->from; i < range->end; i++)
		wire_icrc_put(&burst->path->wire, (uint16_t)(i - range->from),
			      to + (packet_start(burst, i) - start),
			      packet_start(burst, i + 1) - packet_start(burst, i));
}

/* Drops all packets of the range. */
static void drop_range(struct fault_injector *injector, struct range range)
{
	count_fault(injector, PROGRESS_COUNT_FAULT_DROPPED, range.end - range.from);
	for (uint32_t end = range.end; range.from < end; range.from++) {
		range.end = range.from + 1;
		copy_range(&range, injector->bytes);
		injector->sink.lost(injector->sink.arg, &range.path, injector->bytes,
				    range_bytes(&range));
	}
}

/*
 * Stores as many packets as there is room for, and drops the others.  Returns NULL if all are
 * dropped.
 */
static struct stored_packets *store_range(struct fault_injector *injector, struct queue *queue,
					  struct range range, uint64_t due)
{
	uint32_t packets = range.end - range.from;
	uint32_t room = FAULT_MAX_WAITING - injector->stored_count;
	struct stored_packets *stored = NULL;

	if (packets > room) {
		struct range rest = range;

		packets = room;
		range.end = range.from + packets;
		rest.from = range.end;
		drop_range(injector, rest);
	}
	if (packets > 0)
		stored = malloc(sizeof(*stored) + range_bytes(&range));
	if (!stored) {
		drop_range(injector, range);
		return NULL;
	}
	injector->stored_count += packets;
	stored->path = range.path;
	stored->due = due;
	stored->hold_packets = 0;
	stored->packets = packets;
	stored->segment = range.burst->segment;
	stored->length = range_bytes(&range);
	copy_range(&range, stored->bytes);
	append_to_queue(queue, stored);
	return stored;
}

/* Sends packets after the reordering stage: now, or after the delay. */
static void send_or_delay(struct fault_injector *injector, const struct range *range)
{
	const struct eng_burst *burst = range->burst;
	uint32_t packets = range->end - range->from;
	uint32_t segment = packets > 1 ? burst->segment : 0;
	unsigned int pieces = 0;

	if (packets == 0)
		return;
	if (injector->config.delay_ns) {
		count_fault(injector, PROGRESS_COUNT_FAULT_DELAYED, packets);
		store_range(injector, &injector->delayed, *range,
			    range->now + injector->config.delay_ns);
		return;
	}
	/*
	 * Packets at the front of the burst keep their IPv4 IDs and ICRCs, so they need not be
	 * copied.
	 */
	if (range->from == 0)
		pieces = gather_pieces(burst, 0, range_bytes(range), injector->iov, NULL);
	if (pieces > 0) {
		injector->sink.send(injector->sink.arg, &range->path, injector->iov, pieces,
				    segment);
		return;
	}
	copy_range(range, injector->bytes);
	send_bytes(injector, &range->path, injector->bytes, range_bytes(range), segment);
}

/* Sends stored packets from either queue. */
static void send_stored(struct fault_injector *injector, struct queue *queue,
			struct stored_packets **from)
{
	const struct stored_packets *packet = *from;

	send_bytes(injector, &packet->path, packet->bytes, packet->length,
		   packet->packets > 1 ? packet->segment : 0);
	discard_packets(injector, queue, from);
}

/* Releases a held packet: sends it, or starts its delay. */
static void release_held(struct fault_injector *injector, struct stored_packets **from,
			 uint64_t now)
{
	struct stored_packets *packet;

	if (!injector->config.delay_ns) {
		send_stored(injector, &injector->held, from);
		return;
	}
	packet = unlink_packets(&injector->held, from);
	count_fault(injector, PROGRESS_COUNT_FAULT_DELAYED, packet->packets);
	packet->due = now + injector->config.delay_ns;
	append_to_queue(&injector->delayed, packet);
}

/* Sends the packets collected so far and starts a new range after them. */
static void send_collected(struct fault_injector *injector, struct range *collected)
{
	send_or_delay(injector, collected);
	collected->from = collected->end;
}

/*
 * Accounts for a packet that has passed (the last collected one, or one that was sent), and
 * releases held packets that waited for it.
 */
static void count_passed(struct fault_injector *injector, struct range *collected)
{
	struct stored_packets **from = &injector->held.first;

	while (*from) {
		if (--(*from)->hold_packets == 0) {
			send_collected(injector, collected);
			release_held(injector, from, collected->now);
		} else {
			from = &(*from)->next;
		}
	}
}

/* Applies the faults to one packet; the packets before it have been sent. */
static void apply_faults(struct fault_injector *injector, struct range single,
			 struct fault_action action, struct range *collected)
{
	uint32_t length = range_bytes(&single);
	struct eng_piece piece = { injector->packet, length };
	struct eng_burst corrupted = { .path = single.burst->path,
				       .pieces = &piece,
				       .piece_count = 1,
				       .packets = 1,
				       .segment = length,
				       .bytes = length };
	struct stored_packets *held;

	if (action.corrupted) {
		count_fault(injector, PROGRESS_COUNT_FAULT_CORRUPTED, 1);
		copy_range(&single, injector->packet);
		injector->packet[action.random % length] ^=
			(uint8_t)(1 + (action.random >> 24) % 255);
		single = (struct range){ &corrupted, single.path, 0, 1, single.now };
		single.path.corrupted = true;
	}
	count_fault(injector, PROGRESS_COUNT_FAULT_DUPLICATED, action.duplicated);
	for (int copies = action.duplicated ? 2 : 1; copies > 0; copies--) {
		if (!action.hold_packets) {
			send_or_delay(injector, &single);
			count_passed(injector, collected);
			continue;
		}
		count_fault(injector, PROGRESS_COUNT_FAULT_REORDERED, 1);
		held = store_range(injector, &injector->held, single, single.now + FAULT_HOLD_NS);
		if (held)
			held->hold_packets = action.hold_packets;
	}
}

static void process_packet(struct fault_injector *injector, struct range *collected, uint32_t index)
{
	struct fault_action action = fault_action(&injector->config, injector->n++);
	struct range single = *collected;

	if (!action.dropped && !action.duplicated && !action.corrupted && !action.hold_packets) {
		collected->end = index + 1;
		count_passed(injector, collected);
		return;
	}
	send_collected(injector, collected);
	collected->from = index + 1;
	collected->end = index + 1;
	single.from = index;
	single.end = index + 1;
	if (action.dropped)
		drop_range(injector, single);
	else
		apply_faults(injector, single, action, collected);
}

static void update_deadline(struct fault_injector *injector)
{
	uint64_t deadline = ENG_NEVER;

	if (injector->held.first)
		deadline = injector->held.first->due;
	if (injector->delayed.first && injector->delayed.first->due < deadline)
		deadline = injector->delayed.first->due;
	atomic_store(&injector->deadline, deadline);
}

void fault_send(struct fault_injector *injector, struct link_peer *peer, uint32_t qpn,
		const struct eng_burst *burst, uint64_t now)
{
	struct range collected = { .burst = burst,
				   .path = { .peer = peer, .qpn = qpn },
				   .now = now };

	pthread_mutex_lock(&injector->lock);
	for (uint32_t i = 0; i < burst->packets; i++)
		process_packet(injector, &collected, i);
	send_collected(injector, &collected);
	update_deadline(injector);
	pthread_mutex_unlock(&injector->lock);
}

bool fault_release(struct fault_injector *injector, uint64_t now)
{
	bool sent = false;

	if (fault_deadline(injector) > now)
		return false;
	pthread_mutex_lock(&injector->lock);
	while (injector->held.first && injector->held.first->due <= now) {
		release_held(injector, &injector->held.first, now);
		sent = true;
	}
	while (injector->delayed.first && injector->delayed.first->due <= now) {
		send_stored(injector, &injector->delayed, &injector->delayed.first);
		sent = true;
	}
	update_deadline(injector);
	pthread_mutex_unlock(&injector->lock);
	return sent;
}

uint64_t fault_deadline(const struct fault_injector *injector)
{
	return atomic_load(&injector->deadline);
}

static void flush_queue(struct fault_injector *injector, struct queue *queue,
			struct link_peer *peer)
{
	struct stored_packets **from = &queue->first;

	while (*from) {
		if ((*from)->path.peer != peer) {
			from = &(*from)->next;
			continue;
		}
		send_stored(injector, queue, from);
	}
}

void fault_flush(struct fault_injector *injector, struct link_peer *peer)
{
	pthread_mutex_lock(&injector->lock);
	/* Delayed packets first: held packets, once released, would be delayed after them. */
	flush_queue(injector, &injector->delayed, peer);
	flush_queue(injector, &injector->held, peer);
	update_deadline(injector);
	pthread_mutex_unlock(&injector->lock);
}
