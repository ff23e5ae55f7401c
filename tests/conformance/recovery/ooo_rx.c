/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Out-of-order requests that are kept, and retransmissions to a peer that keeps them. */
#include <stdlib.h>

#include "dut.h"

static unsigned int blocks, most;
static uint64_t receives[4];

static void *ooo_alloc(void *owner)
{
	(void)owner;
	if (blocks == most)
		return NULL;
	blocks++;
	return malloc(eng_ooo_packet_bytes());
}

static void ooo_free(void *owner, void *block)
{
	(void)owner;
	blocks--;
	free(block);
}

/*
 * Returns a dut that has memory for this number of packets, and whose peer has sent an unsolicited
 * ACK with credits, or with credit code 11111b (tells_none).
 */
static struct dut *start_with(struct dut_config config, unsigned int memory, bool tells_none)
{
	struct dut *dut = dut_rts(config);

	dut->ops.ooo_alloc = ooo_alloc;
	dut->ops.ooo_free = ooo_free;
	blocks = 0;
	most = memory;
	for (unsigned int i = 0; i < 4; i++)
		receives[i] = dut_post_recv(dut, DUT_MTU);
	dut_forget(dut);
	dut_ack(dut, DUT_SQ_PSN - 1, tells_none ? NO_CREDITS_REPORTED : ACK_CODE(5), 0);
	return dut;
}

static struct dut *start(unsigned int memory, bool tells_none)
{
	return start_with((struct dut_config){ 0 }, memory, tells_none);
}

/* rule S4 test: out-of-order requests get one NAK, and are executed after the missing one. */
static void test_kept_until_the_gap_is_filled(void **state)
{
	struct dut *dut = start(16, false);

	(void)state;
	for (uint32_t i = 1; i <= 3; i++)
		dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN + i, 8);
	/* A duplicate is not kept again. */
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN + 2, 8);
	assert_int_equal(blocks, 3);
	expect_ack(dut, DUT_RQ_PSN, NAK_SEQUENCE, 0);
	expect_silence(dut);
	expect_no_wc(dut);
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN, 8);
	expect_ack(dut, DUT_RQ_PSN + 3, ACK_CODE(0), 4);
	for (uint32_t i = 0; i < 4; i++)
		expect_wc(dut, receives[i], ENG_SUCCESS);
	assert_int_equal(blocks, 0);
}

/* Packets for which there is no memory are dropped, and get a NAK when they are the next. */
static void test_memory_is_bounded(void **state)
{
	struct dut *dut = start(2, false);

	(void)state;
	for (uint32_t i = 1; i <= 3; i++)
		dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN + i, 8);
	assert_int_equal(blocks, 2);
	expect_ack(dut, DUT_RQ_PSN, NAK_SEQUENCE, 0);
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN, 8);
	expect_ack(dut, DUT_RQ_PSN + 3, NAK_SEQUENCE, 3);
	assert_int_equal(blocks, 0);
}

/* A peer that has not reported credits may not handle an ACK beyond a hole. */
static void test_nothing_is_kept_without_credits(void **state)
{
	struct dut *dut = start(16, true);

	(void)state;
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN + 1, 8);
	assert_int_equal(blocks, 0);
	expect_ack(dut, DUT_RQ_PSN, NAK_SEQUENCE, 0);
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN, 8);
	expect_ack(dut, DUT_RQ_PSN, ACK_CODE(3), 1);
}

/* Nothing is kept for a peer that has only responded to an ACK probe, as adapters do. */
static void test_nothing_is_kept_for_who_was_asked(void **state)
{
	struct dut *dut = start(16, true);

	(void)state;
	dut_post(dut, ENG_WRITE, 8, 0);
	dut_pull(dut);
	dut_forget(dut);
	dut_advance_to_deadline(dut);
	expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN - 1);
	dut_ack(dut, DUT_SQ_PSN - 1, ACK_CODE(5), 0);
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN + 1, 8);
	assert_int_equal(blocks, 0);
	expect_ack(dut, DUT_RQ_PSN, NAK_SEQUENCE, 0);
}

/* Kept packets are freed when the queue pair enters ERR. */
static void test_given_back_at_the_end(void **state)
{
	struct dut *dut = start(16, false);

	(void)state;
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN + 1, 8);
	assert_int_equal(blocks, 1);
	eng_set_state(dut->qp, ENG_ERR, dut->now);
	assert_int_equal(blocks, 0);
}

/*
 * Kept packets are freed when the queue pair enters RESET, and a connection that begins with the
 * same PSN does not execute them.
 */
