/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* The longest messages: 2^31 bytes, without that much memory. */
#include "dut.h"

#define HUGE_BYTES 0x80000000u
#define HUGE_LKEY 0x8008
/* The region crosses 2^32, so that an address cut to 32 bits is wrong. */
#define HUGE_VA UINT64_C(0xc0000000)
#define HUGE_MTU 4096
#define HUGE_PACKETS (HUGE_BYTES / HUGE_MTU)

static struct {
	uint8_t first, last;
	uint32_t next_psn, ack_psn;
	uint64_t bytes;
	bool ack_wanted;
} seen;

/*
 * All addresses of the region map to the same memory, so a wrong one shows only in the calls of
 * map_local() and map_remote(): they must be for one packet after the other.
 */
static struct {
	struct eng_ops ops; /* the dut's */
	uint64_t next_va;   /* address of the next packet's memory */
	uint32_t mtu;
} map;

static void check_address(uint64_t va, uint32_t length, bool may_repeat)
{
	/* The memory of the whole message is checked before its first packet. */
	if (length == HUGE_BYTES) {
		assert_true(va == HUGE_VA && map.next_va == HUGE_VA);
		return;
	}
	assert_int_equal(length, map.mtu);
	if (may_repeat && va == map.next_va - length)
		return;
	assert_true(va == map.next_va);
	map.next_va += length;
}

static void *map_local(void *owner, uint32_t lkey, uint64_t va, uint32_t length, enum eng_use use)
{
	/* A packet for which a burst has no room is mapped again for the next burst. */
	if (lkey == HUGE_LKEY)
		check_address(va, length, use == ENG_USE_SEND);
	return map.ops.map_local(owner, lkey, va, length, use);
}

static void *map_remote(void *owner, uint32_t rkey, uint64_t va, uint32_t length, uint32_t need)
{
	check_address(va, length, false);
	return map.ops.map_remote(owner, rkey, va, length, need);
}

/* Adds the region, and checks the addresses that the engine uses. */
static struct dut_region *add_huge_region(struct dut *dut, uint32_t access)
{
	map.ops = dut->ops;
	map.next_va = HUGE_VA;
	map.mtu = dut->config.mtu;
	dut->ops.map_local = map_local;
	dut->ops.map_remote = map_remote;
	return dut_region_add(dut, HUGE_LKEY, HUGE_VA, HUGE_BYTES, access);
}

/* Posts a signaled request of this length, with the region's memory. */
static void post_huge(struct dut *dut, enum eng_op op, uint32_t length)
{
	struct eng_send_wqe *wqe = dut_wqe(dut, op, length, ENG_SIGNALED);

	wqe->data.sge[0] = (struct eng_sge){ HUGE_VA, length, HUGE_LKEY };
	eng_sq_push(dut->qp);
}

/* Packets of the long message are only counted; their PSNs must follow each other. */
static void see_packet(struct dut *dut, const struct wire_packet *packet)
{
	(void)dut;
	assert_int_equal(packet->psn, seen.next_psn);
	if (packet->psn == 0xfffff0) {
		seen.first = packet->opcode;
		assert_int_equal(packet->dma_length, HUGE_BYTES);
		assert_true(packet->va == DUT_THEIR_VA);
	} else if (seen.bytes + HUGE_MTU < HUGE_BYTES) {
		assert_int_equal(packet->opcode, WIRE_WRITE_MIDDLE);
	}
	seen.last = packet->opcode;
	seen.bytes += packet->payload_length;
	seen.next_psn = (seen.next_psn + 1) & 0xffffff;
	if (packet->ack_request) {
		seen.ack_psn = packet->psn;
		seen.ack_wanted = true;
	}
}

