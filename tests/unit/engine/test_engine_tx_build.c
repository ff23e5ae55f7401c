/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Bursts, compared with packets that are built individually: headers, payload byte by byte, pad,
 * and the ICRC of the whole packet.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/tx/tx_build.h"
#include "engine_fixture.h"

enum {
	REGION_BYTES = 1 << 16,
	STAGING_BYTES = 1 << 16,
	MAX_PIECES = 256,
	MAX_PACKETS = 128,
	MAX_BYTES = 65507,
	LKEY = 0x4711,
	ROUNDS = 1500,
};
#define VA UINT64_C(0x7f0000000000)

static uint8_t region[REGION_BYTES], staging[STAGING_BYTES], expected[2 * MAX_BYTES];
static struct eng_piece pieces[MAX_PIECES];
static struct engine_fixture fixture;
static struct eng_path path;

/* Only memory within the region can be used, and only with its key. */
static void *map_local(void *owner, uint32_t lkey, uint64_t addr, uint32_t length, enum eng_use use)
{
	(void)owner;
	assert_int_equal(use, ENG_USE_SEND);
	if (lkey != LKEY || addr < VA || addr - VA > REGION_BYTES ||
	    length > REGION_BYTES - (addr - VA))
		return NULL;
	return region + (addr - VA);
}

static const struct eng_ops ops = { .map_local = map_local };

static int set_up(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < REGION_BYTES; i++)
		region[i] = (uint8_t)rand_below(256);
	engine_fixture_open(&fixture, ENG_RC, 64, &ops, NULL);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	engine_fixture_close(&fixture);
	return 0;
}

static struct eng_burst new_burst(void)
{
	struct eng_burst burst = {
		.staging = staging,
		.staging_bytes = STAGING_BYTES,
		.pieces = pieces,
		.max_pieces = MAX_PIECES,
		.max_packets = MAX_PACKETS,
		.max_bytes = MAX_BYTES,
		.identification = (uint16_t)rand_below(65536),
		.gather_from = UINT32_MAX,
	};

	path.wire.ipv6 = rand_below(2);
	path.wire.src_port = (uint16_t)rand_below(65536);
	for (unsigned int i = 0; i < sizeof(path.wire.src); i++) {
		path.wire.src[i] = (uint8_t)rand_below(256);
		path.wire.dst[i] = (uint8_t)rand_below(256);
	}
	tx_build_begin(&burst, &path);
	return burst;
}

static struct wire_packet packet_of(uint32_t payload_length)
{
	return (struct wire_packet){
		.opcode = rand_below(2) ? WIRE_RC | WIRE_WRITE_MIDDLE : WIRE_SEND_ONLY,
		.migrated = true,
		.pkey = WIRE_DEFAULT_PKEY,
		.dest_qpn = rand_below(1 << 24),
		.psn = rand_below(1 << 24),
		.ack_request = rand_below(2),
		.payload_length = payload_length,
		.pad_count = (uint8_t)(-payload_length & 3),
	};
}

/*
 * Makes a list of up to four segments with offset + bytes bytes, and a payload that starts at
 * offset.
 */
static struct payload payload_of(struct eng_sge list[4], uint32_t offset, uint32_t bytes)
{
	uint32_t count = 1 + rand_below(4), left = offset + bytes;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t length = i == count - 1 ? left : rand_below(left + 1);

		list[i].lkey = LKEY;
		list[i].length = length;
		list[i].addr = VA + rand_below(REGION_BYTES - length + 1);
		left -= length;
	}
	return (struct payload){
		.kind = PAYLOAD_LIST, .list = list, .count = count, .offset = offset, .stable = true
	};
}

static uint8_t payload_byte(const struct payload *payload, uint32_t position)
{
	position += payload->offset;
	for (uint32_t i = 0; i < payload->count; i++) {
		if (position < payload->list[i].length)
			return region[payload->list[i].addr - VA + position];
		position -= payload->list[i].length;
	}
	fail_msg("the list has no byte %u", position);
	return 0;
}

/* Builds the same packet individually, as number n of its burst.  Returns its length. */
static uint32_t build_alone(uint8_t *to, const struct eng_burst *burst, uint32_t n,
			    const struct wire_packet *packet, const struct payload *payload)
{
	uint32_t length = wire_build_headers(packet, to);

	for (uint32_t i = 0; i < packet->payload_length; i++)
		to[length++] = payload_byte(payload, i);
	for (uint32_t i = 0; i < packet->pad_count; i++)
		to[length++] = 0;
	length += (uint32_t)WIRE_ICRC_BYTES;
	wire_icrc_put(&burst->path->wire, (uint16_t)(burst->identification + n), to, length);
	return length;
}

