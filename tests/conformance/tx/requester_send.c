/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* How the requester cuts messages into packets, and when it completes them. */
#include "dut.h"

#include <stdlib.h>
#include <string.h>

/* Returns the opcode of packet i of count; opcodes: First, Middle, Last, Only. */
static uint8_t opcode_at(const uint8_t opcodes[4], uint32_t i, uint32_t count)
{
	return count == 1      ? opcodes[3]
	       : i == 0	       ? opcodes[0]
	       : i < count - 1 ? opcodes[1]
			       : opcodes[2];
}

static void check_message(struct dut *dut, enum eng_op op, const uint8_t opcodes[4], uint32_t *psn,
			  uint32_t length)
{
	uint32_t mtu = dut->config.mtu, count = length ? (length + mtu - 1) / mtu : 1;
	uint64_t id = dut_post(dut, op, length, ENG_SIGNALED | ENG_SOLICITED);

	for (uint32_t i = 0; i < count; i++) {
		bool last = i == count - 1;
		uint32_t bytes = last ? length - i * mtu : mtu;
		const struct wire_packet *packet =
			expect_packet(dut, opcode_at(opcodes, i, count), *psn + i);
		uint16_t headers = wire_op_headers(packet->opcode);

		assert_int_equal(packet->payload_length, bytes);
		assert_int_equal(packet->pad_count, -bytes & 3);
		expect_pattern(packet->payload, bytes, (uint64_t)i * mtu);
		assert_int_equal(packet->solicited, last && op != ENG_WRITE);
		if (last)
			assert_true(packet->ack_request);
		if (headers & WIRE_HAS_RETH) {
			assert_int_equal(i, 0);
			assert_true(packet->va == DUT_THEIR_VA);
			assert_int_equal(packet->rkey, DUT_THEIR_RKEY);
			assert_int_equal(packet->dma_length, length);
		}
		if (headers & WIRE_HAS_IMMDT)
			assert_int_equal(packet->immediate, 0x12345678);
		if (headers & WIRE_HAS_IETH)
			assert_int_equal(packet->invalidate_rkey, 0x12345678);
	}
	expect_silence(dut);
	*psn += count;
	dut_ack(dut, *psn - 1, NO_CREDITS_REPORTED, 0);
	assert_int_equal(expect_wc(dut, id, ENG_SUCCESS)->op, op);
}

/* Only, or First, Middles and Last; all but the last are full; padding to four bytes. */
static void test_cutting_of_messages(void **state)
{
	static const struct {
		enum eng_op op;
		uint8_t opcodes[4];
	} kinds[] = {
		{ ENG_SEND, { WIRE_SEND_FIRST, WIRE_SEND_MIDDLE, WIRE_SEND_LAST, WIRE_SEND_ONLY } },
		{ ENG_SEND_IMM,
		  { WIRE_SEND_FIRST, WIRE_SEND_MIDDLE, WIRE_SEND_LAST_IMM, WIRE_SEND_ONLY_IMM } },
		{ ENG_SEND_INV,
		  { WIRE_SEND_FIRST, WIRE_SEND_MIDDLE, WIRE_SEND_LAST_INVALIDATE,
		    WIRE_SEND_ONLY_INVALIDATE } },
		{ ENG_WRITE,
		  { WIRE_WRITE_FIRST, WIRE_WRITE_MIDDLE, WIRE_WRITE_LAST, WIRE_WRITE_ONLY } },
		{ ENG_WRITE_IMM,
		  { WIRE_WRITE_FIRST, WIRE_WRITE_MIDDLE, WIRE_WRITE_LAST_IMM,
		    WIRE_WRITE_ONLY_IMM } },
	};

	(void)state;
	/* rule S1 test, rule S2 test, rule S15 test */
	for (unsigned int kind = 0; kind < 5; kind++) {
		for (uint32_t mtu = 256; mtu <= 4096; mtu *= 2) {
			struct dut *dut = dut_unlimited((struct dut_config){ .mtu = mtu });
			const uint32_t lengths[] = { 0,	  1,	   2,	    3,		mtu - 1,
						     mtu, mtu + 1, 2 * mtu, 3 * mtu + 7 };
			uint32_t psn = DUT_SQ_PSN;

			for (unsigned int i = 0; i < 9; i++)
				check_message(dut, kinds[kind].op, kinds[kind].opcodes, &psn,
					      lengths[i]);
			dut_teardown(NULL);
		}
	}
}