/* A WRITE of 2^31 bytes: First and Last at the ends, 524288 packets, PSNs across the wrap. */
static void test_longest_write(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){
		.mtu = HUGE_MTU, .sq_psn = 0xfffff0, .gather = true, .cwnd = 4096 });

	(void)state;
	/* rule S1 test, rule S2 test */
	add_huge_region(dut, 0);
	post_huge(dut, ENG_WRITE, HUGE_BYTES);
	seen.next_psn = 0xfffff0;
	dut->sink = see_packet;
	while (dut->wc_count == 0) {
		seen.ack_wanted = false;
		dut_pull(dut);
		assert_true(seen.ack_wanted);
		dut_ack(dut, seen.ack_psn, NO_CREDITS_REPORTED, 0);
	}
	assert_int_equal(dut->sunk, HUGE_PACKETS);
	assert_true(seen.bytes == HUGE_BYTES);
	assert_true(map.next_va == HUGE_VA + HUGE_BYTES);
	assert_int_equal(seen.first, WIRE_WRITE_FIRST);
	assert_int_equal(seen.last, WIRE_WRITE_LAST);
	assert_int_equal(dut->wcs[0].status, ENG_SUCCESS);
	assert_int_equal(dut->wcs[0].byte_len, HUGE_BYTES);
}

/* A READ of 2^31 bytes takes 524288 PSNs; its first and last responses are written to memory. */
static void test_longest_read(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ .mtu = HUGE_MTU });
	struct dut_region *region;
	static uint8_t data[HUGE_MTU];

	(void)state;
	/* rule S2 test, rule S12 test */
	dut_fill(data, HUGE_MTU, 0);
	region = add_huge_region(dut, ENG_LOCAL_WRITE);
	post_huge(dut, ENG_READ, HUGE_BYTES);
	assert_int_equal(expect_packet(dut, WIRE_READ_REQUEST, DUT_SQ_PSN)->dma_length, HUGE_BYTES);
	assert_int_equal(dut_info(dut).next_psn, DUT_SQ_PSN + HUGE_PACKETS);
	dut_give_response(dut, WIRE_READ_RESPONSE_FIRST, DUT_SQ_PSN, 1, data, HUGE_MTU);
	expect_pattern(region->bytes, HUGE_MTU, 0);
	for (uint32_t i = 1; i < HUGE_PACKETS - 1; i++)
		dut_give_response(dut, WIRE_READ_RESPONSE_MIDDLE, DUT_SQ_PSN + i, 1, data,
				  HUGE_MTU);
	expect_no_wc(dut);
	dut_fill(data, HUGE_MTU, 99);
	dut_give_response(dut, WIRE_READ_RESPONSE_LAST, DUT_SQ_PSN + HUGE_PACKETS - 1, 1, data,
			  HUGE_MTU);
	assert_int_equal(expect_wc(dut, 0x1000, ENG_SUCCESS)->byte_len, HUGE_BYTES);
	expect_pattern(region->bytes, HUGE_MTU, 99);
	assert_true(map.next_va == HUGE_VA + HUGE_BYTES);
}

/* The responder: a READ of 2^31 bytes moves the expected PSN by 524288 and begins with First. */
static void test_longest_read_at_responder(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ .mtu = HUGE_MTU });
	struct eng_burst burst = dut_empty_burst(dut, 1);
	struct wire_packet request = dut_request(dut, WIRE_READ_REQUEST, DUT_RQ_PSN, 0), answer;

	(void)state;
	/* rule S2 test */
	add_huge_region(dut, ENG_REMOTE_READ);
	request.rkey = HUGE_LKEY;
	request.va = HUGE_VA;
	request.dma_length = HUGE_BYTES;
	dut_give(dut, &request);
	assert_int_equal(dut_info(dut).expected_psn, DUT_RQ_PSN + HUGE_PACKETS);
	assert_int_equal(dut_transmit(dut, &burst, ENG_RESPONSES), ENG_TX_BURST);
	assert_int_equal(wire_parse(dut->staging, burst.bytes, &answer), WIRE_OK);
	assert_int_equal(answer.opcode, WIRE_READ_RESPONSE_FIRST);
	assert_int_equal(answer.psn, DUT_RQ_PSN);
	/* A request for its last packet only, from a requester that has received the others. */
	request.psn = DUT_RQ_PSN + HUGE_PACKETS - 1;
	assert_true(map.next_va == HUGE_VA + HUGE_MTU);
	request.va = map.next_va = HUGE_VA + HUGE_BYTES - HUGE_MTU;
	request.dma_length = HUGE_MTU;
	dut_give(dut, &request);
	assert_int_equal(dut_transmit(dut, &burst, ENG_RESPONSES), ENG_TX_BURST);
	assert_int_equal(wire_parse(dut->staging, burst.bytes, &answer), WIRE_OK);
	assert_int_equal(answer.opcode, WIRE_READ_RESPONSE_ONLY);
	assert_int_equal(answer.psn, DUT_RQ_PSN + HUGE_PACKETS - 1);
	assert_true(map.next_va == HUGE_VA + HUGE_BYTES);
}

