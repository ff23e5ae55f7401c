/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Packets received with CE, and the notifications that their sender gets (annex A17). */
#include "dut.h"

#include <string.h>

#define CNP_BYTES 32

static struct dut *asked(enum eng_qp_type type)
{
	return dut_rts((struct dut_config){ .type = type, .ecn = true, .cwnd = 64 });
}

static void give_marked(struct dut *dut, uint8_t opcode, uint32_t psn)
{
	struct wire_packet packet = dut_request(dut, opcode, psn, 8);

	packet.congestion = WIRE_CE;
	dut_give(dut, &packet);
}

static void give_cnp(struct dut *dut)
{
	struct wire_packet packet = dut_packet(dut, WIRE_CNP_OPCODE, 0);

	packet.migrated = false;
	packet.congestion = WIRE_BECN;
	dut_give(dut, &packet);
}

/* Expects a CNP and compares all bytes but the ICRC, which is checked for every packet. */
static void expect_cnp(struct dut *dut)
{
	static const uint8_t cnp[CNP_BYTES - WIRE_ICRC_BYTES] = { 0x81, 0x00, 0xff, 0xff,
								  0x40, 0x22, 0x22, 0x22 };
	unsigned int at;

	dut_pull(dut);
	at = dut->sent_read;
	expect_packet(dut, WIRE_CNP_OPCODE, 0);
	assert_memory_equal(dut->sent[at].bytes, cnp, sizeof(cnp));
}

/* A marked request leads to a CNP, at most one in 50 us, and then to its normal response. */
static void test_responder(void **state)
{
	struct dut *dut = asked(ENG_RC);
	uint32_t psn = DUT_RQ_PSN;

	(void)state;
	dut_give_request(dut, WIRE_WRITE_ONLY, psn, 8);
	expect_ack(dut, psn, ACK_CODE(0), 1);
	give_marked(dut, WIRE_WRITE_ONLY, ++psn);
	expect_cnp(dut);
	expect_ack(dut, psn, ACK_CODE(0), 2);
	dut->now += 49 * US;
	give_marked(dut, WIRE_WRITE_ONLY, ++psn);
	expect_ack(dut, psn, ACK_CODE(0), 3);
	dut->now += US;
	expect_silence(dut);
	give_marked(dut, WIRE_WRITE_ONLY, ++psn);
	expect_cnp(dut);
	expect_ack(dut, psn, ACK_CODE(0), 4);
	assert_int_equal(dut_info(dut).counters[ENG_COUNT_ECN_MARKED], 3);
	assert_int_equal(dut_info(dut).counters[ENG_COUNT_CNP_SENT], 2);
}

/* Marks of READ responses are reported to their sender by the requester. */
static void test_requester(void **state)
{
	struct dut *dut = asked(ENG_RC);
	uint8_t bytes[8] = { 0 };
	struct wire_packet packet;

	(void)state;
	dut_post(dut, ENG_READ, sizeof(bytes), ENG_SIGNALED);
	expect_packet(dut, WIRE_READ_REQUEST, DUT_SQ_PSN);
	packet = dut_packet(dut, WIRE_READ_RESPONSE_ONLY, DUT_SQ_PSN);
	packet.congestion = WIRE_CE;
	packet.syndrome = NO_CREDITS_REPORTED;
	packet.msn = 1;
	packet.payload = bytes;
	packet.payload_length = sizeof(bytes);
	dut_give(dut, &packet);
	expect_cnp(dut);
	expect_silence(dut);
	assert_int_equal(dut->wc_count, 1);
}

/* A CNP that could not be sent is pending again, and counted once. */
static void test_unsent(void **state)
{
	struct dut *dut = asked(ENG_RC);
	struct eng_burst burst = dut_empty_burst(dut, 1);

	(void)state;
	give_marked(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN);
	assert_int_equal(dut_transmit(dut, &burst, ENG_RESPONSES), ENG_TX_BURST);
	assert_int_equal(burst.kind, ENG_BURST_CNP);
	assert_false(burst.last);
	eng_tx_rollback(dut->qp, &burst);
	expect_cnp(dut);
	assert_int_equal(dut_info(dut).counters[ENG_COUNT_CNP_SENT], 1);
}

