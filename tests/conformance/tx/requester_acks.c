/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Effects of ACKs and NAKs on the requester, by the position of their PSN. */
#include "dut.h"

#include <string.h>

/* Posts count SENDs of one packet, and drops the packets from the record. */
static void post_sends(struct dut *dut, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		dut_post(dut, ENG_SEND, 8, ENG_SIGNALED);
	dut_forget(dut);
}

static void expect_completed(struct dut *dut, uint64_t first, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		expect_wc(dut, first + i, ENG_SUCCESS);
	expect_no_wc(dut);
}

/* Expects that the requester's state has not changed and that it sends and completes nothing. */
static void expect_unchanged(struct dut *dut, const struct eng_qp_info *before)
{
	struct eng_qp_info after = dut_info(dut);

	assert_int_equal(after.unacked_psn, before->unacked_psn);
	assert_int_equal(after.next_psn, before->next_psn);
	assert_int_equal(after.in_flight, before->in_flight);
	assert_int_equal(after.retries_left, before->retries_left);
	assert_int_equal(after.rnr_retries_left, before->rnr_retries_left);
	assert_int_equal(after.state, before->state);
	expect_silence(dut);
	expect_no_wc(dut);
}

/* An ACK acknowledges all earlier PSNs, across the wrap of PSNs. */
static void test_ack_covers_all_before(void **state)
{
	struct dut *dut = dut_unlimited((struct dut_config){ .sq_psn = 0xfffffd });

	(void)state;
	/* rule S7 test, rule S8 test */
	post_sends(dut, 6);
	dut_ack(dut, 0x000000, NO_CREDITS_REPORTED, 4);
	expect_completed(dut, 0x1000, 4);
	assert_int_equal(dut_info(dut).unacked_psn, 0x000001);
	dut_ack(dut, 0x000002, NO_CREDITS_REPORTED, 6);
	expect_completed(dut, 0x1004, 2);
	assert_int_equal(eng_in_flight(dut->qp), 0);
	assert_true(eng_deadline(dut->qp) == ENG_NEVER);
}

/* An ACK before the PSN window is a duplicate and has no effect. */
static void test_older_ack_is_nothing(void **state)
{
	struct dut *dut = dut_unlimited((struct dut_config){ 0 });
	struct eng_qp_info before;
	uint64_t deadline;

	(void)state;
	/* rule S8 test */
	post_sends(dut, 4);
	dut_ack(dut, DUT_SQ_PSN + 1, NO_CREDITS_REPORTED, 2);
	expect_completed(dut, 0x1000, 2);
	before = dut_info(dut);
	deadline = eng_deadline(dut->qp);
	dut->now += MS;
	for (uint32_t psn = DUT_SQ_PSN - 3; psn <= DUT_SQ_PSN + 1; psn++) {
		dut_ack(dut, psn, NO_CREDITS_REPORTED, 1);
		expect_unchanged(dut, &before);
	}
	assert_true(eng_deadline(dut->qp) == deadline);
}

/* An ACK with a PSN that has not been sent is dropped, whatever it contains. */
static void test_ghosts_are_dropped(void **state)
{
	static const uint8_t syndromes[] = { ACK_CODE(31),    ACK_CODE(3), RNR_NAK(1),
					     NAK_SEQUENCE,    NAK_INVALID, NAK_ACCESS,
					     NAK_OPERATIONAL, 0x64,	   0x45 };
	struct dut *dut = dut_unlimited((struct dut_config){ 0 });
	uint8_t bytes[8] = { 0 };
	struct eng_qp_info before;

	(void)state;
	/* rule S8 test */
	post_sends(dut, 4);
	before = dut_info(dut);
	for (unsigned int i = 0; i < sizeof(syndromes); i++) {
		dut_nak(dut, DUT_SQ_PSN + 4, syndromes[i], 5);
		expect_unchanged(dut, &before);
		dut_nak(dut, DUT_SQ_PSN + 0x7fffff, syndromes[i], 5);
		expect_unchanged(dut, &before);
		if (syndromes[i] >= 0x20)
			dut_nak(dut, DUT_SQ_PSN - 1, syndromes[i], 5);
		expect_unchanged(dut, &before);
	}
	dut_give_response(dut, WIRE_READ_RESPONSE_ONLY, DUT_SQ_PSN + 4, 1, bytes, 8);
	dut_give_response(dut, WIRE_READ_RESPONSE_ONLY, DUT_SQ_PSN - 1, 1, bytes, 8);
	dut_give_response(dut, WIRE_ATOMIC_ACKNOWLEDGE, DUT_SQ_PSN + 9, 1, bytes, 8);
	expect_unchanged(dut, &before);
}

/* Reserved syndromes and NAK codes are dropped even inside the window. */
static void test_reserved_syndromes(void **state)
{
	struct dut *dut = dut_unlimited((struct dut_config){ 0 });
	struct eng_qp_info before;

	(void)state;
	/* rule S8 test */
	post_sends(dut, 1);
	before = dut_info(dut);
	for (unsigned int syndrome = 0x40; syndrome < 0x60; syndrome++)
		dut_nak(dut, DUT_SQ_PSN, (uint8_t)syndrome, 1);
	expect_unchanged(dut, &before);
	for (unsigned int syndrome = 0x64; syndrome < 0x80; syndrome++)
		dut_nak(dut, DUT_SQ_PSN, (uint8_t)syndrome, 0);
	expect_unchanged(dut, &before);
}

