/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* UC and UD: no credits, no acknowledgements, no retries. */
#include "dut.h"

#include <string.h>

#define UC(operation) ((uint8_t)(WIRE_UC | (operation)))
#define UD(operation) ((uint8_t)(WIRE_UD | (operation)))
#define QKEY 0x11111111

/* UC sends everything at once and completes it; no AckReq, no timer, no limit. */
static void test_uc_sends_without_credit(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ .type = ENG_UC });

	(void)state;
	/* rule C1 test */
	for (int i = 0; i < 10; i++)
		dut_post(dut, i & 1 ? ENG_WRITE_IMM : ENG_SEND, 3 * DUT_MTU, ENG_SIGNALED);
	for (uint32_t i = 0; i < 10; i++) {
		uint8_t write = i & 1;

		expect_packet(dut, write ? UC(WIRE_WRITE_FIRST) : UC(WIRE_SEND_FIRST),
			      DUT_SQ_PSN + 3 * i);
		expect_packet(dut, write ? UC(WIRE_WRITE_MIDDLE) : UC(WIRE_SEND_MIDDLE),
			      DUT_SQ_PSN + 3 * i + 1);
		assert_false(expect_packet(dut,
					   write ? UC(WIRE_WRITE_LAST_IMM) : UC(WIRE_SEND_LAST),
					   DUT_SQ_PSN + 3 * i + 2)
				     ->ack_request);
	}
	expect_silence(dut);
	assert_int_equal(dut->wc_count, 10);
	for (int i = 0; i < 10; i++)
		assert_int_equal(dut->wcs[i].status, ENG_SUCCESS);
	assert_int_equal(eng_in_flight(dut->qp), 0);
	assert_true(eng_deadline(dut->qp) == ENG_NEVER);
}

/* READ and Atomics do not exist on UC. */
static void test_uc_has_no_reads(void **state)
{
	static const enum eng_op ops[] = { ENG_READ, ENG_FETCH_ADD, ENG_COMPARE_SWAP };

	(void)state;
	/* rule S13 test */
	for (int i = 0; i < 3; i++) {
		struct dut *dut = dut_rts((struct dut_config){ .type = ENG_UC });
		uint64_t id = dut_post(dut, ops[i], 8, 0);

		expect_silence(dut);
		expect_wc(dut, id, ENG_LOC_QP_OP_ERR);
		expect_no_wc(dut);
	}
}

/* The UC receiver reports nothing: no ACK, no credits, no NAK. */
static void test_uc_receiver_is_silent(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ .type = ENG_UC });
	uint64_t recv = dut_post_recv(dut, 4096);

	(void)state;
	/* rule C1 test */
	expect_silence(dut);
	memset(dut->local, 0, 4096);
	dut_give_request(dut, UC(WIRE_SEND_FIRST), DUT_RQ_PSN, DUT_MTU);
	dut_give_request(dut, UC(WIRE_SEND_LAST), DUT_RQ_PSN + 1, 8);
	assert_int_equal(expect_wc(dut, recv, ENG_SUCCESS)->byte_len, DUT_MTU + 8);
	expect_pattern(dut->local, DUT_MTU, 0);
	dut_give_request(dut, UC(WIRE_WRITE_ONLY), DUT_RQ_PSN + 2, 8);
	expect_pattern(dut->remote, 8, 0);
	/* A SEND that finds no receive is dropped. */
	dut_give_request(dut, UC(WIRE_SEND_ONLY), DUT_RQ_PSN + 3, 8);
	expect_silence(dut);
	expect_no_wc(dut);
	assert_int_equal(eng_resp_pending(dut->qp), ENG_RESP_NONE);
	/* The next message finds a receive and is executed. */
	recv = dut_post_recv(dut, 4096);
	dut_give_request(dut, UC(WIRE_SEND_ONLY), DUT_RQ_PSN + 4, 8);
	expect_wc(dut, recv, ENG_SUCCESS);
	expect_silence(dut);
}

