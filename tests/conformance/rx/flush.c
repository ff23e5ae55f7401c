/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* RDMA FLUSH (annex A19) at the responder and at the requester. */
#include "dut.h"

#define ALL_RIGHTS (ENG_LOCAL_WRITE | ENG_REMOTE_WRITE | ENG_FLUSH_GLOBAL | ENG_FLUSH_PERSISTENT)

/* FLUSHes that the engine has executed by eng_ops.flush(). */
static struct eng_flush executed[8];
static unsigned int executed_count;
static bool refuses;

static bool flush(void *owner, const struct eng_flush *request)
{
	(void)owner;
	if (refuses)
		return false;
	executed[executed_count++] = *request;
	return true;
}

static struct dut *flushed(struct dut_config config)
{
	struct dut *dut = dut_rts(config);

	dut->ops.flush = flush;
	executed_count = 0;
	refuses = false;
	return dut;
}

static void give_flush(struct dut *dut, uint32_t psn, uint32_t feth)
{
	struct wire_packet packet = dut_request(dut, WIRE_FLUSH, psn, 0);

	packet.va += 100;
	packet.dma_length = 3000;
	packet.flush = feth;
	dut_give(dut, &packet);
}

static void expect_answer(struct dut *dut, uint32_t psn, uint32_t msn)
{
	const struct wire_packet *packet = expect_packet(dut, WIRE_READ_RESPONSE_ONLY, psn);

	assert_int_equal(packet->payload_length, 0);
	assert_int_equal(packet->msn, msn);
	expect_silence(dut);
}

/* Values of the FETH: types in bits 3..0, selectivity in bits 5..4, the others reserved. */
static void test_flush_is_executed_and_answered(void **state)
{
	static const struct {
		uint32_t feth, need;
		bool whole;
	} rows[] = {
		{ 0x01, ENG_FLUSH_GLOBAL, false },
		{ 0x02, ENG_FLUSH_PERSISTENT, false },
		{ 0x03, ENG_FLUSH_GLOBAL | ENG_FLUSH_PERSISTENT, false },
		{ 0x11, ENG_FLUSH_GLOBAL, true },
		{ 0x12, ENG_FLUSH_PERSISTENT, true },
	};
	struct dut *dut = flushed((struct dut_config){ .access = ALL_RIGHTS });

	(void)state;
	for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		give_flush(dut, DUT_RQ_PSN + i, rows[i].feth);
		expect_answer(dut, DUT_RQ_PSN + i, i + 1);
		assert_int_equal(executed_count, i + 1);
		assert_int_equal(executed[i].need, rows[i].need);
		assert_int_equal(executed[i].whole_region, rows[i].whole);
		assert_int_equal(executed[i].rkey, DUT_RKEY);
		assert_int_equal(executed[i].addr, DUT_REMOTE_VA + 100);
		assert_int_equal(executed[i].length, 3000);
	}
	/* A duplicate is answered again, but not executed. */
	give_flush(dut, DUT_RQ_PSN + 3, rows[3].feth);
	expect_answer(dut, DUT_RQ_PSN + 3, 5);
	assert_int_equal(executed_count, 5);
}

/* Expects that a FLUSH with this FETH gets a NAK with this syndrome and is not executed. */
static void expect_refusal(uint32_t access, uint32_t feth, uint8_t syndrome)
{
	struct dut *dut = flushed((struct dut_config){ .access = access });

	refuses = syndrome == NAK_ACCESS;
	give_flush(dut, DUT_RQ_PSN, feth);
	expect_ack(dut, DUT_RQ_PSN, syndrome, 0);
	expect_silence(dut);
	assert_int_equal(eng_qp_state(dut->qp), ENG_ERR);
	assert_int_equal(executed_count, 0);
	dut_teardown(NULL);
}

