/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Receives that belong to no queue pair: shared receive queues and XRC. */
#include "peer.h"

#include <string.h>

#define XRC(operation) ((uint8_t)(WIRE_XRC | (operation)))
#define SRQN 0x00abcd

/* A shared queue of receives of 4096 bytes each, one behind the other in local memory. */
static struct {
	unsigned int posted, taken;
	bool refuse;
	uint32_t asked_srqn;
} shared;

static enum eng_take take(void *owner, uint32_t srqn, struct eng_taken *wqe, struct eng_sge *sge)
{
	(void)owner;
	shared.asked_srqn = srqn;
	if (shared.refuse)
		return ENG_TAKE_REFUSED;
	if (shared.taken == shared.posted)
		return ENG_TAKE_EMPTY;
	*wqe = (struct eng_taken){ .wr_id = 0x9000 + shared.taken, .length = 4096, .sge_count = 1 };
	*sge = (struct eng_sge){ PEER_LOCAL_VA + 4096 * shared.taken, 4096, PEER_LKEY };
	shared.taken++;
	return ENG_TAKEN;
}

static struct peer *sharing(enum eng_qp_type type, unsigned int receives)
{
	struct peer *peer = peer_rts((struct peer_config){ .type = type, .shared = true });

	memset(&shared, 0, sizeof(shared));
	shared.posted = receives;
	peer->ops.take_receive = take;
	memset(peer->local, 0, PEER_REGION_BYTES);
	return peer;
}

/* Each message takes one receive of the shared queue, and 11111b is all that is said of them. */
static void test_taken_from_the_shared_queue(void **state)
{
	struct peer *peer = sharing(ENG_RC, 2);

	(void)state;
	/* rule C7 test, rule S6 test */
	expect_silence(peer);
	peer_give_request(peer, WIRE_SEND_FIRST, PEER_RQ_PSN, PEER_MTU);
	peer_give_request(peer, WIRE_SEND_LAST, PEER_RQ_PSN + 1, 8);
	expect_ack(peer, PEER_RQ_PSN + 1, NO_CREDITS_REPORTED, 1);
	assert_int_equal(expect_wc(peer, 0x9000, ENG_SUCCESS)->byte_len, PEER_MTU + 8);
	expect_pattern(peer->local, PEER_MTU, 0);
	peer_give_request(peer, WIRE_WRITE_ONLY_IMM, PEER_RQ_PSN + 2, 8);
	expect_ack(peer, PEER_RQ_PSN + 2, NO_CREDITS_REPORTED, 2);
	expect_wc(peer, 0x9001, ENG_SUCCESS);
	assert_int_equal(shared.taken, 2);
	expect_silence(peer);
}

/* The shared queue is empty: RNR, nothing executed; when it is filled, nobody is told. */
static void test_shared_queue_is_empty(void **state)
{
	struct peer *peer = sharing(ENG_RC, 0);

	(void)state;
	/* rule C6 test, rule C7 test */
	peer_give_request(peer, WIRE_WRITE_ONLY_IMM, PEER_RQ_PSN, 8);
	expect_ack(peer, PEER_RQ_PSN, RNR_NAK(12), 0);
	assert_int_equal(peer_view(peer).expected_psn, PEER_RQ_PSN);
	peer_give_request(peer, WIRE_SEND_ONLY, PEER_RQ_PSN, 8);
	expect_ack(peer, PEER_RQ_PSN, RNR_NAK(12), 0);
	shared.posted = 1;
	expect_silence(peer);
	assert_int_equal(eng_owed(peer->qp), ENG_OWED_NOTHING);
	peer_give_request(peer, WIRE_SEND_ONLY, PEER_RQ_PSN, 8);
	expect_ack(peer, PEER_RQ_PSN, NO_CREDITS_REPORTED, 1);
	expect_wc(peer, 0x9000, ENG_SUCCESS);
}

/* An RNR NAK leaves the memory alone, also when the WRITE comes before the immediate. */
static void test_rnr_executes_nothing(void **state)
{
	struct peer *peer = sharing(ENG_RC, 0);
	struct wire_packet write = peer_request(peer, WIRE_WRITE_ONLY_IMM, PEER_RQ_PSN, 8);

	(void)state;
	/* rule C6 test */
	peer_give(peer, &write);
	expect_ack(peer, PEER_RQ_PSN, RNR_NAK(12), 0);
	assert_int_equal(peer->remote[0], 0);
	shared.posted = 1;
	peer_give(peer, &write);
	expect_ack(peer, PEER_RQ_PSN, NO_CREDITS_REPORTED, 1);
	expect_pattern(peer->remote, 8, 0);
}