/* The same with payload that is sent without a copy, and over IPv6. */
static void test_gathered_payload(void **state)
{
	static const uint8_t opcodes[4] = { WIRE_SEND_FIRST, WIRE_SEND_MIDDLE, WIRE_SEND_LAST,
					    WIRE_SEND_ONLY };
	struct dut *dut = dut_unlimited((struct dut_config){ .gather = true, .ipv6 = true });
	uint32_t psn = DUT_SQ_PSN;

	(void)state;
	/* rule S1 test, rule S14 test: the harness checks every ICRC. */
	for (uint32_t length = 0; length < 20000; length = length * 3 + 1)
		check_message(dut, ENG_SEND, opcodes, &psn, length);
}

/* A message from several SGEs, one of them empty, and one from inline data. */
static void test_sources_of_payload(void **state)
{
	struct dut *dut = dut_unlimited((struct dut_config){ 0 });
	struct eng_send_wqe *wqe = dut_wqe(dut, ENG_SEND, 2000, ENG_SIGNALED);
	const struct wire_packet *packet;

	(void)state;
	/* rule S1 test */
	wqe->sge_count = 4;
	wqe->data.sge[0] = (struct eng_sge){ DUT_LOCAL_VA, 1, DUT_LKEY };
	wqe->data.sge[1] = (struct eng_sge){ 0, 0, 0 };
	wqe->data.sge[2] = (struct eng_sge){ DUT_LOCAL_VA + 1, 1100, DUT_LKEY };
	wqe->data.sge[3] = (struct eng_sge){ DUT_LOCAL_VA + 1101, 899, DUT_LKEY };
	eng_sq_push(dut->qp);
	packet = expect_packet(dut, WIRE_SEND_FIRST, DUT_SQ_PSN);
	expect_pattern(packet->payload, DUT_MTU, 0);
	packet = expect_packet(dut, WIRE_SEND_LAST, DUT_SQ_PSN + 1);
	assert_int_equal(packet->payload_length, 2000 - DUT_MTU);
	expect_pattern(packet->payload, packet->payload_length, DUT_MTU);
	dut_post_inline(dut, "inline bytes", 12);
	packet = expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN + 2);
	assert_memory_equal(packet->payload, "inline bytes", 12);
}

/* Consecutive PSNs from sq_psn on, across the wrap; a READ takes as many as it has responses. */
static void test_psns_are_consecutive(void **state)
{
	struct dut *dut = dut_unlimited((struct dut_config){ .sq_psn = 0xfffffc });

	(void)state;
	/* rule S2 test */
	dut_post(dut, ENG_WRITE, 2 * DUT_MTU, 0);
	dut_post(dut, ENG_READ, 3 * DUT_MTU, 0);
	dut_post(dut, ENG_FETCH_ADD, 8, 0);
	dut_post(dut, ENG_READ, 0, 0);
	dut_post(dut, ENG_SEND, 0, 0);
	expect_packet(dut, WIRE_WRITE_FIRST, 0xfffffc);
	expect_packet(dut, WIRE_WRITE_LAST, 0xfffffd);
	expect_packet(dut, WIRE_READ_REQUEST, 0xfffffe);
	expect_packet(dut, WIRE_FETCH_ADD, 0x000001);
	expect_packet(dut, WIRE_READ_REQUEST, 0x000002);
	expect_packet(dut, WIRE_SEND_ONLY, 0x000003);
	expect_silence(dut);
}

/* Packets follow each other without any ACK in between. */
static void test_no_waiting_for_acks(void **state)
{
	struct dut *dut = dut_unlimited((struct dut_config){ 0 });

	(void)state;
	/* rule S3 test */
	for (int i = 0; i < 10; i++)
		dut_post(dut, ENG_SEND, 4 * DUT_MTU, 0);
	dut_pull(dut);
	assert_int_equal(dut->sent_count, 40);
	assert_int_equal(eng_in_flight(dut->qp), 40);
	assert_int_equal(dut->why, ENG_TX_IDLE);
}

/* Fields of READ and Atomic requests. */
static void test_read_and_atomic_requests(void **state)
{
	struct dut *dut = dut_unlimited((struct dut_config){ 0 });
	const struct wire_packet *packet;

	(void)state;
	/* rule S2 test */
	dut_post(dut, ENG_READ, 5000, ENG_SIGNALED);
	dut_post(dut, ENG_COMPARE_SWAP, 8, ENG_SIGNALED);
	dut_post(dut, ENG_FETCH_ADD, 8, ENG_SIGNALED);
	packet = expect_packet(dut, WIRE_READ_REQUEST, DUT_SQ_PSN);
	assert_true(packet->ack_request);
	assert_true(packet->va == DUT_THEIR_VA && packet->rkey == DUT_THEIR_RKEY);
	assert_int_equal(packet->dma_length, 5000);
	assert_int_equal(packet->payload_length, 0);
	packet = expect_packet(dut, WIRE_COMPARE_SWAP, DUT_SQ_PSN + 5);
	assert_true(packet->ack_request);
	assert_true(packet->va == DUT_THEIR_VA && packet->rkey == DUT_THEIR_RKEY);
	assert_true(packet->compare == 0x1122334455667788);
	assert_true(packet->swap_add == 0x99aabbccddeeff00);
	packet = expect_packet(dut, WIRE_FETCH_ADD, DUT_SQ_PSN + 6);
	assert_true(packet->ack_request);
	assert_true(packet->swap_add == 0x1122334455667788);
}