/*
 * A NAK for PSN n acknowledges the SENDs and WRITEs before n; after a sequence error the packets
 * from n on are sent again.
 */
static void test_sequence_nak(void **state)
{
	struct dut *dut = dut_unlimited((struct dut_config){ 0 });

	(void)state;
	/* rule S11 test */
	post_sends(dut, 5);
	dut_nak(dut, DUT_SQ_PSN + 2, NAK_SEQUENCE, 2);
	expect_completed(dut, 0x1000, 2);
	expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN + 2);
	expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN + 3);
	expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN + 4);
	expect_silence(dut);
	dut_ack(dut, DUT_SQ_PSN + 4, NO_CREDITS_REPORTED, 5);
	expect_completed(dut, 0x1002, 3);
}

/* A sequence NAK inside a message: the rest of it is sent again, with the right opcodes. */
static void test_sequence_nak_inside_a_message(void **state)
{
	struct dut *dut = dut_unlimited((struct dut_config){ 0 });
	const struct wire_packet *packet;

	(void)state;
	/* rule S11 test */
	dut_post(dut, ENG_WRITE, 4 * DUT_MTU - 10, ENG_SIGNALED);
	dut_forget(dut);
	dut_nak(dut, DUT_SQ_PSN + 2, NAK_SEQUENCE, 0);
	expect_no_wc(dut);
	packet = expect_packet(dut, WIRE_WRITE_MIDDLE, DUT_SQ_PSN + 2);
	expect_pattern(packet->payload, DUT_MTU, 2 * DUT_MTU);
	packet = expect_packet(dut, WIRE_WRITE_LAST, DUT_SQ_PSN + 3);
	expect_pattern(packet->payload, DUT_MTU - 10, 3 * DUT_MTU);
	expect_silence(dut);
}

/* Every fatal NAK: the request with its PSN fails, earlier ones succeed, the rest is flushed. */
static void test_fatal_naks(void **state)
{
	static const struct {
		uint8_t syndrome;
		enum eng_status status;
	} rows[] = {
		{ NAK_INVALID, ENG_REM_INV_REQ_ERR },
		{ NAK_ACCESS, ENG_REM_ACCESS_ERR },
		{ NAK_OPERATIONAL, ENG_REM_OP_ERR },
	};

	(void)state;
	/*
	 * rule S11 test, rule S13 test: the failing request is unsignaled, and has a completion
	 * nevertheless.
	 */
	for (int i = 0; i < 3; i++) {
		struct dut *dut = dut_unlimited((struct dut_config){ 0 });
		uint64_t ids[4], recv;

		ids[0] = dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED);
		ids[1] = dut_post(dut, ENG_SEND, 8, 0);
		ids[2] = dut_post(dut, ENG_SEND, 8, 0);
		ids[3] = dut_post(dut, ENG_WRITE, 8, 0);
		recv = dut_post_recv(dut, 64);
		dut_forget(dut);
		dut_nak(dut, DUT_SQ_PSN + 1, rows[i].syndrome, 1);
		expect_wc(dut, ids[0], ENG_SUCCESS);
		expect_wc(dut, ids[1], rows[i].status);
		expect_wc(dut, ids[2], ENG_WR_FLUSH_ERR);
		expect_wc(dut, ids[3], ENG_WR_FLUSH_ERR);
		expect_wc(dut, recv, ENG_WR_FLUSH_ERR);
		expect_no_wc(dut);
		assert_int_equal(eng_qp_state(dut->qp), ENG_ERR);
		expect_silence(dut);
		assert_true(eng_deadline(dut->qp) == ENG_NEVER);
	}
}

/* A READ is completed by its own responses only: a later ACK is an implied NAK of the READ. */
static void test_later_ack_implies_nak_of_read(void **state)
{
	struct dut *dut = dut_unlimited((struct dut_config){ 0 });
	uint64_t write, read, send;
	uint8_t bytes[16];

	(void)state;
	/* rule S8 test */
	write = dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED);
	read = dut_post(dut, ENG_READ, 16, ENG_SIGNALED);
	send = dut_post(dut, ENG_SEND, 8, ENG_SIGNALED);
	dut_forget(dut);
	dut_ack(dut, DUT_SQ_PSN + 2, NO_CREDITS_REPORTED, 3);
	expect_wc(dut, write, ENG_SUCCESS);
	expect_no_wc(dut);
	expect_packet(dut, WIRE_READ_REQUEST, DUT_SQ_PSN + 1);
	expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN + 2);
	expect_silence(dut);
	dut_fill(bytes, 16, 500);
	dut_give_response(dut, WIRE_READ_RESPONSE_ONLY, DUT_SQ_PSN + 1, 2, bytes, 16);
	expect_wc(dut, read, ENG_SUCCESS);
	expect_pattern(dut->local, 16, 500);
	expect_no_wc(dut);
	dut_ack(dut, DUT_SQ_PSN + 2, NO_CREDITS_REPORTED, 3);
	expect_wc(dut, send, ENG_SUCCESS);
}

