/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Responses to several requests in one burst: their order, errors, and rollback of the burst. */
#include "dut.h"

#include <string.h>

#define LONG_MTU 4096
#define LONG_BYTES 65536u
#define LONG_PACKETS (LONG_BYTES / LONG_MTU)
/* R_Key of a second region, which is read in single packets and deregistered by the test. */
#define OTHER_RKEY 0x8008

/* The last burst of the engine; bytes: its packets one after the other. */
static struct {
	struct eng_burst burst;
	uint8_t bytes[DUT_BURST_BYTES];
	uint32_t max_packets;
} taken;

static struct dut *dut_with_pattern(struct dut_config config)
{
	struct dut *dut = dut_rts(config);

	dut_fill(dut->remote, DUT_REGION_BYTES, 0);
	taken.max_packets = DUT_BURST_PACKETS;
	return dut;
}

static enum eng_tx take_burst(struct dut *dut)
{
	enum eng_tx reason;
	uint32_t bytes = 0;

	taken.burst = dut_empty_burst(dut, taken.max_packets);
	reason = dut_transmit(dut, &taken.burst, ENG_RESPONSES);
	if (reason != ENG_TX_BURST)
		return reason;
	for (uint32_t i = 0; i < taken.burst.piece_count; i++) {
		memcpy(taken.bytes + bytes, taken.burst.pieces[i].bytes,
		       taken.burst.pieces[i].length);
		bytes += taken.burst.pieces[i].length;
	}
	assert_int_equal(bytes, taken.burst.bytes);
	return reason;
}

/* Packet number i of the burst. */
static struct wire_packet packet_of_burst(uint32_t i)
{
	uint32_t start = i * taken.burst.segment;
	uint32_t length =
		i + 1 < taken.burst.packets ? taken.burst.segment : taken.burst.bytes - start;
	struct wire_packet packet;

	assert_true(i < taken.burst.packets);
	assert_int_equal(wire_parse(taken.bytes + start, length, &packet), WIRE_OK);
	return packet;
}

static void expect_in_burst(uint32_t i, uint8_t opcode, uint32_t psn)
{
	struct wire_packet packet = packet_of_burst(i);

	assert_int_equal(packet.opcode, opcode);
	assert_int_equal(packet.psn, psn);
}

static void expect_burst(struct dut *dut, uint32_t packets)
{
	assert_int_equal(take_burst(dut), ENG_TX_BURST);
	assert_int_equal(taken.burst.packets, packets);
}

static void expect_payload(uint32_t i, uint32_t length, uint64_t position)
{
	struct wire_packet packet = packet_of_burst(i);

	assert_int_equal(packet.payload_length, length);
	expect_pattern(packet.payload, length, position);
}

/* Requests a READ of one packet from the region of OTHER_RKEY. */
static void ask_other(struct dut *dut, uint32_t psn)
{
	struct wire_packet read = dut_request(dut, WIRE_READ_REQUEST, psn, 0);

	read.rkey = OTHER_RKEY;
	read.va = 0;
	read.dma_length = 8;
	dut_give(dut, &read);
}

/*
 * Rolls the burst back, which restores credits_advertised to credits_before, and expects the same
 * bytes again.
 */
static void expect_same_again(struct dut *dut, uint32_t credits_before)
{
	static uint8_t first[sizeof(taken.bytes)];
	struct eng_burst burst = taken.burst;

	memcpy(first, taken.bytes, burst.bytes);
	eng_tx_rollback(dut->qp, &taken.burst);
	assert_int_equal(dut_info(dut).credits_advertised, credits_before);
	assert_int_equal(eng_resp_pending(dut->qp), ENG_RESP_IMMEDIATE);
	expect_burst(dut, burst.packets);
	assert_int_equal(taken.burst.segment, burst.segment);
	assert_int_equal(taken.burst.bytes, burst.bytes);
	assert_memory_equal(taken.bytes, first, burst.bytes);
}