/* The WQE completes with the ACK of its last packet, not before; the MSN has no effect. */
static void test_completion_is_by_psn(void **state)
{
	struct dut *dut = dut_unlimited((struct dut_config){ 0 });
	uint64_t first, second;

	(void)state;
	/* rule S9 test */
	first = dut_post(dut, ENG_SEND, 3 * DUT_MTU, ENG_SIGNALED);
	second = dut_post(dut, ENG_SEND, 8, ENG_SIGNALED);
	dut_forget(dut);
	dut_ack(dut, DUT_SQ_PSN + 1, NO_CREDITS_REPORTED, 2);
	expect_no_wc(dut);
	assert_int_equal(dut_info(dut).sq_used, 2);
	dut_ack(dut, DUT_SQ_PSN + 2, NO_CREDITS_REPORTED, 0);
	assert_int_equal(expect_wc(dut, first, ENG_SUCCESS)->receive, false);
	expect_no_wc(dut);
	assert_int_equal(dut_info(dut).sq_used, 1);
	dut_ack(dut, DUT_SQ_PSN + 3, NO_CREDITS_REPORTED, 0);
	expect_wc(dut, second, ENG_SUCCESS);
}

/* Unsignaled requests complete without a CQE, unless sq_sig_all is set. */
static void test_unsignaled(void **state)
{
	(void)state;
	/* rule S9 test */
	for (int all = 0; all < 2; all++) {
		struct dut *dut = dut_unlimited((struct dut_config){ .signal_all = all });
		uint64_t quiet = dut_post(dut, ENG_SEND, 8, 0);
		uint64_t told = dut_post(dut, ENG_SEND, 8, ENG_SIGNALED);

		dut_forget(dut);
		dut_ack(dut, DUT_SQ_PSN + 1, NO_CREDITS_REPORTED, 2);
		if (all)
			expect_wc(dut, quiet, ENG_SUCCESS);
		expect_wc(dut, told, ENG_SUCCESS);
		expect_no_wc(dut);
		assert_int_equal(dut_info(dut).sq_used, 0);
	}
}

/* Sends a long message, which must have AckReq often enough to keep the window moving. */
static void send_long_message(uint32_t window)
{
	struct dut *dut = dut_unlimited((struct dut_config){ .cwnd = window, .mtu = 4096 });
	struct eng_send_wqe *wqe;
	uint32_t acked = 0, total = 1000;
	unsigned int seen = 0;

	dut_region_add(dut, 0x7007, 0, (uint64_t)4096 * total, ENG_LOCAL_WRITE);
	wqe = dut_wqe(dut, ENG_WRITE, 4096 * total, ENG_SIGNALED);
	wqe->data.sge[0] = (struct eng_sge){ 0, 4096 * total, 0x7007 };
	eng_sq_push(dut->qp);
	while (acked < total) {
		uint32_t last = acked;

		dut_pull(dut);
		for (; dut->sent_read < dut->sent_count; dut->sent_read++) {
			const struct wire_packet *packet = &dut->sent[dut->sent_read].packet;

			if (packet->ack_request)
				last = packet->psn - DUT_SQ_PSN + 1;
			seen++;
			free((void *)(uintptr_t)dut->sent[dut->sent_read].bytes);
		}
		dut->sent_count = dut->sent_read = 0;
		assert_true(last > acked);
		acked = last;
		dut_ack(dut, DUT_SQ_PSN + acked - 1, NO_CREDITS_REPORTED, acked == total);
	}
	assert_int_equal(seen, total);
	assert_int_equal(dut->wc_count, 1);
}

static void test_long_message_moves_the_window(void **state)
{
	(void)state;
	/* rule S3 test, rule S7 test: without any timeout, whatever the window. */
	for (uint32_t window = 1; window <= 256; window *= 2) {
		send_long_message(window);
		dut_teardown(NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DUT_TEST(test_cutting_of_messages),
		DUT_TEST(test_gathered_payload),
		DUT_TEST(test_sources_of_payload),
		DUT_TEST(test_psns_are_consecutive),
		DUT_TEST(test_no_waiting_for_acks),
		DUT_TEST(test_read_and_atomic_requests),
		DUT_TEST(test_completion_is_by_psn),
		DUT_TEST(test_unsignaled),
		DUT_TEST(test_long_message_moves_the_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
