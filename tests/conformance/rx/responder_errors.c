/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Consequences of invalid requests at the responder: NAK, completion, event. */
#include "dut.h"

#include <string.h>

static struct dut *dut_with_receives(unsigned int count, struct dut_config config)
{
	struct dut *dut = dut_rts(config);

	for (unsigned int i = 0; i < count; i++)
		dut_post_recv(dut, 8192);
	dut_forget(dut);
	return dut;
}

/* Expects one NAK, the QP in ERR, one event, flushed receives, and no further response. */
static void expect_fatal(struct dut *dut, uint32_t psn, uint8_t syndrome, uint32_t msn,
			 enum eng_event event)
{
	expect_ack(dut, psn, syndrome, msn);
	expect_silence(dut);
	assert_int_equal(eng_qp_state(dut->qp), ENG_ERR);
	assert_int_equal(dut_count_events(dut, event), 1);
	dut_give_request(dut, WIRE_WRITE_ONLY, psn, 8);
	expect_silence(dut);
	assert_int_equal(eng_ring_used(&dut->rq), 0);
}

/* Invalid sequences: Middle or Last without a matching First, or a new request before the Last. */
static void test_opcode_sequence(void **state)
{
	static const struct {
		int first;
		uint8_t second;
	} pairs[] = {
		{ -1, WIRE_SEND_MIDDLE },
		{ -1, WIRE_SEND_LAST },
		{ -1, WIRE_WRITE_MIDDLE },
		{ -1, WIRE_WRITE_LAST },
		{ -1, WIRE_WRITE_LAST_IMM },
		{ WIRE_SEND_FIRST, WIRE_SEND_FIRST },
		{ WIRE_SEND_FIRST, WIRE_SEND_ONLY },
		{ WIRE_SEND_FIRST, WIRE_WRITE_MIDDLE },
		{ WIRE_SEND_FIRST, WIRE_WRITE_LAST },
		{ WIRE_SEND_FIRST, WIRE_WRITE_ONLY },
		{ WIRE_SEND_FIRST, WIRE_READ_REQUEST },
		{ WIRE_SEND_FIRST, WIRE_FETCH_ADD },
		{ WIRE_WRITE_FIRST, WIRE_SEND_MIDDLE },
		{ WIRE_WRITE_FIRST, WIRE_SEND_LAST },
		{ WIRE_WRITE_FIRST, WIRE_WRITE_ONLY },
		{ WIRE_WRITE_FIRST, WIRE_COMPARE_SWAP },
	};

	(void)state;
	/* rule S5 test */
	for (unsigned int i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		struct dut *dut = dut_with_receives(2, (struct dut_config){ 0 });
		uint32_t psn = DUT_RQ_PSN;
		struct wire_packet packet;

		if (pairs[i].first >= 0) {
			packet = dut_request(dut, (uint8_t)pairs[i].first, psn++, DUT_MTU);
			packet.dma_length = 4 * DUT_MTU;
			dut_give(dut, &packet);
			dut_forget(dut);
		}
		packet = dut_request(dut, pairs[i].second, psn, DUT_MTU);
		if (!(wire_op_headers(pairs[i].second) & WIRE_HAS_PAYLOAD))
			packet.payload_length = 0;
		dut_give(dut, &packet);
		expect_fatal(dut, psn, NAK_INVALID, 0, ENG_EVENT_QP_REQ_ERR);
		for (int j = 0; j < 2; j++)
			expect_wc(dut, 0x2000 + (uint64_t)j, ENG_WR_FLUSH_ERR);
		expect_no_wc(dut);
		dut_teardown(NULL);
	}
}

