/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* The longest messages: 2^31 bytes, without that much memory. */
#include "peer.h"

#define HUGE_BYTES 0x80000000u
#define HUGE_LKEY 0x8008
#define HUGE_MTU 4096
#define HUGE_PACKETS (HUGE_BYTES / HUGE_MTU)

static struct {
	uint8_t first, last;
	uint32_t next_psn, ack_psn;
	uint64_t bytes;
	bool ack_wanted;
} seen;

/* Packets of the long message are only counted; their PSNs must follow each other. */
static void see_packet(struct peer *peer, const struct wire_packet *packet)
{
	(void)peer;
	assert_int_equal(packet->psn, seen.next_psn);
	if (packet->psn == 0xfffff0) {
		seen.first = packet->opcode;
		assert_int_equal(packet->dma_length, HUGE_BYTES);
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
	struct peer *peer = peer_rts((struct peer_config){
		.mtu = HUGE_MTU, .sq_psn = 0xfffff0, .gather = true, .cwnd = 4096 });
	struct eng_send_wqe *wqe;

	(void)state;
	/* rule S1 test, rule S2 test */
	peer_region_add(peer, HUGE_LKEY, 0, HUGE_BYTES, 0);
	wqe = peer_wqe(peer, ENG_WRITE, HUGE_BYTES, ENG_SIGNALED);
	wqe->data.sge[0] = (struct eng_sge){ 0, HUGE_BYTES, HUGE_LKEY };
	eng_sq_push(peer->qp);
	seen.next_psn = 0xfffff0;
	peer->sink = see_packet;
	while (peer->wc_count == 0) {
		seen.ack_wanted = false;
		peer_pull(peer);
		assert_true(seen.ack_wanted);
		peer_ack(peer, seen.ack_psn, NO_CREDITS_REPORTED, 0);
	}
	assert_int_equal(peer->sunk, HUGE_PACKETS);
	assert_true(seen.bytes == HUGE_BYTES);
	assert_int_equal(seen.first, WIRE_WRITE_FIRST);
	assert_int_equal(seen.last, WIRE_WRITE_LAST);
	assert_int_equal(peer->wcs[0].status, ENG_SUCCESS);
	assert_int_equal(peer->wcs[0].byte_len, HUGE_BYTES);
}

/* A READ of 2^31 bytes takes 524288 PSNs; the ends of its answer land where they belong. */
static void test_longest_read(void **state)
{
	struct peer *peer = peer_rts((struct peer_config){ .mtu = HUGE_MTU });
	struct peer_region *region;
	struct eng_send_wqe *wqe;
	static uint8_t data[HUGE_MTU];

	(void)state;
	/* rule S2 test, rule S12 test */
	peer_fill(data, HUGE_MTU, 0);
	region = peer_region_add(peer, HUGE_LKEY, 0, HUGE_BYTES, ENG_LOCAL_WRITE);
	wqe = peer_wqe(peer, ENG_READ, HUGE_BYTES, ENG_SIGNALED);
	wqe->data.sge[0] = (struct eng_sge){ 0, HUGE_BYTES, HUGE_LKEY };
	eng_sq_push(peer->qp);
	assert_int_equal(expect_packet(peer, WIRE_READ_REQUEST, PEER_SQ_PSN)->dma_length,
			 HUGE_BYTES);
	assert_int_equal(peer_view(peer).next_psn, PEER_SQ_PSN + HUGE_PACKETS);
	peer_give_response(peer, WIRE_READ_RESPONSE_FIRST, PEER_SQ_PSN, 1, data, HUGE_MTU);
	expect_pattern(region->bytes, HUGE_MTU, 0);
	for (uint32_t i = 1; i < HUGE_PACKETS - 1; i++)
		peer_give_response(peer, WIRE_READ_RESPONSE_MIDDLE, PEER_SQ_PSN + i, 1, data,
				   HUGE_MTU);
	expect_no_wc(peer);
	peer_fill(data, HUGE_MTU, 99);
	peer_give_response(peer, WIRE_READ_RESPONSE_LAST, PEER_SQ_PSN + HUGE_PACKETS - 1, 1, data,
			   HUGE_MTU);
	assert_int_equal(expect_wc(peer, 0x1000, ENG_SUCCESS)->byte_len, HUGE_BYTES);
	expect_pattern(region->bytes, HUGE_MTU, 99);
}

/* The responder: a READ of 2^31 bytes moves the expected PSN by 524288 and begins with First. */
static void test_longest_read_at_responder(void **state)
{
	struct peer *peer = peer_rts((struct peer_config){ .mtu = HUGE_MTU });
	struct eng_run run = peer_empty_run(peer, 1);
	struct wire_packet request = peer_request(peer, WIRE_READ_REQUEST, PEER_RQ_PSN, 0), answer;

	(void)state;
	/* rule S2 test */
	peer_region_add(peer, HUGE_LKEY, 0, HUGE_BYTES, ENG_REMOTE_READ);
	request.rkey = HUGE_LKEY;
	request.va = 0;
	request.dma_length = HUGE_BYTES;
	peer_give(peer, &request);
	assert_int_equal(peer_view(peer).expected_psn, PEER_RQ_PSN + HUGE_PACKETS);
	assert_int_equal(peer_transmit(peer, &run, ENG_RESPONSES), ENG_TX_RUN);
	assert_int_equal(wire_parse(peer->staging, run.bytes, &answer), WIRE_OK);
	assert_int_equal(answer.opcode, WIRE_READ_RESPONSE_FIRST);
	assert_int_equal(answer.psn, PEER_RQ_PSN);
	/* Only the end of it, as a requester asks who has received the rest. */
	request.psn = PEER_RQ_PSN + HUGE_PACKETS - 1;
	request.va = HUGE_BYTES - HUGE_MTU;
	request.dma_length = HUGE_MTU;
	peer_give(peer, &request);
	assert_int_equal(peer_transmit(peer, &run, ENG_RESPONSES), ENG_TX_RUN);
	assert_int_equal(wire_parse(peer->staging, run.bytes, &answer), WIRE_OK);
	assert_int_equal(answer.opcode, WIRE_READ_RESPONSE_ONLY);
	assert_int_equal(answer.psn, PEER_RQ_PSN + HUGE_PACKETS - 1);
}

/* Never more than half the PSN space under way, else old and new cannot be told apart. */
static void test_psn_space_is_not_overrun(void **state)
{
	struct peer *peer = peer_rts((struct peer_config){ .mtu = 256, .max_rd_atomic = 16 });
	static uint8_t data[256];
	uint32_t under_way = 0;

	(void)state;
	/* rule S2 test, rule S12 test: each READ takes 2^22 PSNs. */
	peer_region_add(peer, HUGE_LKEY, 0, HUGE_BYTES, ENG_LOCAL_WRITE);
	for (int i = 0; i < 8; i++) {
		struct eng_send_wqe *wqe = peer_wqe(peer, ENG_READ, HUGE_BYTES / 2, ENG_SIGNALED);

		wqe->data.sge[0] = (struct eng_sge){ 0, HUGE_BYTES / 2, HUGE_LKEY };
		eng_sq_push(peer->qp);
	}
	peer_pull(peer);
	under_way = (peer->sent_count - peer->sent_read) << 22;
	assert_uint_in_range(under_way, 1 << 22, 1 << 23);
	assert_int_equal(eng_in_flight(peer->qp), under_way);
	/* The oldest is still answered as such. */
	peer_give_response(peer, WIRE_READ_RESPONSE_FIRST, PEER_SQ_PSN, 1, data, 256);
	assert_int_equal(peer_view(peer).unacked_psn, PEER_SQ_PSN + 1);
}

/* A single message may take 2^23 PSNs: 2^31 bytes at an MTU of 256. */
static void test_message_of_half_the_psn_space(void **state)
{
	struct peer *peer = peer_rts((struct peer_config){ .mtu = 256 });
	static uint8_t data[256];
	struct eng_send_wqe *wqe;
	uint32_t psns = HUGE_BYTES / 256;

	(void)state;
	/* rule S2 test */
	peer_region_add(peer, HUGE_LKEY, 0, HUGE_BYTES, ENG_LOCAL_WRITE);
	wqe = peer_wqe(peer, ENG_READ, HUGE_BYTES, ENG_SIGNALED);
	wqe->data.sge[0] = (struct eng_sge){ 0, HUGE_BYTES, HUGE_LKEY };
	eng_sq_push(peer->qp);
	peer_forget(peer);
	for (uint32_t i = 0; i < psns; i++) {
		if (i == psns - 5) {
			assert_true(peer_advance_to_deadline(peer));
			assert_int_equal(
				expect_packet(peer, WIRE_READ_REQUEST, PEER_SQ_PSN + i)->dma_length,
				5 * 256);
		}
		peer_give_response(peer,
				   i == 0	   ? WIRE_READ_RESPONSE_FIRST
				   : i == psns - 1 ? WIRE_READ_RESPONSE_LAST
						   : WIRE_READ_RESPONSE_MIDDLE,
				   PEER_SQ_PSN + i, 1, data, 256);
	}
	expect_wc(peer, 0x1000, ENG_SUCCESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PEER_TEST(test_longest_write),
		PEER_TEST(test_longest_read),
		PEER_TEST(test_longest_read_at_responder),
		PEER_TEST(test_psn_space_is_not_overrun),
		PEER_TEST(test_message_of_half_the_psn_space),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