static void test_reset_drops_kept_packets(void **state)
{
	struct dut *dut = start(16, false);
	uint64_t receive;

	(void)state;
	/* rule S4 test */
	dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN + 1, 8);
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN + 2, 8);
	assert_int_equal(blocks, 2);
	dut_set_state(dut, ENG_RESET);
	assert_int_equal(blocks, 0);
	dut_raise(dut, ENG_RTS);
	receive = dut_post_recv(dut, DUT_MTU);
	dut_post_recv(dut, DUT_MTU);
	dut_forget(dut);
	dut_ack(dut, DUT_SQ_PSN - 1, ACK_CODE(5), 0);
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN, 8);
	expect_ack(dut, DUT_RQ_PSN, ACK_CODE(1), 1);
	expect_silence(dut);
	expect_wc(dut, receive, ENG_SUCCESS);
	expect_no_wc(dut);
	assert_int_equal(dut->remote[0], 0);
}

/*
 * Sends packets.  The first is lost, after which our credits are reported; then the second is lost
 * and retransmitted.
 */
static void lose_twice(struct dut *dut, uint32_t packets)
{
	for (uint32_t i = 0; i < packets; i++)
		dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED);
	for (uint32_t i = 0; i < 2; i++) {
		dut_pull(dut);
		dut_nak(dut, DUT_SQ_PSN + i, NAK_SEQUENCE, i);
	}
	dut_pull(dut);
}

/*
 * At the first loss our credits are reported to the peer; at the second the missing packet is sent
 * alone, and an ACK beyond it shows that the peer keeps packets.
 */
static void test_repair_and_jump(void **state)
{
	struct dut *dut = start(0, false);

	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED);
	dut_forget(dut);
	dut_nak(dut, DUT_SQ_PSN, NAK_SEQUENCE, 0);
	expect_packet(dut, WIRE_ACKNOWLEDGE, DUT_RQ_PSN - 1);
	for (uint32_t i = 0; i < 4; i++)
		expect_packet(dut, WIRE_WRITE_ONLY, DUT_SQ_PSN + i);
	dut_nak(dut, DUT_SQ_PSN + 1, NAK_SEQUENCE, 1);
	expect_packet(dut, WIRE_ACKNOWLEDGE, DUT_RQ_PSN - 1);
	assert_true(expect_packet(dut, WIRE_WRITE_ONLY, DUT_SQ_PSN + 1)->ack_request);
	expect_silence(dut);
	dut_ack(dut, DUT_SQ_PSN + 3, ACK_CODE(5), 4);
	expect_silence(dut);
	assert_int_equal(eng_in_flight(dut->qp), 0);
}

/* On a network our credits are reported as soon as the peer has reported its own. */
static void test_first_loss_on_a_network(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ .network = true });

	(void)state;
	dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED);
	dut_pull(dut);
	dut_forget(dut);
	dut_ack(dut, DUT_SQ_PSN, ACK_CODE(5), 1);
	expect_packet(dut, WIRE_ACKNOWLEDGE, DUT_RQ_PSN - 1);
	expect_silence(dut);
	for (uint32_t i = 0; i < 4; i++)
		dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED);
	dut_forget(dut);
	dut_nak(dut, DUT_SQ_PSN + 1, NAK_SEQUENCE, 1);
	expect_packet(dut, WIRE_ACKNOWLEDGE, DUT_RQ_PSN - 1);
	expect_packet(dut, WIRE_WRITE_ONLY, DUT_SQ_PSN + 1);
	expect_silence(dut);
}

/* The peer's credits arrive before any response: ours are reported at once, but only once. */
static void test_introduced_by_the_peer(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ .network = true });

	(void)state;
	dut_ack(dut, DUT_SQ_PSN - 1, ACK_CODE(5), 0);
	expect_packet(dut, WIRE_ACKNOWLEDGE, DUT_RQ_PSN - 1);
	expect_silence(dut);
	dut_ack(dut, DUT_SQ_PSN - 1, ACK_CODE(6), 0);
	expect_silence(dut);
}

/* A peer that reports no credits gets no unsolicited ACK, and all packets are sent again. */
static void test_first_loss_without_credits(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ .network = true });

	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED);
	dut_pull(dut);
	dut_forget(dut);
	dut_ack(dut, DUT_SQ_PSN, NO_CREDITS_REPORTED, 1);
	expect_silence(dut);
	dut_nak(dut, DUT_SQ_PSN + 1, NAK_SEQUENCE, 1);
	for (uint32_t i = 1; i < 4; i++)
		expect_packet(dut, WIRE_WRITE_ONLY, DUT_SQ_PSN + i);
	expect_silence(dut);
}

