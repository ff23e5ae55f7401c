/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* READs and Atomics at the responder, and duplicates of them. */
#include "dut.h"

#include <string.h>

static struct dut *dut_with_pattern(struct dut_config config)
{
	struct dut *dut = dut_rts(config);

	dut_fill(dut->remote, DUT_REGION_BYTES, 0);
	return dut;
}

/* Expects all responses to a READ of length bytes at offset, whose first PSN is psn. */
static void expect_answer(struct dut *dut, uint32_t psn, uint32_t offset, uint32_t length)
{
	uint32_t mtu = dut->config.mtu;
	uint32_t count = length ? (length + mtu - 1) / mtu : 1;

	for (uint32_t i = 0; i < count; i++) {
		uint8_t opcode = count == 1	  ? WIRE_READ_RESPONSE_ONLY
				 : i == 0	  ? WIRE_READ_RESPONSE_FIRST
				 : i == count - 1 ? WIRE_READ_RESPONSE_LAST
						  : WIRE_READ_RESPONSE_MIDDLE;
		const struct wire_packet *packet = expect_packet(dut, opcode, psn + i);
		uint32_t bytes = i == count - 1 ? length - i * mtu : mtu;

		assert_int_equal(packet->payload_length, bytes);
		expect_pattern(packet->payload, bytes, offset + (uint64_t)i * mtu);
		assert_false(packet->ack_request);
	}
}

/* READs of several lengths: the responses have the bytes of the memory, in packets of the MTU. */
static void test_read_lengths(void **state)
{
	static const uint32_t lengths[] = { 0, 1, 3, 1023, 1024, 1025, 2048, 5001 };
	struct dut *dut = dut_with_pattern((struct dut_config){ 0 });
	uint32_t psn = DUT_RQ_PSN;

	(void)state;
	/* rule S1 test, rule S2 test */
	for (unsigned int i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		dut_give_read(dut, psn, 77, lengths[i]);
		assert_int_equal(eng_resp_pending(dut->qp), ENG_RESP_IMMEDIATE);
		expect_answer(dut, psn, 77, lengths[i]);
		expect_silence(dut);
		psn += lengths[i] ? (lengths[i] + DUT_MTU - 1) / DUT_MTU : 1;
		assert_int_equal(dut_info(dut).expected_psn, psn);
	}
}

/* A duplicate READ is answered again, whole or from the first missing packet on. */
static void test_duplicate_read(void **state)
{
	struct dut *dut = dut_with_pattern((struct dut_config){ 0 });

	(void)state;
	/* rule S4 test */
	dut_give_read(dut, DUT_RQ_PSN, 100, 5001);
	expect_answer(dut, DUT_RQ_PSN, 100, 5001);
	dut_give_read(dut, DUT_RQ_PSN, 100, 5001);
	expect_answer(dut, DUT_RQ_PSN, 100, 5001);
	/* Only the rest, from the third packet. */
	dut_give_read(dut, DUT_RQ_PSN + 2, 100 + 2 * DUT_MTU, 5001 - 2 * DUT_MTU);
	expect_answer(dut, DUT_RQ_PSN + 2, 100 + 2 * DUT_MTU, 5001 - 2 * DUT_MTU);
	dut_give_read(dut, DUT_RQ_PSN + 4, 100 + 4 * DUT_MTU, 5001 - 4 * DUT_MTU);
	expect_answer(dut, DUT_RQ_PSN + 4, 100 + 4 * DUT_MTU, 5001 - 4 * DUT_MTU);
	expect_silence(dut);
	assert_int_equal(dut_info(dut).msn, 1);
	assert_int_equal(dut_info(dut).expected_psn, DUT_RQ_PSN + 5);
}

/* A duplicate READ of a part is answered with exactly the requested bytes. */
static void test_duplicate_read_of_a_part(void **state)
{
	struct dut *dut = dut_with_pattern((struct dut_config){ 0 });

	(void)state;
	/* rule S4 test */
	dut_give_read(dut, DUT_RQ_PSN, 100, 5001);
	expect_answer(dut, DUT_RQ_PSN, 100, 5001);
	dut_give_read(dut, DUT_RQ_PSN + 1, 100 + DUT_MTU, 2 * DUT_MTU);
	expect_answer(dut, DUT_RQ_PSN + 1, 100 + DUT_MTU, 2 * DUT_MTU);
	dut_give_read(dut, DUT_RQ_PSN + 1, 100 + DUT_MTU, 1500);
	expect_answer(dut, DUT_RQ_PSN + 1, 100 + DUT_MTU, 1500);
	expect_silence(dut);
}

