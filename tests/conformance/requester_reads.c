/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* READs and Atomics at the requester: responses, losses, depth, fences. */
#include "peer.h"

#include <string.h>

#define READ_BYTES (4 * PEER_MTU - 100)

static uint8_t data[READ_BYTES];

static struct peer *reader(struct peer_config config)
{
	struct peer *peer = peer_rts(config);

	peer_ack(peer, peer->config.sq_psn - 1, NO_CREDITS_REPORTED, 0);
	memset(peer->local, 0, PEER_REGION_BYTES);
	peer_fill(data, READ_BYTES, 9000);
	return peer;
}

/* Packet i of the answer to a READ of READ_BYTES at PEER_SQ_PSN, under some opcode. */
static void answer(struct peer *peer, uint8_t opcode, uint32_t i)
{
	peer_give_response(peer, opcode, PEER_SQ_PSN + i, 1, data + i * PEER_MTU,
			   i == 3 ? READ_BYTES - 3 * PEER_MTU : PEER_MTU);
}

static void expect_request(struct peer *peer, uint32_t i)
{
	const struct wire_packet *packet = expect_packet(peer, WIRE_READ_REQUEST, PEER_SQ_PSN + i);

	assert_true(packet->va == PEER_THEIR_VA + i * PEER_MTU);
	assert_int_equal(packet->dma_length, READ_BYTES - i * PEER_MTU);
	assert_int_equal(packet->rkey, PEER_THEIR_RKEY);
}

/* Responses are written as they come; the WQE retires on the last. */
static void test_read_is_written_and_completed(void **state)
{
	struct peer *peer = reader((struct peer_config){ 0 });
	uint64_t id = peer_post(peer, ENG_READ, READ_BYTES, ENG_SIGNALED);

	(void)state;
	/* rule S12 test */
	expect_request(peer, 0);
	expect_silence(peer);
	answer(peer, WIRE_READ_RESPONSE_FIRST, 0);
	expect_pattern(peer->local, PEER_MTU, 9000);
	answer(peer, WIRE_READ_RESPONSE_MIDDLE, 1);
	answer(peer, WIRE_READ_RESPONSE_MIDDLE, 2);
	expect_no_wc(peer);
	answer(peer, WIRE_READ_RESPONSE_LAST, 3);
	assert_int_equal(expect_wc(peer, id, ENG_SUCCESS)->byte_len, READ_BYTES);
	expect_pattern(peer->local, READ_BYTES, 9000);
	assert_int_equal(peer->local[READ_BYTES], 0);
	expect_silence(peer);
}

/* On loss only what is missing is asked for; the answer may begin with First ... */
static void test_partial_retry(void **state)
{
	struct peer *peer = reader((struct peer_config){ 0 });
	uint64_t id = peer_post(peer, ENG_READ, READ_BYTES, ENG_SIGNALED);

	(void)state;
	/* rule S12 test */
	expect_request(peer, 0);
	answer(peer, WIRE_READ_RESPONSE_FIRST, 0);
	answer(peer, WIRE_READ_RESPONSE_MIDDLE, 1);
	assert_true(peer_advance_to_deadline(peer));
	expect_request(peer, 2);
	expect_silence(peer);
	answer(peer, WIRE_READ_RESPONSE_FIRST, 2);
	answer(peer, WIRE_READ_RESPONSE_LAST, 3);
	expect_wc(peer, id, ENG_SUCCESS);
	expect_pattern(peer->local, READ_BYTES, 9000);
}

