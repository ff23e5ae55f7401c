/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Smaller parts of uroce-trace: metadata of packets in pcapng files, detection of duplicates,
 * missing positions, parsing of frames, and pairing of flows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <pcap/dlt.h>

#include "trace/trace.h"
#include "trace/input/frame.h"
#include "trace/input/capture_file.h"
#include "trace/flow_pair.h"
#include "trace/input/burst.h"
#include "trace/stream/range_set.h"
#include "wire/bytes.h"

static void test_spans(void **state)
{
	struct range_set set = { .count = 0 };

	(void)state;
	range_set_add(&set, 10, 20);
	range_set_add(&set, 30, 31);
	assert_int_equal(range_set_total(&set), 11);
	assert_int_equal(range_set_first(&set, 0, 100), 10);
	assert_false(range_set_remove(&set, 9));
	assert_false(range_set_remove(&set, 20));
	assert_true(range_set_remove(&set, 15));
	assert_false(range_set_remove(&set, 15));
	assert_int_equal(range_set_first(&set, 15, 100), 16);
	assert_true(range_set_remove(&set, 10));
	assert_true(range_set_remove(&set, 19));
	assert_true(range_set_remove(&set, 30));
	assert_int_equal(range_set_total(&set), 7);
	for (uint64_t position = 11; position < 19; position++)
		assert_int_equal(range_set_remove(&set, position), position != 15);
	assert_int_equal(range_set_total(&set), 0);
	assert_int_equal(range_set_first(&set, 0, 5), 5);
	/* The set has a limited size: the oldest ranges are dropped, and count as missing. */
	for (uint64_t i = 0; i < 2 * RANGE_SET_MAX; i++)
		range_set_add(&set, 10 * i, 10 * i + 2);
	assert_int_equal(range_set_total(&set), 4 * RANGE_SET_MAX);
	assert_false(range_set_remove(&set, 0));
	assert_true(range_set_remove(&set, 10 * (2 * RANGE_SET_MAX - 1)));
}

static struct trace_packet copy_of(uint64_t hash, enum trace_way way, uint16_t flags, uint64_t ns)
{
	return (struct trace_packet){
		.hash = hash, .way = (uint8_t)way, .flags = flags, .time_ns = ns
	};
}

/* Compares the packets that are marked as duplicates with expected, a string of ones and zeros. */
static void marked(struct trace_packet *items, size_t count, const char *expected)
{
	struct trace_packets packets = { items, count, count };
	uint64_t number = 0;

	for (size_t i = 0; i < count; i++)
		number += expected[i] == '1';
	assert_int_equal(dedup_mark(&packets), number);
	for (size_t i = 0; i < count; i++)
		assert_int_equal((items[i].flags & TRACE_DUPLICATE) != 0, expected[i] == '1');
}

/* A received packet is a duplicate of the sent one, even if that was sent more than once. */
static void test_copies_by_way(void **state)
{
	struct trace_packet items[] = {
		copy_of(7, TRACE_WAY_OUT, 0, 1),
		copy_of(7, TRACE_WAY_OUT, 0, 2),
		copy_of(7, TRACE_WAY_IN, 0, 3),
		copy_of(8, TRACE_WAY_IN, 0, 4),
		copy_of(9, TRACE_WAY_IN, 0, 5),
		copy_of(9, TRACE_WAY_OUT, 0, 6),
		copy_of(6, TRACE_WAY_OUT, TRACE_REFUSED, 7),
		copy_of(6, TRACE_WAY_IN, 0, 8),
	};

	(void)state;
	marked(items, 8, "00101000");
	/*
	 * The received one of two records of a response is kept, and so is a response that was sent
	 * but not received.
	 */
	for (size_t i = 0; i < 8; i++) {
		items[i].flags &= (uint16_t)~TRACE_DUPLICATE;
		items[i].opcode = WIRE_ACKNOWLEDGE;
	}
	marked(items, 8, "10000100");
}

static void test_copies_by_counter(void **state)
{
	struct trace_packet items[] = {
		copy_of(7, TRACE_WAY_UNKNOWN, TRACE_COUNTED_ID, 1),
		copy_of(7, TRACE_WAY_UNKNOWN, TRACE_COUNTED_ID, 2),
		copy_of(7, TRACE_WAY_UNKNOWN, TRACE_COUNTED_ID, 5000000000),
		copy_of(5, TRACE_WAY_UNKNOWN, TRACE_COUNTED_ID, 4),
		copy_of(4, TRACE_WAY_UNKNOWN, 0, 5),
		copy_of(4, TRACE_WAY_UNKNOWN, 0, 6), /* sent again */
		copy_of(3, TRACE_WAY_UNKNOWN, 0, 7),
		copy_of(2, TRACE_WAY_UNKNOWN, 0, 8),
	};

	(void)state;
	marked(items, 8, "01000000");
}

