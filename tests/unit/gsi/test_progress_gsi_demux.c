/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Receive demultiplexer for queue pair 1 (rule S14): a packet that is no MAD, has a wrong key or is
 * damaged is dropped and counted; a valid packet passes, from any host.
 */
#include "gsi_child.h"

#include <string.h>
#include <unistd.h>

#include "demux_peer.h"
#include "link_child.h"
#include "broker/gsi_packet.h"
#include "wire/bytes.h"

enum {
	PKEY = 2,
	QKEY = 12,
	MAD = 20,
};

static struct gsi_child child;
static struct demux_peer peer;
static uint8_t packet[GSI_PACKET_BYTES + 4];

static int open_demux(void **state)
{
	int error = enter_new_netns(state);

	if (error)
		return error;
	gsi_child_start(&child, 0, loopback4);
	demux_peer_open(&peer, "127.0.0.1");
	return 0;
}

static int close_demux(void **state)
{
	(void)state;
	demux_peer_close(&peer);
	gsi_child_stop(&child);
	return 0;
}

/* Builds a valid packet of an RTU for the child. */
static void make(uint32_t tag)
{
	const struct mad_spec spec = { .attribute = MAD_RTU,
				       .tag = tag,
				       .remote_id = child.slot << GSI_ID_SHIFT | 1 };
	uint8_t mad[MAD_BYTES];

	mad_make(mad, &spec);
	gsi_packet_build(&peer.path, 0x123456 + tag, mad, packet);
}

static void send_right(uint32_t tag)
{
	make(tag);
	demux_peer_send(&peer, packet, GSI_PACKET_BYTES, 0);
	gsi_child_expect(&child, tag, GSI_MATCH_LOCAL);
}

/*
 * Sends the packet, with a new ICRC unless the ICRC must be wrong.  Only the valid packet that is
 * sent after it may arrive.
 */
static void expect_dropped(size_t length, bool right_icrc, enum progress_counter counter)
{
	static uint32_t tag = 1000;
	uint64_t before = gsi_child_count(&child, counter);

	if (right_icrc)
		wire_icrc_put(&peer.path, 0, packet, length);
	demux_peer_send(&peer, packet, length, 0);
	send_right(++tag);
	assert_int_equal(gsi_child_count(&child, counter), before + 1);
}

/* rule S14 test: a valid packet passes, whatever its P_Key's membership bit and its PSN. */
static void test_passes(void **state)
{
	(void)state;
	send_right(1);
	make(2);
	wire_put_be16(packet + PKEY, 0x7fff);
	wire_icrc_put(&peer.path, 0, packet, GSI_PACKET_BYTES);
	demux_peer_send(&peer, packet, GSI_PACKET_BYTES, 0);
	gsi_child_expect(&child, 2, GSI_MATCH_LOCAL);
	/* An IPv4 identification as other hosts set it, which is found from the ICRC */
	make(3);
	wire_icrc_put(&peer.path, 4711, packet, GSI_PACKET_BYTES);
	demux_peer_send(&peer, packet, GSI_PACKET_BYTES, 0);
	gsi_child_expect(&child, 3, GSI_MATCH_LOCAL);
	assert_int_equal(gsi_child_count(&child, PROGRESS_COUNT_ICRC_SOLVED), 1);
}

/* rule S14 test: a P_Key and a Q_Key that are not those of the host. */
static void test_wrong_keys(void **state)
{
	(void)state;
	make(1);
	wire_put_be16(packet + PKEY, 0x8001);
	expect_dropped(GSI_PACKET_BYTES, true, PROGRESS_COUNT_WRONG_PKEY);
	make(1);
	wire_put_be32(packet + QKEY, 0x01234567);
	expect_dropped(GSI_PACKET_BYTES, true, PROGRESS_COUNT_MAD_WRONG_QKEY);
}

/* rule S14 test: a bit of the MAD, anywhere after its first 8 bytes, has been flipped. */
static void test_damaged(void **state)
{
	(void)state;
	for (size_t i = MAD + 8; i < GSI_PACKET_BYTES; i += 37) {
		make(1);
		packet[i] ^= 0x10;
		expect_dropped(GSI_PACKET_BYTES, false, PROGRESS_COUNT_ICRC_ERRORS);
	}
}

/* rule S14 test: too short, too long, of another operation, or not of the connection manager. */
static void test_no_mad(void **state)
{
	(void)state;
	make(1);
	expect_dropped(GSI_PACKET_BYTES - 4, true, PROGRESS_COUNT_MAD_MALFORMED);
	make(1);
	expect_dropped(GSI_PACKET_BYTES + 4, true, PROGRESS_COUNT_MAD_MALFORMED);
	make(1);
	packet[0] = WIRE_UD | WIRE_SEND_ONLY_IMM;
	expect_dropped(GSI_PACKET_BYTES + 4, true, PROGRESS_COUNT_MAD_MALFORMED);
	make(1);
	packet[0] = WIRE_RC | WIRE_SEND_ONLY;
	expect_dropped(GSI_PACKET_BYTES, true, PROGRESS_COUNT_MAD_MALFORMED);
	for (unsigned int i = 0; i < 4; i++) {
		make(1);
		packet[MAD + i]++;
		expect_dropped(GSI_PACKET_BYTES, true, PROGRESS_COUNT_MAD_MALFORMED);
	}
}

/* ---- more MADs than the queue holds ---- */

enum {
	/* Number of MADs in one call, which fit into every socket buffer on their way */
	SEGMENTS = 64,
	FLOOD = 4 * GSI_QUEUE_MAX,
};