/* Several parts of one READ are requested at once: exactly these are sent. */
static void test_parts_at_once(void **state)
{
	struct dut *dut = dut_with_pattern((struct dut_config){ 0 });

	(void)state;
	/* rule S4 test */
	dut_give_read(dut, DUT_RQ_PSN, 100, 5001);
	expect_answer(dut, DUT_RQ_PSN, 100, 5001);
	dut_give_read(dut, DUT_RQ_PSN, 100, DUT_MTU);
	dut_give_read(dut, DUT_RQ_PSN + 2, 100 + 2 * DUT_MTU, 1500);
	expect_answer(dut, DUT_RQ_PSN, 100, DUT_MTU);
	expect_answer(dut, DUT_RQ_PSN + 2, 100 + 2 * DUT_MTU, 1500);
	expect_silence(dut);
	/* Adjacent parts are sent as one. */
	dut_give_read(dut, DUT_RQ_PSN + 1, 100 + DUT_MTU, DUT_MTU);
	dut_give_read(dut, DUT_RQ_PSN + 2, 100 + 2 * DUT_MTU, DUT_MTU);
	expect_answer(dut, DUT_RQ_PSN + 1, 100 + DUT_MTU, 2 * DUT_MTU);
	expect_silence(dut);
	/*
	 * An earlier part is requested again, and a request to the end covers all missing packets.
	 */
	dut_give_read(dut, DUT_RQ_PSN + 2, 100 + 2 * DUT_MTU, DUT_MTU);
	dut_give_read(dut, DUT_RQ_PSN, 100, DUT_MTU);
	expect_answer(dut, DUT_RQ_PSN, 100, DUT_MTU);
	dut_give_read(dut, DUT_RQ_PSN, 100, 5001);
	dut_give_read(dut, DUT_RQ_PSN + 2, 100 + 2 * DUT_MTU, DUT_MTU);
	expect_answer(dut, DUT_RQ_PSN + 2, 100 + 2 * DUT_MTU, DUT_MTU);
	expect_silence(dut);
}

/*
 * rule S4 test: more than eight parts are requested, and all are sent; the last ones are merged,
 * with the packets between them.
 */
static void test_many_parts_at_once(void **state)
{
	struct dut *dut = dut_with_pattern((struct dut_config){ 0 });

	(void)state;
	dut_give_read(dut, DUT_RQ_PSN, 0, 20 * DUT_MTU);
	expect_answer(dut, DUT_RQ_PSN, 0, 20 * DUT_MTU);
	for (uint32_t i = 0; i < 20; i += 2)
		dut_give_read(dut, DUT_RQ_PSN + i, (uint64_t)i * DUT_MTU, DUT_MTU);
	for (uint32_t i = 0; i < 14; i += 2)
		expect_answer(dut, DUT_RQ_PSN + i, (uint64_t)i * DUT_MTU, DUT_MTU);
	expect_answer(dut, DUT_RQ_PSN + 14, 14 * DUT_MTU, 5 * DUT_MTU);
	expect_silence(dut);
}

/* A duplicate READ reads the memory again, and returns its new contents. */
static void test_duplicate_read_reads_again(void **state)
{
	struct dut *dut = dut_with_pattern((struct dut_config){ 0 });
	const struct wire_packet *packet;

	(void)state;
	/* rule S4 test */
	dut_give_read(dut, DUT_RQ_PSN, 0, 8);
	expect_answer(dut, DUT_RQ_PSN, 0, 8);
	memset(dut->remote, 0x5a, 8);
	dut_give_read(dut, DUT_RQ_PSN, 0, 8);
	packet = expect_packet(dut, WIRE_READ_RESPONSE_ONLY, DUT_RQ_PSN);
	assert_int_equal(packet->payload[0], 0x5a);
}

/* A READ with an old PSN that is not within an earlier READ and its memory gets no response. */
static void test_forged_duplicate_read(void **state)
{
	struct dut *dut = dut_with_pattern((struct dut_config){ 0 });

	(void)state;
	/* rule S4 test */
	dut_give_read(dut, DUT_RQ_PSN, 4096, 2 * DUT_MTU);
	expect_answer(dut, DUT_RQ_PSN, 4096, 2 * DUT_MTU);
	dut_give_read(dut, DUT_RQ_PSN, 4096, 3 * DUT_MTU);
	dut_give_read(dut, DUT_RQ_PSN, 0, 2 * DUT_MTU);
	dut_give_read(dut, DUT_RQ_PSN + 1, 4096 + DUT_MTU, 2 * DUT_MTU);
	dut_give_read(dut, DUT_RQ_PSN - 1, 4096, DUT_MTU);
	expect_silence(dut);
	assert_int_equal(eng_qp_state(dut->qp), ENG_RTS);
}

