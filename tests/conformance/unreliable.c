/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* UC and UD: no credits, no acknowledgements, no retries. */
#include "peer.h"

#include <string.h>

#define UC(operation) ((uint8_t)(WIRE_UC | (operation)))
#define UD(operation) ((uint8_t)(WIRE_UD | (operation)))
#define QKEY 0x11111111

/* UC sends everything at once and completes it; no AckReq, no timer, no limit. */
static void test_uc_sends_without_credit(void **state)
{
	struct peer *peer = peer_rts((struct peer_config){ .type = ENG_UC });

	(void)state;
	/* rule C1 test */
	for (int i = 0; i < 10; i++)
		peer_post(peer, i & 1 ? ENG_WRITE_IMM : ENG_SEND, 3 * PEER_MTU, ENG_SIGNALED);
	for (uint32_t i = 0; i < 10; i++) {
		uint8_t write = i & 1;

		expect_packet(peer, write ? UC(WIRE_WRITE_FIRST) : UC(WIRE_SEND_FIRST),
			      PEER_SQ_PSN + 3 * i);
		expect_packet(peer, write ? UC(WIRE_WRITE_MIDDLE) : UC(WIRE_SEND_MIDDLE),
			      PEER_SQ_PSN + 3 * i + 1);
		assert_false(expect_packet(peer,
					   write ? UC(WIRE_WRITE_LAST_IMM) : UC(WIRE_SEND_LAST),
					   PEER_SQ_PSN + 3 * i + 2)
				     ->ack_request);
	}
	expect_silence(peer);
	assert_int_equal(peer->wc_count, 10);
	for (int i = 0; i < 10; i++)
		assert_int_equal(peer->wcs[i].status, ENG_SUCCESS);
	assert_int_equal(eng_in_flight(peer->qp), 0);
	assert_true(eng_deadline(peer->qp) == ENG_NEVER);
}

/* READ and Atomics do not exist on UC. */
static void test_uc_has_no_reads(void **state)
{
	static const enum eng_op ops[] = { ENG_READ, ENG_FETCH_ADD, ENG_COMPARE_SWAP };

	(void)state;
	/* rule S13 test */
	for (int i = 0; i < 3; i++) {
		struct peer *peer = peer_rts((struct peer_config){ .type = ENG_UC });
		uint64_t id = peer_post(peer, ops[i], 8, 0);

		expect_silence(peer);
		expect_wc(peer, id, ENG_LOC_QP_OP_ERR);
		expect_no_wc(peer);
	}
}

/* The UC receiver reports nothing: no ACK, no credits, no NAK. */
static void test_uc_receiver_is_silent(void **state)
{
	struct peer *peer = peer_rts((struct peer_config){ .type = ENG_UC });
	uint64_t recv = peer_post_recv(peer, 4096);

	(void)state;
	/* rule C1 test */
	expect_silence(peer);
	memset(peer->local, 0, 4096);
	peer_give_request(peer, UC(WIRE_SEND_FIRST), PEER_RQ_PSN, PEER_MTU);
	peer_give_request(peer, UC(WIRE_SEND_LAST), PEER_RQ_PSN + 1, 8);
	assert_int_equal(expect_wc(peer, recv, ENG_SUCCESS)->byte_len, PEER_MTU + 8);
	expect_pattern(peer->local, PEER_MTU, 0);
	peer_give_request(peer, UC(WIRE_WRITE_ONLY), PEER_RQ_PSN + 2, 8);
	expect_pattern(peer->remote, 8, 0);
	/* Nothing to receive into: dropped. */
	peer_give_request(peer, UC(WIRE_SEND_ONLY), PEER_RQ_PSN + 3, 8);
	expect_silence(peer);
	expect_no_wc(peer);
	assert_int_equal(eng_owed(peer->qp), ENG_OWED_NOTHING);
	/* The next message, with a receive, is taken. */
	recv = peer_post_recv(peer, 4096);
	peer_give_request(peer, UC(WIRE_SEND_ONLY), PEER_RQ_PSN + 4, 8);
	expect_wc(peer, recv, ENG_SUCCESS);
	expect_silence(peer);
}