/* UC has one peer, so it sends CNPs as RC does; UD has many, and neither sends nor obeys CNPs. */
static void test_unreliable(void **state)
{
	struct dut *uc = asked(ENG_UC), *ud = asked(ENG_UD);

	(void)state;
	give_marked(uc, WIRE_UC | WIRE_WRITE_ONLY, DUT_RQ_PSN);
	expect_cnp(uc);
	expect_silence(uc);
	give_marked(ud, WIRE_UD | WIRE_SEND_ONLY, DUT_RQ_PSN);
	expect_silence(ud);
	assert_int_equal(dut_info(ud).counters[ENG_COUNT_ECN_MARKED], 1);
	give_cnp(ud);
	expect_silence(ud);
	assert_int_equal(dut_info(ud).counters[ENG_COUNT_CNP_IGNORED], 1);
}

/* Without ECT a queue pair only counts marks; before it is connected there are no CNPs either. */
static void test_not_asked(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ .type = ENG_RC });
	struct dut *early = dut_new((struct dut_config){ .ecn = true });

	(void)state;
	give_marked(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN);
	expect_ack(dut, DUT_RQ_PSN, ACK_CODE(0), 1);
	expect_silence(dut);
	dut_raise(early, ENG_INIT);
	give_marked(early, WIRE_WRITE_ONLY, DUT_RQ_PSN);
	give_cnp(early);
	expect_silence(early);
	dut_raise(early, ENG_RTS);
	expect_silence(early);
}

/* Gives a group of packets, the last of which are marked; returns 1 if their ACK has BECN. */
static unsigned int echoes(struct dut *dut, uint32_t *psn, unsigned int of, unsigned int marked)
{
	const struct wire_packet *ack;

	for (unsigned int i = 1; i <= of; i++) {
		struct wire_packet packet = dut_request(dut, WIRE_WRITE_ONLY, (*psn)++, 8);

		packet.ack_request = i == of;
		packet.congestion = i > of - marked ? WIRE_CE : 0;
		dut_give(dut, &packet);
	}
	do {
		dut_pull(dut);
		assert_true(dut->sent_read < dut->sent_count);
		ack = &dut->sent[dut->sent_read++].packet;
	} while (ack->opcode == WIRE_CNP_OPCODE);
	assert_int_equal(ack->opcode, WIRE_ACKNOWLEDGE);
	return ack->congestion == WIRE_BECN;
}

/* ACKs with BECN are for about as many packets as were marked, whatever their fraction. */
static void test_echo(void **state)
{
	static const unsigned int parts[] = { 1, 3, 4, 8, 0 };
	struct dut *dut = asked(ENG_RC);
	uint32_t psn = DUT_RQ_PSN;

	(void)state;
	for (unsigned int i = 0; i < 5; i++) {
		unsigned int told = 0;

		for (int group = 0; group < 40; group++)
			told += echoes(dut, &psn, 8, parts[i]);
		assert_uint_in_range(told, 5 * parts[i] - (parts[i] > 0), 5 * parts[i] + 1);
	}
	assert_int_equal(echoes(dut, &psn, 1, 1), 1);
	assert_int_equal(echoes(dut, &psn, 1, 0), 0);
}

/* A repeated ACK repeats the credits, but not BECN. */
static void test_echo_is_not_repeated(void **state)
{
	struct dut *dut = asked(ENG_RC);

	(void)state;
	give_marked(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN);
	expect_cnp(dut);
	assert_int_equal(expect_packet(dut, WIRE_ACKNOWLEDGE, DUT_RQ_PSN)->congestion, WIRE_BECN);
	give_marked(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN);
	assert_int_equal(expect_packet(dut, WIRE_ACKNOWLEDGE, DUT_RQ_PSN)->congestion, 0);
}

/* A CNP that is pending when the queue pair enters ERR is not sent. */
static void test_end(void **state)
{
	struct dut *dut = asked(ENG_RC);

	(void)state;
	give_marked(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN);
	dut_set_state(dut, ENG_ERR);
	expect_silence(dut);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DUT_TEST(test_responder), DUT_TEST(test_requester),
		DUT_TEST(test_unsent),	  DUT_TEST(test_unreliable),
		DUT_TEST(test_not_asked), DUT_TEST(test_end),
		DUT_TEST(test_echo),	  DUT_TEST(test_echo_is_not_repeated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