/* An operation that the access flags of the QP do not allow is an invalid request. */
static void test_access_flags_of_the_qp(void **state)
{
	static const struct {
		uint8_t opcode;
		uint32_t missing;
	} rows[] = {
		{ WIRE_WRITE_ONLY, ENG_REMOTE_WRITE },	  { WIRE_WRITE_ONLY_IMM, ENG_REMOTE_WRITE },
		{ WIRE_READ_REQUEST, ENG_REMOTE_READ },	  { WIRE_FETCH_ADD, ENG_REMOTE_ATOMIC },
		{ WIRE_COMPARE_SWAP, ENG_REMOTE_ATOMIC },
	};

	(void)state;
	/* rule S5 test */
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct dut *dut = dut_with_receives(
			0, (struct dut_config){ .access = 31 & ~rows[i].missing });
		bool payload = wire_op_headers(rows[i].opcode) & WIRE_HAS_PAYLOAD;

		/* Checked before the receive WQE: the WRITE with immediate gets no RNR NAK. */
		dut_give_request(dut, rows[i].opcode, DUT_RQ_PSN, payload ? 8 : 0);
		expect_fatal(dut, DUT_RQ_PSN, NAK_INVALID, 0, ENG_EVENT_QP_REQ_ERR);
		assert_int_equal(dut->remote[0], 0);
		dut_teardown(NULL);
	}
	/* SENDs need no access flag. */
	struct dut *dut = dut_with_receives(1, (struct dut_config){ .access = DUT_NO_ACCESS });
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN, 8);
	expect_ack(dut, DUT_RQ_PSN, ACK_CODE(0), 1);
}

/* The receive WQE is checked before the R_Key: an RNR NAK, although the key is wrong. */
static void test_receive_before_rkey(void **state)
{
	struct dut *dut = dut_with_receives(0, (struct dut_config){ 0 });
	struct wire_packet packet = dut_request(dut, WIRE_WRITE_ONLY_IMM, DUT_RQ_PSN, 8);

	(void)state;
	/* rule S5 test */
	packet.rkey = 0xbad;
	dut_give(dut, &packet);
	expect_ack(dut, DUT_RQ_PSN, RNR_NAK(12), 0);
	assert_int_equal(eng_qp_state(dut->qp), ENG_RTS);
	dut_post_recv(dut, 8);
	dut_forget(dut);
	dut_give(dut, &packet);
	expect_fatal(dut, DUT_RQ_PSN, NAK_ACCESS, 0, ENG_EVENT_QP_ACCESS_ERR);
}

/* The length is checked before the R_Key, which is wrong as well: invalid request. */
static void test_length_before_rkey(void **state)
{
	static const struct {
		uint8_t opcode;
		uint32_t payload, announced;
	} rows[] = {
		{ WIRE_WRITE_ONLY, 8, 9 },
		{ WIRE_WRITE_ONLY, 8, 7 },
		{ WIRE_WRITE_ONLY, 0, 1 },
		{ WIRE_WRITE_ONLY, DUT_MTU + 4, DUT_MTU + 4 },
		{ WIRE_WRITE_FIRST, DUT_MTU, DUT_MTU },
		{ WIRE_WRITE_FIRST, DUT_MTU - 1, 2 * DUT_MTU },
		{ WIRE_WRITE_FIRST, DUT_MTU, DUT_MTU - 4 },
		{ WIRE_WRITE_FIRST, DUT_MTU, 0x80000001 },
		{ WIRE_READ_REQUEST, 0, 0x80000001 },
	};

	(void)state;
	/* rule S5 test, rule S1 test */
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct dut *dut = dut_with_receives(0, (struct dut_config){ 0 });
		struct wire_packet packet =
			dut_request(dut, rows[i].opcode, DUT_RQ_PSN, rows[i].payload);

		packet.dma_length = rows[i].announced;
		packet.rkey = 0xbad;
		dut_give(dut, &packet);
		expect_fatal(dut, DUT_RQ_PSN, NAK_INVALID, 0, ENG_EVENT_QP_REQ_ERR);
		dut_teardown(NULL);
	}
}

