/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The receive demultiplexer (rule S14): a plain UDP socket sends packets made by hand.  Each check
 * drops and counts the packets that it is there for, and a packet that passes all of them reaches
 * the engine.
 */
#include "progress_end.h"

#include <string.h>

#include "demux_peer.h"
#include "link_child.h"
#include "progress/rx/demux.h"
#include "wire/icrc.h"
#include "wire/packet.h"

enum {
	PACKET_BYTES = DEMUX_PACKET_BYTES,
	FIRST_PSN = 0xfffff0,
};

struct fixture {
	struct progress *progress;
	struct progress_end end;
	struct demux_peer peer;
};

static struct fixture fixture;
static uint8_t sink[64 * 1024];

static int open_demux_of(uint32_t peer_qpn)
{
	memset(&fixture, 0, sizeof(fixture));
	fixture.progress = get_progress();
	end_open(&fixture.end, fixture.progress);
	end_connect(&fixture.end, peer_qpn ? peer_qpn : fixture.end.qp.qpn ^ 1);
	for (int i = 0; i < 100; i++)
		assert_true(end_receive(&fixture.end, sink, sizeof(sink)));
	demux_peer_open(&fixture.peer, "127.0.0.1");
	return 0;
}

static int open_demux(void **state)
{
	(void)state;
	return open_demux_of(0x123456);
}

/*
 * The end's own ACKs (credits, rule C10) return to this address: if the QP number of the peer
 * belongs to this process's slot they are packets for an unknown QP; with any other number they
 * would be forwarded.
 */
static int open_demux_to_own_slot(void **state)
{
	(void)state;
	return open_demux_of(0);
}

static int close_demux(void **state)
{
	(void)state;
	demux_peer_close(&fixture.peer);
	end_close(&fixture.end);
	progress_put(fixture.progress);
	return 0;
}

/*
 * Makes a SEND_ONLY for the QP with the right ICRC of a call's segment with index place.  The queue
 * pair itself is not accessed: the progress thread may use it at any time.
 */
static void make_packet_for(uint32_t qpn, uint8_t *bytes, uint32_t psn, uint16_t place)
{
	demux_peer_make(&fixture.peer, bytes, WIRE_RC, qpn, psn, place);
}

static void make_packet(uint8_t *bytes, uint32_t psn, uint16_t place)
{
	make_packet_for(fixture.end.qp.qpn, bytes, psn, place);
}

static void send_bytes(const uint8_t *bytes, size_t length, uint16_t segment)
{
	demux_peer_send(&fixture.peer, bytes, length, segment);
}

/* Waits for the count: if the progress thread has received the batch, it counts a moment later. */
static void assert_counted(enum progress_counter counter, uint64_t wanted)
{
	uint64_t until = progress_now() + UINT64_C(5000000000);

	while (progress_count(fixture.progress, counter) < wanted && progress_now() < until)
		progress_poll(fixture.progress);
	assert_int_equal(progress_count(fixture.progress, counter), wanted);
}

/* Expects that the counter is one more than before, and that the engine has received nothing. */
static void assert_dropped(enum progress_counter counter, uint64_t before)
{
	assert_counted(counter, before + 1);
	assert_int_equal(fixture.end.received, 0);
}

static uint64_t count_of(enum progress_counter counter)
{
	return progress_count(fixture.progress, counter);
}

/* rule S14 test: a correct packet passes. */
static void test_passes(void **state)
{
	uint8_t bytes[PACKET_BYTES];

	(void)state;
	make_packet(bytes, FIRST_PSN, 0);
	send_bytes(bytes, sizeof(bytes), 0);
	assert_true(end_poll_for(fixture.progress, &fixture.end.received, 1));
	assert_int_equal(fixture.end.lengths[0], PACKET_BYTES - WIRE_BTH_BYTES - WIRE_ICRC_BYTES);
	assert_int_equal(count_of(PROGRESS_COUNT_ICRC_SOLVED), 0);
}