/* A duplicate READ arrives while responses to the first are pending. */
static void test_duplicate_read_during_answer(void **state)
{
	struct dut *dut = dut_with_pattern((struct dut_config){ 0 });

	(void)state;
	/* rule S4 test */
	dut_give_read(dut, DUT_RQ_PSN, 0, 3 * DUT_MTU);
	dut_give_read(dut, DUT_RQ_PSN + 1, DUT_MTU, 2 * DUT_MTU);
	dut_pull(dut);
	assert_uint_in_range(dut->sent_count, 2, 5);
	assert_int_equal(dut->sent[dut->sent_count - 1].packet.psn, DUT_RQ_PSN + 2);
}

/*
 * An ACK of earlier requests is never sent between the responses of a READ, which acknowledge them
 * anyway: Linux's rxe since 6.2 would complete the READ at such an ACK.
 */
static void test_duplicate_send_during_answer(void **state)
{
	struct dut *dut = dut_with_pattern((struct dut_config){ 0 });
	uint64_t recv = dut_post_recv(dut, 8);
	struct eng_burst burst = dut_empty_burst(dut, 2);

	(void)state;
	dut_forget(dut);
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN, 8);
	expect_wc(dut, recv, ENG_SUCCESS);
	expect_ack(dut, DUT_RQ_PSN, ACK_CODE(0), 1);
	dut_give_read(dut, DUT_RQ_PSN + 1, 0, 4 * DUT_MTU);
	assert_int_equal(dut_transmit(dut, &burst, ENG_RESPONSES), ENG_TX_BURST);
	assert_int_equal(burst.packets, 2);
	/* rule S4 test */
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN, 8);
	expect_packet(dut, WIRE_READ_RESPONSE_MIDDLE, DUT_RQ_PSN + 3);
	expect_packet(dut, WIRE_READ_RESPONSE_LAST, DUT_RQ_PSN + 4);
	expect_ack(dut, DUT_RQ_PSN, ACK_CODE(0), 2);
	expect_silence(dut);
}

/* A duplicate READ between the packets of a SEND does not disturb the SEND. */
static void test_duplicate_read_inside_message(void **state)
{
	struct dut *dut = dut_with_pattern((struct dut_config){ 0 });
	uint64_t recv = dut_post_recv(dut, 8192);

	(void)state;
	/* rule S4 test */
	dut_forget(dut);
	dut_give_read(dut, DUT_RQ_PSN, 0, 8);
	dut_give_request(dut, WIRE_SEND_FIRST, DUT_RQ_PSN + 1, DUT_MTU);
	dut_forget(dut);
	dut_give_read(dut, DUT_RQ_PSN, 0, 8);
	expect_answer(dut, DUT_RQ_PSN, 0, 8);
	dut_give_request(dut, WIRE_SEND_LAST, DUT_RQ_PSN + 2, 8);
	expect_wc(dut, recv, ENG_SUCCESS);
	expect_ack(dut, DUT_RQ_PSN + 2, ACK_CODE(0), 2);
}

static uint64_t remote_value(struct dut *dut, uint32_t offset)
{
	uint64_t value;

	memcpy(&value, dut->remote + offset, sizeof(value));
	return value;
}

/* Compare-and-swap and fetch-and-add: the values in memory and in the responses. */
static void test_atomics(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });
	const struct wire_packet *packet;

	(void)state;
	/* rule S4 test */
	dut_give_atomic(dut, WIRE_FETCH_ADD, DUT_RQ_PSN, 8, 0, 5);
	packet = expect_packet(dut, WIRE_ATOMIC_ACKNOWLEDGE, DUT_RQ_PSN);
	assert_int_equal(packet->original, 0);
	assert_int_equal(remote_value(dut, 8), 5);
	dut_give_atomic(dut, WIRE_FETCH_ADD, DUT_RQ_PSN + 1, 8, 0, UINT64_MAX);
	packet = expect_packet(dut, WIRE_ATOMIC_ACKNOWLEDGE, DUT_RQ_PSN + 1);
	assert_int_equal(packet->original, 5);
	assert_int_equal(remote_value(dut, 8), 4);
	dut_give_atomic(dut, WIRE_COMPARE_SWAP, DUT_RQ_PSN + 2, 8, 3, 100);
	packet = expect_packet(dut, WIRE_ATOMIC_ACKNOWLEDGE, DUT_RQ_PSN + 2);
	assert_int_equal(packet->original, 4);
	assert_int_equal(remote_value(dut, 8), 4);
	dut_give_atomic(dut, WIRE_COMPARE_SWAP, DUT_RQ_PSN + 3, 8, 4, 0x1122334455667788);
	packet = expect_packet(dut, WIRE_ATOMIC_ACKNOWLEDGE, DUT_RQ_PSN + 3);
	assert_int_equal(packet->original, 4);
	assert_true(remote_value(dut, 8) == 0x1122334455667788);
}

