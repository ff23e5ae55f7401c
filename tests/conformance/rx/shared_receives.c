/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Receives that belong to no queue pair: shared receive queues and XRC. */
#include "dut.h"

#include <string.h>

#define XRC(operation) ((uint8_t)(WIRE_XRC | (operation)))
#define SRQN 0x00abcd

/* A shared queue of receives of 4096 bytes each, one after the other in local memory. */
static struct {
	unsigned int posted, taken;
	bool refuse;
	uint32_t asked_srqn;
} shared;

static enum eng_rq_result take(void *owner, uint32_t srqn, struct eng_recv_desc *wqe,
			       struct eng_sge *sge)
{
	(void)owner;
	shared.asked_srqn = srqn;
	if (shared.refuse)
		return ENG_RQ_DENIED;
	if (shared.taken == shared.posted)
		return ENG_RQ_EMPTY;
	*wqe = (struct eng_recv_desc){ .wr_id = 0x9000 + shared.taken,
				       .length = 4096,
				       .sge_count = 1 };
	*sge = (struct eng_sge){ DUT_LOCAL_VA + 4096 * shared.taken, 4096, DUT_LKEY };
	shared.taken++;
	return ENG_RQ_OK;
}

static struct dut *sharing(enum eng_qp_type type, unsigned int receives)
{
	struct dut *dut = dut_rts((struct dut_config){ .type = type, .shared = true });

	memset(&shared, 0, sizeof(shared));
	shared.posted = receives;
	dut->ops.get_recv_wqe = take;
	memset(dut->local, 0, DUT_REGION_BYTES);
	return dut;
}

/* Each message uses one receive of the shared queue, and credits are reported as 11111b. */
static void test_taken_from_the_shared_queue(void **state)
{
	struct dut *dut = sharing(ENG_RC, 2);

	(void)state;
	/* rule C7 test, rule S6 test */
	expect_silence(dut);
	dut_give_request(dut, WIRE_SEND_FIRST, DUT_RQ_PSN, DUT_MTU);
	dut_give_request(dut, WIRE_SEND_LAST, DUT_RQ_PSN + 1, 8);
	expect_ack(dut, DUT_RQ_PSN + 1, NO_CREDITS_REPORTED, 1);
	assert_int_equal(expect_wc(dut, 0x9000, ENG_SUCCESS)->byte_len, DUT_MTU + 8);
	expect_pattern(dut->local, DUT_MTU, 0);
	dut_give_request(dut, WIRE_WRITE_ONLY_IMM, DUT_RQ_PSN + 2, 8);
	expect_ack(dut, DUT_RQ_PSN + 2, NO_CREDITS_REPORTED, 2);
	expect_wc(dut, 0x9001, ENG_SUCCESS);
	assert_int_equal(shared.taken, 2);
	expect_silence(dut);
}

/* The shared queue is empty: RNR NAK, nothing executed; filling it sends no update to the peer. */
static void test_shared_queue_is_empty(void **state)
{
	struct dut *dut = sharing(ENG_RC, 0);

	(void)state;
	/* rule C6 test, rule C7 test */
	dut_give_request(dut, WIRE_WRITE_ONLY_IMM, DUT_RQ_PSN, 8);
	expect_ack(dut, DUT_RQ_PSN, RNR_NAK(12), 0);
	assert_int_equal(dut_info(dut).expected_psn, DUT_RQ_PSN);
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN, 8);
	expect_ack(dut, DUT_RQ_PSN, RNR_NAK(12), 0);
	shared.posted = 1;
	expect_silence(dut);
	assert_int_equal(eng_resp_pending(dut->qp), ENG_RESP_NONE);
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN, 8);
	expect_ack(dut, DUT_RQ_PSN, NO_CREDITS_REPORTED, 1);
	expect_wc(dut, 0x9000, ENG_SUCCESS);
}

/* A WRITE with immediate that gets an RNR NAK has not written to memory. */
static void test_rnr_executes_nothing(void **state)
{
	struct dut *dut = sharing(ENG_RC, 0);
	struct wire_packet write = dut_request(dut, WIRE_WRITE_ONLY_IMM, DUT_RQ_PSN, 8);

	(void)state;
	/* rule C6 test */
	dut_give(dut, &write);
	expect_ack(dut, DUT_RQ_PSN, RNR_NAK(12), 0);
	assert_int_equal(dut->remote[0], 0);
	shared.posted = 1;
	dut_give(dut, &write);
	expect_ack(dut, DUT_RQ_PSN, NO_CREDITS_REPORTED, 1);
	expect_pattern(dut->remote, 8, 0);
}

/* In ERR the shared queue keeps its receives; the event shows that the QP uses no more of them. */
static void test_last_wqe_reached(void **state)
{
	struct dut *dut = sharing(ENG_RC, 3);

	(void)state;
	/* rule S13 test */
	dut_give_request(dut, WIRE_SEND_FIRST, DUT_RQ_PSN, DUT_MTU);
	dut_set_state(dut, ENG_ERR);
	expect_wc(dut, 0x9000, ENG_WR_FLUSH_ERR);
	expect_no_wc(dut);
	assert_int_equal(shared.taken, 1);
	assert_int_equal(dut_count_events(dut, ENG_EVENT_LAST_WQE_REACHED), 1);
	dut_set_state(dut, ENG_ERR);
	assert_int_equal(dut_count_events(dut, ENG_EVENT_LAST_WQE_REACHED), 1);
}