/* ... or, as kernel rxe does it, with Middle or Last. */
static void test_partial_answer_with_middle_and_last(void **state)
{
	struct peer *peer = reader((struct peer_config){ 0 });
	uint64_t id = peer_post(peer, ENG_READ, READ_BYTES, ENG_SIGNALED);

	(void)state;
	/* rule S12 test */
	expect_request(peer, 0);
	answer(peer, WIRE_READ_RESPONSE_FIRST, 0);
	assert_true(peer_advance_to_deadline(peer));
	expect_request(peer, 1);
	answer(peer, WIRE_READ_RESPONSE_MIDDLE, 1);
	answer(peer, WIRE_READ_RESPONSE_MIDDLE, 2);
	assert_true(peer_advance_to_deadline(peer));
	expect_request(peer, 3);
	answer(peer, WIRE_READ_RESPONSE_LAST, 3);
	expect_wc(peer, id, ENG_SUCCESS);
	expect_pattern(peer->local, READ_BYTES, 9000);
}

/* A response behind a gap says at once what is missing. */
static void test_gap_in_responses(void **state)
{
	struct peer *peer = reader((struct peer_config){ 0 });
	uint64_t id = peer_post(peer, ENG_READ, READ_BYTES, ENG_SIGNALED), start = peer->now;

	(void)state;
	/* rule S12 test, rule S8 test */
	expect_request(peer, 0);
	answer(peer, WIRE_READ_RESPONSE_FIRST, 0);
	answer(peer, WIRE_READ_RESPONSE_MIDDLE, 2);
	expect_request(peer, 1);
	answer(peer, WIRE_READ_RESPONSE_LAST, 3);
	expect_silence(peer); /* one request for one gap */
	answer(peer, WIRE_READ_RESPONSE_FIRST, 1);
	answer(peer, WIRE_READ_RESPONSE_MIDDLE, 2);
	answer(peer, WIRE_READ_RESPONSE_LAST, 3);
	expect_wc(peer, id, ENG_SUCCESS);
	expect_pattern(peer->local, READ_BYTES, 9000);
	assert_true(peer->now == start);
}

/* Responses that come twice are ignored. */
static void test_duplicate_responses(void **state)
{
	struct peer *peer = reader((struct peer_config){ 0 });
	uint64_t id = peer_post(peer, ENG_READ, READ_BYTES, ENG_SIGNALED);

	(void)state;
	/* rule S12 test */
	expect_request(peer, 0);
	answer(peer, WIRE_READ_RESPONSE_FIRST, 0);
	answer(peer, WIRE_READ_RESPONSE_FIRST, 0);
	answer(peer, WIRE_READ_RESPONSE_MIDDLE, 1);
	memset(data, 0xee, PEER_MTU);
	answer(peer, WIRE_READ_RESPONSE_FIRST, 0);
	answer(peer, WIRE_READ_RESPONSE_MIDDLE, 2);
	answer(peer, WIRE_READ_RESPONSE_LAST, 3);
	answer(peer, WIRE_READ_RESPONSE_LAST, 3);
	expect_wc(peer, id, ENG_SUCCESS);
	expect_no_wc(peer);
	expect_pattern(peer->local, READ_BYTES, 9000);
	expect_silence(peer);
}

/* A response whose length is not that of its place: an error of the peer's, nothing is written. */
static void test_response_of_wrong_length(void **state)
{
	static const struct {
		uint8_t opcode;
		uint32_t i, length;
	} rows[] = {
		{ WIRE_READ_RESPONSE_FIRST, 0, PEER_MTU - 4 },
		{ WIRE_READ_RESPONSE_FIRST, 0, PEER_MTU + 4 },
		{ WIRE_READ_RESPONSE_ONLY, 0, PEER_MTU },
		{ WIRE_READ_RESPONSE_LAST, 0, 8 },
		{ WIRE_READ_RESPONSE_ONLY, 0, 0 },
	};

	(void)state;
	/* rule S12 test */
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct peer *peer = reader((struct peer_config){ 0 });
		uint64_t id = peer_post(peer, ENG_READ, READ_BYTES, 0);
		static uint8_t bytes[2 * PEER_MTU] = { 0xff };

		peer_forget(peer);
		peer_give_response(peer, rows[i].opcode, PEER_SQ_PSN + rows[i].i, 1, bytes,
				   rows[i].length);
		assert_int_equal(peer->wc_count, 1);
		assert_true(peer->wcs[0].wr_id == id);
		assert_true(peer->wcs[0].status == ENG_BAD_RESP_ERR ||
			    peer->wcs[0].status == ENG_LOC_LEN_ERR);
		assert_int_equal(eng_qp_state(peer->qp), ENG_ERR);
		assert_int_equal(peer->local[0], 0);
	}
}