/* A hole drops the message; the next First or Only starts another one with the same receive WQE. */
static void test_uc_gap_drops_the_message(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ .type = ENG_UC });
	uint64_t recv = dut_post_recv(dut, 4096);

	(void)state;
	/* rule C1 test */
	dut_give_request(dut, UC(WIRE_SEND_FIRST), DUT_RQ_PSN, DUT_MTU);
	dut_give_request(dut, UC(WIRE_SEND_LAST), DUT_RQ_PSN + 2, 8);
	expect_no_wc(dut);
	dut_give_request(dut, UC(WIRE_SEND_LAST), DUT_RQ_PSN + 3, 8);
	dut_give_request(dut, UC(WIRE_SEND_MIDDLE), DUT_RQ_PSN + 4, DUT_MTU);
	expect_no_wc(dut);
	dut_give_request(dut, UC(WIRE_SEND_FIRST), DUT_RQ_PSN + 10, DUT_MTU);
	dut_give_request(dut, UC(WIRE_SEND_LAST), DUT_RQ_PSN + 11, 4);
	assert_int_equal(expect_wc(dut, recv, ENG_SUCCESS)->byte_len, DUT_MTU + 4);
	expect_no_wc(dut);
	expect_silence(dut);
	assert_int_equal(eng_qp_state(dut->qp), ENG_RTS);
}

/* Invalid requests on UC are dropped without response and without effect. */
static void test_uc_bad_requests(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ .type = ENG_UC });
	struct wire_packet packet = dut_request(dut, UC(WIRE_WRITE_ONLY), DUT_RQ_PSN, 8);

	(void)state;
	/* rule S5 test */
	packet.rkey = 0xbad;
	dut_give(dut, &packet);
	expect_silence(dut);
	expect_no_wc(dut);
	assert_int_equal(dut->remote[0], 0);
	/* A UC queue pair drops RC packets. */
	dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN + 1, 8);
	dut_give_read(dut, DUT_RQ_PSN + 1, 0, 8);
	expect_silence(dut);
	assert_int_equal(dut->remote[0], 0);
}

static struct eng_send_wqe *ud_wqe(struct dut *dut, uint32_t length)
{
	struct eng_send_wqe *wqe = dut_wqe(dut, ENG_SEND, length, ENG_SIGNALED);

	wqe->ud.path = &dut->attr->path;
	wqe->ud.dest_qpn = 0x654321;
	wqe->ud.qkey = 0x22222222;
	wqe->ud.ah = NULL;
	return wqe;
}

static struct eng_send_wqe *ud_or_uc_wqe(struct dut *dut, uint32_t length)
{
	return dut->config.type == ENG_UD ? ud_wqe(dut, length)
					  : dut_wqe(dut, ENG_SEND, length, ENG_SIGNALED);
}

/* UD: one packet with DETH, complete when it is sent; no limit. */
static void test_ud_send(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ .type = ENG_UD });
	const struct wire_packet *packet;

	(void)state;
	/* rule C1 test */
	for (int i = 0; i < 5; i++) {
		ud_wqe(dut, 100);
		eng_sq_push(dut->qp);
	}
	for (uint32_t i = 0; i < 5; i++) {
		packet = expect_packet(dut, UD(WIRE_SEND_ONLY), DUT_SQ_PSN + i);
		assert_int_equal(packet->dest_qpn, 0x654321);
		assert_int_equal(packet->qkey, 0x22222222);
		assert_int_equal(packet->src_qpn, DUT_QPN);
		assert_false(packet->ack_request);
		assert_int_equal(packet->payload_length, 100);
		expect_pattern(packet->payload, 100, 0);
	}
	expect_silence(dut);
	assert_int_equal(dut->wc_count, 5);
	assert_true(eng_deadline(dut->qp) == ENG_NEVER);
	/* Instead of a Q_Key with the top bit set, that of the queue pair is sent. */
	ud_wqe(dut, 8)->ud.qkey = 0x80000000;
	eng_sq_push(dut->qp);
	assert_int_equal(expect_packet(dut, UD(WIRE_SEND_ONLY), DUT_SQ_PSN + 5)->qkey, QKEY);
}

