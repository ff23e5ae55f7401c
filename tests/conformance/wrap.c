/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* The wrap of SSN, MSN and LSN at 2^24, which a connection reaches after 16.7 million messages. */
#include "dut.h"

#include <stdlib.h>
#include <string.h>

#define LAST 0xffffffu
#define BATCH 1000

/* Sanitizers make this many messages take too long; the numbers are the same without them. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TOO_SLOW 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TOO_SLOW 1
#endif
#endif
#ifndef TOO_SLOW
#define TOO_SLOW 0
#endif

static void forget_packet(struct dut *dut, const struct wire_packet *packet)
{
	(void)dut;
	(void)packet;
}

/*
 * Posts, sends and acknowledges empty messages until ssn have been sent in all; credits: credit
 * code of each ACK.
 */
static void send_up_to(struct dut *dut, uint32_t ssn, enum eng_op op, uint8_t credits)
{
	uint32_t done = dut_info(dut).ssn;

	dut->sink = forget_packet;
	while (done != ssn) {
		uint32_t n = ssn - done < BATCH ? ssn - done : BATCH;

		for (uint32_t i = 0; i < n; i++)
			dut_post(dut, op, 0, 0);
		done += n;
		while (eng_ring_used(&dut->sq) > 0) {
			uint32_t in_flight;

			dut_pull(dut);
			in_flight = eng_in_flight(dut->qp);
			dut_ack(dut, DUT_SQ_PSN + done - (eng_ring_used(&dut->sq) - in_flight) - 1,
				credits, done - (eng_ring_used(&dut->sq) - in_flight));
		}
	}
	dut->sink = NULL;
}

/* LSN is MSN plus credits modulo 2^24, and SSNs after the wrap are greater than those before it. */
static void test_limit_across_the_wrap(void **state)
{
	struct dut *dut;
	uint32_t psn = DUT_SQ_PSN + LAST - 2;

	(void)state;
	if (TOO_SLOW)
		skip();
	/* rule C11 test, rule C12 test */
	dut = dut_rts((struct dut_config){ .sq_slots = 1024 });
	send_up_to(dut, LAST - 2, ENG_WRITE, ACK_CODE(0));
	assert_int_equal(dut_info(dut).ssn, LAST - 2);
	dut_ack(dut, psn - 1, ACK_CODE(4), LAST - 2);
	assert_int_equal(dut_info(dut).lsn, 1); /* FFFFFDh + 4 */
	/* SSN FFFFFEh, FFFFFFh, 0 and 1 may be sent; a WRITE between them increments LSN. */
	for (int i = 0; i < 7; i++)
		dut_post(dut, i == 2 ? ENG_WRITE : ENG_SEND, 2 * DUT_MTU, 0);
	for (uint32_t i = 0; i < 5; i++, psn += 2) {
		expect_packet(dut, i == 2 ? WIRE_WRITE_FIRST : WIRE_SEND_FIRST, psn);
		expect_packet(dut, i == 2 ? WIRE_WRITE_LAST : WIRE_SEND_LAST, psn + 1);
	}
	assert_true(expect_packet(dut, WIRE_SEND_FIRST, psn)->ack_request);
	expect_silence(dut);
	assert_int_equal(dut_info(dut).lsn, 2);
	assert_int_equal(dut_info(dut).sent_ssn, 3);
	/* Credits from before the wrap do not move LSN back, credits from after it increase LSN. */
	dut_ack(dut, psn - 9, ACK_CODE(0), LAST - 1);
	assert_int_equal(dut_info(dut).lsn, 2);
	dut_ack(dut, psn - 1, ACK_CODE(2), 2);
	assert_int_equal(dut_info(dut).lsn, 4);
	expect_packet(dut, WIRE_SEND_LAST, psn + 1);
	expect_packet(dut, WIRE_SEND_FIRST, psn + 2);
	expect_packet(dut, WIRE_SEND_LAST, psn + 3);
	expect_silence(dut);
}

/* A peer that has reported no credits for half of the number space starts to report them. */
static void test_limit_after_none_for_long(void **state)
{
	const uint32_t sent = (LAST + 1) / 2 + BATCH;
	struct dut *dut;

	(void)state;
	if (TOO_SLOW)
		skip();
	/* rule C3 test, rule C12 test */
	dut = dut_rts((struct dut_config){ .sq_slots = 1024 });
	dut_ack(dut, DUT_SQ_PSN - 1, ACK_CODE(1), 0);
	send_up_to(dut, sent, ENG_SEND, NO_CREDITS_REPORTED);
	dut_ack(dut, DUT_SQ_PSN + sent - 1, ACK_CODE(1), sent);
	assert_int_equal(dut_info(dut).lsn, sent + 1);
	for (int i = 0; i < 4; i++)
		dut_post(dut, ENG_SEND, 8, 0);
	/* A SEND with a credit, and a limited one. */
	expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN + sent);
	expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN + sent + 1);
	expect_silence(dut);
}