/* The region for the answer goes away: local protection error. */
static void test_read_into_lost_region(void **state)
{
	struct peer *peer = reader((struct peer_config){ 0 });
	uint64_t id = peer_post(peer, ENG_READ, READ_BYTES, 0);

	(void)state;
	/* rule S13 test */
	peer_forget(peer);
	answer(peer, WIRE_READ_RESPONSE_FIRST, 0);
	peer->regions[0].key = 0;
	answer(peer, WIRE_READ_RESPONSE_MIDDLE, 1);
	expect_wc(peer, id, ENG_LOC_PROT_ERR);
	expect_no_wc(peer);
}

/* Never more READs and Atomics under way than max_rd_atomic. */
static void test_initiator_depth(void **state)
{
	struct peer *peer = reader((struct peer_config){ .max_rd_atomic = 2 });
	uint64_t value = 1;

	(void)state;
	/* rule S12 test */
	peer_post(peer, ENG_READ, 8, ENG_SIGNALED);
	peer_post(peer, ENG_WRITE, 8, ENG_SIGNALED);
	peer_post(peer, ENG_FETCH_ADD, 8, ENG_SIGNALED);
	peer_post(peer, ENG_READ, 8, ENG_SIGNALED);
	peer_post(peer, ENG_WRITE, 8, ENG_SIGNALED);
	expect_packet(peer, WIRE_READ_REQUEST, PEER_SQ_PSN);
	expect_packet(peer, WIRE_WRITE_ONLY, PEER_SQ_PSN + 1);
	expect_packet(peer, WIRE_FETCH_ADD, PEER_SQ_PSN + 2);
	expect_silence(peer);
	assert_int_equal(peer->why, ENG_TX_READ_DEPTH);
	assert_int_equal(peer_view(peer).outstanding_reads, 2);
	peer_give_response(peer, WIRE_READ_RESPONSE_ONLY, PEER_SQ_PSN, 1, data, 8);
	expect_packet(peer, WIRE_READ_REQUEST, PEER_SQ_PSN + 3);
	expect_packet(peer, WIRE_WRITE_ONLY, PEER_SQ_PSN + 4);
	peer_give_response(peer, WIRE_ATOMIC_ACKNOWLEDGE, PEER_SQ_PSN + 2, 3, &value, 8);
	peer_give_response(peer, WIRE_READ_RESPONSE_ONLY, PEER_SQ_PSN + 3, 4, data, 8);
	assert_int_equal(peer_view(peer).outstanding_reads, 0);
	peer_ack(peer, PEER_SQ_PSN + 4, NO_CREDITS_REPORTED, 5);
	assert_int_equal(peer->wc_count, 5);
}