/* In ERR the shared queue keeps its receives; the event says that none will come any more. */
static void test_last_wqe_reached(void **state)
{
	struct peer *peer = sharing(ENG_RC, 3);

	(void)state;
	/* rule S13 test */
	peer_give_request(peer, WIRE_SEND_FIRST, PEER_RQ_PSN, PEER_MTU);
	peer_set_state(peer, ENG_ERR);
	expect_wc(peer, 0x9000, ENG_WR_FLUSH_ERR);
	expect_no_wc(peer);
	assert_int_equal(shared.taken, 1);
	assert_int_equal(peer_count_events(peer, ENG_EVENT_LAST_WQE_REACHED), 1);
	peer_set_state(peer, ENG_ERR);
	assert_int_equal(peer_count_events(peer, ENG_EVENT_LAST_WQE_REACHED), 1);
}

/* XRC: the packet names the queue; ACKs are XRC packets and report no credits. */
static void test_xrc_receive(void **state)
{
	struct peer *peer = sharing(ENG_XRC_RECV, 1);
	struct wire_packet send = peer_request(peer, XRC(WIRE_SEND_ONLY), PEER_RQ_PSN, 8);
	const struct wire_packet *ack;

	(void)state;
	/* rule C7 test */
	send.xrc_srqn = SRQN;
	peer_give(peer, &send);
	ack = expect_packet(peer, XRC(WIRE_ACKNOWLEDGE), PEER_RQ_PSN);
	assert_int_equal(ack->syndrome, NO_CREDITS_REPORTED);
	assert_int_equal(ack->msn, 1);
	assert_int_equal(shared.asked_srqn, SRQN);
	assert_int_equal(expect_wc(peer, 0x9000, ENG_SUCCESS)->srqn, SRQN);
	send.psn++;
	peer_give(peer, &send);
	ack = expect_packet(peer, XRC(WIRE_ACKNOWLEDGE), PEER_RQ_PSN + 1);
	assert_int_equal(ack->syndrome, RNR_NAK(12));
	expect_silence(peer);
}

/* A queue that this queue pair may not use: invalid request. */
static void test_xrc_refused_queue(void **state)
{
	struct peer *peer = sharing(ENG_XRC_RECV, 1);
	struct wire_packet send = peer_request(peer, XRC(WIRE_SEND_ONLY), PEER_RQ_PSN, 8);

	(void)state;
	/* rule S5 test */
	shared.refuse = true;
	peer_give(peer, &send);
	assert_int_equal(expect_packet(peer, XRC(WIRE_ACKNOWLEDGE), PEER_RQ_PSN)->syndrome,
			 NAK_INVALID);
	assert_int_equal(eng_qp_state(peer->qp), ENG_ERR);
	expect_no_wc(peer);
}

/* XRC requests name the peer's queue in every packet that the specification gives an XRCETH. */
static void test_xrc_send(void **state)
{
	struct peer *peer = peer_rts((struct peer_config){ .type = ENG_XRC_SEND });
	struct wire_packet ack = peer_packet(peer, XRC(WIRE_ACKNOWLEDGE), PEER_SQ_PSN - 1);
	struct eng_send_wqe *wqe;
	uint64_t id;

	(void)state;
	/* rule C7 test, rule S9 test */
	ack.syndrome = NO_CREDITS_REPORTED;
	peer_give(peer, &ack);
	wqe = peer_wqe(peer, ENG_SEND, 3 * PEER_MTU, ENG_SIGNALED);
	wqe->xrc_srqn = SRQN;
	id = wqe->wr_id;
	eng_sq_push(peer->qp);
	assert_int_equal(expect_packet(peer, XRC(WIRE_SEND_FIRST), PEER_SQ_PSN)->xrc_srqn, SRQN);
	assert_int_equal(expect_packet(peer, XRC(WIRE_SEND_MIDDLE), PEER_SQ_PSN + 1)->xrc_srqn,
			 SRQN);
	assert_int_equal(expect_packet(peer, XRC(WIRE_SEND_LAST), PEER_SQ_PSN + 2)->xrc_srqn, SRQN);
	/* An RC answer is not for an XRC queue pair. */
	peer_ack(peer, PEER_SQ_PSN + 2, NO_CREDITS_REPORTED, 1);
	expect_no_wc(peer);
	ack.psn = PEER_SQ_PSN + 2;
	ack.msn = 1;
	peer_give(peer, &ack);
	expect_wc(peer, id, ENG_SUCCESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PEER_TEST(test_taken_from_the_shared_queue),
		PEER_TEST(test_shared_queue_is_empty),
		PEER_TEST(test_rnr_executes_nothing),
		PEER_TEST(test_last_wqe_reached),
		PEER_TEST(test_xrc_receive),
		PEER_TEST(test_xrc_refused_queue),
		PEER_TEST(test_xrc_send),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
