/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* What the requester makes of ACKs and NAKs, by where their PSN lies. */
#include "peer.h"

#include <string.h>

static struct peer *unlimited(struct peer_config config)
{
	struct peer *peer = peer_rts(config);

	peer_ack(peer, peer->config.sq_psn - 1, NO_CREDITS_REPORTED, 0);
	return peer;
}

/* Post count SENDs of one packet; the packets are taken. */
static void post_sends(struct peer *peer, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		peer_post(peer, ENG_SEND, 8, ENG_SIGNALED);
	peer_forget(peer);
}

static void expect_completed(struct peer *peer, uint64_t first, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		expect_wc(peer, first + i, ENG_SUCCESS);
	expect_no_wc(peer);
}

/* Everything that a requester knows, to be compared before and after. */
static void expect_unchanged(struct peer *peer, const struct eng_view *before)
{
	struct eng_view after = peer_view(peer);

	assert_int_equal(after.unacked_psn, before->unacked_psn);
	assert_int_equal(after.next_psn, before->next_psn);
	assert_int_equal(after.in_flight, before->in_flight);
	assert_int_equal(after.retries_left, before->retries_left);
	assert_int_equal(after.rnr_retries_left, before->rnr_retries_left);
	assert_int_equal(after.state, before->state);
	expect_silence(peer);
	expect_no_wc(peer);
}

/* An ACK covers all before it. */
static void test_ack_covers_all_before(void **state)
{
	struct peer *peer = unlimited((struct peer_config){ .sq_psn = 0xfffffd });

	(void)state;
	/* rule S7 test, rule S8 test */
	post_sends(peer, 6);
	peer_ack(peer, 0x000000, NO_CREDITS_REPORTED, 4);
	expect_completed(peer, 0x1000, 4);
	assert_int_equal(peer_view(peer).unacked_psn, 0x000001);
	peer_ack(peer, 0x000002, NO_CREDITS_REPORTED, 6);
	expect_completed(peer, 0x1004, 2);
	assert_int_equal(eng_in_flight(peer->qp), 0);
	assert_true(eng_deadline(peer->qp) == ENG_NEVER);
}

/* An ACK older than the window is a duplicate: nothing. */
static void test_older_ack_is_nothing(void **state)
{
	struct peer *peer = unlimited((struct peer_config){ 0 });
	struct eng_view before;
	uint64_t deadline;

	(void)state;
	/* rule S8 test */
	post_sends(peer, 4);
	peer_ack(peer, PEER_SQ_PSN + 1, NO_CREDITS_REPORTED, 2);
	expect_completed(peer, 0x1000, 2);
	before = peer_view(peer);
	deadline = eng_deadline(peer->qp);
	peer->now += MS;
	for (uint32_t psn = PEER_SQ_PSN - 3; psn <= PEER_SQ_PSN + 1; psn++) {
		peer_ack(peer, psn, NO_CREDITS_REPORTED, 1);
		expect_unchanged(peer, &before);
	}
	assert_true(eng_deadline(peer->qp) == deadline);
}

/* A PSN that has not been sent is a ghost: dropped, whatever it says. */
static void test_ghosts_are_dropped(void **state)
{
	static const uint8_t syndromes[] = { ACK_CODE(31),    ACK_CODE(3), RNR_NAK(1),
					     NAK_SEQUENCE,    NAK_INVALID, NAK_ACCESS,
					     NAK_OPERATIONAL, 0x64,	   0x45 };
	struct peer *peer = unlimited((struct peer_config){ 0 });
	uint8_t bytes[8] = { 0 };
	struct eng_view before;

	(void)state;
	/* rule S8 test */
	post_sends(peer, 4);
	before = peer_view(peer);
	for (unsigned int i = 0; i < sizeof(syndromes); i++) {
		peer_nak(peer, PEER_SQ_PSN + 4, syndromes[i], 5);
		expect_unchanged(peer, &before);
		peer_nak(peer, PEER_SQ_PSN + 0x7fffff, syndromes[i], 5);
		expect_unchanged(peer, &before);
		if (syndromes[i] >= 0x20)
			peer_nak(peer, PEER_SQ_PSN - 1, syndromes[i], 5);
		expect_unchanged(peer, &before);
	}
	peer_give_response(peer, WIRE_READ_RESPONSE_ONLY, PEER_SQ_PSN + 4, 1, bytes, 8);
	peer_give_response(peer, WIRE_READ_RESPONSE_ONLY, PEER_SQ_PSN - 1, 1, bytes, 8);
	peer_give_response(peer, WIRE_ATOMIC_ACKNOWLEDGE, PEER_SQ_PSN + 9, 1, bytes, 8);
	expect_unchanged(peer, &before);
}

/* Reserved syndromes and NAK codes are dropped even inside the window. */
static void test_reserved_syndromes(void **state)
{
	struct peer *peer = unlimited((struct peer_config){ 0 });
	struct eng_view before;

	(void)state;
	/* rule S8 test */
	post_sends(peer, 1);
	before = peer_view(peer);
	for (unsigned int syndrome = 0x40; syndrome < 0x60; syndrome++)
		peer_nak(peer, PEER_SQ_PSN, (uint8_t)syndrome, 1);
	expect_unchanged(peer, &before);
	for (unsigned int syndrome = 0x64; syndrome < 0x80; syndrome++)
		peer_nak(peer, PEER_SQ_PSN, (uint8_t)syndrome, 0);
	expect_unchanged(peer, &before);
}