/* rule S14 test: datagrams that are too short for a packet, or have an undefined opcode. */
static void test_malformed(void **state)
{
	uint8_t bytes[PACKET_BYTES];

	(void)state;
	for (size_t length = 0; length < WIRE_BTH_BYTES + WIRE_ICRC_BYTES; length += 3) {
		/* A datagram too short to be steered goes to slot 0, which this process has. */
		uint64_t before = count_of(PROGRESS_COUNT_MALFORMED);

		make_packet(bytes, FIRST_PSN, 0);
		send_bytes(bytes, length, 0);
		assert_dropped(PROGRESS_COUNT_MALFORMED, before);
	}
	make_packet(bytes, FIRST_PSN, 0);
	bytes[0] = 0x1f; /* undefined opcode */
	send_bytes(bytes, sizeof(bytes), 0);
	assert_dropped(PROGRESS_COUNT_MALFORMED, 6);
}

/* rule S14 test: a queue pair number that is not in use. */
static void test_unknown_qp(void **state)
{
	uint8_t bytes[PACKET_BYTES];

	(void)state;
	make_packet_for(fixture.end.qp.qpn + 1, bytes, FIRST_PSN, 0);
	send_bytes(bytes, sizeof(bytes), 0);
	assert_dropped(PROGRESS_COUNT_UNKNOWN_QP, 0);
}

/* rule S14 test: a packet that is correct, but has another source address. */
static void test_wrong_source(void **state)
{
	uint8_t bytes[PACKET_BYTES];

	(void)state;
	demux_peer_close(&fixture.peer);
	demux_peer_open(&fixture.peer, "127.0.0.2");
	make_packet(bytes, FIRST_PSN, 0);
	send_bytes(bytes, sizeof(bytes), 0);
	assert_dropped(PROGRESS_COUNT_WRONG_SOURCE, 0);
}

/* rule S14 test: a packet of another partition; the membership bit does not matter. */
static void test_wrong_pkey(void **state)
{
	uint8_t bytes[PACKET_BYTES];

	(void)state;
	make_packet(bytes, FIRST_PSN, 0);
	bytes[2] = 0x7f;
	bytes[3] = 0xfe;
	wire_icrc_put(&fixture.peer.path, 0, bytes, sizeof(bytes));
	send_bytes(bytes, sizeof(bytes), 0);
	assert_dropped(PROGRESS_COUNT_WRONG_PKEY, 0);
	bytes[3] = 0xff;
	wire_icrc_put(&fixture.peer.path, 0, bytes, sizeof(bytes));
	send_bytes(bytes, sizeof(bytes), 0);
	assert_true(end_poll_for(fixture.progress, &fixture.end.received, 1));
}

/* rule S14 test: a change of any byte that the ICRC covers is detected. */
static void test_wrong_icrc(void **state)
{
	uint8_t bytes[PACKET_BYTES];
	uint64_t errors = 0;

	(void)state;
	/* From the payload on: earlier bytes are caught by other checks first. */
	for (size_t i = WIRE_BTH_BYTES; i < sizeof(bytes); i++) {
		make_packet(bytes, FIRST_PSN, 0);
		bytes[i] ^= 0x40;
		send_bytes(bytes, sizeof(bytes), 0);
		assert_dropped(PROGRESS_COUNT_ICRC_ERRORS, errors++);
	}
	/* BTH byte 4 is not covered: routers may change it. */
	make_packet(bytes, FIRST_PSN, 0);
	bytes[4] = 0xc0;
	send_bytes(bytes, sizeof(bytes), 0);
	assert_true(end_poll_for(fixture.progress, &fixture.end.received, 1));
}

static uint64_t cnps_of(struct progress_end *end)
{
	struct eng_qp_info view;

	pthread_mutex_lock(&end->qp.lock);
	eng_qp_query(end->qp.engine, &view);
	pthread_mutex_unlock(&end->qp.lock);
	return view.counters[ENG_COUNT_CNP_HANDLED] + view.counters[ENG_COUNT_CNP_IGNORED];
}