/* A duplicate Atomic gets the saved result and is not executed again. */
static void test_duplicate_atomic(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ .max_dest_rd_atomic = 4 });
	const struct wire_packet *packet;

	(void)state;
	/* rule S4 test, rule S12 test */
	for (uint32_t i = 0; i < 6; i++) {
		dut_give_atomic(dut, WIRE_FETCH_ADD, DUT_RQ_PSN + i, 0, 0, 10);
		expect_packet(dut, WIRE_ATOMIC_ACKNOWLEDGE, DUT_RQ_PSN + i);
	}
	/* The last max_dest_rd_atomic of them are kept. */
	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t i = 2; i < 6; i++) {
			dut_give_atomic(dut, WIRE_FETCH_ADD, DUT_RQ_PSN + i, 0, 0, 10);
			packet = expect_packet(dut, WIRE_ATOMIC_ACKNOWLEDGE, DUT_RQ_PSN + i);
			assert_int_equal(packet->original, 10 * i);
		}
	}
	assert_int_equal(remote_value(dut, 0), 60);
	/* An older one cannot be repeated; it gets no response and is not executed again. */
	dut_give_atomic(dut, WIRE_FETCH_ADD, DUT_RQ_PSN, 0, 0, 10);
	expect_silence(dut);
	assert_int_equal(eng_resp_pending(dut->qp), ENG_RESP_NONE);
	assert_int_equal(remote_value(dut, 0), 60);
	assert_int_equal(dut_info(dut).msn, 6);
}

/* Any number of responder resources works, even if not a power of two; all are used repeatedly. */
static void test_every_depth(void **state)
{
	(void)state;
	/* rule S4 test, rule S12 test */
	for (uint32_t depth = 1; depth <= ENG_MAX_RD_ATOMIC; depth++) {
		/* The memory grows at most in proportion to the depth. */
		assert_true(eng_resp_res_bytes(depth) < 2 * depth * eng_resp_res_bytes(1));
		struct dut *dut = dut_rts((struct dut_config){ .max_dest_rd_atomic = depth });
		uint32_t psn = DUT_RQ_PSN;

		for (uint32_t round = 0; round < 5; round++, psn += depth) {
			for (uint32_t i = 0; i < depth; i++)
				dut_give_atomic(dut, WIRE_FETCH_ADD, psn + i, 0, 0, 1);
			for (uint32_t i = 0; i < depth; i++)
				expect_packet(dut, WIRE_ATOMIC_ACKNOWLEDGE, psn + i);
			for (uint32_t i = 0; i < depth; i++)
				dut_give_atomic(dut, WIRE_FETCH_ADD, psn + i, 0, 0, 1);
			for (uint32_t i = 0; i < depth; i++)
				assert_int_equal(
					expect_packet(dut, WIRE_ATOMIC_ACKNOWLEDGE, psn + i)
						->original,
					round * depth + i);
			expect_silence(dut);
		}
		dut_teardown(NULL);
	}
}

static void take_back(struct dut *dut, const struct eng_burst *burst, uint32_t first,
		      uint32_t count)
{
	eng_tx_rollback(dut->qp, burst);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(expect_packet(dut, WIRE_ATOMIC_ACKNOWLEDGE, first + i)->original,
				 first - DUT_RQ_PSN + i);
	expect_silence(dut);
}

/*
 * Responder resources are added to a queue pair in use: pending responses are still sent, and
 * earlier requests can still be repeated.
 */