/* A NAK for PSN n acknowledges the SENDs and WRITEs before n; sequence error: again from n. */
static void test_sequence_nak(void **state)
{
	struct peer *peer = unlimited((struct peer_config){ 0 });

	(void)state;
	/* rule S11 test */
	post_sends(peer, 5);
	peer_nak(peer, PEER_SQ_PSN + 2, NAK_SEQUENCE, 2);
	expect_completed(peer, 0x1000, 2);
	expect_packet(peer, WIRE_SEND_ONLY, PEER_SQ_PSN + 2);
	expect_packet(peer, WIRE_SEND_ONLY, PEER_SQ_PSN + 3);
	expect_packet(peer, WIRE_SEND_ONLY, PEER_SQ_PSN + 4);
	expect_silence(peer);
	peer_ack(peer, PEER_SQ_PSN + 4, NO_CREDITS_REPORTED, 5);
	expect_completed(peer, 0x1002, 3);
}

/* A NAK in the middle of a message: its rest goes again, with the right opcodes. */
static void test_sequence_nak_inside_a_message(void **state)
{
	struct peer *peer = unlimited((struct peer_config){ 0 });
	const struct wire_packet *packet;

	(void)state;
	/* rule S11 test */
	peer_post(peer, ENG_WRITE, 4 * PEER_MTU - 10, ENG_SIGNALED);
	peer_forget(peer);
	peer_nak(peer, PEER_SQ_PSN + 2, NAK_SEQUENCE, 0);
	expect_no_wc(peer);
	packet = expect_packet(peer, WIRE_WRITE_MIDDLE, PEER_SQ_PSN + 2);
	expect_pattern(packet->payload, PEER_MTU, 2 * PEER_MTU);
	packet = expect_packet(peer, WIRE_WRITE_LAST, PEER_SQ_PSN + 3);
	expect_pattern(packet->payload, PEER_MTU - 10, 3 * PEER_MTU);
	expect_silence(peer);
}

/* Every fatal NAK: the named request fails, those before succeed, the rest is flushed. */
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
	/* rule S11 test, rule S13 test: the failing one is unsignaled and told all the same. */
	for (int i = 0; i < 3; i++) {
		struct peer *peer = unlimited((struct peer_config){ 0 });
		uint64_t ids[4], recv;

		ids[0] = peer_post(peer, ENG_WRITE, 8, ENG_SIGNALED);
		ids[1] = peer_post(peer, ENG_SEND, 8, 0);
		ids[2] = peer_post(peer, ENG_SEND, 8, 0);
		ids[3] = peer_post(peer, ENG_WRITE, 8, 0);
		recv = peer_post_recv(peer, 64);
		peer_forget(peer);
		peer_nak(peer, PEER_SQ_PSN + 1, rows[i].syndrome, 1);
		expect_wc(peer, ids[0], ENG_SUCCESS);
		expect_wc(peer, ids[1], rows[i].status);
		expect_wc(peer, ids[2], ENG_WR_FLUSH_ERR);
		expect_wc(peer, ids[3], ENG_WR_FLUSH_ERR);
		expect_wc(peer, recv, ENG_WR_FLUSH_ERR);
		expect_no_wc(peer);
		assert_int_equal(eng_qp_state(peer->qp), ENG_ERR);
		expect_silence(peer);
		assert_true(eng_deadline(peer->qp) == ENG_NEVER);
	}
}

/* A READ is complete by its own responses only: a later ACK is an implied NAK for it. */
static void test_later_ack_implies_nak_of_read(void **state)
{
	struct peer *peer = unlimited((struct peer_config){ 0 });
	uint64_t write, read, send;
	uint8_t bytes[16];

	(void)state;
	/* rule S8 test */
	write = peer_post(peer, ENG_WRITE, 8, ENG_SIGNALED);
	read = peer_post(peer, ENG_READ, 16, ENG_SIGNALED);
	send = peer_post(peer, ENG_SEND, 8, ENG_SIGNALED);
	peer_forget(peer);
	peer_ack(peer, PEER_SQ_PSN + 2, NO_CREDITS_REPORTED, 3);
	expect_wc(peer, write, ENG_SUCCESS);
	expect_no_wc(peer);
	expect_packet(peer, WIRE_READ_REQUEST, PEER_SQ_PSN + 1);
	expect_packet(peer, WIRE_SEND_ONLY, PEER_SQ_PSN + 2);
	expect_silence(peer);
	peer_fill(bytes, 16, 500);
	peer_give_response(peer, WIRE_READ_RESPONSE_ONLY, PEER_SQ_PSN + 1, 2, bytes, 16);
	expect_wc(peer, read, ENG_SUCCESS);
	expect_pattern(peer->local, 16, 500);
	expect_no_wc(peer);
	peer_ack(peer, PEER_SQ_PSN + 2, NO_CREDITS_REPORTED, 3);
	expect_wc(peer, send, ENG_SUCCESS);
}

