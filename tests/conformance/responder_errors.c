/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* What the responder does with requests that are wrong: which NAK, which completion, which event.
 */
#include "peer.h"

#include <string.h>

static struct peer *peer_with_receives(unsigned int count, struct peer_config config)
{
	struct peer *peer = peer_rts(config);

	for (unsigned int i = 0; i < count; i++)
		peer_post_recv(peer, 8192);
	peer_forget(peer);
	return peer;
}

/* One NAK, the QP in ERR, one event, the receives flushed, then silence. */
static void expect_fatal(struct peer *peer, uint32_t psn, uint8_t syndrome, uint32_t msn,
			 enum eng_event event)
{
	expect_ack(peer, psn, syndrome, msn);
	expect_silence(peer);
	assert_int_equal(eng_qp_state(peer->qp), ENG_ERR);
	assert_int_equal(peer_count_events(peer, event), 1);
	peer_give_request(peer, WIRE_WRITE_ONLY, psn, 8);
	expect_silence(peer);
	assert_int_equal(eng_ring_used(&peer->rq), 0);
}

/* A message that has not begun cannot go on; one that has begun cannot begin again. */
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
		struct peer *peer = peer_with_receives(2, (struct peer_config){ 0 });
		uint32_t psn = PEER_RQ_PSN;
		struct wire_packet packet;

		if (pairs[i].first >= 0) {
			packet = peer_request(peer, (uint8_t)pairs[i].first, psn++, PEER_MTU);
			packet.dma_length = 4 * PEER_MTU;
			peer_give(peer, &packet);
			peer_forget(peer);
		}
		packet = peer_request(peer, pairs[i].second, psn, PEER_MTU);
		if (!(wire_op_headers(pairs[i].second) & WIRE_HAS_PAYLOAD))
			packet.payload_length = 0;
		peer_give(peer, &packet);
		expect_fatal(peer, psn, NAK_INVALID, 0, ENG_EVENT_QP_REQ_ERR);
		for (int j = 0; j < 2; j++)
			expect_wc(peer, 0x2000 + (uint64_t)j, ENG_WR_FLUSH_ERR);
		expect_no_wc(peer);
		peer_teardown(NULL);
	}
}

/* An operation for which the QP has not been opened is an invalid request. */
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
		struct peer *peer = peer_with_receives(
			0, (struct peer_config){ .access = 31 & ~rows[i].missing });
		bool payload = wire_op_headers(rows[i].opcode) & WIRE_HAS_PAYLOAD;

		/* Before the receive WQE: the WRITE with immediate finds none and gets no RNR. */
		peer_give_request(peer, rows[i].opcode, PEER_RQ_PSN, payload ? 8 : 0);
		expect_fatal(peer, PEER_RQ_PSN, NAK_INVALID, 0, ENG_EVENT_QP_REQ_ERR);
		assert_int_equal(peer->remote[0], 0);
		peer_teardown(NULL);
	}
	/* SENDs need no right at all. */
	struct peer *peer = peer_with_receives(1, (struct peer_config){ .access = PEER_NO_ACCESS });
	peer_give_request(peer, WIRE_SEND_ONLY, PEER_RQ_PSN, 8);
	expect_ack(peer, PEER_RQ_PSN, ACK_CODE(0), 1);
}

/* The receive WQE is looked for before the R_Key: RNR, although the key is wrong. */
static void test_receive_before_rkey(void **state)
{
	struct peer *peer = peer_with_receives(0, (struct peer_config){ 0 });
	struct wire_packet packet = peer_request(peer, WIRE_WRITE_ONLY_IMM, PEER_RQ_PSN, 8);

	(void)state;
	/* rule S5 test */
	packet.rkey = 0xbad;
	peer_give(peer, &packet);
	expect_ack(peer, PEER_RQ_PSN, RNR_NAK(12), 0);
	assert_int_equal(eng_qp_state(peer->qp), ENG_RTS);
	peer_post_recv(peer, 8);
	peer_forget(peer);
	peer_give(peer, &packet);
	expect_fatal(peer, PEER_RQ_PSN, NAK_ACCESS, 0, ENG_EVENT_QP_ACCESS_ERR);
}

