/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Effects of the states of a queue pair on its work requests and packets. */
#include "dut.h"

#include <string.h>

/* State, numbers and credits of a new queue pair. */
static void test_creation(void **state)
{
	struct dut *dut = dut_new((struct dut_config){ 0 });
	struct eng_qp_info view = dut_info(dut);

	(void)state;
	/* rule C5 test, rule C11 test */
	assert_int_equal(view.state, ENG_RESET);
	assert_int_equal(view.qpn, DUT_QPN);
	assert_int_equal(view.msn + view.ssn + view.sent_ssn + view.lsn, 0);
	assert_int_equal(view.credits_now + view.credits_last_known, 0);
	assert_false(view.unlimited || view.credits_known);
	expect_silence(dut);
	assert_int_equal(dut->why, ENG_TX_STATE);
	assert_true(eng_deadline(dut->qp) == ENG_NEVER);
	assert_int_equal(eng_resp_pending(dut->qp), ENG_RESP_NONE);
}

/* RESET resets everything; the queue pair can be used again as if new. */
static void test_reset_forgets(void **state)
{
	struct dut *dut = dut_unlimited((struct dut_config){ 0 });

	(void)state;
	/* rule C5 test */
	dut_post_recv(dut, 4096);
	dut_post(dut, ENG_SEND, 8, ENG_SIGNALED);
	dut_post(dut, ENG_READ, 8, ENG_SIGNALED);
	dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN, 8);
	dut_give_request(dut, WIRE_SEND_FIRST, DUT_RQ_PSN + 1, DUT_MTU);
	dut_forget(dut);
	dut_give_request(dut, WIRE_WRITE_MIDDLE, DUT_RQ_PSN + 5, DUT_MTU);
	dut_set_state(dut, ENG_RESET);
	expect_no_wc(dut);
	expect_silence(dut);
	assert_true(eng_deadline(dut->qp) == ENG_NEVER);
	assert_int_equal(dut_info(dut).credits_now + dut_info(dut).ssn, 0);
	assert_false(dut_info(dut).unlimited || dut_info(dut).credits_known);

	dut->attr->sq_psn = 0x500;
	dut->attr->rq_psn = 0x600;
	dut_raise(dut, ENG_RTS);
	expect_silence(dut);
	dut_post_recv(dut, 64);
	expect_ack(dut, 0x5ff, ACK_CODE(1), 0);
	dut_give_request(dut, WIRE_SEND_ONLY, 0x600, 8);
	expect_ack(dut, 0x600, ACK_CODE(0), 1);
	dut_post(dut, ENG_SEND, 2 * DUT_MTU, ENG_SIGNALED);
	assert_int_equal(dut_info(dut).ssn, 1);
	assert_true(expect_packet(dut, WIRE_SEND_FIRST, 0x500)->ack_request);
	expect_silence(dut); /* limited again */
}

/* In RESET and INIT no packet is sent, and received ones are ignored. */
static void test_silent_before_rtr(void **state)
{
	struct dut *dut = dut_new((struct dut_config){ 0 });

	(void)state;
	/* rule S14 test */
	for (enum eng_qp_state s = ENG_RESET; s <= ENG_INIT; s++) {
		dut_raise(dut, s);
		dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN, 8);
		dut_give_read(dut, DUT_RQ_PSN, 0, 8);
		dut_ack(dut, DUT_SQ_PSN - 1, ACK_CODE(5), 0);
		expect_silence(dut);
	}
	assert_int_equal(dut->remote[0], 0);
	assert_int_equal(dut->event_count, 0);
}