/* A gap breaks the message; the next First or Only begins anew, with the same receive WQE. */
static void test_uc_gap_drops_the_message(void **state)
{
	struct peer *peer = peer_rts((struct peer_config){ .type = ENG_UC });
	uint64_t recv = peer_post_recv(peer, 4096);

	(void)state;
	/* rule C1 test */
	peer_give_request(peer, UC(WIRE_SEND_FIRST), PEER_RQ_PSN, PEER_MTU);
	peer_give_request(peer, UC(WIRE_SEND_LAST), PEER_RQ_PSN + 2, 8);
	expect_no_wc(peer);
	peer_give_request(peer, UC(WIRE_SEND_LAST), PEER_RQ_PSN + 3, 8);
	peer_give_request(peer, UC(WIRE_SEND_MIDDLE), PEER_RQ_PSN + 4, PEER_MTU);
	expect_no_wc(peer);
	peer_give_request(peer, UC(WIRE_SEND_FIRST), PEER_RQ_PSN + 10, PEER_MTU);
	peer_give_request(peer, UC(WIRE_SEND_LAST), PEER_RQ_PSN + 11, 4);
	assert_int_equal(expect_wc(peer, recv, ENG_SUCCESS)->byte_len, PEER_MTU + 4);
	expect_no_wc(peer);
	expect_silence(peer);
	assert_int_equal(eng_qp_state(peer->qp), ENG_RTS);
}

/* What the peer may not do on UC is dropped, without a word and without harm. */
static void test_uc_bad_requests(void **state)
{
	struct peer *peer = peer_rts((struct peer_config){ .type = ENG_UC });
	struct wire_packet packet = peer_request(peer, UC(WIRE_WRITE_ONLY), PEER_RQ_PSN, 8);

	(void)state;
	/* rule S5 test */
	packet.rkey = 0xbad;
	peer_give(peer, &packet);
	expect_silence(peer);
	expect_no_wc(peer);
	assert_int_equal(peer->remote[0], 0);
	/* RC packets for a UC queue pair are not for it. */
	peer_give_request(peer, WIRE_WRITE_ONLY, PEER_RQ_PSN + 1, 8);
	peer_give_read(peer, PEER_RQ_PSN + 1, 0, 8);
	expect_silence(peer);
	assert_int_equal(peer->remote[0], 0);
}

static struct eng_send_wqe *ud_wqe(struct peer *peer, uint32_t length)
{
	struct eng_send_wqe *wqe = peer_wqe(peer, ENG_SEND, length, ENG_SIGNALED);

	wqe->ud.path = &peer->attr->path;
	wqe->ud.dest_qpn = 0x654321;
	wqe->ud.qkey = 0x22222222;
	wqe->ud.ah = NULL;
	return wqe;
}

static struct eng_send_wqe *ud_or_uc_wqe(struct peer *peer, uint32_t length)
{
	return peer->config.type == ENG_UD ? ud_wqe(peer, length)
					   : peer_wqe(peer, ENG_SEND, length, ENG_SIGNALED);
}

/* UD: one packet with DETH, complete when it is sent; no limit. */
static void test_ud_send(void **state)
{
	struct peer *peer = peer_rts((struct peer_config){ .type = ENG_UD });
	const struct wire_packet *packet;

	(void)state;
	/* rule C1 test */
	for (int i = 0; i < 5; i++) {
		ud_wqe(peer, 100);
		eng_sq_push(peer->qp);
	}
	for (uint32_t i = 0; i < 5; i++) {
		packet = expect_packet(peer, UD(WIRE_SEND_ONLY), PEER_SQ_PSN + i);
		assert_int_equal(packet->dest_qpn, 0x654321);
		assert_int_equal(packet->qkey, 0x22222222);
		assert_int_equal(packet->src_qpn, PEER_QPN);
		assert_false(packet->ack_request);
		assert_int_equal(packet->payload_length, 100);
		expect_pattern(packet->payload, 100, 0);
	}
	expect_silence(peer);
	assert_int_equal(peer->wc_count, 5);
	assert_true(eng_deadline(peer->qp) == ENG_NEVER);
	/* A Q_Key with the top bit set stands for that of the queue pair. */
	ud_wqe(peer, 8)->ud.qkey = 0x80000000;
	eng_sq_push(peer->qp);
	assert_int_equal(expect_packet(peer, UD(WIRE_SEND_ONLY), PEER_SQ_PSN + 5)->qkey, QKEY);
}