/* The last packet of a READ and the first of the next one have the same length: one burst. */
static void test_long_reads_share_bursts(void **state)
{
	struct dut *dut = dut_with_pattern((struct dut_config){ .mtu = LONG_MTU });
	uint32_t psn = DUT_RQ_PSN;

	(void)state;
	/* rule S2 test, rule S12 test */
	for (uint32_t i = 0; i < 3; i++)
		dut_give_read(dut, psn + i * LONG_PACKETS, 0, LONG_BYTES);
	expect_burst(dut, 2);
	expect_in_burst(0, WIRE_READ_RESPONSE_FIRST, psn);
	expect_in_burst(1, WIRE_READ_RESPONSE_MIDDLE, psn + 1);
	for (uint32_t i = 0; i < 3; i++, psn += LONG_PACKETS) {
		expect_burst(dut, LONG_PACKETS - 3);
		for (uint32_t at = 2; at < LONG_PACKETS - 1; at++) {
			expect_in_burst(at - 2, WIRE_READ_RESPONSE_MIDDLE, psn + at);
			expect_payload(at - 2, LONG_MTU, (uint64_t)at * LONG_MTU);
		}
		expect_burst(dut, i < 2 ? 3 : 1);
		expect_in_burst(0, WIRE_READ_RESPONSE_LAST, psn + LONG_PACKETS - 1);
		expect_payload(0, LONG_MTU, LONG_BYTES - LONG_MTU);
		if (i == 2)
			continue;
		expect_in_burst(1, WIRE_READ_RESPONSE_FIRST, psn + LONG_PACKETS);
		expect_payload(1, LONG_MTU, 0);
		expect_in_burst(2, WIRE_READ_RESPONSE_MIDDLE, psn + LONG_PACKETS + 1);
		expect_payload(2, LONG_MTU, LONG_MTU);
	}
	expect_silence(dut);
	assert_int_equal(eng_resp_pending(dut->qp), ENG_RESP_NONE);
}

/* Short responses of any kind share a burst, which ends with a shorter one. */
static void test_short_answers_share_a_burst(void **state)
{
	struct dut *dut = dut_with_pattern((struct dut_config){ .max_dest_rd_atomic = 8 });

	(void)state;
	/* rule S2 test, rule S4 test */
	for (int round = 0; round < 2; round++) {
		dut_give_read(dut, DUT_RQ_PSN, 8, 8);
		dut_give_atomic(dut, WIRE_FETCH_ADD, DUT_RQ_PSN + 1, 0, 0, 1);
		dut_give_read(dut, DUT_RQ_PSN + 2, 16, 6);
		dut_give_read(dut, DUT_RQ_PSN + 3, 24, 3);
		dut_give_read(dut, DUT_RQ_PSN + 4, 32, 0);
		expect_burst(dut, 4);
		expect_in_burst(0, WIRE_READ_RESPONSE_ONLY, DUT_RQ_PSN);
		expect_payload(0, 8, 8);
		expect_in_burst(1, WIRE_ATOMIC_ACKNOWLEDGE, DUT_RQ_PSN + 1);
		expect_in_burst(2, WIRE_READ_RESPONSE_ONLY, DUT_RQ_PSN + 2);
		expect_payload(2, 6, 16);
		expect_in_burst(3, WIRE_READ_RESPONSE_ONLY, DUT_RQ_PSN + 3);
		expect_payload(3, 3, 24);
		expect_burst(dut, 1);
		expect_in_burst(0, WIRE_READ_RESPONSE_ONLY, DUT_RQ_PSN + 4);
		expect_payload(0, 0, 32);
		expect_silence(dut);
	}
}

/* Only the responses that duplicates request are sent again; they share a burst. */
static void test_repeats_share_a_burst(void **state)
{
	struct dut *dut = dut_with_pattern((struct dut_config){ 0 });

	(void)state;
	/* rule S4 test, rule S12 test */
	dut_give_read(dut, DUT_RQ_PSN, 0, 3 * DUT_MTU);
	dut_give_read(dut, DUT_RQ_PSN + 3, 0, 8);
	dut_give_read(dut, DUT_RQ_PSN + 4, 4096, 2 * DUT_MTU);
	dut_forget(dut);
	dut_give_read(dut, DUT_RQ_PSN + 4, 4096, 2 * DUT_MTU);
	dut_give_read(dut, DUT_RQ_PSN + 1, DUT_MTU, DUT_MTU);
	expect_burst(dut, 3);
	expect_in_burst(0, WIRE_READ_RESPONSE_ONLY, DUT_RQ_PSN + 1);
	expect_payload(0, DUT_MTU, DUT_MTU);
	expect_in_burst(1, WIRE_READ_RESPONSE_FIRST, DUT_RQ_PSN + 4);
	expect_in_burst(2, WIRE_READ_RESPONSE_LAST, DUT_RQ_PSN + 5);
	expect_payload(2, DUT_MTU, 4096 + DUT_MTU);
	expect_silence(dut);
}

