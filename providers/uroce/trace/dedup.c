/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "trace.h"

#include <stdio.h>
#include <stdlib.h>

#include "wire/opcode.h"

#define CAPTURE_POINTS_MAX 4
/*
 * count_capture_points() returns n if at least this percentage of the ambiguous packets has n, 2n,
 * 3n ... records.
 */
#define NEARLY_ALL_PERCENT 80
/*
 * A sender's IPv4 IDs repeat after 65536 packets, which take longer than this at 10 us each: a
 * later record with the same hash is another packet.
 */
#define IP_ID_WRAP_NS 500000000u

/* A packet and its hash, for sorting. */
struct hashed_packet {
	uint64_t hash;
	struct trace_packet *packet;
};

static int compare(const void *a, const void *b)
{
	const struct hashed_packet *x = a, *y = b;

	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return x->packet < y->packet ? -1 : x->packet > y->packet;
}

static bool was_not_sent(const struct trace_packet *packet)
{
	return packet->flags & TRACE_REFUSED && packet->way == TRACE_WAY_OUT;
}

static bool has_direction(const struct trace_packet *packet, enum trace_way way)
{
	return packet->way == way && !was_not_sent(packet);
}

/*
 * Marks duplicates by direction, among the records of one hash; returns their number.  Keeps those
 * of the requester (outbound requests and inbound responses), because its times and credits are
 * analysed.
 */
static uint64_t mark_by_direction(struct hashed_packet *records, size_t count)
{
	enum trace_way drop =
		wire_op_is_response(records[0].packet->opcode) ? TRACE_WAY_OUT : TRACE_WAY_IN;
	enum trace_way keep = drop == TRACE_WAY_OUT ? TRACE_WAY_IN : TRACE_WAY_OUT;
	size_t kept = 0, marked = 0;

	for (size_t i = 0; i < count; i++)
		kept += has_direction(records[i].packet, keep);
	for (size_t i = 0; i < count && marked < kept; i++) {
		if (!has_direction(records[i].packet, drop))
			continue;
		records[i].packet->flags |= TRACE_DUPLICATE;
		marked++;
	}
	return marked;
}

static uint64_t mark_by_ip_id(struct hashed_packet *records, size_t count)
{
	uint64_t marked = 0, first = records[0].packet->time_ns;

	for (size_t i = 1; i < count; i++) {
		uint64_t time = records[i].packet->time_ns;

		if (time > first + IP_ID_WRAP_NS) {
			first = time;
			continue;
		}
		records[i].packet->flags |= TRACE_DUPLICATE;
		marked++;
	}
	return marked;
}

static size_t same_hash_count(const struct hashed_packet *records, size_t from, size_t count)
{
	size_t to = from + 1;

	while (to < count && records[to].hash == records[from].hash)
		to++;
	return to - from;
}

static bool all_have_unique_ids(const struct hashed_packet *records, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!(records[i].packet->flags & TRACE_COUNTED_ID))
			return false;
	return true;
}

/* Returns true if neither direction nor IPv4 ID shows whether a packet is a duplicate. */
static bool is_ambiguous(const struct trace_packet *packet)
{
	return packet->way == TRACE_WAY_UNKNOWN && !(packet->flags & TRACE_COUNTED_ID);
}

/*
 * Returns the number of places where the file was captured, estimated from the packets for which
 * is_ambiguous() holds; 1 if no other number fits.
 */
static size_t count_capture_points(const struct hashed_packet *records, size_t count)
{
	size_t groups = 0, multiples[CAPTURE_POINTS_MAX + 1] = { 0 };

	for (size_t i = 0, same; i < count; i += same) {
		same = same_hash_count(records, i, count);
		if (!is_ambiguous(records[i].packet))
			continue;
		groups++;
		for (size_t points = 2; points <= CAPTURE_POINTS_MAX; points++)
			multiples[points] += same % points == 0;
	}
	for (size_t points = CAPTURE_POINTS_MAX; points >= 2; points--)
		if (groups > 0 && multiples[points] * 100 >= groups * NEARLY_ALL_PERCENT)
			return points;
	return 1;
}

uint64_t dedup_mark(struct trace_packets *packets)
{
	struct hashed_packet *records = malloc((packets->count + 1) * sizeof(*records));
	uint64_t marked = 0;
	size_t points;

	if (!records) {
		fprintf(stderr, "uroce-trace: out of memory\n");
		exit(1);
	}
	for (size_t i = 0; i < packets->count; i++)
		records[i] = (struct hashed_packet){ packets->items[i].hash, &packets->items[i] };
	qsort(records, packets->count, sizeof(*records), compare);
	points = count_capture_points(records, packets->count);
	for (size_t i = 0, same; i < packets->count; i += same) {
		same = same_hash_count(records, i, packets->count);
		if (same == 1)
			continue;
		if (records[i].packet->way != TRACE_WAY_UNKNOWN) {
			marked += mark_by_direction(records + i, same);
		} else if (all_have_unique_ids(records + i, same)) {
			marked += mark_by_ip_id(records + i, same);
		} else {
			for (size_t j = 0; j < same; j++)
				if (j % points != 0) {
					records[i + j].packet->flags |= TRACE_DUPLICATE;
					marked++;
				}
		}
	}
	free(records);
	return marked;
}
