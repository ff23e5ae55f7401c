/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* What the states of a queue pair mean for its work and its packets. */
#include "peer.h"

#include <string.h>

static struct peer *unlimited(struct peer_config config)
{
	struct peer *peer = peer_rts(config);

	peer_ack(peer, peer->config.sq_psn - 1, NO_CREDITS_REPORTED, 0);
	return peer;
}

/* A new queue pair knows nothing: state, numbers, credits. */
static void test_creation(void **state)
{
	struct peer *peer = peer_new((struct peer_config){ 0 });
	struct eng_view view = peer_view(peer);

	(void)state;
	/* rule C5 test, rule C11 test */
	assert_int_equal(view.state, ENG_RESET);
	assert_int_equal(view.qpn, PEER_QPN);
	assert_int_equal(view.msn + view.ssn + view.sent_ssn + view.lsn, 0);
	assert_int_equal(view.credits_now + view.credits_last_heard, 0);
	assert_false(view.unlimited || view.credits_heard);
	expect_silence(peer);
	assert_int_equal(peer->why, ENG_TX_STATE);
	assert_true(eng_deadline(peer->qp) == ENG_NEVER);
	assert_int_equal(eng_owed(peer->qp), ENG_OWED_NOTHING);
}

/* RESET forgets everything; a second life is like the first. */
static void test_reset_forgets(void **state)
{
	struct peer *peer = unlimited((struct peer_config){ 0 });

	(void)state;
	/* rule C5 test */
	peer_post_recv(peer, 4096);
	peer_post(peer, ENG_SEND, 8, ENG_SIGNALED);
	peer_post(peer, ENG_READ, 8, ENG_SIGNALED);
	peer_give_request(peer, WIRE_WRITE_ONLY, PEER_RQ_PSN, 8);
	peer_give_request(peer, WIRE_SEND_FIRST, PEER_RQ_PSN + 1, PEER_MTU);
	peer_forget(peer);
	peer_give_request(peer, WIRE_WRITE_MIDDLE, PEER_RQ_PSN + 5, PEER_MTU);
	peer_set_state(peer, ENG_RESET);
	expect_no_wc(peer);
	expect_silence(peer);
	assert_true(eng_deadline(peer->qp) == ENG_NEVER);
	assert_int_equal(peer_view(peer).credits_now + peer_view(peer).ssn, 0);
	assert_false(peer_view(peer).unlimited || peer_view(peer).credits_heard);

	peer->attr->sq_psn = 0x500;
	peer->attr->rq_psn = 0x600;
	peer_raise(peer, ENG_RTS);
	expect_silence(peer);
	peer_post_recv(peer, 64);
	expect_ack(peer, 0x5ff, ACK_CODE(1), 0);
	peer_give_request(peer, WIRE_SEND_ONLY, 0x600, 8);
	expect_ack(peer, 0x600, ACK_CODE(0), 1);
	peer_post(peer, ENG_SEND, 2 * PEER_MTU, ENG_SIGNALED);
	assert_int_equal(peer_view(peer).ssn, 1);
	assert_true(expect_packet(peer, WIRE_SEND_FIRST, 0x500)->ack_request);
	expect_silence(peer); /* limited again */
}

/* From RESET and INIT nothing is sent and nothing is taken. */
static void test_silent_before_rtr(void **state)
{
	struct peer *peer = peer_new((struct peer_config){ 0 });

	(void)state;
	/* rule S14 test */
	for (enum eng_qp_state s = ENG_RESET; s <= ENG_INIT; s++) {
		peer_raise(peer, s);
		peer_give_request(peer, WIRE_WRITE_ONLY, PEER_RQ_PSN, 8);
		peer_give_read(peer, PEER_RQ_PSN, 0, 8);
		peer_ack(peer, PEER_SQ_PSN - 1, ACK_CODE(5), 0);
		expect_silence(peer);
	}
	assert_int_equal(peer->remote[0], 0);
	assert_int_equal(peer->event_count, 0);
}