static void test_depth_grows(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ .max_dest_rd_atomic = 5 });
	uint32_t psn = DUT_RQ_PSN;
	struct eng_burst burst;

	(void)state;
	/* rule S4 test, rule S12 test */
	for (; psn < DUT_RQ_PSN + 11; psn++) {
		dut_give_atomic(dut, WIRE_FETCH_ADD, psn, 0, 0, 1);
		expect_packet(dut, WIRE_ATOMIC_ACKNOWLEDGE, psn);
	}
	/* Three responses are pending, and two of them have been sent. */
	for (; psn < DUT_RQ_PSN + 14; psn++)
		dut_give_atomic(dut, WIRE_FETCH_ADD, psn, 0, 0, 1);
	burst = dut_empty_burst(dut, 2);
	assert_int_equal(dut_transmit(dut, &burst, ENG_RESPONSES), ENG_TX_BURST);
	assert_int_equal(burst.packets, 2);
	dut_set_replay(dut, ENG_MAX_RD_ATOMIC);
	dut->attr->max_dest_rd_atomic = ENG_MAX_RD_ATOMIC;
	take_back(dut, &burst, DUT_RQ_PSN + 11, 3);
	for (uint32_t i = 9; i < 14; i++) {
		dut_give_atomic(dut, WIRE_FETCH_ADD, DUT_RQ_PSN + i, 0, 0, 1);
		assert_int_equal(
			expect_packet(dut, WIRE_ATOMIC_ACKNOWLEDGE, DUT_RQ_PSN + i)->original, i);
	}
	/* As many Atomics as there are resources are accepted; one more is refused. */
	for (uint32_t i = 0; i < ENG_MAX_RD_ATOMIC; i++)
		dut_give_atomic(dut, WIRE_FETCH_ADD, psn + i, 0, 0, 1);
	burst = dut_empty_burst(dut, ENG_MAX_RD_ATOMIC);
	assert_int_equal(dut_transmit(dut, &burst, ENG_RESPONSES), ENG_TX_BURST);
	assert_int_equal(burst.packets, ENG_MAX_RD_ATOMIC);
	eng_tx_rollback(dut->qp, &burst);
	dut_give_atomic(dut, WIRE_FETCH_ADD, psn + ENG_MAX_RD_ATOMIC, 0, 0, 1);
	for (uint32_t i = 0; i < ENG_MAX_RD_ATOMIC; i++)
		expect_packet(dut, WIRE_ATOMIC_ACKNOWLEDGE, psn + i);
	assert_int_equal(expect_packet(dut, WIRE_ACKNOWLEDGE, psn + ENG_MAX_RD_ATOMIC)->syndrome,
			 NAK_INVALID);
	assert_int_equal(remote_value(dut, 0), 14 + ENG_MAX_RD_ATOMIC);
}

/* READs and Atomics share the resources; several duplicates are answered in PSN order. */
static void test_duplicates_of_several(void **state)
{
	struct dut *dut = dut_with_pattern((struct dut_config){ 0 });

	(void)state;
	/* rule S4 test */
	memset(dut->remote, 0, 8);
	dut_give_read(dut, DUT_RQ_PSN, 512, 2 * DUT_MTU);
	dut_give_atomic(dut, WIRE_FETCH_ADD, DUT_RQ_PSN + 2, 0, 0, 1);
	dut_give_read(dut, DUT_RQ_PSN + 3, 1024, 8);
	for (int round = 0; round < 3; round++) {
		expect_answer(dut, DUT_RQ_PSN, 512, 2 * DUT_MTU);
		expect_packet(dut, WIRE_ATOMIC_ACKNOWLEDGE, DUT_RQ_PSN + 2);
		expect_answer(dut, DUT_RQ_PSN + 3, 1024, 8);
		expect_silence(dut);
		dut_give_read(dut, DUT_RQ_PSN, 512, 2 * DUT_MTU);
		dut_give_atomic(dut, WIRE_FETCH_ADD, DUT_RQ_PSN + 2, 0, 0, 1);
		dut_give_read(dut, DUT_RQ_PSN + 3, 1024, 8);
	}
	assert_int_equal(remote_value(dut, 0), 1);
}

/* A region is deregistered before the READ responses are sent: the READ gets a NAK. */
static void test_region_goes_away(void **state)
{
	struct dut *dut = dut_with_pattern((struct dut_config){ 0 });

	(void)state;
	/* rule S11 test */
	dut_give_read(dut, DUT_RQ_PSN, 0, 2 * DUT_MTU);
	dut->regions[1].key = 0;
	expect_ack(dut, DUT_RQ_PSN, NAK_ACCESS, 1);
	expect_silence(dut);
	assert_int_equal(eng_qp_state(dut->qp), ENG_ERR);
}