/* In ERR both queues are flushed, each in order; requests posted later are flushed as well. */
static void test_error_flushes_in_order(void **state)
{
	struct dut *dut = dut_unlimited((struct dut_config){ 0 });
	uint64_t sends[3], recvs[3];
	unsigned int sends_seen = 0, recvs_seen = 0;

	(void)state;
	/* rule S13 test */
	for (int i = 0; i < 3; i++) {
		sends[i] = dut_post(dut, i == 1 ? ENG_READ : ENG_SEND, 8, 0);
		recvs[i] = dut_post_recv(dut, 64);
	}
	dut_give_request(dut, WIRE_SEND_FIRST, DUT_RQ_PSN, DUT_MTU > 64 ? 64 : 0);
	dut_forget(dut);
	assert_int_equal(eng_qp_state(dut->qp), ENG_ERR); /* a First shorter than the MTU */
	assert_int_equal(dut->wc_count, 6);
	for (unsigned int i = 0; i < dut->wc_count; i++) {
		const struct eng_wc *wc = &dut->wcs[i];

		assert_int_equal(wc->status, ENG_WR_FLUSH_ERR);
		if (wc->receive)
			assert_true(wc->wr_id == recvs[recvs_seen++]);
		else
			assert_true(wc->wr_id == sends[sends_seen++]);
	}
	dut->wc_read = dut->wc_count;
	sends[0] = dut_post(dut, ENG_WRITE, 8, 0);
	recvs[0] = dut_post_recv(dut, 64);
	eng_flush(dut->qp);
	expect_wc(dut, sends[0], ENG_WR_FLUSH_ERR);
	expect_wc(dut, recvs[0], ENG_WR_FLUSH_ERR);
	expect_no_wc(dut);
	expect_silence(dut);
	assert_int_equal(dut->why, ENG_TX_STATE);
}

/* Moved to ERR by the application: requests are flushed, and no packet is sent. */
static void test_error_by_request(void **state)
{
	struct dut *dut = dut_unlimited((struct dut_config){ 0 });
	uint64_t first, second, recv;

	(void)state;
	/* rule S13 test */
	first = dut_post(dut, ENG_SEND, 8, 0);
	second = dut_post(dut, ENG_SEND, 8, ENG_SIGNALED);
	recv = dut_post_recv(dut, 64);
	dut_forget(dut);
	dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN, 8);
	dut_give_read(dut, DUT_RQ_PSN + 1, 0, 8);
	dut_set_state(dut, ENG_ERR);
	expect_wc(dut, first, ENG_WR_FLUSH_ERR);
	expect_wc(dut, second, ENG_WR_FLUSH_ERR);
	expect_wc(dut, recv, ENG_WR_FLUSH_ERR);
	expect_no_wc(dut);
	expect_silence(dut);
	dut_ack(dut, DUT_SQ_PSN + 1, NO_CREDITS_REPORTED, 2);
	dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN + 2, 8);
	expect_silence(dut);
	expect_no_wc(dut);
	assert_true(eng_deadline(dut->qp) == ENG_NEVER);
	/* Entering ERR again completes nothing twice. */
	dut_set_state(dut, ENG_ERR);
	expect_no_wc(dut);
}

/* Before RTR there is neither a path MTU nor a PSN: requests of any length are flushed in ERR. */
static void test_error_before_connection(void **state)
{
	static const enum eng_qp_type types[] = { ENG_RC, ENG_UC, ENG_UD, ENG_XRC_SEND };
	static const enum eng_op ops[] = { ENG_SEND,	  ENG_WRITE_IMM, ENG_READ,
					   ENG_FETCH_ADD, ENG_BIND_MW,	 ENG_LOCAL_INV };
	static const uint32_t lengths[] = { 0, 8, DUT_REGION_BYTES };

	(void)state;
	/* rule S13 test */
	for (unsigned int i = 0; i < 2 * sizeof(types) / sizeof(types[0]); i++) {
		struct dut *dut = dut_new((struct dut_config){ .type = types[i / 2] });

		dut->attr->mtu = 0;
		dut_raise(dut, i % 2 ? ENG_INIT : ENG_RESET);
		for (unsigned int life = 0; life < 2; life++) {
			dut_set_state(dut, ENG_ERR);
			for (unsigned int j = 0; j < sizeof(ops) / sizeof(ops[0]) * 3; j++) {
				uint64_t sent = dut_post(dut, ops[j / 3], lengths[j % 3], 0);

				eng_flush(dut->qp);
				expect_wc(dut, sent, ENG_WR_FLUSH_ERR);
			}
			expect_no_wc(dut);
			expect_silence(dut);
			dut_set_state(dut, ENG_RESET);
		}
		dut_teardown(NULL);
	}
}