/* Adds the packet to the burst, with the payload length of the packet. */
static enum tx_build_result add(struct eng_burst *burst, const struct wire_packet *packet,
				const struct payload *payload)
{
	struct payload of_packet = *payload;
	uint8_t *at = tx_build_reserve(burst, packet->payload_length);

	of_packet.length = packet->payload_length;
	return at ? tx_build_add(fixture.qp, burst, wire_build_headers(packet, at), &of_packet)
		  : TX_BUILD_NO_ROOM;
}

/* Expects that the pieces, in order, have the expected bytes. */
static void expect_bytes(const struct eng_burst *burst, uint32_t length)
{
	uint32_t at = 0;

	assert_int_equal(burst->bytes, length);
	assert_true(burst->piece_count <= burst->max_pieces &&
		    burst->staged <= burst->staging_bytes);
	for (uint32_t i = 0; i < burst->piece_count; i++) {
		assert_true(burst->pieces[i].length <= length - at);
		assert_memory_equal(burst->pieces[i].bytes, expected + at, burst->pieces[i].length);
		at += burst->pieces[i].length;
	}
	assert_int_equal(at, length);
}

/* Expects that a refused packet has changed neither the counts nor the pieces. */
static void expect_unchanged(const struct eng_burst *burst, const struct eng_burst *before,
			     const struct eng_piece *pieces_before)
{
	assert_memory_equal(burst, before, sizeof(*burst));
	assert_memory_equal(burst->pieces, pieces_before,
			    before->piece_count * sizeof(*pieces_before));
}

/* Returns the payload length of the next packet: mostly mtu, sometimes less or more. */
static uint32_t next_length(uint32_t mtu)
{
	switch (rand_below(12)) {
	case 0:
		return rand_below(mtu + 1);
	case 1:
		return mtu + 4;
	default:
		return mtu;
	}
}

/* Returns true if the packet may be added, by the rule of UDP_SEGMENT and the limits of a burst. */
static bool may_join(const struct eng_burst *burst, uint32_t segment, bool closed, uint32_t bytes,
		     uint32_t length)
{
	return burst->packets == 0 ||
	       (!closed && length <= segment && burst->packets < burst->max_packets &&
		bytes + length <= burst->max_bytes);
}

static void fill_burst(struct eng_burst *burst, uint32_t mtu)
{
	uint32_t segment = 0, bytes = 0, length;
	bool closed = false;

	for (unsigned int tries = 0; tries < 200; tries++) {
		static struct eng_piece pieces_before[MAX_PIECES];
		const struct eng_burst before = *burst;
		struct wire_packet packet = packet_of(next_length(mtu));
		struct eng_sge list[4];
		struct payload payload = payload_of(list, rand_below(5000), packet.payload_length);
		enum tx_build_result result;

		memcpy(pieces_before, pieces, sizeof(pieces_before));
		length = build_alone(expected + bytes, burst, burst->packets, &packet, &payload);
		assert_int_equal(tx_build_fits(burst, length),
				 may_join(burst, segment, closed, bytes, length));
		result = add(burst, &packet, &payload);
		if (result != TX_BUILD_OK) {
			assert_int_equal(result, TX_BUILD_NO_ROOM);
			expect_unchanged(burst, &before, pieces_before);
			/* Refused for its size, or because staging or pieces are used up. */
			if (may_join(burst, segment, closed, bytes, length))
				return;
			continue;
		}
		assert_true(may_join(&before, segment, closed, bytes, length));
		if (bytes == 0)
			segment = length;
		bytes += length;
		closed = length < segment;
		assert_int_equal(burst->segment, segment);
		assert_int_equal(burst->closed, closed);
		assert_int_equal(burst->packets, before.packets + 1);
		expect_bytes(burst, bytes);
	}
}

/* rule S1 test: random packets, copied or by reference, with little room or much. */
static void test_bursts(void **state)
{
	static const uint32_t mtus[] = { 8, 256, 1024, 4096 };
	static const uint32_t gathers[] = { 1, 64, 2048, UINT32_MAX };

	(void)state;
	for (unsigned int round = 0; round < ROUNDS; round++) {
		struct eng_burst burst = new_burst();

		burst.gather_from = gathers[rand_below(4)];
		burst.max_packets = 1 + rand_below(MAX_PACKETS);
		if (rand_below(2))
			burst.max_bytes = 5000 + rand_below(MAX_BYTES - 5000);
		if (rand_below(4) == 0)
			burst.staging_bytes = 5000 + rand_below(STAGING_BYTES - 5000);
		if (rand_below(4) == 0)
			burst.max_pieces = 9 + rand_below(40);
		fill_burst(&burst, mtus[rand_below(4)]);
	}
}

