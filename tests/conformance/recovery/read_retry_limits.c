/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Holes in READ responses (read_retry.c) that cannot be requested part by part: beyond the bitmap
 * of placed responses, or from a peer that may not be uroce.
 */
#include "dut.h"

#define MTU 256
#define LKEY 0x8008
#define LONG_PACKETS 1270
#define KEPT_PACKETS 1024 /* number of packets in the bitmap of placed responses */
#define PACKETS 12
#define SOME_CREDITS ACK_CODE(4)

static uint8_t data[LONG_PACKETS * MTU];

static uint8_t *memory; /* destination of the last READ */

static uint64_t post_read(struct dut *dut, uint32_t packets)
{
	struct dut_region *region = dut_region_add(dut, LKEY, 0, packets * MTU, ENG_LOCAL_WRITE);
	struct eng_send_wqe *wqe = dut_wqe(dut, ENG_READ, packets * MTU, ENG_SIGNALED);

	wqe->data.sge[0] = (struct eng_sge){ 0, packets * MTU, LKEY };
	eng_sq_push(dut->qp);
	dut_fill(data, packets * MTU, 9000);
	memory = region->bytes;
	return wqe->wr_id;
}

/* Gives responses [from, to) of a READ; part: to a request for these packets only. */
static void answer(struct dut *dut, uint32_t from, uint32_t to, uint32_t packets, bool part)
{
	for (uint32_t i = from; i < to; i++) {
		bool first = i == 0 || (part && i == from), last = i == packets - 1;
		struct wire_packet packet;
		uint8_t opcode = WIRE_READ_RESPONSE_MIDDLE;

		last = last || (part && i == to - 1);
		if (first || last)
			opcode = !last	  ? WIRE_READ_RESPONSE_FIRST
				 : !first ? WIRE_READ_RESPONSE_LAST
					  : WIRE_READ_RESPONSE_ONLY;
		packet = dut_packet(dut, opcode, DUT_SQ_PSN + i);
		packet.syndrome = ACK_CODE(0);
		packet.payload = data + i * MTU;
		packet.payload_length = MTU;
		dut_give(dut, &packet);
	}
}

static void expect_request(struct dut *dut, uint32_t from, uint32_t to)
{
	const struct wire_packet *packet = expect_packet(dut, WIRE_READ_REQUEST, DUT_SQ_PSN + from);

	assert_int_equal(packet->dma_length, (to - from) * MTU);
}

/*
 * An ACK shows that responses beyond the bitmap have been lost: the whole READ is requested again,
 * since their bits are also those of the PSNs 1,024 before, which have been placed.
 */
static void test_further_than_remembered(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ .mtu = MTU });
	uint64_t read, write;

	(void)state;
	/* rule S8 test, rule S12 test */
	dut_ack(dut, DUT_SQ_PSN - 1, SOME_CREDITS, 0);
	read = post_read(dut, LONG_PACKETS);
	write = dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED);
	expect_request(dut, 0, LONG_PACKETS);
	expect_packet(dut, WIRE_WRITE_ONLY, DUT_SQ_PSN + LONG_PACKETS);
	answer(dut, 1, 501, LONG_PACKETS, false);
	dut_forget(dut);
	dut_ack(dut, DUT_SQ_PSN + LONG_PACKETS, ACK_CODE(0), 2);
	expect_request(dut, 0, LONG_PACKETS);
	expect_packet(dut, WIRE_WRITE_ONLY, DUT_SQ_PSN + LONG_PACKETS);
	answer(dut, 0, LONG_PACKETS, LONG_PACKETS, false);
	expect_wc(dut, read, ENG_SUCCESS);
	expect_pattern(memory, LONG_PACKETS * MTU, 9000);
	dut_ack(dut, DUT_SQ_PSN + LONG_PACKETS, ACK_CODE(0), 2);
	expect_wc(dut, write, ENG_SUCCESS);
}

/* If the lost responses are within the bitmap, only the missing parts are requested. */
static void test_as_far_as_remembered(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ .mtu = MTU });
	const uint32_t packets = KEPT_PACKETS - 1;
	uint64_t read, write;

	(void)state;
	dut_ack(dut, DUT_SQ_PSN - 1, SOME_CREDITS, 0);
	read = post_read(dut, packets);
	write = dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED);
	dut_pull(dut);
	answer(dut, 1, 501, packets, false);
	dut_forget(dut);
	dut_ack(dut, DUT_SQ_PSN + packets, ACK_CODE(0), 2);
	expect_request(dut, 0, 1);
	expect_request(dut, 501, packets);
	expect_silence(dut);
	answer(dut, 0, 1, packets, true);
	answer(dut, 501, packets, packets, true);
	expect_wc(dut, read, ENG_SUCCESS);
	dut_ack(dut, DUT_SQ_PSN + packets, ACK_CODE(0), 2);
	expect_wc(dut, write, ENG_SUCCESS);
}

