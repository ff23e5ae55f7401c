/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "copies.h"

#include <stdio.h>
#include <stdlib.h>

#include "wire/opcode.h"

#define PLACES_MAX 4
/* Percentage of packets that must occur n times for n points of capture. */
#define NEARLY_ALL 80
/* Identifications wrap after this time at least: 65536 packets at 10 us each. */
#define COUNTER_NS 500000000u

/* A packet and its hash, for sorting. */
struct twin {
	uint64_t hash;
	struct trace_packet *packet;
};

static int compare(const void *a, const void *b)
{
	const struct twin *x = a, *y = b;

	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return x->packet < y->packet ? -1 : x->packet > y->packet;
}

static bool never_left(const struct trace_packet *packet)
{
	return packet->flags & TRACE_REFUSED && packet->way == TRACE_WAY_OUT;
}

static bool is_way(const struct trace_packet *packet, enum trace_way way)
{
	return packet->way == way && !never_left(packet);
}

/*
 * Marks duplicates by direction, among the records of one hash; returns their number.  The
 * requester's records are kept, as its times and credits matter: outbound requests and inbound
 * responses.
 */
static uint64_t mark_by_way(struct twin *twins, size_t count)
{
	enum trace_way drop =
		wire_op_is_response(twins[0].packet->opcode) ? TRACE_WAY_OUT : TRACE_WAY_IN;
	enum trace_way keep = drop == TRACE_WAY_OUT ? TRACE_WAY_IN : TRACE_WAY_OUT;
	size_t kept = 0, marked = 0;

	for (size_t i = 0; i < count; i++)
		kept += is_way(twins[i].packet, keep);
	for (size_t i = 0; i < count && marked < kept; i++) {
		if (!is_way(twins[i].packet, drop))
			continue;
		twins[i].packet->flags |= TRACE_COPY;
		marked++;
	}
	return marked;
}

static uint64_t mark_by_counter(struct twin *twins, size_t count)
{
	uint64_t marked = 0, first = twins[0].packet->time_ns;

	for (size_t i = 1; i < count; i++) {
		uint64_t time = twins[i].packet->time_ns;

		if (time > first + COUNTER_NS) {
			first = time;
			continue;
		}
		twins[i].packet->flags |= TRACE_COPY;
		marked++;
	}
	return marked;
}

static size_t group(const struct twin *twins, size_t from, size_t count)
{
	size_t to = from + 1;

	while (to < count && twins[to].hash == twins[from].hash)
		to++;
	return to - from;
}

static bool all_counted(const struct twin *twins, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!(twins[i].packet->flags & TRACE_COUNTED_ID))
			return false;
	return true;
}

/* Returns true if neither direction nor identification shows whether a packet is a duplicate. */
static bool is_unknown(const struct trace_packet *packet)
{
	return packet->way == TRACE_WAY_UNKNOWN && !(packet->flags & TRACE_COUNTED_ID);
}

/* Returns the number of points of capture, from the packets for which is_unknown() holds. */
static size_t count_places(const struct twin *twins, size_t count)
{
	size_t groups = 0, multiples[PLACES_MAX + 1] = { 0 };

	for (size_t i = 0, many; i < count; i += many) {
		many = group(twins, i, count);
		if (!is_unknown(twins[i].packet))
			continue;
		groups++;
		for (size_t places = 2; places <= PLACES_MAX; places++)
			multiples[places] += many % places == 0;
	}
	for (size_t places = PLACES_MAX; places >= 2; places--)
		if (groups > 0 && multiples[places] * 100 >= groups * NEARLY_ALL)
			return places;
	return 1;
}

uint64_t copies_mark(struct trace_packets *packets)
{
	struct twin *twins = malloc((packets->count + 1) * sizeof(*twins));
	uint64_t marked = 0;
	size_t places;

	if (!twins) {
		fprintf(stderr, "uroce-trace: out of memory\n");
		exit(1);
	}
	for (size_t i = 0; i < packets->count; i++)
		twins[i] = (struct twin){ packets->items[i].hash, &packets->items[i] };
	qsort(twins, packets->count, sizeof(*twins), compare);
	places = count_places(twins, packets->count);
	for (size_t i = 0, many; i < packets->count; i += many) {
		many = group(twins, i, packets->count);
		if (many == 1)
			continue;
		if (twins[i].packet->way != TRACE_WAY_UNKNOWN) {
			marked += mark_by_way(twins + i, many);
		} else if (all_counted(twins + i, many)) {
			marked += mark_by_counter(twins + i, many);
		} else {
			for (size_t j = 0; j < many; j++)
				if (j % places != 0) {
					twins[i + j].packet->flags |= TRACE_COPY;
					marked++;
				}
		}
	}
	free(twins);
	return marked;
}