/* A pending ACK of a request between two READs is sent between their responses. */
static void test_ack_between_answers(void **state)
{
	struct dut *dut = dut_with_pattern((struct dut_config){ 0 });

	(void)state;
	/* rule S7 test, rule S8 test */
	dut_give_read(dut, DUT_RQ_PSN, 0, 8);
	dut_give_read(dut, DUT_RQ_PSN + 1, 0, 8);
	dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN + 2, 8);
	dut_give_read(dut, DUT_RQ_PSN + 3, 0, 8);
	dut_give_read(dut, DUT_RQ_PSN + 4, 0, 8);
	expect_burst(dut, 2);
	expect_in_burst(1, WIRE_READ_RESPONSE_ONLY, DUT_RQ_PSN + 1);
	expect_burst(dut, 1);
	expect_in_burst(0, WIRE_ACKNOWLEDGE, DUT_RQ_PSN + 2);
	expect_burst(dut, 2);
	expect_in_burst(0, WIRE_READ_RESPONSE_ONLY, DUT_RQ_PSN + 3);
	expect_in_burst(1, WIRE_READ_RESPONSE_ONLY, DUT_RQ_PSN + 4);
	expect_silence(dut);
}

/* Requests three READs, the second from the region of OTHER_RKEY. */
static void ask_with_other_between(struct dut *dut)
{
	dut_give_read(dut, DUT_RQ_PSN, 0, 8);
	ask_other(dut, DUT_RQ_PSN + 1);
	dut_give_read(dut, DUT_RQ_PSN + 2, 0, 8);
}

/* The region of the second READ is deregistered: the first is answered, the second gets a NAK. */
static void test_fault_in_the_second_read(void **state)
{
	struct dut *dut = dut_with_pattern((struct dut_config){ 0 });

	(void)state;
	/* rule S11 test, rule S8 test */
	dut_region_add(dut, OTHER_RKEY, 0, 64, ENG_REMOTE_READ);
	ask_with_other_between(dut);
	dut->regions[2].key = 0;
	expect_burst(dut, 1);
	expect_in_burst(0, WIRE_READ_RESPONSE_ONLY, DUT_RQ_PSN);
	assert_int_equal(eng_qp_state(dut->qp), ENG_RTS);
	expect_same_again(dut, 0);
	expect_ack(dut, DUT_RQ_PSN + 1, NAK_ACCESS, 3);
	expect_silence(dut);
	assert_int_equal(dut_count_events(dut, ENG_EVENT_QP_ACCESS_ERR), 1);
	assert_int_equal(eng_qp_state(dut->qp), ENG_ERR);
}

/* In the same case with duplicate READs the third is answered as well, and the QP stays in RTS. */
static void test_fault_in_a_repeat(void **state)
{
	struct dut *dut = dut_with_pattern((struct dut_config){ 0 });

	(void)state;
	/* rule S4 test, rule S11 test */
	dut_region_add(dut, OTHER_RKEY, 0, 64, ENG_REMOTE_READ);
	for (int round = 0; round < 2; round++) {
		dut_forget(dut);
		ask_with_other_between(dut);
	}
	dut->regions[2].key = 0;
	expect_burst(dut, 1);
	expect_in_burst(0, WIRE_READ_RESPONSE_ONLY, DUT_RQ_PSN);
	expect_burst(dut, 1);
	expect_in_burst(0, WIRE_ACKNOWLEDGE, DUT_RQ_PSN + 1);
	assert_int_equal(packet_of_burst(0).syndrome, NAK_ACCESS);
	expect_same_again(dut, 0);
	expect_burst(dut, 1);
	expect_in_burst(0, WIRE_READ_RESPONSE_ONLY, DUT_RQ_PSN + 2);
	expect_silence(dut);
	assert_int_equal(eng_qp_state(dut->qp), ENG_RTS);
}