/* In the same case, requests after the READ get no response: the NAK has the PSN of the READ. */
static void test_region_goes_away_before_others(void **state)
{
	struct dut *dut = dut_with_pattern((struct dut_config){ 0 });

	(void)state;
	/* rule S11 test, rule S8 test */
	dut_give_read(dut, DUT_RQ_PSN, 0, 2 * DUT_MTU);
	dut_give_atomic(dut, WIRE_FETCH_ADD, DUT_RQ_PSN + 2, 0, 0, 1);
	dut_give_read(dut, DUT_RQ_PSN + 3, 0, 8);
	dut->regions[1].key = 0;
	expect_ack(dut, DUT_RQ_PSN, NAK_ACCESS, 3);
	expect_silence(dut);
	assert_int_equal(dut_count_events(dut, ENG_EVENT_QP_ACCESS_ERR), 1);
	assert_int_equal(eng_qp_state(dut->qp), ENG_ERR);
}

/*
 * In the same case, the NAK of a later invalid request is pending: the NAK of the earlier error is
 * sent instead, and only one event is raised.
 */
static void test_region_goes_away_before_a_fault(void **state)
{
	struct dut *dut = dut_with_pattern((struct dut_config){ 0 });

	(void)state;
	/* rule S11 test */
	dut_give_read(dut, DUT_RQ_PSN, 0, 2 * DUT_MTU);
	dut_give_request(dut, WIRE_SEND_LAST, DUT_RQ_PSN + 2, 8);
	assert_int_equal(dut_count_events(dut, ENG_EVENT_QP_REQ_ERR), 1);
	dut->regions[1].key = 0;
	expect_ack(dut, DUT_RQ_PSN, NAK_ACCESS, 1);
	expect_silence(dut);
	assert_int_equal(dut_count_events(dut, ENG_EVENT_QP_REQ_ERR), 1);
	assert_int_equal(dut_count_events(dut, ENG_EVENT_QP_ACCESS_ERR), 0);
	assert_int_equal(eng_qp_state(dut->qp), ENG_ERR);
}

/*
 * A duplicate of a READ arrives after the READ was answered and its region was deregistered.  The
 * duplicate gets a NAK, for a requester that still waits; but the QP stays in RTS, for a requester
 * that has received the responses and has caused the deregistration.
 */
static void test_region_goes_away_after_answer(void **state)
{
	struct dut *dut = dut_with_pattern((struct dut_config){ 0 });

	(void)state;
	/* rule S4 test, rule S11 test */
	dut_give_read(dut, DUT_RQ_PSN, 0, 2 * DUT_MTU);
	expect_answer(dut, DUT_RQ_PSN, 0, 2 * DUT_MTU);
	dut->regions[1].key = 0;
	for (int i = 0; i < 2; i++) {
		dut_give_read(dut, DUT_RQ_PSN, 0, 2 * DUT_MTU);
		expect_ack(dut, DUT_RQ_PSN, NAK_ACCESS, 1);
		expect_silence(dut);
	}
	assert_int_equal(dut_count_events(dut, ENG_EVENT_QP_ACCESS_ERR), 0);
	assert_int_equal(eng_qp_state(dut->qp), ENG_RTS);
	dut_post_recv(dut, 8);
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN + 2, 0);
	assert_int_equal(eng_qp_state(dut->qp), ENG_RTS);
	assert_int_equal(dut->wc_count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DUT_TEST(test_read_lengths),
		DUT_TEST(test_duplicate_read),
		DUT_TEST(test_duplicate_read_of_a_part),
		DUT_TEST(test_parts_at_once),
		DUT_TEST(test_many_parts_at_once),
		DUT_TEST(test_duplicate_read_reads_again),
		DUT_TEST(test_forged_duplicate_read),
		DUT_TEST(test_duplicate_read_during_answer),
		DUT_TEST(test_duplicate_send_during_answer),
		DUT_TEST(test_duplicate_read_inside_message),
		DUT_TEST(test_atomics),
		DUT_TEST(test_duplicate_atomic),
		DUT_TEST(test_every_depth),
		DUT_TEST(test_depth_grows),
		DUT_TEST(test_duplicates_of_several),
		DUT_TEST(test_region_goes_away),
		DUT_TEST(test_region_goes_away_before_others),
		DUT_TEST(test_region_goes_away_before_a_fault),
		DUT_TEST(test_region_goes_away_after_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
