/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* READs and Atomics at the requester: responses, losses, depth, fences. */
#include "dut.h"

#include <string.h>

#define READ_BYTES (4 * DUT_MTU - 100)

static uint8_t data[READ_BYTES];

static struct dut *reader(struct dut_config config)
{
	struct dut *dut = dut_rts(config);

	dut_ack(dut, dut->config.sq_psn - 1, NO_CREDITS_REPORTED, 0);
	memset(dut->local, 0, DUT_REGION_BYTES);
	dut_fill(data, READ_BYTES, 9000);
	return dut;
}

/* Gives response packet i of a READ of READ_BYTES with PSN DUT_SQ_PSN, with any opcode. */
static void answer(struct dut *dut, uint8_t opcode, uint32_t i)
{
	dut_give_response(dut, opcode, DUT_SQ_PSN + i, 1, data + i * DUT_MTU,
			  i == 3 ? READ_BYTES - 3 * DUT_MTU : DUT_MTU);
}

static void expect_request(struct dut *dut, uint32_t i)
{
	const struct wire_packet *packet = expect_packet(dut, WIRE_READ_REQUEST, DUT_SQ_PSN + i);

	assert_true(packet->va == DUT_THEIR_VA + i * DUT_MTU);
	assert_int_equal(packet->dma_length, READ_BYTES - i * DUT_MTU);
	assert_int_equal(packet->rkey, DUT_THEIR_RKEY);
}

/* Responses are written as they arrive; the WQE retires with the last. */
static void test_read_is_written_and_completed(void **state)
{
	struct dut *dut = reader((struct dut_config){ 0 });
	uint64_t id = dut_post(dut, ENG_READ, READ_BYTES, ENG_SIGNALED);

	(void)state;
	/* rule S12 test */
	expect_request(dut, 0);
	expect_silence(dut);
	answer(dut, WIRE_READ_RESPONSE_FIRST, 0);
	expect_pattern(dut->local, DUT_MTU, 9000);
	answer(dut, WIRE_READ_RESPONSE_MIDDLE, 1);
	answer(dut, WIRE_READ_RESPONSE_MIDDLE, 2);
	expect_no_wc(dut);
	answer(dut, WIRE_READ_RESPONSE_LAST, 3);
	assert_int_equal(expect_wc(dut, id, ENG_SUCCESS)->byte_len, READ_BYTES);
	expect_pattern(dut->local, READ_BYTES, 9000);
	assert_int_equal(dut->local[READ_BYTES], 0);
	expect_silence(dut);
}

/* After a loss only the missing part is requested; its responses may start with First ... */
static void test_partial_retry(void **state)
{
	struct dut *dut = reader((struct dut_config){ 0 });
	uint64_t id = dut_post(dut, ENG_READ, READ_BYTES, ENG_SIGNALED);

	(void)state;
	/* rule S12 test */
	expect_request(dut, 0);
	answer(dut, WIRE_READ_RESPONSE_FIRST, 0);
	answer(dut, WIRE_READ_RESPONSE_MIDDLE, 1);
	assert_true(dut_advance_to_deadline(dut));
	expect_request(dut, 2);
	expect_silence(dut);
	answer(dut, WIRE_READ_RESPONSE_FIRST, 2);
	answer(dut, WIRE_READ_RESPONSE_LAST, 3);
	expect_wc(dut, id, ENG_SUCCESS);
	expect_pattern(dut->local, READ_BYTES, 9000);
}

/* ... or, as those of the kernel's rxe, with Middle or Last. */
static void test_partial_answer_with_middle_and_last(void **state)
{
	struct dut *dut = reader((struct dut_config){ 0 });
	uint64_t id = dut_post(dut, ENG_READ, READ_BYTES, ENG_SIGNALED);

	(void)state;
	/* rule S12 test */
	expect_request(dut, 0);
	answer(dut, WIRE_READ_RESPONSE_FIRST, 0);
	assert_true(dut_advance_to_deadline(dut));
	expect_request(dut, 1);
	answer(dut, WIRE_READ_RESPONSE_MIDDLE, 1);
	answer(dut, WIRE_READ_RESPONSE_MIDDLE, 2);
	assert_true(dut_advance_to_deadline(dut));
	expect_request(dut, 3);
	answer(dut, WIRE_READ_RESPONSE_LAST, 3);
	expect_wc(dut, id, ENG_SUCCESS);
	expect_pattern(dut->local, READ_BYTES, 9000);
}

/* After a response beyond a hole the missing part is requested at once. */
static void test_gap_in_responses(void **state)
{
	struct dut *dut = reader((struct dut_config){ 0 });
	uint64_t id = dut_post(dut, ENG_READ, READ_BYTES, ENG_SIGNALED), start = dut->now;

	(void)state;
	/* rule S12 test, rule S8 test */
	expect_request(dut, 0);
	answer(dut, WIRE_READ_RESPONSE_FIRST, 0);
	answer(dut, WIRE_READ_RESPONSE_MIDDLE, 2);
	expect_request(dut, 1);
	answer(dut, WIRE_READ_RESPONSE_LAST, 3);
	expect_silence(dut); /* one request for one hole */
	answer(dut, WIRE_READ_RESPONSE_FIRST, 1);
	answer(dut, WIRE_READ_RESPONSE_MIDDLE, 2);
	answer(dut, WIRE_READ_RESPONSE_LAST, 3);
	expect_wc(dut, id, ENG_SUCCESS);
	expect_pattern(dut->local, READ_BYTES, 9000);
	assert_true(dut->now == start);
}