/* A NAK of a later request does not acknowledge an Atomic: the Atomic is sent again. */
static void test_later_nak_does_not_complete_atomic(void **state)
{
	struct dut *dut = dut_unlimited((struct dut_config){ 0 });
	uint64_t value = 77, atomic;

	(void)state;
	/* rule S8 test, rule S11 test */
	atomic = dut_post(dut, ENG_FETCH_ADD, 8, ENG_SIGNALED);
	dut_post(dut, ENG_SEND, 8, ENG_SIGNALED);
	dut_forget(dut);
	dut_nak(dut, DUT_SQ_PSN + 1, NAK_SEQUENCE, 1);
	expect_no_wc(dut);
	expect_packet(dut, WIRE_FETCH_ADD, DUT_SQ_PSN);
	expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN + 1);
	dut_give_response(dut, WIRE_ATOMIC_ACKNOWLEDGE, DUT_SQ_PSN, 1, &value, 8);
	expect_wc(dut, atomic, ENG_SUCCESS);
	assert_memory_equal(dut->local, &value, 8);
}

/* A READ or Atomic response acknowledges the SENDs and WRITEs before it. */
static void test_response_acknowledges_what_is_before(void **state)
{
	struct dut *dut = dut_unlimited((struct dut_config){ 0 });
	uint8_t bytes[8] = { 1 };

	(void)state;
	/* rule S7 test, rule S8 test */
	post_sends(dut, 2);
	dut_post(dut, ENG_READ, 8, ENG_SIGNALED);
	dut_forget(dut);
	dut_give_response(dut, WIRE_READ_RESPONSE_ONLY, DUT_SQ_PSN + 2, 3, bytes, 8);
	expect_completed(dut, 0x1000, 3);
}

/* A response of the wrong kind completes nothing. */
static void test_response_of_the_wrong_kind(void **state)
{
	struct dut *dut = dut_unlimited((struct dut_config){ 0 });
	uint8_t bytes[8] = { 1 };

	(void)state;
	/* rule S8 test */
	memset(dut->local, 0, 64);
	dut_post(dut, ENG_SEND, 8, 0);
	dut_forget(dut);
	dut_give_response(dut, WIRE_READ_RESPONSE_ONLY, DUT_SQ_PSN, 1, bytes, 8);
	dut_give_response(dut, WIRE_ATOMIC_ACKNOWLEDGE, DUT_SQ_PSN, 1, bytes, 8);
	assert_int_equal(dut->local[0], 0);
	expect_no_wc(dut);
	/* A plain ACK does not complete a READ. */
	dut = dut_unlimited((struct dut_config){ 0 });
	dut_post(dut, ENG_READ, 8, ENG_SIGNALED);
	dut_forget(dut);
	dut_ack(dut, DUT_SQ_PSN, NO_CREDITS_REPORTED, 1);
	expect_no_wc(dut);
}

/* A request with a wrong L_Key is not sent, and fails after the requests before it complete. */
static void test_local_protection_error(void **state)
{
	struct dut *dut = dut_unlimited((struct dut_config){ 0 });
	uint64_t before, wrong, after;
	struct eng_send_wqe *wqe;

	(void)state;
	/* rule S13 test, rule C15 test */
	before = dut_post(dut, ENG_SEND, 8, ENG_SIGNALED);
	wqe = dut_wqe(dut, ENG_SEND, 8, 0);
	wqe->data.sge[0].lkey = 0xbad;
	wrong = wqe->wr_id;
	eng_sq_push(dut->qp);
	after = dut_post(dut, ENG_SEND, 8, 0);
	expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN);
	expect_silence(dut);
	expect_no_wc(dut);
	dut_ack(dut, DUT_SQ_PSN, NO_CREDITS_REPORTED, 1);
	dut_pull(dut);
	expect_wc(dut, before, ENG_SUCCESS);
	expect_wc(dut, wrong, ENG_LOC_PROT_ERR);
	expect_wc(dut, after, ENG_WR_FLUSH_ERR);
	expect_no_wc(dut);
	assert_int_equal(eng_qp_state(dut->qp), ENG_ERR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DUT_TEST(test_ack_covers_all_before),
		DUT_TEST(test_older_ack_is_nothing),
		DUT_TEST(test_ghosts_are_dropped),
		DUT_TEST(test_reserved_syndromes),
		DUT_TEST(test_sequence_nak),
		DUT_TEST(test_sequence_nak_inside_a_message),
		DUT_TEST(test_fatal_naks),
		DUT_TEST(test_later_ack_implies_nak_of_read),
		DUT_TEST(test_later_nak_does_not_complete_atomic),
		DUT_TEST(test_response_acknowledges_what_is_before),
		DUT_TEST(test_response_of_the_wrong_kind),
		DUT_TEST(test_local_protection_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