/* A length that does not fit comes before the R_Key. */
static void test_length_before_rkey(void **state)
{
	static const struct {
		uint8_t opcode;
		uint32_t payload, announced;
	} rows[] = {
		{ WIRE_WRITE_ONLY, 8, 9 },
		{ WIRE_WRITE_ONLY, 8, 7 },
		{ WIRE_WRITE_ONLY, 0, 1 },
		{ WIRE_WRITE_ONLY, PEER_MTU + 4, PEER_MTU + 4 },
		{ WIRE_WRITE_FIRST, PEER_MTU, PEER_MTU },
		{ WIRE_WRITE_FIRST, PEER_MTU - 1, 2 * PEER_MTU },
		{ WIRE_WRITE_FIRST, PEER_MTU, PEER_MTU - 4 },
		{ WIRE_WRITE_FIRST, PEER_MTU, 0x80000001 },
		{ WIRE_READ_REQUEST, 0, 0x80000001 },
	};

	(void)state;
	/* rule S5 test, rule S1 test */
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct peer *peer = peer_with_receives(0, (struct peer_config){ 0 });
		struct wire_packet packet =
			peer_request(peer, rows[i].opcode, PEER_RQ_PSN, rows[i].payload);

		packet.dma_length = rows[i].announced;
		packet.rkey = 0xbad;
		peer_give(peer, &packet);
		expect_fatal(peer, PEER_RQ_PSN, NAK_INVALID, 0, ENG_EVENT_QP_REQ_ERR);
		peer_teardown(NULL);
	}
}

/* Packets of a message that are not of its shape. */
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
		{ WIRE_SEND_FIRST, WIRE_SEND_LAST, PEER_MTU + 1 },
		{ WIRE_WRITE_FIRST, WIRE_WRITE_MIDDLE, PEER_MTU },
	};

	(void)state;
	/* rule S5 test, rule S1 test: the WRITE has announced eight bytes more. */
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct peer *peer = peer_with_receives(1, (struct peer_config){ 0 });
		struct wire_packet packet =
			peer_request(peer, rows[i].first, PEER_RQ_PSN, PEER_MTU);

		packet.dma_length = PEER_MTU + 8;
		peer_give(peer, &packet);
		peer_forget(peer);
		peer_give_request(peer, rows[i].second, PEER_RQ_PSN + 1, rows[i].payload);
		expect_fatal(peer, PEER_RQ_PSN + 1, NAK_INVALID, 0, ENG_EVENT_QP_REQ_ERR);
		assert_int_equal(peer->remote[PEER_MTU], 0);
		peer_teardown(NULL);
	}
}

/* R_Key, range and rights of the region: remote access error. */
static void test_remote_access(void **state)
{
	static const struct {
		uint8_t opcode;
		uint32_t rkey;
		uint64_t va;
		uint32_t length;
	} rows[] = {
		{ WIRE_WRITE_ONLY, 0xbad, PEER_REMOTE_VA, 8 },
		{ WIRE_WRITE_ONLY, PEER_RKEY, PEER_REMOTE_VA - 1, 8 },
		{ WIRE_WRITE_ONLY, PEER_RKEY, PEER_REMOTE_VA + PEER_REGION_BYTES - 7, 8 },
		{ WIRE_WRITE_ONLY, PEER_RKEY, UINT64_MAX - 3, 8 },
		{ WIRE_WRITE_ONLY, 0x4004, 0x4000, 8 },
		{ WIRE_WRITE_FIRST, PEER_RKEY, PEER_REMOTE_VA, PEER_REGION_BYTES + 1 },
		{ WIRE_READ_REQUEST, 0xbad, PEER_REMOTE_VA, 8 },
		{ WIRE_READ_REQUEST, PEER_RKEY, PEER_REMOTE_VA, PEER_REGION_BYTES + 1 },
		{ WIRE_READ_REQUEST, 0x5005, 0x5000, 8 },
		{ WIRE_FETCH_ADD, 0xbad, PEER_REMOTE_VA, 0 },
		{ WIRE_FETCH_ADD, PEER_RKEY, PEER_REMOTE_VA + PEER_REGION_BYTES, 0 },
		{ WIRE_COMPARE_SWAP, 0x4004, 0x4000, 0 },
	};

	(void)state;
	/* rule S5 test */
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct peer *peer = peer_with_receives(0, (struct peer_config){ 0 });
		struct wire_packet packet = peer_request(peer, rows[i].opcode, PEER_RQ_PSN, 0);

		peer_region_add(peer, 0x4004, 0x4000, 64, ENG_REMOTE_READ);
		peer_region_add(peer, 0x5005, 0x5000, 64, ENG_LOCAL_WRITE | ENG_REMOTE_WRITE);
		packet.rkey = rows[i].rkey;
		packet.va = rows[i].va;
		packet.dma_length = rows[i].length;
		if (rows[i].opcode == WIRE_WRITE_ONLY)
			packet.payload_length = rows[i].length;
		if (rows[i].opcode == WIRE_WRITE_FIRST)
			packet.payload_length = PEER_MTU;
		peer_give(peer, &packet);
		expect_fatal(peer, PEER_RQ_PSN, NAK_ACCESS, 0, ENG_EVENT_QP_ACCESS_ERR);
		assert_int_equal(peer->remote[0], 0);
		peer_teardown(NULL);
	}
}