/* A send error stops only the send queue (SQE); back in RTS new requests are sent. */
static void test_send_error_and_recovery(void **state)
{
	(void)state;
	/* rule S13 test */
	for (int type = ENG_UC; type <= ENG_UD; type++) {
		struct dut *dut = dut_rts((struct dut_config){ .type = (enum eng_qp_type)type });
		uint8_t opcode = type == ENG_UC ? UC(WIRE_SEND_ONLY) : UD(WIRE_SEND_ONLY);
		struct eng_send_wqe *wqe;
		uint64_t wrong, flushed;

		dut_post_recv(dut, 4096);
		ud_or_uc_wqe(dut, 8);
		eng_sq_push(dut->qp);
		expect_packet(dut, opcode, DUT_SQ_PSN);
		expect_wc(dut, 0x1000, ENG_SUCCESS);
		wqe = ud_or_uc_wqe(dut, 8);
		wqe->data.sge[0].lkey = 0xbad;
		wrong = wqe->wr_id;
		eng_sq_push(dut->qp);
		flushed = ud_or_uc_wqe(dut, 8)->wr_id;
		eng_sq_push(dut->qp);
		expect_silence(dut);
		expect_wc(dut, wrong, ENG_LOC_PROT_ERR);
		expect_wc(dut, flushed, ENG_WR_FLUSH_ERR);
		expect_no_wc(dut);
		assert_int_equal(eng_qp_state(dut->qp), ENG_SQE);
		assert_int_equal(eng_ring_used(&dut->rq), 1);
		dut_set_state(dut, ENG_RTS);
		for (uint32_t i = 0; i < 3; i++) {
			const struct wire_packet *packet;

			ud_or_uc_wqe(dut, 100 + i);
			eng_sq_push(dut->qp);
			packet = expect_packet(dut, opcode, DUT_SQ_PSN + 1 + i);
			assert_int_equal(packet->payload_length, 100 + i);
			expect_pattern(packet->payload, 100 + i, 0);
			dut_pull(dut);
			expect_wc(dut, flushed + 1 + i, ENG_SUCCESS);
		}
	}
}

/* A send error after requests that are sent in the same burst: these complete successfully. */
static void test_send_error_behind_others(void **state)
{
	(void)state;
	/* rule S13 test */
	for (int type = ENG_UC; type <= ENG_UD; type++) {
		struct dut *dut = dut_rts((struct dut_config){ .type = (enum eng_qp_type)type });
		uint8_t opcode = type == ENG_UC ? UC(WIRE_SEND_ONLY) : UD(WIRE_SEND_ONLY);
		uint64_t good[2], wrong, flushed;
		struct eng_send_wqe *wqe;

		for (int i = 0; i < 2; i++) {
			good[i] = ud_or_uc_wqe(dut, 8)->wr_id;
			eng_sq_push(dut->qp);
		}
		wqe = ud_or_uc_wqe(dut, 8);
		wqe->data.sge[0].lkey = 0xbad;
		wrong = wqe->wr_id;
		eng_sq_push(dut->qp);
		flushed = ud_or_uc_wqe(dut, 8)->wr_id;
		eng_sq_push(dut->qp);
		expect_packet(dut, opcode, DUT_SQ_PSN);
		expect_packet(dut, opcode, DUT_SQ_PSN + 1);
		expect_silence(dut);
		expect_wc(dut, good[0], ENG_SUCCESS);
		expect_wc(dut, good[1], ENG_SUCCESS);
		expect_wc(dut, wrong, ENG_LOC_PROT_ERR);
		expect_wc(dut, flushed, ENG_WR_FLUSH_ERR);
		expect_no_wc(dut);
		assert_int_equal(eng_qp_state(dut->qp), ENG_SQE);
	}
}

static void hand_out_one_packet(struct dut *dut)
{
	struct eng_burst burst = dut_empty_burst(dut, 1);

	assert_int_equal(dut_transmit(dut, &burst, ENG_REQUESTS), ENG_TX_BURST);
}

/* SQD inside a message: the rest of it is sent, the event is raised, no other request starts. */
static void test_uc_send_queue_drained(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ .type = ENG_UC });
	uint64_t first, second;

	(void)state;
	/* rule C15 test */
	dut->attr->sq_drained_event = true;
	first = dut_post(dut, ENG_SEND, 3 * DUT_MTU, ENG_SIGNALED);
	second = dut_post(dut, ENG_SEND, 8, ENG_SIGNALED);
	hand_out_one_packet(dut);
	dut_set_state(dut, ENG_SQD);
	assert_int_equal(dut_count_events(dut, ENG_EVENT_SQ_DRAINED), 0);
	expect_packet(dut, UC(WIRE_SEND_MIDDLE), DUT_SQ_PSN + 1);
	expect_packet(dut, UC(WIRE_SEND_LAST), DUT_SQ_PSN + 2);
	expect_silence(dut);
	expect_wc(dut, first, ENG_SUCCESS);
	expect_no_wc(dut);
	assert_int_equal(dut_count_events(dut, ENG_EVENT_SQ_DRAINED), 1);
	dut_set_state(dut, ENG_RTS);
	expect_packet(dut, UC(WIRE_SEND_ONLY), DUT_SQ_PSN + 3);
	expect_silence(dut);
	expect_wc(dut, second, ENG_SUCCESS);
	assert_int_equal(dut_count_events(dut, ENG_EVENT_SQ_DRAINED), 1);
}