static void test_refused_flush(void **state)
{
	(void)state;
	/* Types that the queue pair does not allow. */
	expect_refusal(ALL_RIGHTS & ~ENG_FLUSH_GLOBAL, 0x01, NAK_INVALID);
	expect_refusal(ALL_RIGHTS & ~ENG_FLUSH_PERSISTENT, 0x02, NAK_INVALID);
	expect_refusal(ALL_RIGHTS & ~ENG_FLUSH_PERSISTENT, 0x03, NAK_INVALID);
	/* No type, and reserved values of each field. */
	expect_refusal(ALL_RIGHTS, 0x00, NAK_INVALID);
	expect_refusal(ALL_RIGHTS, 0x05, NAK_INVALID);
	expect_refusal(ALL_RIGHTS, 0x21, NAK_INVALID);
	expect_refusal(ALL_RIGHTS, 0x41, NAK_INVALID);
	/* flush() refuses: R_Key, bounds, rights of the region, memory that cannot persist. */
	expect_refusal(ALL_RIGHTS, 0x01, NAK_ACCESS);
}

/* As READs and Atomics, FLUSHes use responder resources. */
static void test_more_flushes_than_resources(void **state)
{
	struct dut *dut =
		flushed((struct dut_config){ .access = ALL_RIGHTS, .max_dest_rd_atomic = 1 });

	(void)state;
	give_flush(dut, DUT_RQ_PSN, 0x01);
	give_flush(dut, DUT_RQ_PSN + 1, 0x01);
	assert_int_equal(executed_count, 1);
	expect_packet(dut, WIRE_READ_RESPONSE_ONLY, DUT_RQ_PSN);
	expect_ack(dut, DUT_RQ_PSN + 1, NAK_INVALID, 1);
}

/* Posts a FLUSH after the peer's first ACK, and returns its wr_id. */
static uint64_t post_flush(struct dut *dut, uint32_t length, uint32_t feth)
{
	struct eng_send_wqe *wqe = dut_wqe(dut, ENG_FLUSH, 0, ENG_SIGNALED);

	dut_ack(dut, DUT_SQ_PSN - 1, NO_CREDITS_REPORTED, 0);
	wqe->sge_count = 0;
	wqe->length = length;
	wqe->remote.flush = feth;
	eng_sq_push(dut->qp);
	return wqe->wr_id;
}

/* A FLUSH of any length is one packet, and is completed by a READ response without data. */
static void test_requester(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });
	uint64_t id = post_flush(dut, 0xffffffff, 0x13), send;
	const struct wire_packet *packet;

	(void)state;
	send = dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED | ENG_FENCE);
	packet = expect_packet(dut, WIRE_FLUSH, DUT_SQ_PSN);
	assert_int_equal(packet->flush, 0x13);
	assert_int_equal(packet->dma_length, 0xffffffff);
	assert_int_equal(packet->rkey, DUT_THEIR_RKEY);
	assert_true(packet->va == DUT_THEIR_VA);
	assert_int_equal(packet->payload_length, 0);
	/* The fence of the WRITE waits for the response. */
	expect_silence(dut);
	expect_no_wc(dut);
	dut_give_response(dut, WIRE_READ_RESPONSE_ONLY, DUT_SQ_PSN, 1, NULL, 0);
	expect_wc(dut, id, ENG_SUCCESS);
	expect_packet(dut, WIRE_WRITE_ONLY, DUT_SQ_PSN + 1);
	dut_ack(dut, DUT_SQ_PSN + 1, NO_CREDITS_REPORTED, 2);
	expect_wc(dut, send, ENG_SUCCESS);
}

/* A READ response with data is not a valid response to a FLUSH. */
static void test_requester_rejects_data(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });
	uint64_t id = post_flush(dut, 4, 0x01);

	(void)state;
	expect_packet(dut, WIRE_FLUSH, DUT_SQ_PSN);
	dut_give_response(dut, WIRE_READ_RESPONSE_ONLY, DUT_SQ_PSN, 1, "data", 4);
	expect_wc(dut, id, ENG_BAD_RESP_ERR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DUT_TEST(test_flush_is_executed_and_answered), DUT_TEST(test_refused_flush),
		DUT_TEST(test_more_flushes_than_resources),    DUT_TEST(test_requester),
		DUT_TEST(test_requester_rejects_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