/* Nearly all packets are captured twice: those that are captured four times were sent twice. */
static void test_copies_by_number(void **state)
{
	struct trace_packet items[64];
	char expected[65] = "";

	(void)state;
	for (size_t i = 0; i < 64; i++) {
		items[i] = copy_of(100 + (i < 4 ? 0 : i / 2), TRACE_WAY_UNKNOWN, 0, i);
		expected[i] = i % 2 ? '1' : '0';
	}
	marked(items, 64, expected);
}

/* Writes a file block by block, in the byte order of this machine or in the opposite one. */
struct writer {
	FILE *file;
	bool swapped;
};

static uint32_t in_order(const struct writer *writer, uint32_t value)
{
	return writer->swapped ? __builtin_bswap32(value) : value;
}

static void words(const struct writer *writer, size_t count, const uint32_t *values)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t value = in_order(writer, values[i]);

		fwrite(&value, sizeof(value), 1, writer->file);
	}
}

static void option(const struct writer *writer, uint16_t code, uint16_t length, const void *value)
{
	uint16_t head[2] = { code, length };

	if (writer->swapped)
		for (int i = 0; i < 2; i++)
			head[i] = __builtin_bswap16(head[i]);
	fwrite(head, sizeof(head), 1, writer->file);
	fwrite(value, 1, (length + 3u) & ~3u, writer->file);
}

/* A packet of eight bytes with a comment of at most 20 characters and flags. */
static void packet(const struct writer *writer, const char *comment, uint32_t flags)
{
	char padded[24] = "";
	uint32_t length = 32 + 8 + 24 + 8 + 4, end;

	strncpy(padded, comment, 20);
	words(writer, 9, (uint32_t[]){ 6, length, 0, 0, 0, 8, 8, 0, 0 });
	option(writer, 1, 20, padded);
	flags = in_order(writer, flags);
	option(writer, 2, 4, &flags);
	end = 0;
	fwrite(&end, sizeof(end), 1, writer->file);
	words(writer, 1, &length);
}

static void check_notes(bool swapped)
{
	char name[] = "/tmp/uroce-notes-XXXXXX";
	struct writer writer = { fdopen(mkstemp(name), "wb"), swapped };
	struct pcapng_meta reader;
	struct pkt_meta meta;

	words(&writer, 7, (uint32_t[]){ 0x0a0d0d0a, 28, 0x1a2b3c4d, 1, ~0u, ~0u, 28 });
	words(&writer, 5, (uint32_t[]){ 1, 20, 1, 0, 20 });
	packet(&writer, "refused: wrong ICRC", 1);
	words(&writer, 5, (uint32_t[]){ 0x80000001, 20, 1, 2, 20 }); /* to be skipped */
	packet(&writer, "looked at by hand", 2);
	words(&writer, 6, (uint32_t[]){ 3, 24, 8, 0, 0, 24 }); /* a simple packet */
	packet(&writer, "not sent: dropped", 0);
	words(&writer, 3, (uint32_t[]){ 6, 4000, 0 }); /* cut short */
	fclose(writer.file);
	pcapng_meta_open(&reader, name);
	meta = pcapng_meta_next(&reader);
	assert_true(meta.refused && meta.way == TRACE_WAY_IN);
	meta = pcapng_meta_next(&reader);
	assert_true(!meta.refused && meta.way == TRACE_WAY_OUT);
	meta = pcapng_meta_next(&reader);
	assert_true(!meta.refused && meta.way == TRACE_WAY_UNKNOWN);
	meta = pcapng_meta_next(&reader);
	assert_true(meta.refused && meta.way == TRACE_WAY_UNKNOWN);
	for (int i = 0; i < 3; i++) {
		meta = pcapng_meta_next(&reader);
		assert_true(!meta.refused && meta.way == TRACE_WAY_UNKNOWN);
	}
	assert_null(reader.file);
	pcapng_meta_close(&reader);
	unlink(name);
}

static void test_notes(void **state)
{
	struct pcapng_meta reader;

	(void)state;
	check_notes(false);
	check_notes(true);
	pcapng_meta_open(&reader, "/nonexistent");
	assert_false(pcapng_meta_next(&reader).refused);
	pcapng_meta_close(&reader);
}

/* Builds a frame: Ethernet, IPv4 and UDP headers before length bytes that begin with the BTH. */
static size_t build_frame(uint8_t *bytes, size_t length)
{
	memset(bytes, 0, 42 + length);
	wire_put_be16(bytes + 12, 0x0800);
	bytes[14] = 0x45;
	wire_put_be16(bytes + 16, (uint16_t)(28 + length));
	bytes[23] = 17;
	memcpy(bytes + 26, "\x0a\x00\x00\x01\x0a\x00\x00\x02", 8);
	wire_put_be16(bytes + 34, 0xc123);
	wire_put_be16(bytes + 36, WIRE_UDP_PORT);
	wire_put_be16(bytes + 38, (uint16_t)(8 + length));
	return 42 + length;
}