/* Later packets whose length does not match their message are invalid requests. */
static void test_length_of_later_packets(void **state)
{
	static const struct {
		uint8_t first, second;
		uint32_t payload;
	} rows[] = {
		{ WIRE_WRITE_FIRST, WIRE_WRITE_LAST, 9 },
		{ WIRE_WRITE_FIRST, WIRE_WRITE_LAST, 7 },
		{ WIRE_WRITE_FIRST, WIRE_WRITE_LAST, 0 },
		{ WIRE_WRITE_FIRST, WIRE_WRITE_MIDDLE, 8 },
		{ WIRE_SEND_FIRST, WIRE_SEND_MIDDLE, 8 },
		{ WIRE_SEND_FIRST, WIRE_SEND_LAST, 0 },
		{ WIRE_SEND_FIRST, WIRE_SEND_LAST, DUT_MTU + 1 },
		{ WIRE_WRITE_FIRST, WIRE_WRITE_MIDDLE, DUT_MTU },
	};

	(void)state;
	/* rule S5 test, rule S1 test: the RETH of the WRITE announces DUT_MTU + 8 bytes. */
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct dut *dut = dut_with_receives(1, (struct dut_config){ 0 });
		struct wire_packet packet = dut_request(dut, rows[i].first, DUT_RQ_PSN, DUT_MTU);

		packet.dma_length = DUT_MTU + 8;
		dut_give(dut, &packet);
		dut_forget(dut);
		dut_give_request(dut, rows[i].second, DUT_RQ_PSN + 1, rows[i].payload);
		expect_fatal(dut, DUT_RQ_PSN + 1, NAK_INVALID, 0, ENG_EVENT_QP_REQ_ERR);
		assert_int_equal(dut->remote[DUT_MTU], 0);
		dut_teardown(NULL);
	}
}

/* A wrong R_Key, range or right of the region is a remote access error. */
static void test_remote_access(void **state)
{
	static const struct {
		uint8_t opcode;
		uint32_t rkey;
		uint64_t va;
		uint32_t length;
	} rows[] = {
		{ WIRE_WRITE_ONLY, 0xbad, DUT_REMOTE_VA, 8 },
		{ WIRE_WRITE_ONLY, DUT_RKEY, DUT_REMOTE_VA - 1, 8 },
		{ WIRE_WRITE_ONLY, DUT_RKEY, DUT_REMOTE_VA + DUT_REGION_BYTES - 7, 8 },
		{ WIRE_WRITE_ONLY, DUT_RKEY, UINT64_MAX - 3, 8 },
		{ WIRE_WRITE_ONLY, 0x4004, 0x4000, 8 },
		{ WIRE_WRITE_FIRST, DUT_RKEY, DUT_REMOTE_VA, DUT_REGION_BYTES + 1 },
		{ WIRE_READ_REQUEST, 0xbad, DUT_REMOTE_VA, 8 },
		{ WIRE_READ_REQUEST, DUT_RKEY, DUT_REMOTE_VA, DUT_REGION_BYTES + 1 },
		{ WIRE_READ_REQUEST, 0x5005, 0x5000, 8 },
		{ WIRE_FETCH_ADD, 0xbad, DUT_REMOTE_VA, 0 },
		{ WIRE_FETCH_ADD, DUT_RKEY, DUT_REMOTE_VA + DUT_REGION_BYTES, 0 },
		{ WIRE_COMPARE_SWAP, 0x4004, 0x4000, 0 },
	};

	(void)state;
	/* rule S5 test */
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct dut *dut = dut_with_receives(0, (struct dut_config){ 0 });
		struct wire_packet packet = dut_request(dut, rows[i].opcode, DUT_RQ_PSN, 0);

		dut_region_add(dut, 0x4004, 0x4000, 64, ENG_REMOTE_READ);
		dut_region_add(dut, 0x5005, 0x5000, 64, ENG_LOCAL_WRITE | ENG_REMOTE_WRITE);
		packet.rkey = rows[i].rkey;
		packet.va = rows[i].va;
		packet.dma_length = rows[i].length;
		if (rows[i].opcode == WIRE_WRITE_ONLY)
			packet.payload_length = rows[i].length;
		if (rows[i].opcode == WIRE_WRITE_FIRST)
			packet.payload_length = DUT_MTU;
		dut_give(dut, &packet);
		expect_fatal(dut, DUT_RQ_PSN, NAK_ACCESS, 0, ENG_EVENT_QP_ACCESS_ERR);
		assert_int_equal(dut->remote[0], 0);
		dut_teardown(NULL);
	}
}