static void make_cnp(uint8_t *bytes, uint32_t qpn)
{
	const struct wire_packet packet = { .opcode = WIRE_CNP_OPCODE,
					    .pkey = WIRE_DEFAULT_PKEY,
					    .congestion = WIRE_BECN,
					    .dest_qpn = qpn };

	assert_int_equal(wire_build_headers(&packet, bytes), PACKET_BYTES - WIRE_ICRC_BYTES);
	wire_icrc_put(&fixture.peer.path, 0, bytes, PACKET_BYTES);
}

/* rule S14 test: a CNP must pass the same checks as any packet. */
static void test_cnp(void **state)
{
	uint8_t bytes[PACKET_BYTES];

	(void)state;
	make_cnp(bytes, fixture.end.qp.qpn);
	bytes[20] ^= 1;
	send_bytes(bytes, sizeof(bytes), 0);
	assert_dropped(PROGRESS_COUNT_ICRC_ERRORS, 0);
	make_cnp(bytes, fixture.end.qp.qpn + 1);
	send_bytes(bytes, sizeof(bytes), 0);
	assert_dropped(PROGRESS_COUNT_UNKNOWN_QP, 0);
	demux_peer_close(&fixture.peer);
	demux_peer_open(&fixture.peer, "127.0.0.2");
	make_cnp(bytes, fixture.end.qp.qpn);
	send_bytes(bytes, sizeof(bytes), 0);
	assert_dropped(PROGRESS_COUNT_WRONG_SOURCE, 0);
	assert_int_equal(cnps_of(&fixture.end), 0);
	demux_peer_close(&fixture.peer);
	demux_peer_open(&fixture.peer, "127.0.0.1");
	make_cnp(bytes, fixture.end.qp.qpn);
	send_bytes(bytes, sizeof(bytes), 0);
	for (uint64_t until = progress_now() + UINT64_C(5000000000);
	     cnps_of(&fixture.end) == 0 && progress_now() < until;)
		progress_poll(fixture.progress);
	assert_int_equal(cnps_of(&fixture.end), 1);
}

/*
 * Foreign peers number their datagrams: the first identification is derived from the ICRC, and the
 * following ones are expected in sequence.
 */
static void test_foreign_identification(void **state)
{
	uint8_t bytes[10 * PACKET_BYTES];

	(void)state;
	for (uint16_t i = 0; i < 10; i++)
		make_packet(bytes + i * PACKET_BYTES, FIRST_PSN + i, (uint16_t)(0xfffa + i));
	send_bytes(bytes, sizeof(bytes), PACKET_BYTES);
	assert_true(end_poll_for(fixture.progress, &fixture.end.received, 10));
	assert_counted(PROGRESS_COUNT_ICRC_SOLVED, 1);
}

/* Passes a batch to the demultiplexer as if it had been received through shared memory. */
static void admit_from_memory(uint8_t *bytes, size_t length, unsigned int segment)
{
	static uint8_t ring;
	struct progress_qp *qp = &fixture.end.qp;
	struct link_batch batch = {
		.buffer = bytes,
		.bytes = length,
		.segment = segment,
		.src_port = fixture.peer.path.src_port,
		.addr = qp->addr,
		.ring = (struct link_ring_reader *)(void *)&ring, /* only checked for NULL */
	};
	struct progress_cycle cycle = { .progress = fixture.progress, .now = progress_now() };

	cycle.scheduled_end = &cycle.scheduled;
	memcpy(batch.src, end_loopback, sizeof(batch.src));
	progress_lock(fixture.progress);
	demux_batch(&cycle, &batch, false);
	assert_ptr_equal(cycle.locked_qp, qp);
	fixture.progress->hooks.leave(0);
	qp->in_cycle = false;
	pthread_mutex_unlock(&qp->lock);
	progress_unlock(fixture.progress);
}

/*
 * rule S14 test: in shared memory the identifications are known, so each packet must have the right
 * one.
 */