/* A send error stops the send queue alone (SQE); back in RTS new requests go as ever. */
static void test_send_error_and_recovery(void **state)
{
	(void)state;
	/* rule S13 test */
	for (int type = ENG_UC; type <= ENG_UD; type++) {
		struct peer *peer =
			peer_rts((struct peer_config){ .type = (enum eng_qp_type)type });
		uint8_t opcode = type == ENG_UC ? UC(WIRE_SEND_ONLY) : UD(WIRE_SEND_ONLY);
		struct eng_send_wqe *wqe;
		uint64_t wrong, flushed;

		peer_post_recv(peer, 4096);
		ud_or_uc_wqe(peer, 8);
		eng_sq_push(peer->qp);
		expect_packet(peer, opcode, PEER_SQ_PSN);
		expect_wc(peer, 0x1000, ENG_SUCCESS);
		wqe = ud_or_uc_wqe(peer, 8);
		wqe->data.sge[0].lkey = 0xbad;
		wrong = wqe->wr_id;
		eng_sq_push(peer->qp);
		flushed = ud_or_uc_wqe(peer, 8)->wr_id;
		eng_sq_push(peer->qp);
		expect_silence(peer);
		expect_wc(peer, wrong, ENG_LOC_PROT_ERR);
		expect_wc(peer, flushed, ENG_WR_FLUSH_ERR);
		expect_no_wc(peer);
		assert_int_equal(eng_qp_state(peer->qp), ENG_SQE);
		assert_int_equal(eng_ring_used(&peer->rq), 1);
		peer_set_state(peer, ENG_RTS);
		for (uint32_t i = 0; i < 3; i++) {
			const struct wire_packet *packet;

			ud_or_uc_wqe(peer, 100 + i);
			eng_sq_push(peer->qp);
			packet = expect_packet(peer, opcode, PEER_SQ_PSN + 1 + i);
			assert_int_equal(packet->payload_length, 100 + i);
			expect_pattern(packet->payload, 100 + i, 0);
			peer_pull(peer);
			expect_wc(peer, flushed + 1 + i, ENG_SUCCESS);
		}
	}
}

/* The same when the fault stands behind requests that leave in the same run. */
static void test_send_error_behind_others(void **state)
{
	(void)state;
	/* rule S13 test */
	for (int type = ENG_UC; type <= ENG_UD; type++) {
		struct peer *peer =
			peer_rts((struct peer_config){ .type = (enum eng_qp_type)type });
		uint8_t opcode = type == ENG_UC ? UC(WIRE_SEND_ONLY) : UD(WIRE_SEND_ONLY);
		uint64_t good[2], wrong, flushed;
		struct eng_send_wqe *wqe;

		for (int i = 0; i < 2; i++) {
			good[i] = ud_or_uc_wqe(peer, 8)->wr_id;
			eng_sq_push(peer->qp);
		}
		wqe = ud_or_uc_wqe(peer, 8);
		wqe->data.sge[0].lkey = 0xbad;
		wrong = wqe->wr_id;
		eng_sq_push(peer->qp);
		flushed = ud_or_uc_wqe(peer, 8)->wr_id;
		eng_sq_push(peer->qp);
		expect_packet(peer, opcode, PEER_SQ_PSN);
		expect_packet(peer, opcode, PEER_SQ_PSN + 1);
		expect_silence(peer);
		expect_wc(peer, good[0], ENG_SUCCESS);
		expect_wc(peer, good[1], ENG_SUCCESS);
		expect_wc(peer, wrong, ENG_LOC_PROT_ERR);
		expect_wc(peer, flushed, ENG_WR_FLUSH_ERR);
		expect_no_wc(peer);
		assert_int_equal(eng_qp_state(peer->qp), ENG_SQE);
	}
}

static void hand_out_one_packet(struct peer *peer)
{
	struct eng_run run = peer_empty_run(peer, 1);

	assert_int_equal(peer_transmit(peer, &run, ENG_REQUESTS), ENG_TX_RUN);
}

/* SQD in the middle of a message: its rest is sent, then comes the event; nothing new begins. */
static void test_uc_send_queue_drained(void **state)
{
	struct peer *peer = peer_rts((struct peer_config){ .type = ENG_UC });
	uint64_t first, second;

	(void)state;
	/* rule C15 test */
	peer->attr->sq_drained_event = true;
	first = peer_post(peer, ENG_SEND, 3 * PEER_MTU, ENG_SIGNALED);
	second = peer_post(peer, ENG_SEND, 8, ENG_SIGNALED);
	hand_out_one_packet(peer);
	peer_set_state(peer, ENG_SQD);
	assert_int_equal(peer_count_events(peer, ENG_EVENT_SQ_DRAINED), 0);
	expect_packet(peer, UC(WIRE_SEND_MIDDLE), PEER_SQ_PSN + 1);
	expect_packet(peer, UC(WIRE_SEND_LAST), PEER_SQ_PSN + 2);
	expect_silence(peer);
	expect_wc(peer, first, ENG_SUCCESS);
	expect_no_wc(peer);
	assert_int_equal(peer_count_events(peer, ENG_EVENT_SQ_DRAINED), 1);
	peer_set_state(peer, ENG_RTS);
	expect_packet(peer, UC(WIRE_SEND_ONLY), PEER_SQ_PSN + 3);
	expect_silence(peer);
	expect_wc(peer, second, ENG_SUCCESS);
	assert_int_equal(peer_count_events(peer, ENG_EVENT_SQ_DRAINED), 1);
}