/* A fenced request waits until all earlier READs and Atomics are complete; the rest behind it. */
static void test_fence(void **state)
{
	struct peer *peer = reader((struct peer_config){ 0 });
	uint64_t value = 1;

	(void)state;
	/* rule C16 test, rule C15 test */
	peer_post(peer, ENG_READ, 8, 0);
	peer_post(peer, ENG_COMPARE_SWAP, 8, 0);
	peer_post(peer, ENG_WRITE, 8, 0);
	peer_post(peer, ENG_WRITE, 8, ENG_FENCE);
	peer_post(peer, ENG_WRITE, 8, 0);
	expect_packet(peer, WIRE_READ_REQUEST, PEER_SQ_PSN);
	expect_packet(peer, WIRE_COMPARE_SWAP, PEER_SQ_PSN + 1);
	expect_packet(peer, WIRE_WRITE_ONLY, PEER_SQ_PSN + 2);
	expect_silence(peer);
	assert_int_equal(peer->why, ENG_TX_FENCE);
	peer_give_response(peer, WIRE_READ_RESPONSE_ONLY, PEER_SQ_PSN, 1, data, 8);
	expect_silence(peer);
	assert_int_equal(peer->why, ENG_TX_FENCE);
	/* Complete READs and Atomics are enough; the WRITE before need not be. */
	peer_give_response(peer, WIRE_ATOMIC_ACKNOWLEDGE, PEER_SQ_PSN + 1, 2, &value, 8);
	expect_packet(peer, WIRE_WRITE_ONLY, PEER_SQ_PSN + 3);
	expect_packet(peer, WIRE_WRITE_ONLY, PEER_SQ_PSN + 4);
	expect_silence(peer);
}

/* A fence without READs before it holds nothing up. */
static void test_fence_alone(void **state)
{
	struct peer *peer = reader((struct peer_config){ 0 });

	(void)state;
	/* rule C16 test */
	peer_post(peer, ENG_SEND, 8, 0);
	peer_post(peer, ENG_READ, 8, ENG_FENCE);
	expect_packet(peer, WIRE_SEND_ONLY, PEER_SQ_PSN);
	expect_packet(peer, WIRE_READ_REQUEST, PEER_SQ_PSN + 1);
}

/* Several READs whose answers are lost are all asked for again, in order. */
static void test_retry_of_several(void **state)
{
	struct peer *peer = reader((struct peer_config){ 0 });
	uint64_t value = 5;

	(void)state;
	/* rule S12 test */
	peer_post(peer, ENG_READ, 2 * PEER_MTU, ENG_SIGNALED);
	peer_post(peer, ENG_FETCH_ADD, 8, ENG_SIGNALED);
	peer_post(peer, ENG_READ, 8, ENG_SIGNALED);
	peer_forget(peer);
	/* The response to the last one comes, those before were lost. */
	peer_give_response(peer, WIRE_READ_RESPONSE_ONLY, PEER_SQ_PSN + 3, 3, data, 8);
	expect_no_wc(peer);
	expect_packet(peer, WIRE_READ_REQUEST, PEER_SQ_PSN);
	expect_packet(peer, WIRE_FETCH_ADD, PEER_SQ_PSN + 2);
	expect_packet(peer, WIRE_READ_REQUEST, PEER_SQ_PSN + 3);
	expect_silence(peer);
	peer_give_response(peer, WIRE_READ_RESPONSE_FIRST, PEER_SQ_PSN, 1, data, PEER_MTU);
	peer_give_response(peer, WIRE_READ_RESPONSE_LAST, PEER_SQ_PSN + 1, 1, data, PEER_MTU);
	peer_give_response(peer, WIRE_ATOMIC_ACKNOWLEDGE, PEER_SQ_PSN + 2, 2, &value, 8);
	peer_give_response(peer, WIRE_READ_RESPONSE_ONLY, PEER_SQ_PSN + 3, 3, data, 8);
	assert_int_equal(peer->wc_count, 3);
	assert_int_equal(peer_view(peer).outstanding_reads, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PEER_TEST(test_read_is_written_and_completed),
		PEER_TEST(test_partial_retry),
		PEER_TEST(test_partial_answer_with_middle_and_last),
		PEER_TEST(test_gap_in_responses),
		PEER_TEST(test_duplicate_responses),
		PEER_TEST(test_response_of_wrong_length),
		PEER_TEST(test_read_into_lost_region),
		PEER_TEST(test_initiator_depth),
		PEER_TEST(test_fence),
		PEER_TEST(test_fence_alone),
		PEER_TEST(test_retry_of_several),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