static void test_identification_in_memory(void **state)
{
	uint8_t bytes[3 * PACKET_BYTES];

	(void)state;
	for (uint16_t i = 0; i < 3; i++)
		make_packet(bytes + i * PACKET_BYTES, FIRST_PSN + i, i);
	admit_from_memory(bytes, sizeof(bytes), PACKET_BYTES);
	assert_int_equal(fixture.end.received, 3);
	make_packet(bytes, FIRST_PSN + 3, 5);
	admit_from_memory(bytes, PACKET_BYTES, PACKET_BYTES);
	assert_int_equal(fixture.end.received, 3);
	assert_counted(PROGRESS_COUNT_ICRC_ERRORS, 1);
	assert_int_equal(count_of(PROGRESS_COUNT_ICRC_SOLVED), 0);
}

/*
 * The packets of a burst are checked one by one: of a burst with a damaged packet in the middle,
 * only that packet is dropped.
 */
static void test_burst_with_bad_packet(void **state)
{
	uint8_t bytes[20 * PACKET_BYTES];

	(void)state;
	for (uint16_t i = 0; i < 20; i++)
		make_packet(bytes + i * PACKET_BYTES, FIRST_PSN + i, i);
	bytes[15 * PACKET_BYTES + 20] ^= 1;
	send_bytes(bytes, sizeof(bytes), PACKET_BYTES);
	assert_true(end_poll_for(fixture.progress, &fixture.end.received, 15));
	assert_counted(PROGRESS_COUNT_ICRC_ERRORS, 1);
	assert_int_equal(count_of(PROGRESS_COUNT_ICRC_SOLVED), 0);
	/* rule S4: the four packets after it are ahead of the expected PSN, and wait for it. */
	for (int i = 0; i < 100; i++)
		progress_poll(fixture.progress);
	assert_int_equal(fixture.end.received, 15);
}

/* Packets of several QPs in one batch, as the kernel may merge them, all find their QP. */
static void test_mixed_batch(void **state)
{
	uint8_t bytes[8 * PACKET_BYTES];
	struct progress_end other;

	(void)state;
	end_open(&other, fixture.progress);
	end_connect(&other, 0x654321);
	for (int i = 0; i < 8; i++)
		assert_true(end_receive(&other, sink, sizeof(sink)));
	for (uint16_t i = 0; i < 8; i++)
		make_packet_for(i % 2 ? other.qp.qpn : fixture.end.qp.qpn, bytes + i * PACKET_BYTES,
				FIRST_PSN + i / 2, i);
	send_bytes(bytes, sizeof(bytes), PACKET_BYTES);
	assert_true(end_poll_for(fixture.progress, &fixture.end.received, 4));
	assert_true(end_poll_for(fixture.progress, &other.received, 4));
	end_close(&other);
}

/* A datagram of another slot is forwarded and counted, even if the slot has no owner. */
static void test_other_slot(void **state)
{
	uint8_t bytes[2 * PACKET_BYTES];

	(void)state;
	make_packet(bytes, FIRST_PSN, 0);
	make_packet_for(fixture.end.qp.qpn ^ 1u << (LINK_SLOT_SHIFT + 2), bytes + PACKET_BYTES,
			FIRST_PSN + 1, 1);
	send_bytes(bytes, sizeof(bytes), PACKET_BYTES);
	assert_true(end_poll_for(fixture.progress, &fixture.end.received, 1));
	assert_counted(PROGRESS_COUNT_FORWARDED, 1);
}

#define DEMUX_TEST(name) cmocka_unit_test_setup_teardown(name, open_demux, close_demux)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		DEMUX_TEST(test_passes),
		DEMUX_TEST(test_malformed),
		DEMUX_TEST(test_unknown_qp),
		DEMUX_TEST(test_wrong_source),
		DEMUX_TEST(test_wrong_pkey),
		DEMUX_TEST(test_wrong_icrc),
		DEMUX_TEST(test_cnp),
		DEMUX_TEST(test_foreign_identification),
		DEMUX_TEST(test_identification_in_memory),
		DEMUX_TEST(test_burst_with_bad_packet),
		DEMUX_TEST(test_mixed_batch),
		cmocka_unit_test_setup_teardown(test_other_slot, open_demux_to_own_slot,
						close_demux),
	};

	return cmocka_run_group_tests(tests, enter_new_netns, NULL);
}