/* Duplicate responses are ignored. */
static void test_duplicate_responses(void **state)
{
	struct dut *dut = reader((struct dut_config){ 0 });
	uint64_t id = dut_post(dut, ENG_READ, READ_BYTES, ENG_SIGNALED);

	(void)state;
	/* rule S12 test */
	expect_request(dut, 0);
	answer(dut, WIRE_READ_RESPONSE_FIRST, 0);
	answer(dut, WIRE_READ_RESPONSE_FIRST, 0);
	answer(dut, WIRE_READ_RESPONSE_MIDDLE, 1);
	memset(data, 0xee, DUT_MTU);
	answer(dut, WIRE_READ_RESPONSE_FIRST, 0);
	answer(dut, WIRE_READ_RESPONSE_MIDDLE, 2);
	answer(dut, WIRE_READ_RESPONSE_LAST, 3);
	answer(dut, WIRE_READ_RESPONSE_LAST, 3);
	expect_wc(dut, id, ENG_SUCCESS);
	expect_no_wc(dut);
	expect_pattern(dut->local, READ_BYTES, 9000);
	expect_silence(dut);
}

/* A response whose length does not match its PSN: the READ fails, and nothing is written. */
static void test_response_of_wrong_length(void **state)
{
	static const struct {
		uint8_t opcode;
		uint32_t i, length;
	} rows[] = {
		{ WIRE_READ_RESPONSE_FIRST, 0, DUT_MTU - 4 },
		{ WIRE_READ_RESPONSE_FIRST, 0, DUT_MTU + 4 },
		{ WIRE_READ_RESPONSE_ONLY, 0, DUT_MTU },
		{ WIRE_READ_RESPONSE_LAST, 0, 8 },
		{ WIRE_READ_RESPONSE_ONLY, 0, 0 },
	};

	(void)state;
	/* rule S12 test */
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct dut *dut = reader((struct dut_config){ 0 });
		uint64_t id = dut_post(dut, ENG_READ, READ_BYTES, 0);
		static uint8_t bytes[2 * DUT_MTU] = { 0xff };

		dut_forget(dut);
		dut_give_response(dut, rows[i].opcode, DUT_SQ_PSN + rows[i].i, 1, bytes,
				  rows[i].length);
		assert_int_equal(dut->wc_count, 1);
		assert_true(dut->wcs[0].wr_id == id);
		assert_true(dut->wcs[0].status == ENG_BAD_RESP_ERR ||
			    dut->wcs[0].status == ENG_LOC_LEN_ERR);
		assert_int_equal(eng_qp_state(dut->qp), ENG_ERR);
		assert_int_equal(dut->local[0], 0);
	}
}

/* The region for the responses is deregistered: local protection error. */
static void test_read_into_lost_region(void **state)
{
	struct dut *dut = reader((struct dut_config){ 0 });
	uint64_t id = dut_post(dut, ENG_READ, READ_BYTES, 0);

	(void)state;
	/* rule S13 test */
	dut_forget(dut);
	answer(dut, WIRE_READ_RESPONSE_FIRST, 0);
	dut->regions[0].key = 0;
	answer(dut, WIRE_READ_RESPONSE_MIDDLE, 1);
	expect_wc(dut, id, ENG_LOC_PROT_ERR);
	expect_no_wc(dut);
}

/* At most max_rd_atomic READs and Atomics are outstanding. */
static void test_initiator_depth(void **state)
{
	struct dut *dut = reader((struct dut_config){ .max_rd_atomic = 2 });
	uint64_t value = 1;

	(void)state;
	/* rule S12 test */
	dut_post(dut, ENG_READ, 8, ENG_SIGNALED);
	dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED);
	dut_post(dut, ENG_FETCH_ADD, 8, ENG_SIGNALED);
	dut_post(dut, ENG_READ, 8, ENG_SIGNALED);
	dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED);
	expect_packet(dut, WIRE_READ_REQUEST, DUT_SQ_PSN);
	expect_packet(dut, WIRE_WRITE_ONLY, DUT_SQ_PSN + 1);
	expect_packet(dut, WIRE_FETCH_ADD, DUT_SQ_PSN + 2);
	expect_silence(dut);
	assert_int_equal(dut->why, ENG_TX_READ_DEPTH);
	assert_int_equal(dut_info(dut).outstanding_reads, 2);
	dut_give_response(dut, WIRE_READ_RESPONSE_ONLY, DUT_SQ_PSN, 1, data, 8);
	expect_packet(dut, WIRE_READ_REQUEST, DUT_SQ_PSN + 3);
	expect_packet(dut, WIRE_WRITE_ONLY, DUT_SQ_PSN + 4);
	dut_give_response(dut, WIRE_ATOMIC_ACKNOWLEDGE, DUT_SQ_PSN + 2, 3, &value, 8);
	dut_give_response(dut, WIRE_READ_RESPONSE_ONLY, DUT_SQ_PSN + 3, 4, data, 8);
	assert_int_equal(dut_info(dut).outstanding_reads, 0);
	dut_ack(dut, DUT_SQ_PSN + 4, NO_CREDITS_REPORTED, 5);
	assert_int_equal(dut->wc_count, 5);
}