/* In ERR both queues are flushed, each in order; what is posted later as well. */
static void test_error_flushes_in_order(void **state)
{
	struct peer *peer = unlimited((struct peer_config){ 0 });
	uint64_t sends[3], recvs[3];
	unsigned int sends_seen = 0, recvs_seen = 0;

	(void)state;
	/* rule S13 test */
	for (int i = 0; i < 3; i++) {
		sends[i] = peer_post(peer, i == 1 ? ENG_READ : ENG_SEND, 8, 0);
		recvs[i] = peer_post_recv(peer, 64);
	}
	peer_give_request(peer, WIRE_SEND_FIRST, PEER_RQ_PSN, PEER_MTU > 64 ? 64 : 0);
	peer_forget(peer);
	assert_int_equal(eng_qp_state(peer->qp), ENG_ERR); /* a First shorter than the MTU */
	assert_int_equal(peer->wc_count, 6);
	for (unsigned int i = 0; i < peer->wc_count; i++) {
		const struct eng_wc *wc = &peer->wcs[i];

		assert_int_equal(wc->status, ENG_WR_FLUSH_ERR);
		if (wc->receive)
			assert_true(wc->wr_id == recvs[recvs_seen++]);
		else
			assert_true(wc->wr_id == sends[sends_seen++]);
	}
	peer->wc_read = peer->wc_count;
	sends[0] = peer_post(peer, ENG_WRITE, 8, 0);
	recvs[0] = peer_post_recv(peer, 64);
	eng_flush(peer->qp);
	expect_wc(peer, sends[0], ENG_WR_FLUSH_ERR);
	expect_wc(peer, recvs[0], ENG_WR_FLUSH_ERR);
	expect_no_wc(peer);
	expect_silence(peer);
	assert_int_equal(peer->why, ENG_TX_STATE);
}

/* Moved to ERR by the consumer: flush, and the peer hears nothing. */
static void test_error_by_request(void **state)
{
	struct peer *peer = unlimited((struct peer_config){ 0 });
	uint64_t first, second, recv;

	(void)state;
	/* rule S13 test */
	first = peer_post(peer, ENG_SEND, 8, 0);
	second = peer_post(peer, ENG_SEND, 8, ENG_SIGNALED);
	recv = peer_post_recv(peer, 64);
	peer_forget(peer);
	peer_give_request(peer, WIRE_WRITE_ONLY, PEER_RQ_PSN, 8);
	peer_give_read(peer, PEER_RQ_PSN + 1, 0, 8);
	peer_set_state(peer, ENG_ERR);
	expect_wc(peer, first, ENG_WR_FLUSH_ERR);
	expect_wc(peer, second, ENG_WR_FLUSH_ERR);
	expect_wc(peer, recv, ENG_WR_FLUSH_ERR);
	expect_no_wc(peer);
	expect_silence(peer);
	peer_ack(peer, PEER_SQ_PSN + 1, NO_CREDITS_REPORTED, 2);
	peer_give_request(peer, WIRE_WRITE_ONLY, PEER_RQ_PSN + 2, 8);
	expect_silence(peer);
	expect_no_wc(peer);
	assert_true(eng_deadline(peer->qp) == ENG_NEVER);
	/* And in ERR once more: nothing is completed twice. */
	peer_set_state(peer, ENG_ERR);
	expect_no_wc(peer);
}

/* The same when the QP's own request has failed: what is owed to the peer is not said any more. */
static void test_silent_after_send_error(void **state)
{
	struct peer *peer = unlimited((struct peer_config){ 0 });
	uint64_t failed = peer_post(peer, ENG_WRITE, 8, ENG_SIGNALED);

	(void)state;
	/* rule S13 test */
	expect_packet(peer, WIRE_WRITE_ONLY, PEER_SQ_PSN);
	peer_give_read(peer, PEER_RQ_PSN, 0, 8);
	peer_give_request(peer, WIRE_SEND_ONLY, PEER_RQ_PSN + 2, 8);
	peer_nak(peer, PEER_SQ_PSN, NAK_ACCESS, 0);
	expect_wc(peer, failed, ENG_REM_ACCESS_ERR);
	assert_int_equal(eng_qp_state(peer->qp), ENG_ERR);
	expect_silence(peer);
}