/* XRC: the request has the number of the queue; ACKs are XRC packets and report no credits. */
static void test_xrc_receive(void **state)
{
	struct dut *dut = sharing(ENG_XRC_RECV, 1);
	struct wire_packet send = dut_request(dut, XRC(WIRE_SEND_ONLY), DUT_RQ_PSN, 8);
	const struct wire_packet *ack;

	(void)state;
	/* rule C7 test */
	send.xrc_srqn = SRQN;
	dut_give(dut, &send);
	ack = expect_packet(dut, XRC(WIRE_ACKNOWLEDGE), DUT_RQ_PSN);
	assert_int_equal(ack->syndrome, NO_CREDITS_REPORTED);
	assert_int_equal(ack->msn, 1);
	assert_int_equal(shared.asked_srqn, SRQN);
	assert_int_equal(expect_wc(dut, 0x9000, ENG_SUCCESS)->srqn, SRQN);
	send.psn++;
	dut_give(dut, &send);
	ack = expect_packet(dut, XRC(WIRE_ACKNOWLEDGE), DUT_RQ_PSN + 1);
	assert_int_equal(ack->syndrome, RNR_NAK(12));
	expect_silence(dut);
}

/* XRC: a request for a queue that this queue pair may not use is invalid. */
static void test_xrc_refused_queue(void **state)
{
	struct dut *dut = sharing(ENG_XRC_RECV, 1);
	struct wire_packet send = dut_request(dut, XRC(WIRE_SEND_ONLY), DUT_RQ_PSN, 8);

	(void)state;
	/* rule S5 test */
	shared.refuse = true;
	dut_give(dut, &send);
	assert_int_equal(expect_packet(dut, XRC(WIRE_ACKNOWLEDGE), DUT_RQ_PSN)->syndrome,
			 NAK_INVALID);
	assert_int_equal(eng_qp_state(dut->qp), ENG_ERR);
	expect_no_wc(dut);
}

static void give_xrc(struct dut *dut, uint8_t operation, uint32_t psn, uint32_t payload,
		     uint32_t srqn)
{
	struct wire_packet packet = dut_request(dut, XRC(operation), psn, payload);

	if (operation == WIRE_READ_REQUEST)
		packet.dma_length = 8;
	packet.xrc_srqn = srqn;
	dut_give(dut, &packet);
}

/* XRC: a message uses the queue number in its first packet, and ignores that of later packets. */
static void test_xrc_queue_of_a_message(void **state)
{
	struct dut *dut = sharing(ENG_XRC_RECV, 1);

	(void)state;
	/* rule S6 test */
	give_xrc(dut, WIRE_SEND_FIRST, DUT_RQ_PSN, DUT_MTU, SRQN);
	give_xrc(dut, WIRE_SEND_LAST, DUT_RQ_PSN + 1, 8, SRQN + 1);
	assert_int_equal(expect_wc(dut, 0x9000, ENG_SUCCESS)->srqn, SRQN);
}

/* XRC: a READ with another queue number, answered inside a message, does not change its queue. */
static void test_xrc_read_amid_a_message(void **state)
{
	struct dut *dut = sharing(ENG_XRC_RECV, 1);

	(void)state;
	/* rule S6 test, rule S13 test */
	give_xrc(dut, WIRE_READ_REQUEST, DUT_RQ_PSN, 0, SRQN + 1);
	give_xrc(dut, WIRE_SEND_FIRST, DUT_RQ_PSN + 1, DUT_MTU, SRQN);
	expect_packet(dut, XRC(WIRE_READ_RESPONSE_ONLY), DUT_RQ_PSN);
	dut_set_state(dut, ENG_ERR);
	assert_int_equal(expect_wc(dut, 0x9000, ENG_WR_FLUSH_ERR)->srqn, SRQN);
}

/* XRC: every request packet has the number of the peer's queue in its XRCETH. */
static void test_xrc_send(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ .type = ENG_XRC_SEND });
	struct wire_packet ack = dut_packet(dut, XRC(WIRE_ACKNOWLEDGE), DUT_SQ_PSN - 1);
	struct eng_send_wqe *wqe;
	uint64_t id;

	(void)state;
	/* rule C7 test, rule S9 test */
	ack.syndrome = NO_CREDITS_REPORTED;
	dut_give(dut, &ack);
	wqe = dut_wqe(dut, ENG_SEND, 3 * DUT_MTU, ENG_SIGNALED);
	wqe->xrc_srqn = SRQN;
	id = wqe->wr_id;
	eng_sq_push(dut->qp);
	assert_int_equal(expect_packet(dut, XRC(WIRE_SEND_FIRST), DUT_SQ_PSN)->xrc_srqn, SRQN);
	assert_int_equal(expect_packet(dut, XRC(WIRE_SEND_MIDDLE), DUT_SQ_PSN + 1)->xrc_srqn, SRQN);
	assert_int_equal(expect_packet(dut, XRC(WIRE_SEND_LAST), DUT_SQ_PSN + 2)->xrc_srqn, SRQN);
	/* An RC Acknowledge is not valid for an XRC queue pair. */
	dut_ack(dut, DUT_SQ_PSN + 2, NO_CREDITS_REPORTED, 1);
	expect_no_wc(dut);
	ack.psn = DUT_SQ_PSN + 2;
	ack.msn = 1;
	dut_give(dut, &ack);
	expect_wc(dut, id, ENG_SUCCESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DUT_TEST(test_taken_from_the_shared_queue),
		DUT_TEST(test_shared_queue_is_empty),
		DUT_TEST(test_rnr_executes_nothing),
		DUT_TEST(test_last_wqe_reached),
		DUT_TEST(test_xrc_receive),
		DUT_TEST(test_xrc_refused_queue),
		DUT_TEST(test_xrc_queue_of_a_message),
		DUT_TEST(test_xrc_read_amid_a_message),
		DUT_TEST(test_xrc_send),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