static struct wire_packet ud_packet(struct peer *peer, uint32_t psn, uint32_t length)
{
	struct wire_packet packet = peer_request(peer, UD(WIRE_SEND_ONLY), psn, length);

	packet.ack_request = false;
	packet.qkey = QKEY;
	packet.src_qpn = 0x77;
	return packet;
}

/* UD: any PSN is taken; the payload stands behind 40 bytes of GRH. */
static void test_ud_receive(void **state)
{
	struct peer *peer = peer_rts((struct peer_config){ .type = ENG_UD });
	struct wire_packet packet;
	const struct eng_wc *wc;

	(void)state;
	/* rule C1 test */
	for (uint32_t i = 0; i < 3; i++) {
		uint64_t recv = peer_post_recv(peer, ENG_GRH_BYTES + 100);

		memset(peer->local, 0, 1000);
		packet = ud_packet(peer, 0x300000 * i, 100);
		peer_give(peer, &packet);
		wc = expect_wc(peer, recv, ENG_SUCCESS);
		assert_int_equal(wc->byte_len, ENG_GRH_BYTES + 100);
		assert_int_equal(wc->src_qpn, 0x77);
		assert_true(wc->flags & ENG_WC_GRH);
		expect_pattern(peer->local + ENG_GRH_BYTES, 100, 0);
		expect_silence(peer);
	}
	/* No receive: dropped. */
	peer_give(peer, &packet);
	expect_silence(peer);
	expect_no_wc(peer);
	assert_int_equal(eng_qp_state(peer->qp), ENG_RTS);
}

/* UD: the Q_Key is checked before anything else. */
static void test_ud_wrong_qkey(void **state)
{
	struct peer *peer = peer_rts((struct peer_config){ .type = ENG_UD });
	struct wire_packet packet = ud_packet(peer, 5, 8);
	uint64_t before;

	(void)state;
	/* rule S14 test */
	peer_post_recv(peer, 1000);
	before = peer_view(peer).counters[ENG_COUNT_DROPPED];
	packet.qkey++;
	peer_give(peer, &packet);
	expect_silence(peer);
	expect_no_wc(peer);
	assert_int_equal(eng_ring_used(&peer->rq), 1);
	assert_int_equal(peer_view(peer).counters[ENG_COUNT_DROPPED], before + 1);
}

/* A UD receive too small for the packet: no success is told and nothing beyond it is written. */
static void test_ud_receive_too_small(void **state)
{
	struct peer *peer = peer_rts((struct peer_config){ .type = ENG_UD });
	struct wire_packet packet = ud_packet(peer, 5, 100);

	(void)state;
	/* rule C18 test */
	memset(peer->local, 0, 1000);
	peer_post_recv(peer, ENG_GRH_BYTES + 99);
	peer_give(peer, &packet);
	expect_silence(peer);
	for (unsigned int i = 0; i < peer->wc_count; i++)
		assert_int_not_equal(peer->wcs[i].status, ENG_SUCCESS);
	assert_int_equal(peer->local[ENG_GRH_BYTES + 99], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PEER_TEST(test_uc_sends_without_credit), PEER_TEST(test_uc_has_no_reads),
		PEER_TEST(test_uc_receiver_is_silent),	 PEER_TEST(test_uc_gap_drops_the_message),
		PEER_TEST(test_uc_bad_requests),	 PEER_TEST(test_ud_send),
		PEER_TEST(test_send_error_and_recovery), PEER_TEST(test_send_error_behind_others),
		PEER_TEST(test_uc_send_queue_drained),	 PEER_TEST(test_ud_receive),
		PEER_TEST(test_ud_wrong_qkey),		 PEER_TEST(test_ud_receive_too_small),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