/* The same for an Atomic, and for a NAK behind it: it does not acknowledge the Atomic. */
static void test_later_nak_does_not_complete_atomic(void **state)
{
	struct peer *peer = unlimited((struct peer_config){ 0 });
	uint64_t value = 77, atomic;

	(void)state;
	/* rule S8 test, rule S11 test */
	atomic = peer_post(peer, ENG_FETCH_ADD, 8, ENG_SIGNALED);
	peer_post(peer, ENG_SEND, 8, ENG_SIGNALED);
	peer_forget(peer);
	peer_nak(peer, PEER_SQ_PSN + 1, NAK_SEQUENCE, 1);
	expect_no_wc(peer);
	expect_packet(peer, WIRE_FETCH_ADD, PEER_SQ_PSN);
	expect_packet(peer, WIRE_SEND_ONLY, PEER_SQ_PSN + 1);
	peer_give_response(peer, WIRE_ATOMIC_ACKNOWLEDGE, PEER_SQ_PSN, 1, &value, 8);
	expect_wc(peer, atomic, ENG_SUCCESS);
	assert_memory_equal(peer->local, &value, 8);
}

/* A READ or Atomic response acknowledges the SENDs and WRITEs before it. */
static void test_response_acknowledges_what_is_before(void **state)
{
	struct peer *peer = unlimited((struct peer_config){ 0 });
	uint8_t bytes[8] = { 1 };

	(void)state;
	/* rule S7 test, rule S8 test */
	post_sends(peer, 2);
	peer_post(peer, ENG_READ, 8, ENG_SIGNALED);
	peer_forget(peer);
	peer_give_response(peer, WIRE_READ_RESPONSE_ONLY, PEER_SQ_PSN + 2, 3, bytes, 8);
	expect_completed(peer, 0x1000, 3);
}

/* A response of the wrong kind completes nothing. */
static void test_response_of_the_wrong_kind(void **state)
{
	struct peer *peer = unlimited((struct peer_config){ 0 });
	uint8_t bytes[8] = { 1 };

	(void)state;
	/* rule S8 test */
	memset(peer->local, 0, 64);
	peer_post(peer, ENG_SEND, 8, 0);
	peer_forget(peer);
	peer_give_response(peer, WIRE_READ_RESPONSE_ONLY, PEER_SQ_PSN, 1, bytes, 8);
	peer_give_response(peer, WIRE_ATOMIC_ACKNOWLEDGE, PEER_SQ_PSN, 1, bytes, 8);
	assert_int_equal(peer->local[0], 0);
	for (unsigned int i = 0; i < peer->wc_count; i++)
		assert_int_not_equal(peer->wcs[i].status, ENG_SUCCESS);
	/* A plain ACK does not complete a READ. */
	peer = unlimited((struct peer_config){ 0 });
	peer_post(peer, ENG_READ, 8, ENG_SIGNALED);
	peer_forget(peer);
	peer_ack(peer, PEER_SQ_PSN, NO_CREDITS_REPORTED, 1);
	expect_no_wc(peer);
}

/* A request with memory that is not ours fails locally, in its turn, with nothing sent. */
static void test_local_protection_error(void **state)
{
	struct peer *peer = unlimited((struct peer_config){ 0 });
	uint64_t before, wrong, after;
	struct eng_send_wqe *wqe;

	(void)state;
	/* rule S13 test, rule C15 test */
	before = peer_post(peer, ENG_SEND, 8, ENG_SIGNALED);
	wqe = peer_wqe(peer, ENG_SEND, 8, 0);
	wqe->data.sge[0].lkey = 0xbad;
	wrong = wqe->wr_id;
	eng_sq_push(peer->qp);
	after = peer_post(peer, ENG_SEND, 8, 0);
	expect_packet(peer, WIRE_SEND_ONLY, PEER_SQ_PSN);
	expect_silence(peer);
	expect_no_wc(peer);
	peer_ack(peer, PEER_SQ_PSN, NO_CREDITS_REPORTED, 1);
	peer_pull(peer);
	expect_wc(peer, before, ENG_SUCCESS);
	expect_wc(peer, wrong, ENG_LOC_PROT_ERR);
	expect_wc(peer, after, ENG_WR_FLUSH_ERR);
	expect_no_wc(peer);
	assert_int_equal(eng_qp_state(peer->qp), ENG_ERR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PEER_TEST(test_ack_covers_all_before),
		PEER_TEST(test_older_ack_is_nothing),
		PEER_TEST(test_ghosts_are_dropped),
		PEER_TEST(test_reserved_syndromes),
		PEER_TEST(test_sequence_nak),
		PEER_TEST(test_sequence_nak_inside_a_message),
		PEER_TEST(test_fatal_naks),
		PEER_TEST(test_later_ack_implies_nak_of_read),
		PEER_TEST(test_later_nak_does_not_complete_atomic),
		PEER_TEST(test_response_acknowledges_what_is_before),
		PEER_TEST(test_response_of_the_wrong_kind),
		PEER_TEST(test_local_protection_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