/* A burst of several responses could not be sent: it is sent again, followed by the rest. */
static void test_unsent_burst_of_several_reads(void **state)
{
	struct dut *dut = dut_with_pattern((struct dut_config){ .mtu = LONG_MTU });
	uint32_t psn = DUT_RQ_PSN, told, sent;

	(void)state;
	/* rule C8 test, rule S2 test, rule S12 test */
	dut_post_recv(dut, 8);
	dut_forget(dut);
	told = dut_info(dut).credits_advertised;
	assert_int_equal(told, 1);
	dut_post_recv(dut, 8);
	dut_post_recv(dut, 8);
	dut_give_read(dut, psn, 0, LONG_BYTES);
	dut_give_read(dut, psn + LONG_PACKETS, 0, LONG_BYTES);
	dut_give_atomic(dut, WIRE_FETCH_ADD, psn + 2 * LONG_PACKETS, 0, 0, 1);
	dut_give_read(dut, psn + 2 * LONG_PACKETS + 1, 0, 8);
	expect_burst(dut, 2);
	expect_same_again(dut, told);
	told = dut_info(dut).credits_advertised;
	assert_int_equal(told, 3);
	expect_burst(dut, LONG_PACKETS - 3);
	expect_same_again(dut, told);
	expect_burst(dut, 3);
	for (int i = 0; i < 3; i++)
		expect_same_again(dut, told);
	sent = (uint32_t)dut_info(dut).counters[ENG_COUNT_SENT_PACKETS];
	eng_tx_rollback(dut->qp, &taken.burst);
	assert_int_equal(dut_info(dut).counters[ENG_COUNT_SENT_PACKETS], sent - 3);
	expect_packet(dut, WIRE_READ_RESPONSE_LAST, psn + LONG_PACKETS - 1);
	expect_packet(dut, WIRE_READ_RESPONSE_FIRST, psn + LONG_PACKETS);
	for (uint32_t i = 1; i < LONG_PACKETS - 1; i++)
		expect_packet(dut, WIRE_READ_RESPONSE_MIDDLE, psn + LONG_PACKETS + i);
	expect_packet(dut, WIRE_READ_RESPONSE_LAST, psn + 2 * LONG_PACKETS - 1);
	expect_packet(dut, WIRE_ATOMIC_ACKNOWLEDGE, psn + 2 * LONG_PACKETS);
	expect_packet(dut, WIRE_READ_RESPONSE_ONLY, psn + 2 * LONG_PACKETS + 1);
	expect_silence(dut);
	assert_int_equal(eng_resp_pending(dut->qp), ENG_RESP_NONE);
}

/* Rollback of a burst returns to the first READ response in it, not to the first of the READ. */
static void test_unsent_behind_a_part(void **state)
{
	struct dut *dut = dut_with_pattern((struct dut_config){ 0 });

	(void)state;
	/* rule S4 test, rule S12 test */
	dut_give_read(dut, DUT_RQ_PSN, 0, 2 * DUT_MTU);
	dut_give_read(dut, DUT_RQ_PSN + 2, 8192, 4 * DUT_MTU);
	taken.max_packets = 3;
	expect_burst(dut, 3);
	expect_in_burst(2, WIRE_READ_RESPONSE_FIRST, DUT_RQ_PSN + 2);
	/* The peer requests the first READ again; the second one has been answered in part. */
	dut_give_read(dut, DUT_RQ_PSN, 0, 2 * DUT_MTU);
	taken.max_packets = DUT_BURST_PACKETS;
	expect_burst(dut, 3);
	expect_in_burst(0, WIRE_READ_RESPONSE_FIRST, DUT_RQ_PSN);
	expect_in_burst(1, WIRE_READ_RESPONSE_LAST, DUT_RQ_PSN + 1);
	expect_in_burst(2, WIRE_READ_RESPONSE_MIDDLE, DUT_RQ_PSN + 3);
	expect_payload(2, DUT_MTU, 8192 + DUT_MTU);
	expect_same_again(dut, 0);
	expect_packet(dut, WIRE_READ_RESPONSE_MIDDLE, DUT_RQ_PSN + 4);
	expect_packet(dut, WIRE_READ_RESPONSE_LAST, DUT_RQ_PSN + 5);
	expect_silence(dut);
}

/* A full burst ends between two responses, and the next burst continues there. */
static void test_full_burst(void **state)
{
	struct dut *dut = dut_with_pattern((struct dut_config){ 0 });

	(void)state;
	/* rule S2 test */
	dut_give_read(dut, DUT_RQ_PSN, 0, 8);
	for (uint32_t i = 1; i < 4; i++)
		dut_give_atomic(dut, WIRE_FETCH_ADD, DUT_RQ_PSN + i, 0, 0, 1);
	taken.max_packets = 3;
	expect_burst(dut, 3);
	expect_in_burst(0, WIRE_READ_RESPONSE_ONLY, DUT_RQ_PSN);
	expect_in_burst(2, WIRE_ATOMIC_ACKNOWLEDGE, DUT_RQ_PSN + 2);
	expect_burst(dut, 1);
	expect_in_burst(0, WIRE_ATOMIC_ACKNOWLEDGE, DUT_RQ_PSN + 3);
	expect_silence(dut);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DUT_TEST(test_long_reads_share_bursts),
		DUT_TEST(test_short_answers_share_a_burst),
		DUT_TEST(test_repeats_share_a_burst),
		DUT_TEST(test_ack_between_answers),
		DUT_TEST(test_fault_in_the_second_read),
		DUT_TEST(test_fault_in_a_repeat),
		DUT_TEST(test_unsent_burst_of_several_reads),
		DUT_TEST(test_unsent_behind_a_part),
		DUT_TEST(test_full_burst),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