/* The limits of a burst are exact: one packet more, or one byte more, is refused. */
static void test_the_limits_are_exact(void **state)
{
	static const struct payload none = { .kind = PAYLOAD_NONE };
	struct wire_packet packet = packet_of(0);
	const uint32_t bytes = WIRE_BTH_BYTES + (uint32_t)WIRE_ICRC_BYTES;
	struct eng_burst burst = new_burst();

	(void)state;
	packet.opcode = WIRE_SEND_ONLY;
	burst.max_packets = 7;
	for (unsigned int i = 0; i < 7; i++)
		assert_int_equal(add(&burst, &packet, &none), TX_BUILD_OK);
	assert_int_equal(add(&burst, &packet, &none), TX_BUILD_NO_ROOM);
	burst = new_burst();
	burst.max_bytes = 7 * bytes;
	for (unsigned int i = 0; i < 7; i++)
		assert_int_equal(add(&burst, &packet, &none), TX_BUILD_OK);
	assert_int_equal(burst.bytes, burst.max_bytes);
	assert_int_equal(add(&burst, &packet, &none), TX_BUILD_NO_ROOM);
	burst = new_burst();
	burst.max_bytes = 7 * bytes - 1;
	for (unsigned int i = 0; i < 6; i++)
		assert_int_equal(add(&burst, &packet, &none), TX_BUILD_OK);
	assert_int_equal(add(&burst, &packet, &none), TX_BUILD_NO_ROOM);
}

/*
 * Room for one packet in staging buffer and pieces: with a byte or a piece less it is refused.  The
 * staging buffer needs room for headers of any length and for the largest pad.
 */
static void test_room_is_exact(void **state)
{
	struct eng_sge list[4] = { { .lkey = LKEY, .addr = VA, .length = 100 } };
	struct payload payload = { .kind = PAYLOAD_LIST, .list = list, .count = 1, .stable = true };
	struct wire_packet packet = packet_of(99);
	const uint32_t needed = WIRE_MAX_HEADER_BYTES + 99 + 4 + WIRE_ICRC_BYTES;

	(void)state;
	packet.opcode = WIRE_SEND_ONLY;
	for (uint32_t bytes = 0; bytes < 400; bytes++) {
		struct eng_burst burst = new_burst();

		burst.staging_bytes = bytes;
		assert_int_equal(add(&burst, &packet, &payload),
				 bytes < needed ? TX_BUILD_NO_ROOM : TX_BUILD_OK);
		assert_true(burst.staged <= bytes);
	}
	/* Three pieces: headers, payload, and pad with ICRC. */
	for (uint32_t most = 0; most < 6; most++) {
		struct eng_burst burst = new_burst();

		burst.gather_from = 1;
		burst.max_pieces = most;
		assert_int_equal(add(&burst, &packet, &payload),
				 most < 3 ? TX_BUILD_NO_ROOM : TX_BUILD_OK);
	}
}

/* Memory that cannot be used, anywhere in the list, is an error, and the burst is unchanged. */
static void test_faults(void **state)
{
	(void)state;
	for (unsigned int round = 0; round < ROUNDS; round++) {
		struct eng_burst burst = new_burst(), before;
		struct wire_packet packet = packet_of(400);
		static struct eng_piece pieces_before[MAX_PIECES];
		struct eng_sge list[4];
		struct payload payload = payload_of(list, 0, 400);
		uint32_t bad;

		burst.gather_from = rand_below(2) ? 1 : UINT32_MAX;
		assert_int_equal(add(&burst, &packet, &payload), TX_BUILD_OK);
		before = burst;
		memcpy(pieces_before, pieces, sizeof(pieces_before));
		do
			bad = rand_below(payload.count);
		while (list[bad].length == 0);
		switch (rand_below(3)) {
		case 0:
			list[bad].lkey++;
			break;
		case 1:
			list[bad].addr = VA + REGION_BYTES - list[bad].length + 1;
			break;
		default: /* the list is shorter than the packet */
			list[bad].length--;
		}
		assert_int_equal(add(&burst, &packet, &payload), TX_BUILD_ERROR);
		expect_unchanged(&burst, &before, pieces_before);
	}
}

/* Bytes that may change before they are sent are copied, however long they are. */
static void test_what_may_change_is_copied(void **state)
{
	struct payload payload = { .kind = PAYLOAD_BYTES, .bytes = region, .stable = false };
	struct wire_packet packet = packet_of(4096);
	struct eng_burst burst = new_burst();

	(void)state;
	burst.gather_from = 1;
	assert_int_equal(add(&burst, &packet, &payload), TX_BUILD_OK);
	assert_int_equal(burst.piece_count, 1);
	assert_ptr_equal(burst.pieces[0].bytes, staging);
	burst = new_burst();
	burst.gather_from = 1;
	payload.stable = true;
	assert_int_equal(add(&burst, &packet, &payload), TX_BUILD_OK);
	assert_int_equal(burst.piece_count, 3);
	assert_ptr_equal(burst.pieces[1].bytes, region);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_bursts), TEST(test_the_limits_are_exact),	 TEST(test_room_is_exact),
		TEST(test_faults), TEST(test_what_may_change_is_copied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