/* The responder's MSN goes from FFFFFFh to 0, and a peer without credits still gets new ones. */
static void test_msn_across_the_wrap(void **state)
{
	struct dut *dut;
	struct wire_packet write;

	(void)state;
	if (TOO_SLOW)
		skip();
	/* rule C11 test, rule C10 test */
	dut = dut_rts((struct dut_config){ 0 });
	write = dut_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN, 0);
	write.ack_request = false;
	for (uint32_t i = 0; i < LAST; i++) {
		eng_receive(dut->qp, &write, dut->now);
		write.psn = (write.psn + 1) & LAST;
	}
	dut_forget(dut);
	assert_int_equal(dut_info(dut).msn, LAST);
	write.ack_request = true;
	write.opcode = WIRE_SEND_ONLY;
	for (uint32_t i = 0; i < 3; i++) {
		dut_post_recv(dut, 64);
		expect_ack(dut, i ? write.psn - 1 : DUT_RQ_PSN - 1, ACK_CODE(1), LAST + i);
		eng_receive(dut->qp, &write, dut->now);
		expect_ack(dut, write.psn, ACK_CODE(0), LAST + 1 + i);
		write.psn = (write.psn + 1) & LAST;
	}
	assert_int_equal(dut_info(dut).msn, 2);
}

/* The PSN of the one packet that is sent now. */
static uint32_t psn_sent(struct dut *dut)
{
	dut_pull(dut);
	assert_int_equal(dut->sent_count - dut->sent_read, 1);
	return dut->sent[dut->sent_read++].packet.psn;
}

/* READ responses acknowledge requests for so long that the PSN of the last ACK compares as new. */
static void test_half_of_all_psns_of_reads(void **state)
{
	const uint32_t half = (LAST + 1) / 2, depth = 16;
	struct dut *dut;
	struct wire_packet read;
	uint32_t psn = DUT_RQ_PSN;

	(void)state;
	if (TOO_SLOW)
		skip();
	/* rule S4 test, rule C8 test */
	dut = dut_rts((struct dut_config){ .max_dest_rd_atomic = depth });
	dut_post_recv(dut, 64);
	assert_int_equal(psn_sent(dut), psn - 1);
	dut_give_request(dut, WIRE_SEND_ONLY, psn, 8);
	assert_int_equal(psn_sent(dut), psn++);
	dut->sink = forget_packet;
	read = dut_request(dut, WIRE_READ_REQUEST, psn, 0);
	for (uint32_t i = 0; i < half + 8 * depth; i++) {
		read.psn = psn;
		psn = (psn + 1) & LAST;
		eng_receive(dut->qp, &read, dut->now);
		if (i % depth == depth - 1)
			dut_pull(dut);
	}
	dut->sink = NULL;
	/* The ACK of an ACK probe, which is a duplicate, has a PSN that has been executed. */
	dut_give_request(dut, WIRE_SEND_ONLY, psn - 2 * depth, 0);
	assert_true(((psn - 1 - psn_sent(dut)) & LAST) < half);
	/* Credits are reported with the PSN of the last response. */
	dut_post_recv(dut, 64);
	dut_pull(dut);
	dut_forget(dut);
	dut_give_request(dut, WIRE_SEND_ONLY, psn, 8);
	assert_int_equal(psn_sent(dut), psn);
	dut_post_recv(dut, 64);
	assert_int_equal(psn_sent(dut), psn);
}

static void *ooo_alloc(void *owner)
{
	(void)owner;
	return malloc(eng_ooo_packet_bytes());
}

static void ooo_free(void *owner, void *block)
{
	(void)owner;
	free(block);
}

/*
 * Packets that arrive during an RNR wait are kept, and half of all PSNs have passed since the last
 * hole.  Once all packets have arrived, an ACK is sent, and no NAK of one that is not missing.
 */
static void test_half_of_all_psns_before_an_rnr_nak(void **state)
{
	const uint32_t half = (LAST + 1) / 2, psn = DUT_RQ_PSN + half + BATCH;
	struct wire_packet write;
	struct dut *dut;

	(void)state;
	if (TOO_SLOW)
		skip();
	/* rule S4 test, rule S11 test */
	dut = dut_rts((struct dut_config){ 0 });
	dut->ops.ooo_alloc = ooo_alloc;
	dut->ops.ooo_free = ooo_free;
	dut_ack(dut, DUT_SQ_PSN - 1, ACK_CODE(5), 0);
	write = dut_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN, 0);
	write.ack_request = false;
	for (; write.psn != psn; write.psn++)
		eng_receive(dut->qp, &write, dut->now);
	dut_forget(dut);
	for (uint32_t i = 0; i < 6; i++)
		if (i != 3)
			dut_give_request(dut, WIRE_SEND_ONLY, psn + i, 8);
	dut_pull(dut);
	dut_forget(dut);
	for (uint32_t i = 0; i < 6; i++)
		dut_post_recv(dut, DUT_MTU);
	dut_pull(dut);
	dut_forget(dut);
	dut_give_request(dut, WIRE_SEND_ONLY, psn, 8);
	expect_ack(dut, psn + 2, ACK_CODE(3), half + BATCH + 3);
	dut_give_request(dut, WIRE_SEND_ONLY, psn + 3, 8);
	expect_ack(dut, psn + 5, ACK_CODE(0), half + BATCH + 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DUT_TEST(test_limit_across_the_wrap),
		DUT_TEST(test_limit_after_none_for_long),
		DUT_TEST(test_msn_across_the_wrap),
		DUT_TEST(test_half_of_all_psns_of_reads),
		DUT_TEST(test_half_of_all_psns_before_an_rnr_nak),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