/* The third response, and every third after it but the last response, is lost. */
static uint64_t lose_thirds(struct dut *dut)
{
	uint64_t read = post_read(dut, PACKETS);

	dut_pull(dut);
	dut_forget(dut);
	for (uint32_t i = 0; i < PACKETS; i++)
		if (i % 3 != 2 || i == PACKETS - 1)
			answer(dut, i, i + 1, PACKETS, false);
	return read;
}

/* A responder has room for max_rd_atomic requests, and maybe not for one for each part. */
static void test_one_request_for_each_read(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ .mtu = MTU, .max_rd_atomic = 1 });
	uint64_t read;

	(void)state;
	/* rule S12 test: its responses report credits, as those of every adapter do */
	read = lose_thirds(dut);
	expect_request(dut, 2, PACKETS - 3);
	expect_silence(dut);
	answer(dut, 2, PACKETS - 3, PACKETS, true);
	expect_wc(dut, read, ENG_SUCCESS);
	expect_pattern(memory, PACKETS * MTU, 9000);
}

/* A peer that has sent an unsolicited ACK with credits is uroce, which keeps several parts. */
static void test_parts_of_a_uroce(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ .mtu = MTU, .max_rd_atomic = 1 });

	(void)state;
	dut_ack(dut, DUT_SQ_PSN - 1, SOME_CREDITS, 0);
	lose_thirds(dut);
	for (uint32_t i = 2; i < PACKETS - 1; i += 3)
		expect_request(dut, i, i + 1);
	expect_silence(dut);
}

/* The initial credits of uroce may arrive before RTS. */
static void test_parts_of_one_that_told_early(void **state)
{
	struct dut *dut = dut_new((struct dut_config){ .mtu = MTU, .max_rd_atomic = 1 });

	(void)state;
	/* rule C9 test */
	dut_raise(dut, ENG_RTR);
	dut_ack(dut, DUT_SQ_PSN - 1, SOME_CREDITS, 0);
	dut_set_state(dut, ENG_RTS);
	lose_thirds(dut);
	for (uint32_t i = 2; i < PACKETS - 1; i += 3)
		expect_request(dut, i, i + 1);
	expect_silence(dut);
}

/* Every responder acknowledges a packet received twice by two ACKs: neither is unsolicited. */
static void test_duplicate_acknowledged_twice(void **state)
{
	struct dut *dut = dut_rts(
		(struct dut_config){ .mtu = MTU, .max_rd_atomic = 1, .sq_psn = DUT_SQ_PSN - 1 });
	uint64_t write;

	(void)state;
	/* rule S4 test, rule S12 test */
	write = dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED);
	dut_advance(dut, 100 * MS);
	assert_int_equal(dut_info(dut).counters[ENG_COUNT_TIMEOUTS], 1);
	dut_ack(dut, DUT_SQ_PSN - 1, SOME_CREDITS, 1);
	expect_wc(dut, write, ENG_SUCCESS);
	dut_ack(dut, DUT_SQ_PSN - 1, SOME_CREDITS, 1);
	lose_thirds(dut);
	expect_request(dut, 2, PACKETS - 3);
	expect_silence(dut);
}

/* An unsolicited ACK may repeat the last response to a READ, others of which are missing. */
static void test_parts_of_one_that_repeats_a_response(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ .mtu = MTU, .max_rd_atomic = 1 });

	(void)state;
	/* rule C8 test */
	post_read(dut, PACKETS);
	dut_pull(dut);
	dut_forget(dut);
	answer(dut, 0, 1, PACKETS, false);
	answer(dut, 2, 3, PACKETS, false);
	dut_ack(dut, DUT_SQ_PSN + PACKETS - 1, ACK_CODE(0), 1);
	expect_request(dut, 1, 2);
	expect_request(dut, 3, PACKETS);
	expect_silence(dut);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DUT_TEST(test_further_than_remembered),
		DUT_TEST(test_as_far_as_remembered),
		DUT_TEST(test_one_request_for_each_read),
		DUT_TEST(test_parts_of_a_uroce),
		DUT_TEST(test_parts_of_one_that_told_early),
		DUT_TEST(test_duplicate_acknowledged_twice),
		DUT_TEST(test_parts_of_one_that_repeats_a_response),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