/* At most half the PSN space is in flight, so that old and new PSNs can be distinguished. */
static void test_psn_space_is_not_overrun(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ .mtu = 256, .max_rd_atomic = 16 });
	static uint8_t data[256];
	uint32_t under_way = 0;

	(void)state;
	/* rule S2 test, rule S12 test: each READ takes 2^22 PSNs. */
	dut_region_add(dut, HUGE_LKEY, HUGE_VA, HUGE_BYTES, ENG_LOCAL_WRITE);
	for (int i = 0; i < 8; i++)
		post_huge(dut, ENG_READ, HUGE_BYTES / 2);
	dut_pull(dut);
	under_way = (dut->sent_count - dut->sent_read) << 22;
	assert_uint_in_range(under_way, 1 << 22, 1 << 23);
	assert_int_equal(eng_in_flight(dut->qp), under_way);
	/* A response to the oldest READ is still recognized. */
	dut_give_response(dut, WIRE_READ_RESPONSE_FIRST, DUT_SQ_PSN, 1, data, 256);
	assert_int_equal(dut_info(dut).unacked_psn, DUT_SQ_PSN + 1);
}

/*
 * The same limit on a network, where a READ needs only some room in the congestion window: a READ
 * of half the PSN space waits until the WRITE before it is acknowledged.
 */
static void test_psn_space_on_a_network(void **state)
{
	struct dut *dut =
		dut_rts((struct dut_config){ .mtu = 256, .max_rd_atomic = 16, .network = true });

	(void)state;
	/* rule S2 test */
	dut_region_add(dut, HUGE_LKEY, HUGE_VA, HUGE_BYTES, ENG_LOCAL_WRITE);
	dut_post(dut, ENG_WRITE, 8, 0);
	post_huge(dut, ENG_READ, HUGE_BYTES);
	expect_packet(dut, WIRE_WRITE_ONLY, DUT_SQ_PSN);
	expect_silence(dut);
	/* The WRITE has no AckReq, so an ACK probe is sent after some milliseconds. */
	assert_true(dut_advance_to_deadline(dut));
	expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN - 1);
	dut_ack(dut, DUT_SQ_PSN, NO_CREDITS_REPORTED, 1);
	expect_packet(dut, WIRE_READ_REQUEST, DUT_SQ_PSN + 1);
	assert_int_equal(eng_in_flight(dut->qp), HUGE_BYTES / 256);
}

/* A single message may take 2^23 PSNs: 2^31 bytes at an MTU of 256. */
static void test_message_of_half_the_psn_space(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ .mtu = 256 });
	static uint8_t data[256];
	const struct wire_packet *request;
	uint32_t psns = HUGE_BYTES / 256;

	(void)state;
	/* rule S2 test */
	add_huge_region(dut, ENG_LOCAL_WRITE);
	post_huge(dut, ENG_READ, HUGE_BYTES);
	dut_forget(dut);
	for (uint32_t i = 0; i < psns; i++) {
		if (i == psns - 5) {
			assert_true(dut_advance_to_deadline(dut));
			request = expect_packet(dut, WIRE_READ_REQUEST, DUT_SQ_PSN + i);
			assert_int_equal(request->dma_length, 5 * 256);
			assert_true(request->va == DUT_THEIR_VA + HUGE_BYTES - 5 * 256);
		}
		dut_give_response(dut,
				  i == 0	  ? WIRE_READ_RESPONSE_FIRST
				  : i == psns - 1 ? WIRE_READ_RESPONSE_LAST
						  : WIRE_READ_RESPONSE_MIDDLE,
				  DUT_SQ_PSN + i, 1, data, 256);
	}
	expect_wc(dut, 0x1000, ENG_SUCCESS);
	assert_true(map.next_va == HUGE_VA + HUGE_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DUT_TEST(test_longest_write),
		DUT_TEST(test_longest_read),
		DUT_TEST(test_longest_read_at_responder),
		DUT_TEST(test_psn_space_is_not_overrun),
		DUT_TEST(test_psn_space_on_a_network),
		DUT_TEST(test_message_of_half_the_psn_space),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