/* The ACK ends at the retransmitted packet: the peer has kept nothing, the rest is sent again. */
static void test_no_jump(void **state)
{
	struct dut *dut = start(0, false);

	(void)state;
	lose_twice(dut, 4);
	dut_forget(dut);
	dut_ack(dut, DUT_SQ_PSN + 1, ACK_CODE(5), 2);
	expect_packet(dut, WIRE_WRITE_ONLY, DUT_SQ_PSN + 2);
	expect_packet(dut, WIRE_WRITE_ONLY, DUT_SQ_PSN + 3);
	expect_silence(dut);
}

/*
 * rule S11 test: the loss of a retransmission is detected by a probe only, so without probes all
 * packets are sent again.
 */
static void test_no_repair_without_probes(void **state)
{
	static const uint32_t codes[] = { DUT_NO_TIMEOUT, 6 };

	(void)state;
	for (unsigned int c = 0; c < 2; c++) {
		struct dut *dut;

		dut = start_with((struct dut_config){ .timeout_code = codes[c] }, 0, false);
		for (uint32_t i = 0; i < 4; i++)
			dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED);
		dut_forget(dut);
		for (uint32_t from = 0; from < 4; from++) {
			dut_nak(dut, DUT_SQ_PSN + from, NAK_SEQUENCE, from);
			for (uint32_t i = from; i < 4; i++)
				expect_packet(dut, WIRE_WRITE_ONLY, DUT_SQ_PSN + i);
			expect_silence(dut);
		}
		if (c == 0)
			dut_teardown(NULL);
	}
}

/* Out-of-order requests are kept across the wrap of PSNs. */
static void test_kept_across_the_wrap(void **state)
{
	const uint32_t psn = 0xfffffe;
	struct dut *dut = start_with((struct dut_config){ .rq_psn = psn }, 16, false);

	(void)state;
	/* They arrive in reverse order. */
	for (uint32_t i = 3; i >= 1; i--)
		dut_give_request(dut, WIRE_SEND_ONLY, (psn + i) & 0xffffff, 8);
	assert_int_equal(blocks, 3);
	expect_ack(dut, psn, NAK_SEQUENCE, 0);
	dut_give_request(dut, WIRE_SEND_ONLY, psn, 8);
	expect_ack(dut, 1, ACK_CODE(0), 4);
	for (uint32_t i = 0; i < 4; i++)
		expect_wc(dut, receives[i], ENG_SUCCESS);
	assert_int_equal(blocks, 0);
}

/* rule S5 test: kept requests are checked in their turn; those after an invalid one are dropped. */
static void test_kept_with_a_bad_rkey(void **state)
{
	struct dut *dut = start(16, false);
	struct wire_packet write = dut_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN + 1, 8);

	(void)state;
	write.rkey = DUT_RKEY + 1;
	dut_give(dut, &write);
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN + 2, 8);
	assert_int_equal(blocks, 2);
	expect_ack(dut, DUT_RQ_PSN, NAK_SEQUENCE, 0);
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN, 8);
	expect_ack(dut, DUT_RQ_PSN + 1, NAK_ACCESS, 1);
	expect_wc(dut, receives[0], ENG_SUCCESS);
	expect_wc(dut, receives[1], ENG_WR_FLUSH_ERR);
	assert_int_equal(eng_qp_state(dut->qp), ENG_ERR);
	assert_int_equal(blocks, 0);
}

/* rule C7 test: a kept request takes a receive of a shared queue when it is executed. */
static void test_kept_for_a_shared_queue(void **state)
{
	struct dut *dut = start_with((struct dut_config){ .shared = true }, 16, false);

	(void)state;
	for (uint32_t i = 1; i <= 2; i++)
		dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN + i, 8);
	assert_int_equal(blocks, 2);
	expect_ack(dut, DUT_RQ_PSN, NAK_SEQUENCE, 0);
	expect_no_wc(dut);
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN, 8);
	expect_ack(dut, DUT_RQ_PSN + 2, NO_CREDITS_REPORTED, 3);
	for (uint32_t i = 0; i < 3; i++)
		expect_wc(dut, receives[i], ENG_SUCCESS);
}