/* A fenced request, and all after it, wait until all earlier READs and Atomics are complete. */
static void test_fence(void **state)
{
	struct dut *dut = reader((struct dut_config){ 0 });
	uint64_t value = 1;

	(void)state;
	/* rule C16 test, rule C15 test */
	dut_post(dut, ENG_READ, 8, 0);
	dut_post(dut, ENG_COMPARE_SWAP, 8, 0);
	dut_post(dut, ENG_WRITE, 8, 0);
	dut_post(dut, ENG_WRITE, 8, ENG_FENCE);
	dut_post(dut, ENG_WRITE, 8, 0);
	expect_packet(dut, WIRE_READ_REQUEST, DUT_SQ_PSN);
	expect_packet(dut, WIRE_COMPARE_SWAP, DUT_SQ_PSN + 1);
	expect_packet(dut, WIRE_WRITE_ONLY, DUT_SQ_PSN + 2);
	expect_silence(dut);
	assert_int_equal(dut->why, ENG_TX_FENCE);
	dut_give_response(dut, WIRE_READ_RESPONSE_ONLY, DUT_SQ_PSN, 1, data, 8);
	expect_silence(dut);
	assert_int_equal(dut->why, ENG_TX_FENCE);
	/* Only the READs and Atomics must be complete, not the WRITE before. */
	dut_give_response(dut, WIRE_ATOMIC_ACKNOWLEDGE, DUT_SQ_PSN + 1, 2, &value, 8);
	expect_packet(dut, WIRE_WRITE_ONLY, DUT_SQ_PSN + 3);
	expect_packet(dut, WIRE_WRITE_ONLY, DUT_SQ_PSN + 4);
	expect_silence(dut);
}

/* A fenced request without READs before it does not wait. */
static void test_fence_alone(void **state)
{
	struct dut *dut = reader((struct dut_config){ 0 });

	(void)state;
	/* rule C16 test */
	dut_post(dut, ENG_SEND, 8, 0);
	dut_post(dut, ENG_READ, 8, ENG_FENCE);
	expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN);
	expect_packet(dut, WIRE_READ_REQUEST, DUT_SQ_PSN + 1);
}

/* Several READs and Atomics whose responses are lost are all requested again, in order. */
static void test_retry_of_several(void **state)
{
	struct dut *dut = reader((struct dut_config){ 0 });
	uint64_t value = 5;

	(void)state;
	/* rule S12 test */
	dut_post(dut, ENG_READ, 2 * DUT_MTU, ENG_SIGNALED);
	dut_post(dut, ENG_FETCH_ADD, 8, ENG_SIGNALED);
	dut_post(dut, ENG_READ, 8, ENG_SIGNALED);
	dut_forget(dut);
	/* The response to the last one arrives; those before were lost. */
	dut_give_response(dut, WIRE_READ_RESPONSE_ONLY, DUT_SQ_PSN + 3, 3, data, 8);
	expect_no_wc(dut);
	expect_packet(dut, WIRE_READ_REQUEST, DUT_SQ_PSN);
	expect_packet(dut, WIRE_FETCH_ADD, DUT_SQ_PSN + 2);
	expect_packet(dut, WIRE_READ_REQUEST, DUT_SQ_PSN + 3);
	expect_silence(dut);
	dut_give_response(dut, WIRE_READ_RESPONSE_FIRST, DUT_SQ_PSN, 1, data, DUT_MTU);
	dut_give_response(dut, WIRE_READ_RESPONSE_LAST, DUT_SQ_PSN + 1, 1, data, DUT_MTU);
	dut_give_response(dut, WIRE_ATOMIC_ACKNOWLEDGE, DUT_SQ_PSN + 2, 2, &value, 8);
	dut_give_response(dut, WIRE_READ_RESPONSE_ONLY, DUT_SQ_PSN + 3, 3, data, 8);
	assert_int_equal(dut->wc_count, 3);
	assert_int_equal(dut_info(dut).outstanding_reads, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DUT_TEST(test_read_is_written_and_completed),
		DUT_TEST(test_partial_retry),
		DUT_TEST(test_partial_answer_with_middle_and_last),
		DUT_TEST(test_gap_in_responses),
		DUT_TEST(test_duplicate_responses),
		DUT_TEST(test_response_of_wrong_length),
		DUT_TEST(test_read_into_lost_region),
		DUT_TEST(test_initiator_depth),
		DUT_TEST(test_fence),
		DUT_TEST(test_fence_alone),
		DUT_TEST(test_retry_of_several),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