/* The receive under way when the QP fails is flushed as well, once and first. */
static void test_receive_under_way_is_flushed(void **state)
{
	struct peer *peer = unlimited((struct peer_config){ 0 });
	uint64_t taken = peer_post_recv(peer, 4096), next = peer_post_recv(peer, 4096);

	(void)state;
	/* rule S13 test */
	peer_forget(peer);
	peer_give_request(peer, WIRE_SEND_FIRST, PEER_RQ_PSN, PEER_MTU);
	peer_set_state(peer, ENG_ERR);
	expect_wc(peer, taken, ENG_WR_FLUSH_ERR);
	expect_wc(peer, next, ENG_WR_FLUSH_ERR);
	expect_no_wc(peer);
}

/* Receives of an SRQ belong to others: only the one under way is flushed. */
static void test_shared_receives_stay(void **state)
{
	struct peer *peer = peer_rts((struct peer_config){ .shared = true });
	uint64_t taken = peer_post_recv(peer, 4096);

	(void)state;
	/* rule S13 test, rule C7 test */
	peer_post_recv(peer, 4096);
	peer_give_request(peer, WIRE_SEND_FIRST, PEER_RQ_PSN, PEER_MTU);
	peer_set_state(peer, ENG_ERR);
	expect_wc(peer, taken, ENG_WR_FLUSH_ERR);
	expect_no_wc(peer);
	assert_int_equal(eng_ring_used(&peer->rq), 1);
	peer_set_state(peer, ENG_RESET);
	assert_int_equal(eng_ring_used(&peer->rq), 1);
}

/* SQD: what has begun is finished, nothing new begins, then the event; RTS goes on. */
static void test_send_queue_drained(void **state)
{
	struct peer *peer = unlimited((struct peer_config){ .mtu = 256, .cwnd = 1 });
	uint64_t first, second;

	(void)state;
	/* rule S9 test, rule C15 test */
	peer->attr->sq_drained_event = true;
	first = peer_post(peer, ENG_SEND, 4 * 256, ENG_SIGNALED);
	peer_forget(peer);
	second = peer_post(peer, ENG_SEND, 256, ENG_SIGNALED);
	peer_set_state(peer, ENG_SQD);
	expect_silence(peer);
	assert_int_equal(peer->why, ENG_TX_DRAINED);
	assert_int_equal(peer_count_events(peer, ENG_EVENT_SQ_DRAINED), 0);
	/* Its lost packets are sent again, and requests of the peer are served meanwhile. */
	peer_nak(peer, PEER_SQ_PSN + 1, NAK_SEQUENCE, 0);
	expect_packet(peer, WIRE_SEND_MIDDLE, PEER_SQ_PSN + 1);
	expect_packet(peer, WIRE_SEND_MIDDLE, PEER_SQ_PSN + 2);
	expect_packet(peer, WIRE_SEND_LAST, PEER_SQ_PSN + 3);
	peer_give_request(peer, WIRE_WRITE_ONLY, PEER_RQ_PSN, 8);
	expect_ack(peer, PEER_RQ_PSN, ACK_CODE(0), 1);
	peer_ack(peer, PEER_SQ_PSN + 3, NO_CREDITS_REPORTED, 1);
	expect_wc(peer, first, ENG_SUCCESS);
	expect_no_wc(peer);
	assert_int_equal(peer_count_events(peer, ENG_EVENT_SQ_DRAINED), 1);
	expect_silence(peer);
	peer_set_state(peer, ENG_RTS);
	expect_packet(peer, WIRE_SEND_ONLY, PEER_SQ_PSN + 4);
	peer_ack(peer, PEER_SQ_PSN + 4, NO_CREDITS_REPORTED, 2);
	expect_wc(peer, second, ENG_SUCCESS);
	assert_int_equal(peer_count_events(peer, ENG_EVENT_SQ_DRAINED), 1);
}