/* A hole is retransmitted once, although its NAK arrives twice; an ACK past it ends at the next. */
static void test_one_repair_for_a_gap(void **state)
{
	struct dut *dut = start(0, false);

	(void)state;
	/* rule S4 test */
	lose_twice(dut, 8);
	dut_forget(dut);
	dut_nak(dut, DUT_SQ_PSN + 1, NAK_SEQUENCE, 1);
	expect_silence(dut);
	dut_ack(dut, DUT_SQ_PSN + 3, ACK_CODE(5), 4);
	assert_int_equal(dut_info(dut).counters[ENG_COUNT_ACKS_PAST_HOLE], 1);
	expect_packet(dut, WIRE_WRITE_ONLY, DUT_SQ_PSN + 4);
	expect_silence(dut);
	dut_ack(dut, DUT_SQ_PSN + 7, ACK_CODE(5), 8);
	expect_silence(dut);
	assert_int_equal(eng_in_flight(dut->qp), 0);
}

/*
 * A probe assumes that the oldest packet is missing.  If only that is acknowledged, the next ones
 * are missing as well, and twice as many are sent.
 */
static void test_ack_after_a_probe(void **state)
{
	struct dut *dut = start(0, false);

	(void)state;
	lose_twice(dut, 4);
	dut_ack(dut, DUT_SQ_PSN + 3, ACK_CODE(5), 4);
	for (uint32_t i = 4; i < 10; i++)
		dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED);
	dut_pull(dut);
	dut_forget(dut);
	dut_advance_to_deadline(dut);
	expect_packet(dut, WIRE_WRITE_ONLY, DUT_SQ_PSN + 4);
	expect_silence(dut);
	for (uint32_t from = 5, to = 7; from < 10; from = to, to = 10) {
		dut_ack(dut, DUT_SQ_PSN + from - 1, ACK_CODE(5), from);
		for (uint32_t i = from; i < to; i++)
			expect_packet(dut, WIRE_WRITE_ONLY, DUT_SQ_PSN + i);
		expect_silence(dut);
	}
}

/* A NAK of a packet that a probe has just retransmitted has no effect. */
static void test_nak_after_a_probe(void **state)
{
	struct dut *dut = start(0, false);

	(void)state;
	lose_twice(dut, 4);
	dut_ack(dut, DUT_SQ_PSN + 3, ACK_CODE(5), 4);
	for (uint32_t i = 4; i < 10; i++)
		dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED);
	dut_pull(dut);
	dut_forget(dut);
	dut_advance_to_deadline(dut);
	expect_packet(dut, WIRE_WRITE_ONLY, DUT_SQ_PSN + 4);
	dut_nak(dut, DUT_SQ_PSN + 4, NAK_SEQUENCE, 4);
	expect_silence(dut);
	dut_ack(dut, DUT_SQ_PSN + 4, ACK_CODE(5), 5);
	for (uint32_t i = 5; i < 7; i++)
		expect_packet(dut, WIRE_WRITE_ONLY, DUT_SQ_PSN + i);
	expect_silence(dut);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_ack_after_a_probe, dut_teardown),
		cmocka_unit_test_teardown(test_nak_after_a_probe, dut_teardown),
		cmocka_unit_test_teardown(test_kept_until_the_gap_is_filled, dut_teardown),
		cmocka_unit_test_teardown(test_memory_is_bounded, dut_teardown),
		cmocka_unit_test_teardown(test_nothing_is_kept_without_credits, dut_teardown),
		cmocka_unit_test_teardown(test_nothing_is_kept_for_who_was_asked, dut_teardown),
		cmocka_unit_test_teardown(test_given_back_at_the_end, dut_teardown),
		cmocka_unit_test_teardown(test_reset_drops_kept_packets, dut_teardown),
		cmocka_unit_test_teardown(test_repair_and_jump, dut_teardown),
		cmocka_unit_test_teardown(test_first_loss_on_a_network, dut_teardown),
		cmocka_unit_test_teardown(test_introduced_by_the_peer, dut_teardown),
		cmocka_unit_test_teardown(test_first_loss_without_credits, dut_teardown),
		cmocka_unit_test_teardown(test_no_jump, dut_teardown),
		cmocka_unit_test_teardown(test_no_repair_without_probes, dut_teardown),
		cmocka_unit_test_teardown(test_kept_across_the_wrap, dut_teardown),
		cmocka_unit_test_teardown(test_kept_with_a_bad_rkey, dut_teardown),
		cmocka_unit_test_teardown(test_kept_for_a_shared_queue, dut_teardown),
		cmocka_unit_test_teardown(test_one_repair_for_a_gap, dut_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
