/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* The last words of a queue pair: what a peer needs whose last ACK was lost. */
#include "peer.h"

#define FAREWELLS 3

/* Three unsolicited ACKs with the PSN of the last positive response; then silence again. */
static void test_farewell(void **state)
{
	struct peer *peer = peer_rts((struct peer_config){ 0 });

	(void)state;
	/* rule C8 test */
	peer_give_request(peer, WIRE_WRITE_ONLY, PEER_RQ_PSN, 8);
	peer_give_request(peer, WIRE_WRITE_ONLY, PEER_RQ_PSN + 1, 8);
	expect_ack(peer, PEER_RQ_PSN + 1, ACK_CODE(0), 2);
	expect_silence(peer);
	eng_farewell(peer->qp);
	assert_int_equal(eng_owed(peer->qp), ENG_OWED_NOW);
	for (int i = 0; i < FAREWELLS; i++)
		expect_ack(peer, PEER_RQ_PSN + 1, ACK_CODE(0), 2);
	expect_silence(peer);
	assert_int_equal(eng_owed(peer->qp), ENG_OWED_NOTHING);
}

/* An ACK that is owed goes before, so that the last words cover everything. */
static void test_farewell_covers_what_is_owed(void **state)
{
	struct peer *peer = peer_rts((struct peer_config){ 0 });
	unsigned int acks = 0;

	(void)state;
	/* rule S7 test, rule C8 test */
	peer_give_request(peer, WIRE_WRITE_ONLY, PEER_RQ_PSN, 8);
	peer_forget(peer);
	peer_give_request(peer, WIRE_WRITE_ONLY, PEER_RQ_PSN + 1, 8);
	eng_farewell(peer->qp);
	peer_pull(peer);
	for (; peer->sent_read < peer->sent_count; peer->sent_read++, acks++)
		assert_int_equal(peer->sent[peer->sent_read].packet.psn, PEER_RQ_PSN + 1);
	assert_uint_in_range(acks, FAREWELLS, FAREWELLS + 1);
}

/* What nobody has asked an ACK for is acknowledged now, for nobody will be here to be asked. */
static void test_farewell_covers_what_was_not_asked_for(void **state)
{
	struct peer *peer = peer_rts((struct peer_config){ 0 });
	struct wire_packet write = peer_request(peer, WIRE_WRITE_ONLY, PEER_RQ_PSN, 8);

	(void)state;
	/* rule S7 test, rule C8 test */
	write.ack_request = false;
	peer_give(peer, &write);
	expect_silence(peer);
	eng_farewell(peer->qp);
	for (int i = 0; i < 1 + FAREWELLS; i++)
		expect_ack(peer, PEER_RQ_PSN, ACK_CODE(0), 1);
	expect_silence(peer);
}

/* Nobody has sent anything, or the QP has failed: there is nothing to be said. */
static void test_no_farewell(void **state)
{
	struct peer *peer = peer_rts((struct peer_config){ 0 });

	(void)state;
	/* rule C8 test */
	eng_farewell(peer->qp);
	expect_silence(peer);
	peer_give_request(peer, WIRE_WRITE_ONLY, PEER_RQ_PSN, 8);
	peer_forget(peer);
	peer_set_state(peer, ENG_ERR);
	eng_farewell(peer->qp);
	expect_silence(peer);
	peer = peer_rts((struct peer_config){ .type = ENG_UC });
	peer_give_request(peer, WIRE_UC | WIRE_WRITE_ONLY, PEER_RQ_PSN, 8);
	eng_farewell(peer->qp);
	expect_silence(peer);
}

/* After nothing but a NAK there is no positive response to repeat but the one before all. */
static void test_farewell_is_no_nak(void **state)
{
	struct peer *peer = peer_rts((struct peer_config){ 0 });

	(void)state;
	/* rule C8 test */
	peer_give_request(peer, WIRE_WRITE_ONLY, PEER_RQ_PSN, 8);
	expect_ack(peer, PEER_RQ_PSN, ACK_CODE(0), 1);
	peer_give_request(peer, WIRE_SEND_ONLY, PEER_RQ_PSN + 1, 8);
	expect_ack(peer, PEER_RQ_PSN + 1, RNR_NAK(12), 1);
	eng_farewell(peer->qp);
	for (int i = 0; i < FAREWELLS; i++)
		expect_ack(peer, PEER_RQ_PSN, ACK_CODE(0), 1);
	expect_silence(peer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PEER_TEST(test_farewell),
		PEER_TEST(test_farewell_covers_what_is_owed),
		PEER_TEST(test_farewell_covers_what_was_not_asked_for),
		PEER_TEST(test_no_farewell),
		PEER_TEST(test_farewell_is_no_nak),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