/* An atomic on a misaligned address is an invalid request. */
static void test_misaligned_atomic(void **state)
{
	struct dut *dut = dut_with_receives(0, (struct dut_config){ 0 });

	(void)state;
	/* rule S5 test */
	dut_give_atomic(dut, WIRE_FETCH_ADD, DUT_RQ_PSN, 4, 0, 1);
	expect_fatal(dut, DUT_RQ_PSN, NAK_INVALID, 0, ENG_EVENT_QP_REQ_ERR);
}

/* R_Key and address of a WRITE or READ of zero bytes are not checked. */
static void test_zero_length_with_garbage(void **state)
{
	struct dut *dut = dut_with_receives(1, (struct dut_config){ 0 });
	struct wire_packet packet = dut_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN, 0);
	const struct wire_packet *answer;

	(void)state;
	/* rule S5 test */
	packet.rkey = 0xdeadbeef;
	packet.va = 0xfeedfeedfeedfeed;
	dut_give(dut, &packet);
	expect_ack(dut, DUT_RQ_PSN, ACK_CODE(1), 1);
	packet.opcode = WIRE_WRITE_ONLY_IMM;
	packet.psn++;
	dut_give(dut, &packet);
	expect_ack(dut, DUT_RQ_PSN + 1, ACK_CODE(0), 2);
	assert_int_equal(expect_wc(dut, 0x2000, ENG_SUCCESS)->byte_len, 0);
	packet.opcode = WIRE_READ_REQUEST;
	packet.psn++;
	dut_give(dut, &packet);
	answer = expect_packet(dut, WIRE_READ_RESPONSE_ONLY, DUT_RQ_PSN + 2);
	assert_int_equal(answer->payload_length, 0);
	assert_int_equal(eng_qp_state(dut->qp), ENG_RTS);
}

/* A receive WQE too small: the consumer gets a length error, the peer an invalid request. */
static void test_receive_too_small(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });
	uint64_t small, next;

	(void)state;
	/* rule C18 test */
	small = dut_post_recv(dut, DUT_MTU + 4);
	next = dut_post_recv(dut, 8192);
	dut_forget(dut);
	memset(dut->local, 0, DUT_REGION_BYTES);
	dut_give_request(dut, WIRE_SEND_FIRST, DUT_RQ_PSN, DUT_MTU);
	dut_forget(dut);
	dut_give_request(dut, WIRE_SEND_LAST, DUT_RQ_PSN + 1, 5);
	expect_fatal(dut, DUT_RQ_PSN + 1, NAK_INVALID, 0, ENG_EVENT_QP_REQ_ERR);
	expect_wc(dut, small, ENG_LOC_LEN_ERR);
	expect_wc(dut, next, ENG_WR_FLUSH_ERR);
	expect_no_wc(dut);
	assert_int_equal(dut->local[DUT_MTU + 4], 0);
}

/* A WRITE with immediate does not use the buffers of its receive WQE. */
static void test_write_imm_needs_no_buffer(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });
	uint64_t recv = dut_post_recv(dut, 0);

	(void)state;
	/* rule C18 test */
	dut_forget(dut);
	dut_give_request(dut, WIRE_WRITE_ONLY_IMM, DUT_RQ_PSN, 512);
	expect_ack(dut, DUT_RQ_PSN, ACK_CODE(0), 1);
	assert_int_equal(expect_wc(dut, recv, ENG_SUCCESS)->byte_len, 512);
}