/* When the QP's own request has failed, a pending READ response is not sent any more. */
static void test_silent_after_send_error(void **state)
{
	struct dut *dut = dut_unlimited((struct dut_config){ 0 });
	uint64_t failed = dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED);

	(void)state;
	/* rule S13 test */
	expect_packet(dut, WIRE_WRITE_ONLY, DUT_SQ_PSN);
	dut_give_read(dut, DUT_RQ_PSN, 0, 8);
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN + 2, 8);
	dut_nak(dut, DUT_SQ_PSN, NAK_ACCESS, 0);
	expect_wc(dut, failed, ENG_REM_ACCESS_ERR);
	assert_int_equal(eng_qp_state(dut->qp), ENG_ERR);
	expect_silence(dut);
}

/* The receive of a message received in part when the QP fails is flushed, once and first. */
static void test_receive_under_way_is_flushed(void **state)
{
	struct dut *dut = dut_unlimited((struct dut_config){ 0 });
	uint64_t taken = dut_post_recv(dut, 4096), next = dut_post_recv(dut, 4096);

	(void)state;
	/* rule S13 test */
	dut_forget(dut);
	dut_give_request(dut, WIRE_SEND_FIRST, DUT_RQ_PSN, DUT_MTU);
	dut_set_state(dut, ENG_ERR);
	expect_wc(dut, taken, ENG_WR_FLUSH_ERR);
	expect_wc(dut, next, ENG_WR_FLUSH_ERR);
	expect_no_wc(dut);
}

/* Receives of an SRQ are not flushed, except that of a message received in part. */
static void test_shared_receives_stay(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ .shared = true });
	uint64_t taken = dut_post_recv(dut, 4096);

	(void)state;
	/* rule S13 test, rule C7 test */
	dut_post_recv(dut, 4096);
	dut_give_request(dut, WIRE_SEND_FIRST, DUT_RQ_PSN, DUT_MTU);
	dut_set_state(dut, ENG_ERR);
	expect_wc(dut, taken, ENG_WR_FLUSH_ERR);
	expect_no_wc(dut);
	assert_int_equal(eng_ring_used(&dut->rq), 1);
	dut_set_state(dut, ENG_RESET);
	assert_int_equal(eng_ring_used(&dut->rq), 1);
}

/* SQD: started requests complete, no other starts, the event is raised; RTS resumes sending. */
static void test_send_queue_drained(void **state)
{
	struct dut *dut = dut_unlimited((struct dut_config){ .mtu = 256, .cwnd = 1 });
	uint64_t first, second;

	(void)state;
	/* rule S9 test, rule C15 test */
	dut->attr->sq_drained_event = true;
	first = dut_post(dut, ENG_SEND, 4 * 256, ENG_SIGNALED);
	dut_forget(dut);
	second = dut_post(dut, ENG_SEND, 256, ENG_SIGNALED);
	dut_set_state(dut, ENG_SQD);
	expect_silence(dut);
	assert_int_equal(dut->why, ENG_TX_DRAINED);
	assert_int_equal(dut_count_events(dut, ENG_EVENT_SQ_DRAINED), 0);
	/* Lost packets are retransmitted, and requests of the peer are executed. */
	dut_nak(dut, DUT_SQ_PSN + 1, NAK_SEQUENCE, 0);
	expect_packet(dut, WIRE_SEND_MIDDLE, DUT_SQ_PSN + 1);
	expect_packet(dut, WIRE_SEND_MIDDLE, DUT_SQ_PSN + 2);
	expect_packet(dut, WIRE_SEND_LAST, DUT_SQ_PSN + 3);
	dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN, 8);
	expect_ack(dut, DUT_RQ_PSN, ACK_CODE(0), 1);
	dut_ack(dut, DUT_SQ_PSN + 3, NO_CREDITS_REPORTED, 1);
	expect_wc(dut, first, ENG_SUCCESS);
	expect_no_wc(dut);
	assert_int_equal(dut_count_events(dut, ENG_EVENT_SQ_DRAINED), 1);
	expect_silence(dut);
	dut_set_state(dut, ENG_RTS);
	expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN + 4);
	dut_ack(dut, DUT_SQ_PSN + 4, NO_CREDITS_REPORTED, 2);
	expect_wc(dut, second, ENG_SUCCESS);
	assert_int_equal(dut_count_events(dut, ENG_EVENT_SQ_DRAINED), 1);
}

