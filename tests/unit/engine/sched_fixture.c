/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "sched_fixture.h"

#include "engine/tx/sq.h"

struct engine_fixture sched_fixture;
struct eng_tx_ctx sched_hint;
uint32_t sched_their_psn;
static uint8_t memory[LONG * MTU];
static uint8_t staging[BURST_BYTES + 4096];
static struct eng_piece pieces[300];

static void *map_local(void *owner, uint32_t lkey, uint64_t addr, uint32_t length, enum eng_use use)
{
	(void)owner;
	(void)lkey;
	(void)addr;
	(void)use;
	return length <= sizeof(memory) ? memory : NULL;
}

static void *map_remote(void *owner, uint32_t rkey, uint64_t addr, uint32_t length, uint32_t need)
{
	(void)need;
	return map_local(owner, rkey, addr, length, ENG_USE_SEND);
}

static void ignore_completion(void *owner, const struct eng_wc *wc)
{
	(void)owner;
	(void)wc;
}

static void ignore_event(void *owner, enum eng_event event)
{
	(void)owner;
	(void)event;
}

static const struct eng_ops ops = {
	.map_local = map_local,
	.map_remote = map_remote,
	.complete = ignore_completion,
	.event = ignore_event,
};

/* ---- packets, posts and bursts ---- */

static void receive(struct wire_packet packet)
{
	packet.migrated = true;
	packet.pkey = WIRE_DEFAULT_PKEY;
	eng_receive(sched_fixture.qp, &packet, sched_hint.now);
}

void sched_acknowledge_all_but(uint32_t newest)
{
	receive((struct wire_packet){ .opcode = WIRE_ACKNOWLEDGE,
				      .psn = psn_sub(sched_fixture.qp->req.end_psn, newest + 1),
				      .syndrome = NO_CREDITS_REPORTED });
	assert_int_equal(eng_in_flight(sched_fixture.qp), newest);
}

void sched_receive_message(void)
{
	uint8_t service = sched_fixture.qp->type == ENG_XRC_RECV ? WIRE_XRC : WIRE_RC;

	receive((struct wire_packet){ .opcode = service | WIRE_WRITE_ONLY,
				      .psn = sched_their_psn++,
				      .ack_request = true });
}

void sched_receive_send(void)
{
	struct eng_recv_wqe *wqe = eng_rq_next(sched_fixture.qp->rq);

	assert_non_null(wqe);
	*wqe = (struct eng_recv_wqe){ .sge_count = 0 };
	eng_rq_push(sched_fixture.qp->rq);
	receive((struct wire_packet){
		.opcode = WIRE_SEND_ONLY, .psn = sched_their_psn++, .ack_request = true });
}

void sched_receive_packet(uint8_t opcode, uint32_t packets)
{
	receive((struct wire_packet){ .opcode = opcode,
				      .psn = sched_their_psn++,
				      .ack_request = true,
				      .dma_length = opcode == WIRE_WRITE_FIRST ? packets * MTU : 0,
				      .payload = memory,
				      .payload_length = MTU });
}

void sched_receive_read(void)
{
	receive((struct wire_packet){
		.opcode = WIRE_READ_REQUEST, .psn = sched_their_psn++, .dma_length = 8 });
}

void sched_push(enum eng_op op, uint32_t bytes, uint8_t flags)
{
	struct eng_send_wqe *wqe = eng_sq_next(sched_fixture.qp);

	assert_non_null(wqe);
	*wqe = (struct eng_send_wqe){
		.op = (uint8_t)op, .flags = flags, .length = bytes, .sge_count = bytes > 0
	};
	if (bytes)
		wqe->data.sge[0] = (struct eng_sge){ .length = bytes };
	eng_sq_push(sched_fixture.qp);
}

enum eng_tx sched_post(uint32_t bytes)
{
	sched_push(ENG_WRITE, bytes, 0);
	return eng_sq_kick(sched_fixture.qp, &sched_hint);
}

static struct eng_burst burst_of(uint32_t max_packets)
{
	return (struct eng_burst){ .staging = staging,
				   .staging_bytes = sizeof(staging),
				   .pieces = pieces,
				   .max_pieces = 300,
				   .max_packets = max_packets,
				   .max_bytes = BURST_BYTES,
				   .gather_from = UINT32_MAX };
}

struct eng_burst sched_leave(uint32_t max_packets)
{
	struct eng_burst burst = burst_of(max_packets);

	assert_int_equal(eng_transmit(sched_fixture.qp, &burst, &sched_hint), ENG_TX_BURST);
	return burst;
}

void sched_leave_all(void)
{
	while (sched_fixture.qp->req.next_wqe != sched_fixture.qp->sq->head)
		sched_leave(BURST_PACKETS);
}

void sched_expect_kind(enum eng_burst_kind kind)
{
	assert_int_equal(sched_leave(BURST_PACKETS).kind, kind);
}

void sched_expect_nothing(enum eng_tx reason)
{
	struct eng_burst burst = burst_of(BURST_PACKETS);

	assert_int_equal(eng_transmit(sched_fixture.qp, &burst, &sched_hint), reason);
}

/*
 * Opens a queue pair in RTS that reports no credits, with an application that polls.  Unless it is
 * an XRC target, it has received an ACK, without credits, and the application has posted.
 */
static void open_qp(enum eng_qp_type type, uint32_t mtu)
{
	struct eng_qp *qp;

	engine_fixture_open(&sched_fixture, type, SLOTS, &ops, NULL);
	qp = sched_fixture.qp;
	qp->attr.mtu = mtu;
	qp->attr.sq_psn = 0xfffff0;
	qp->attr.access = ~0u;
	engine_fixture_set_replay(&sched_fixture, 4);
	qp->reports_credits = false;
	sched_hint = (struct eng_tx_ctx){ .now = 1000000,
					  .round = 1,
					  .sides = ENG_REQUESTS | ENG_RESPONSES,
					  .polled = true,
					  .watched = true };
	eng_set_state(qp, ENG_RESET, sched_hint.now);
	eng_set_state(qp, ENG_INIT, sched_hint.now);
	eng_set_state(qp, ENG_RTR, sched_hint.now);
	eng_set_state(qp, ENG_RTS, sched_hint.now);
	sched_their_psn = 0;
	if (type != ENG_XRC_RECV) {
		sched_acknowledge_all_but(0);
		/* The application has posted, so it may reply to messages. */
		eng_sq_kick(qp, &sched_hint);
		qp->tx_sched.gathered = 0;
	}
	/* Tests do not examine the packets of the connection's start. */
	while (eng_resp_pending(qp) != ENG_RESP_NONE)
		sched_leave(BURST_PACKETS);
	sched_hint.now += 1000000;
}

int sched_set_up(void **state)
{
	(void)state;
	open_qp(ENG_RC, MTU);
	return 0;
}

int sched_tear_down(void **state)
{
	(void)state;
	engine_fixture_close(&sched_fixture);
	return 0;
}

void sched_start_again(enum eng_qp_type type, uint32_t mtu)
{
	engine_fixture_close(&sched_fixture);
	open_qp(type, mtu);
}

void sched_stream_of(uint32_t bytes)
{
	for (int i = 0; i < STREAM + 1; i++)
		sched_post(bytes);
	sched_leave_all();
	assert_true(eng_in_flight(sched_fixture.qp) > STREAM);
}