/* An SGE of the receive is invalid: local protection error, and a NAK remote operational error. */
static void test_receive_with_wrong_lkey(void **state)
{
	struct eng_recv_wqe *wqe;
	struct dut *dut;
	uint64_t recv;

	(void)state;
	/* rule S11 test, rule S13 test */
	for (int kind = 0; kind < 3; kind++) {
		dut = dut_rts((struct dut_config){ 0 });
		dut_region_add(dut, 0x6006, 0x6000, 64, 0);
		wqe = eng_rq_next(&dut->rq);
		recv = dut_post_recv(dut, 64);
		if (kind == 0)
			wqe->sge[0].lkey = 0xbad;
		else if (kind == 1)
			wqe->sge[0].addr += DUT_REGION_BYTES;
		else
			wqe->sge[0] = (struct eng_sge){ 0x6000, 64, 0x6006 };
		dut_forget(dut);
		dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN, 64);
		expect_fatal(dut, DUT_RQ_PSN, NAK_OPERATIONAL, 0, ENG_EVENT_QP_FATAL);
		expect_wc(dut, recv, ENG_LOC_PROT_ERR);
		expect_no_wc(dut);
	}
}

/* More READs and Atomics at once than max_dest_rd_atomic: invalid request. */
static void test_too_many_reads(void **state)
{
	struct dut *dut = dut_with_receives(0, (struct dut_config){ .max_dest_rd_atomic = 2 });

	(void)state;
	/* rule S5 test, rule S12 test */
	for (uint32_t i = 0; i < 3; i++)
		dut_give_read(dut, DUT_RQ_PSN + i, 0, 8);
	expect_packet(dut, WIRE_READ_RESPONSE_ONLY, DUT_RQ_PSN);
	expect_packet(dut, WIRE_READ_RESPONSE_ONLY, DUT_RQ_PSN + 1);
	expect_fatal(dut, DUT_RQ_PSN + 2, NAK_INVALID, 2, ENG_EVENT_QP_REQ_ERR);
}

/* A SEND whose key cannot be invalidated gets no response; earlier requests are acknowledged. */
static void test_refused_invalidate(void **state)
{
	(void)state;
	/* rule S11 test */
	for (uint32_t before = 0; before < 2; before++) {
		struct dut *dut = dut_with_receives(3, (struct dut_config){ 0 });
		struct wire_packet packet = dut_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN, 8);

		dut->refuse_invalidate = true;
		packet.ack_request = false;
		if (before) {
			dut_give(dut, &packet);
			expect_wc(dut, 0x2000, ENG_SUCCESS);
		}
		dut_give_request(dut, WIRE_SEND_ONLY_INVALIDATE, DUT_RQ_PSN + before, 8);
		if (before)
			expect_ack(dut, DUT_RQ_PSN, ACK_CODE(0), 1);
		expect_silence(dut);
		assert_int_equal(eng_qp_state(dut->qp), ENG_ERR);
		assert_int_equal(dut_count_events(dut, ENG_EVENT_QP_ACCESS_ERR), 1);
		expect_wc(dut, 0x2000 + before, ENG_REM_INV_REQ_ERR);
		expect_wc(dut, 0x2001 + before, ENG_WR_FLUSH_ERR);
		dut_teardown(NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DUT_TEST(test_opcode_sequence),		DUT_TEST(test_access_flags_of_the_qp),
		DUT_TEST(test_receive_before_rkey),	DUT_TEST(test_length_before_rkey),
		DUT_TEST(test_length_of_later_packets), DUT_TEST(test_remote_access),
		DUT_TEST(test_misaligned_atomic),	DUT_TEST(test_zero_length_with_garbage),
		DUT_TEST(test_receive_too_small),	DUT_TEST(test_write_imm_needs_no_buffer),
		DUT_TEST(test_receive_with_wrong_lkey), DUT_TEST(test_too_many_reads),
		DUT_TEST(test_refused_invalidate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