/* SQD with nothing in flight is drained at once; the event is raised only if requested. */
static void test_drained_at_once(void **state)
{
	(void)state;
	for (int wanted = 0; wanted < 2; wanted++) {
		struct dut *dut = dut_unlimited((struct dut_config){ 0 });

		/* rule S9 test */
		dut->attr->sq_drained_event = wanted;
		dut_post(dut, ENG_SEND, 8, 0);
		dut_set_state(dut, ENG_SQD);
		assert_int_equal(dut_count_events(dut, ENG_EVENT_SQ_DRAINED), wanted);
		expect_silence(dut);
		dut_set_state(dut, ENG_RTS);
		expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN);
		/* A second transition to SQD raises the event again. */
		dut_ack(dut, DUT_SQ_PSN, NO_CREDITS_REPORTED, 1);
		dut_set_state(dut, ENG_SQD);
		assert_int_equal(dut_count_events(dut, ENG_EVENT_SQ_DRAINED), 2 * wanted);
	}
}

/* A limited SEND that has been started completes while the send queue is drained. */
static void test_limited_send_in_sqd(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });

	(void)state;
	/* rule C13 test */
	dut->attr->sq_drained_event = true;
	dut_post(dut, ENG_SEND, 3 * DUT_MTU, ENG_SIGNALED);
	expect_packet(dut, WIRE_SEND_FIRST, DUT_SQ_PSN);
	dut_set_state(dut, ENG_SQD);
	assert_int_equal(dut_count_events(dut, ENG_EVENT_SQ_DRAINED), 0);
	dut_ack(dut, DUT_SQ_PSN, ACK_CODE(0), 0);
	expect_packet(dut, WIRE_SEND_MIDDLE, DUT_SQ_PSN + 1);
	expect_packet(dut, WIRE_SEND_LAST, DUT_SQ_PSN + 2);
	dut_ack(dut, DUT_SQ_PSN + 2, ACK_CODE(0), 1);
	assert_int_equal(dut_count_events(dut, ENG_EVENT_SQ_DRAINED), 1);
}

/*
 * The first request raises COMM_EST while the queue pair is in RTR, where nothing else shows that
 * the peer is ready; a queue pair in RTS does not need the event, and it would delay others.
 */
static void test_established_in_rtr_only(void **state)
{
	static const enum eng_qp_type types[] = { ENG_RC, ENG_UC, ENG_XRC_RECV };

	(void)state;
	for (unsigned int i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		for (enum eng_qp_state in = ENG_RTR; in <= ENG_SQD; in++) {
			struct dut *dut = dut_new((struct dut_config){ .type = types[i] });
			uint8_t opcode = (types[i] == ENG_UC	     ? WIRE_UC
					  : types[i] == ENG_XRC_RECV ? WIRE_XRC
								     : WIRE_RC) |
					 WIRE_WRITE_ONLY;

			dut_raise(dut, in < ENG_SQD ? in : ENG_RTS);
			if (in == ENG_SQD)
				dut_set_state(dut, in);
			dut_give_request(dut, opcode, DUT_RQ_PSN, 8);
			expect_pattern(dut->remote, 8, 0);
			assert_int_equal(dut_count_events(dut, ENG_EVENT_COMM_EST), in == ENG_RTR);
			assert_int_equal(dut_count_events(dut, ENG_EVENT_FIRST_REQUEST),
					 in != ENG_RTR);
			/* Later requests raise no event. */
			dut_give_request(dut, opcode, DUT_RQ_PSN + 1, 8);
			if (in == ENG_RTR)
				dut_set_state(dut, ENG_RTS);
			dut_give_request(dut, opcode, DUT_RQ_PSN + 2, 8);
			assert_int_equal(dut->event_count, 1);
			dut_teardown(NULL);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DUT_TEST(test_creation),
		DUT_TEST(test_reset_forgets),
		DUT_TEST(test_silent_before_rtr),
		DUT_TEST(test_error_flushes_in_order),
		DUT_TEST(test_error_by_request),
		DUT_TEST(test_error_before_connection),
		DUT_TEST(test_silent_after_send_error),
		DUT_TEST(test_receive_under_way_is_flushed),
		DUT_TEST(test_shared_receives_stay),
		DUT_TEST(test_send_queue_drained),
		DUT_TEST(test_drained_at_once),
		DUT_TEST(test_limited_send_in_sqd),
		DUT_TEST(test_established_in_rtr_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