/* An atomic on a misaligned address is an invalid request. */
static void test_misaligned_atomic(void **state)
{
	struct peer *peer = peer_with_receives(0, (struct peer_config){ 0 });

	(void)state;
	/* rule S5 test */
	peer_give_atomic(peer, WIRE_FETCH_ADD, PEER_RQ_PSN, 4, 0, 1);
	expect_fatal(peer, PEER_RQ_PSN, NAK_INVALID, 0, ENG_EVENT_QP_REQ_ERR);
}

/* A WRITE or READ of zero bytes does not look at its RETH at all. */
static void test_zero_length_with_garbage(void **state)
{
	struct peer *peer = peer_with_receives(1, (struct peer_config){ 0 });
	struct wire_packet packet = peer_request(peer, WIRE_WRITE_ONLY, PEER_RQ_PSN, 0);
	const struct wire_packet *answer;

	(void)state;
	/* rule S5 test */
	packet.rkey = 0xdeadbeef;
	packet.va = 0xfeedfeedfeedfeed;
	peer_give(peer, &packet);
	expect_ack(peer, PEER_RQ_PSN, ACK_CODE(1), 1);
	packet.opcode = WIRE_WRITE_ONLY_IMM;
	packet.psn++;
	peer_give(peer, &packet);
	expect_ack(peer, PEER_RQ_PSN + 1, ACK_CODE(0), 2);
	assert_int_equal(expect_wc(peer, 0x2000, ENG_SUCCESS)->byte_len, 0);
	packet.opcode = WIRE_READ_REQUEST;
	packet.psn++;
	peer_give(peer, &packet);
	answer = expect_packet(peer, WIRE_READ_RESPONSE_ONLY, PEER_RQ_PSN + 2);
	assert_int_equal(answer->payload_length, 0);
	assert_int_equal(eng_qp_state(peer->qp), ENG_RTS);
}

/* A receive WQE too small: the consumer gets a length error, the peer an invalid request. */
static void test_receive_too_small(void **state)
{
	struct peer *peer = peer_rts((struct peer_config){ 0 });
	uint64_t small, next;

	(void)state;
	/* rule C18 test */
	small = peer_post_recv(peer, PEER_MTU + 4);
	next = peer_post_recv(peer, 8192);
	peer_forget(peer);
	memset(peer->local, 0, PEER_REGION_BYTES);
	peer_give_request(peer, WIRE_SEND_FIRST, PEER_RQ_PSN, PEER_MTU);
	peer_forget(peer);
	peer_give_request(peer, WIRE_SEND_LAST, PEER_RQ_PSN + 1, 5);
	expect_fatal(peer, PEER_RQ_PSN + 1, NAK_INVALID, 0, ENG_EVENT_QP_REQ_ERR);
	expect_wc(peer, small, ENG_LOC_LEN_ERR);
	expect_wc(peer, next, ENG_WR_FLUSH_ERR);
	expect_no_wc(peer);
	assert_int_equal(peer->local[PEER_MTU + 4], 0);
}