/* Frames that are truncated or have wrong lengths; the buffer ends with the captured bytes. */
static void test_frame(void **state)
{
	uint8_t whole[128], *exact;
	size_t length = build_frame(whole, 20);
	struct frame frame;

	(void)state;
	assert_int_equal(frame_read(DLT_EN10MB, whole, length, length, &frame), FRAME_ROCE);
	assert_int_equal(frame.length, 20);
	assert_int_equal(frame.path.src_port, 0xc123);
	assert_int_equal(frame.path.dst[15], 2);
	for (size_t captured = 0; captured < length; captured++) {
		enum frame_verdict verdict;

		exact = malloc(captured + 1);
		memcpy(exact + 1, whole, captured);
		verdict = frame_read(DLT_EN10MB, exact + 1, captured, length, &frame);
		assert_int_equal(verdict, captured < 38	  ? FRAME_OTHER
					  : captured < 54 ? FRAME_CUT
							  : FRAME_ROCE);
		free(exact);
	}
	whole[20] = 0x20; /* more fragments */
	assert_int_equal(frame_read(DLT_EN10MB, whole, length, length, &frame), FRAME_FRAGMENT);
	whole[20] = 0;
	wire_put_be16(whole + 16, 200); /* the length in the IP header exceeds the captured bytes */
	assert_int_equal(frame_read(DLT_EN10MB, whole, length, length, &frame), FRAME_BROKEN);
	build_frame(whole, 20);
	wire_put_be16(whole + 38, 7); /* less than a UDP header */
	assert_int_equal(frame_read(DLT_EN10MB, whole, length, length, &frame), FRAME_BROKEN);
	build_frame(whole, 20);
	whole[14] = 0x41; /* an IP header of four bytes */
	assert_int_equal(frame_read(DLT_EN10MB, whole, length, length, &frame), FRAME_BROKEN);
	assert_int_equal(frame_read(189, whole, length, length, &frame), FRAME_OTHER);
	assert_false(frame_link_known(189));
}

static void packet_to(struct flows *flows, uint8_t from, uint8_t to, uint32_t qpn, uint8_t opcode,
		      uint32_t psn)
{
	static uint64_t now;
	struct wire_path path = { .src_port = (uint16_t)(50000 + from + to) };
	struct wire_packet wire = { .opcode = opcode, .dest_qpn = qpn, .psn = psn };

	path.src[15] = from;
	path.dst[15] = to;
	flows_add(flows, &path, &wire, ++now);
}

/* Ten connections between the same hosts with the same port are distinguished by their PSNs. */
static void test_pairing_by_psn(void **state)
{
	struct flows flows = { 0 };
	struct cm_log log = { 0 };
	enum flow_pair_by by[32];

	(void)state;
	for (uint32_t i = 0; i < 10; i++)
		for (uint32_t j = 0; j < 5; j++) {
			/* The QPNs of the responders descend. */
			packet_to(&flows, 1, 2, 100 + i, WIRE_SEND_ONLY, 0xfffffe + 100000 * i + j);
			packet_to(&flows, 2, 1, 59 - i, WIRE_ACKNOWLEDGE,
				  0xfffffe + 100000 * i + j);
		}
	assert_int_equal(flows.count, 20);
	flow_pair_find(&flows, &log, by);
	for (uint32_t i = 0; i < flows.count; i++) {
		assert_int_equal(by[i], FLOW_PAIR_PSN);
		assert_int_equal(flows.items[i].src_qpn + flows.items[i].dst_qpn, 159);
	}
	flows_free(&flows);
}

/* A QPN is reused: detected by a distant PSN, or by REQ and REP. */
static void test_generations(void **state)
{
	static const uint8_t from[16] = { [15] = 1 }, to[16] = { [15] = 2 };
	struct flows flows = { 0 };

	(void)state;
	packet_to(&flows, 1, 2, 100, WIRE_SEND_ONLY, 5);
	packet_to(&flows, 1, 2, 100, WIRE_SEND_ONLY, 6);
	assert_int_equal(flows.count, 1);
	packet_to(&flows, 1, 2, 100, WIRE_SEND_ONLY, 0x800000);
	assert_int_equal(flows.count, 2);
	flows_end_qp(&flows, from, to, 100);
	packet_to(&flows, 1, 2, 100, WIRE_SEND_ONLY, 0x800001);
	assert_int_equal(flows.count, 3);
	flows_free(&flows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spans),
		cmocka_unit_test(test_copies_by_way),
		cmocka_unit_test(test_copies_by_counter),
		cmocka_unit_test(test_copies_by_number),
		cmocka_unit_test(test_notes),
		cmocka_unit_test(test_frame),
		cmocka_unit_test(test_pairing_by_psn),
		cmocka_unit_test(test_generations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