static struct wire_packet ud_packet(struct dut *dut, uint32_t psn, uint32_t length)
{
	struct wire_packet packet = dut_request(dut, UD(WIRE_SEND_ONLY), psn, length);

	packet.ack_request = false;
	packet.qkey = QKEY;
	packet.src_qpn = 0x77;
	return packet;
}

/* UD: any PSN is accepted; the payload is written after 40 bytes for the GRH. */
static void test_ud_receive(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ .type = ENG_UD });
	struct wire_packet packet;
	const struct eng_wc *wc;

	(void)state;
	/* rule C1 test */
	for (uint32_t i = 0; i < 3; i++) {
		uint64_t recv = dut_post_recv(dut, ENG_GRH_BYTES + 100);

		memset(dut->local, 0, 1000);
		packet = ud_packet(dut, 0x300000 * i, 100);
		dut_give(dut, &packet);
		wc = expect_wc(dut, recv, ENG_SUCCESS);
		assert_int_equal(wc->byte_len, ENG_GRH_BYTES + 100);
		assert_int_equal(wc->src_qpn, 0x77);
		assert_true(wc->flags & ENG_WC_GRH);
		expect_pattern(dut->local + ENG_GRH_BYTES, 100, 0);
		expect_silence(dut);
	}
	/* A packet that finds no receive is dropped. */
	dut_give(dut, &packet);
	expect_silence(dut);
	expect_no_wc(dut);
	assert_int_equal(eng_qp_state(dut->qp), ENG_RTS);
}

/* UD: the Q_Key is checked before anything else. */
static void test_ud_wrong_qkey(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ .type = ENG_UD });
	struct wire_packet packet = ud_packet(dut, 5, 8);
	uint64_t before;

	(void)state;
	/* rule S14 test */
	dut_post_recv(dut, 1000);
	before = dut_info(dut).counters[ENG_COUNT_DROPPED];
	packet.qkey++;
	dut_give(dut, &packet);
	expect_silence(dut);
	expect_no_wc(dut);
	assert_int_equal(eng_ring_used(&dut->rq), 1);
	assert_int_equal(dut_info(dut).counters[ENG_COUNT_DROPPED], before + 1);
}

/*
 * A UD packet that is too long for the receive is dropped, and the receive stays posted for the
 * next packet.  rxe drops it as well and cites C10-93.1.1.
 */
static void test_ud_receive_too_small(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ .type = ENG_UD });
	uint64_t recv = dut_post_recv(dut, ENG_GRH_BYTES + 99);
	struct wire_packet packet = ud_packet(dut, 5, 100);

	(void)state;
	/* rule C18 test */
	memset(dut->local, 0, 1000);
	dut_give(dut, &packet);
	expect_silence(dut);
	expect_no_wc(dut);
	for (unsigned int i = 0; i < 1000; i++)
		assert_int_equal(dut->local[i], 0);
	packet = ud_packet(dut, 6, 99);
	dut_give(dut, &packet);
	assert_int_equal(expect_wc(dut, recv, ENG_SUCCESS)->byte_len, ENG_GRH_BYTES + 99);
	expect_pattern(dut->local + ENG_GRH_BYTES, 99, 0);
	assert_int_equal(dut->local[ENG_GRH_BYTES + 99], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DUT_TEST(test_uc_sends_without_credit), DUT_TEST(test_uc_has_no_reads),
		DUT_TEST(test_uc_receiver_is_silent),	DUT_TEST(test_uc_gap_drops_the_message),
		DUT_TEST(test_uc_bad_requests),		DUT_TEST(test_ud_send),
		DUT_TEST(test_send_error_and_recovery), DUT_TEST(test_send_error_behind_others),
		DUT_TEST(test_uc_send_queue_drained),	DUT_TEST(test_ud_receive),
		DUT_TEST(test_ud_wrong_qkey),		DUT_TEST(test_ud_receive_too_small),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