/* Sends this number of MADs, at most SEGMENTS, which do not identify their receiver. */
static void send_unowned(uint32_t first_tag, unsigned int count)
{
	static uint8_t run[SEGMENTS * GSI_PACKET_BYTES];

	for (unsigned int i = 0; i < count; i++) {
		const struct mad_spec spec = { .attribute = MAD_DREQ, .tag = first_tag + i };
		uint8_t mad[MAD_BYTES];

		mad_make(mad, &spec);
		gsi_packet_build(&peer.path, i, mad, run + i * GSI_PACKET_BYTES);
		wire_icrc_put(&peer.path, (uint16_t)i, run + i * GSI_PACKET_BYTES,
			      GSI_PACKET_BYTES);
	}
	demux_peer_send(&peer, run, count * GSI_PACKET_BYTES, GSI_PACKET_BYTES);
}

static void do_order(int what)
{
	const struct gsi_order order = { .what = what };

	assert_int_equal(gsi_child_do(&child, &order).error, 0);
}

static void await_count(enum progress_counter counter, uint64_t expected)
{
	int64_t end = now_ms() + CHILD_TIMEOUT_MS;
	uint64_t count;

	while ((count = gsi_child_count(&child, counter)) < expected && now_ms() < end)
		usleep(1000);
	assert_int_equal(count, expected);
}

/* Lets the child receive until its queue has taken or dropped this number of MADs. */
static void receive_until(uint64_t expected)
{
	int64_t end = now_ms() + CHILD_TIMEOUT_MS;
	uint64_t count;

	while ((count = gsi_child_count(&child, PROGRESS_COUNT_FORWARD_RECEIVED)) < expected &&
	       now_ms() < end)
		do_order(GSI_RECEIVE);
	assert_int_equal(count, expected);
}

/* Releases the callback and expects the MADs with tags 0 to last, in this order. */
static void expect_queued(uint32_t last)
{
	const struct gsi_order release = { .what = GSI_RELEASE };
	struct gsi_report report;
	bool done = false;
	uint32_t tag = 0;

	gsi_child_tell(&child, &release);
	while (tag <= last || !done) {
		assert_true(gsi_child_next(&child, CHILD_TIMEOUT_MS, &report));
		if (report.what == GSI_DONE) {
			done = true;
			continue;
		}
		assert_int_equal(report.mad.reason, GSI_MATCH_UNOWNED);
		assert_int_equal(mad_tag(report.mad.bytes), tag++);
	}
}

/*
 * While a callback does not return, the queue takes GSI_QUEUE_MAX MADs; all others are dropped and
 * counted.  Later MADs arrive.
 */
static void test_full_queue(void **state)
{
	(void)state;
	do_order(GSI_HOLD);
	send_unowned(0, 1);
	await_count(PROGRESS_COUNT_MAD_RECEIVED, 1);
	for (uint32_t sent = 1; sent <= FLOOD; sent += SEGMENTS) {
		send_unowned(sent, SEGMENTS);
		/* No buffer on the way overflows: the child does not count those losses. */
		receive_until(sent + SEGMENTS);
	}
	expect_queued(GSI_QUEUE_MAX);
	send_right(FLOOD + 1);
	assert_int_equal(gsi_child_count(&child, PROGRESS_COUNT_MAD_RECEIVED), GSI_QUEUE_MAX + 2);
	assert_int_equal(gsi_child_count(&child, PROGRESS_COUNT_MAD_OVERFLOW),
			 FLOOD - GSI_QUEUE_MAX);
}

/*
 * More MADs at once than all buffers on their way hold: those of the first call arrive, and so do
 * later ones.
 */
static void test_flood(void **state)
{
	struct gsi_report report;
	uint64_t received, lost;
	uint32_t tag = 0;

	(void)state;
	for (uint32_t sent = 0; sent < FLOOD; sent += SEGMENTS)
		send_unowned(sent, SEGMENTS);
	while (gsi_child_next(&child, tag < SEGMENTS ? CHILD_TIMEOUT_MS : 200, &report)) {
		assert_int_equal(report.mad.reason, GSI_MATCH_UNOWNED);
		if (tag < SEGMENTS)
			assert_int_equal(mad_tag(report.mad.bytes), tag++);
	}
	assert_int_equal(tag, SEGMENTS);
	/* On a busy host some of them may arrive late. */
	make(FLOOD);
	demux_peer_send(&peer, packet, GSI_PACKET_BYTES, 0);
	do
		assert_true(gsi_child_next(&child, CHILD_TIMEOUT_MS, &report));
	while (mad_tag(report.mad.bytes) != FLOOD);
	assert_int_equal(report.mad.reason, GSI_MATCH_LOCAL);
	received = gsi_child_count(&child, PROGRESS_COUNT_MAD_RECEIVED);
	lost = gsi_child_count(&child, PROGRESS_COUNT_MAD_OVERFLOW) +
	       gsi_child_count(&child, PROGRESS_COUNT_RECEIVE_OVERFLOW);
	assert_true(received > SEGMENTS && received + lost <= FLOOD + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_passes, open_demux, close_demux),
		cmocka_unit_test_setup_teardown(test_wrong_keys, open_demux, close_demux),
		cmocka_unit_test_setup_teardown(test_damaged, open_demux, close_demux),
		cmocka_unit_test_setup_teardown(test_no_mad, open_demux, close_demux),
		cmocka_unit_test_setup_teardown(test_full_queue, open_demux, close_demux),
		cmocka_unit_test_setup_teardown(test_flood, open_demux, close_demux),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