/* SQD with nothing under way is drained at once; the event comes only if asked for. */
static void test_drained_at_once(void **state)
{
	(void)state;
	for (int wanted = 0; wanted < 2; wanted++) {
		struct peer *peer = unlimited((struct peer_config){ 0 });

		/* rule S9 test */
		peer->attr->sq_drained_event = wanted;
		peer_post(peer, ENG_SEND, 8, 0);
		peer_set_state(peer, ENG_SQD);
		assert_int_equal(peer_count_events(peer, ENG_EVENT_SQ_DRAINED), wanted);
		expect_silence(peer);
		peer_set_state(peer, ENG_RTS);
		expect_packet(peer, WIRE_SEND_ONLY, PEER_SQ_PSN);
		/* A second time in SQD is told again. */
		peer_ack(peer, PEER_SQ_PSN, NO_CREDITS_REPORTED, 1);
		peer_set_state(peer, ENG_SQD);
		assert_int_equal(peer_count_events(peer, ENG_EVENT_SQ_DRAINED), 2 * wanted);
	}
}

/* A limited SEND that has begun when the queue is to be drained is finished. */
static void test_limited_send_in_sqd(void **state)
{
	struct peer *peer = peer_rts((struct peer_config){ 0 });

	(void)state;
	/* rule C13 test */
	peer->attr->sq_drained_event = true;
	peer_post(peer, ENG_SEND, 3 * PEER_MTU, ENG_SIGNALED);
	expect_packet(peer, WIRE_SEND_FIRST, PEER_SQ_PSN);
	peer_set_state(peer, ENG_SQD);
	assert_int_equal(peer_count_events(peer, ENG_EVENT_SQ_DRAINED), 0);
	peer_ack(peer, PEER_SQ_PSN, ACK_CODE(0), 0);
	expect_packet(peer, WIRE_SEND_MIDDLE, PEER_SQ_PSN + 1);
	expect_packet(peer, WIRE_SEND_LAST, PEER_SQ_PSN + 2);
	peer_ack(peer, PEER_SQ_PSN + 2, ACK_CODE(0), 1);
	assert_int_equal(peer_count_events(peer, ENG_EVENT_SQ_DRAINED), 1);
}

/*
 * The first request is told of while the queue pair waits in RTR, where nothing else says that the
 * peer has moved on; whoever is in RTS already has no use for the event, and it would be in the way
 * of others.
 */
static void test_established_in_rtr_only(void **state)
{
	static const enum eng_qp_type types[] = { ENG_RC, ENG_UC, ENG_XRC_RECV };

	(void)state;
	for (unsigned int i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		for (enum eng_qp_state in = ENG_RTR; in <= ENG_SQD; in++) {
			struct peer *peer = peer_new((struct peer_config){ .type = types[i] });
			uint8_t opcode = (types[i] == ENG_UC	     ? WIRE_UC
					  : types[i] == ENG_XRC_RECV ? WIRE_XRC
								     : WIRE_RC) |
					 WIRE_WRITE_ONLY;

			peer_raise(peer, in < ENG_SQD ? in : ENG_RTS);
			if (in == ENG_SQD)
				peer_set_state(peer, in);
			peer_give_request(peer, opcode, PEER_RQ_PSN, 8);
			expect_pattern(peer->remote, 8, 0);
			assert_int_equal(peer_count_events(peer, ENG_EVENT_COMM_EST),
					 in == ENG_RTR);
			/* Once, and not for what comes later either. */
			peer_give_request(peer, opcode, PEER_RQ_PSN + 1, 8);
			if (in == ENG_RTR)
				peer_set_state(peer, ENG_RTS);
			peer_give_request(peer, opcode, PEER_RQ_PSN + 2, 8);
			assert_int_equal(peer->event_count, in == ENG_RTR);
			peer_teardown(NULL);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PEER_TEST(test_creation),
		PEER_TEST(test_reset_forgets),
		PEER_TEST(test_silent_before_rtr),
		PEER_TEST(test_error_flushes_in_order),
		PEER_TEST(test_error_by_request),
		PEER_TEST(test_silent_after_send_error),
		PEER_TEST(test_receive_under_way_is_flushed),
		PEER_TEST(test_shared_receives_stay),
		PEER_TEST(test_send_queue_drained),
		PEER_TEST(test_drained_at_once),
		PEER_TEST(test_limited_send_in_sqd),
		PEER_TEST(test_established_in_rtr_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