/* A WRITE with immediate has no use for the buffers of its receive WQE. */
static void test_write_imm_needs_no_buffer(void **state)
{
	struct peer *peer = peer_rts((struct peer_config){ 0 });
	uint64_t recv = peer_post_recv(peer, 0);

	(void)state;
	/* rule C18 test */
	peer_forget(peer);
	peer_give_request(peer, WIRE_WRITE_ONLY_IMM, PEER_RQ_PSN, 512);
	expect_ack(peer, PEER_RQ_PSN, ACK_CODE(0), 1);
	assert_int_equal(expect_wc(peer, recv, ENG_SUCCESS)->byte_len, 512);
}

/* The receive's own memory is not ours to write: local protection error, remote operational. */
static void test_receive_with_wrong_lkey(void **state)
{
	struct peer *peer = peer_rts((struct peer_config){ 0 });
	struct eng_recv_wqe *wqe;
	uint64_t recv;

	(void)state;
	/* rule S11 test, rule S13 test */
	peer_region_add(peer, 0x6006, 0x6000, 64, 0);
	for (int kind = 0; kind < 3; kind++) {
		peer = peer_rts((struct peer_config){ 0 });
		peer_region_add(peer, 0x6006, 0x6000, 64, 0);
		wqe = eng_rq_next(&peer->rq);
		recv = peer_post_recv(peer, 64);
		if (kind == 0)
			wqe->sge[0].lkey = 0xbad;
		else if (kind == 1)
			wqe->sge[0].addr += PEER_REGION_BYTES;
		else
			wqe->sge[0] = (struct eng_sge){ 0x6000, 64, 0x6006 };
		peer_forget(peer);
		peer_give_request(peer, WIRE_SEND_ONLY, PEER_RQ_PSN, 64);
		expect_fatal(peer, PEER_RQ_PSN, NAK_OPERATIONAL, 0, ENG_EVENT_QP_FATAL);
		expect_wc(peer, recv, ENG_LOC_PROT_ERR);
		expect_no_wc(peer);
	}
}

/* More READs and Atomics at once than max_dest_rd_atomic: invalid request. */
static void test_too_many_reads(void **state)
{
	struct peer *peer = peer_with_receives(0, (struct peer_config){ .max_dest_rd_atomic = 2 });

	(void)state;
	/* rule S5 test, rule S12 test */
	for (uint32_t i = 0; i < 3; i++)
		peer_give_read(peer, PEER_RQ_PSN + i, 0, 8);
	expect_packet(peer, WIRE_READ_RESPONSE_ONLY, PEER_RQ_PSN);
	expect_packet(peer, WIRE_READ_RESPONSE_ONLY, PEER_RQ_PSN + 1);
	expect_fatal(peer, PEER_RQ_PSN + 2, NAK_INVALID, 2, ENG_EVENT_QP_REQ_ERR);
}

/* SEND with invalidate of a key that may not be invalidated: remote access error. */
static void test_refused_invalidate(void **state)
{
	struct peer *peer = peer_with_receives(1, (struct peer_config){ 0 });

	(void)state;
	/* rule S5 test */
	peer->refuse_invalidate = true;
	peer_give_request(peer, WIRE_SEND_ONLY_INVALIDATE, PEER_RQ_PSN, 8);
	expect_fatal(peer, PEER_RQ_PSN, NAK_ACCESS, 0, ENG_EVENT_QP_ACCESS_ERR);
	expect_wc(peer, 0x2000, ENG_WR_FLUSH_ERR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PEER_TEST(test_opcode_sequence),	 PEER_TEST(test_access_flags_of_the_qp),
		PEER_TEST(test_receive_before_rkey),	 PEER_TEST(test_length_before_rkey),
		PEER_TEST(test_length_of_later_packets), PEER_TEST(test_remote_access),
		PEER_TEST(test_misaligned_atomic),	 PEER_TEST(test_zero_length_with_garbage),
		PEER_TEST(test_receive_too_small),	 PEER_TEST(test_write_imm_needs_no_buffer),
		PEER_TEST(test_receive_with_wrong_lkey), PEER_TEST(test_too_many_reads),
		PEER_TEST(test_refused_invalidate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
