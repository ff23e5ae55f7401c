/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Results for one direction of a connection, from packets that are built here one by one.  Each
 * packet advances the time by a microsecond.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/base/aeth.h"
#include "trace/stream/stream.h"
#include "wire/packet.h"

#define MTU 1024
#define ASKS TRACE_ACK_REQUEST
#define NEAR_WRAP 0xfffffe

static struct stream stream;
static uint64_t now;
static uint32_t frame;

static void begin_with(struct stream_params params)
{
	params.keep_events = true;
	stream_init(&stream, &params);
	now = 1000000000;
	frame = 0;
}

static void begin(void)
{
	begin_with((struct stream_params){ .mtu = MTU, .read_depth = UINT32_MAX });
}

static void end(void)
{
	stream_finish(&stream);
	stream_free(&stream);
}

static struct trace_packet packet(uint8_t opcode, uint32_t psn)
{
	now += 1000;
	return (struct trace_packet){
		.time_ns = now,
		.frame = ++frame,
		.opcode = opcode,
		.psn = psn & WIRE_24BIT_MASK,
	};
}

static void ask(uint8_t opcode, uint32_t psn, uint16_t flags)
{
	struct trace_packet asking = packet(opcode, psn);

	asking.flags = flags;
	if (wire_op_position(opcode) & (WIRE_FIRST | WIRE_MIDDLE))
		asking.payload = MTU;
	else
		asking.payload = 10;
	stream_request(&stream, &asking);
}

static void ask_read(uint32_t psn, uint32_t length)
{
	struct trace_packet asking = packet(WIRE_READ_REQUEST, psn);

	asking.dma_length = length;
	asking.flags = ASKS;
	stream_request(&stream, &asking);
}

static void reply(uint8_t opcode, uint32_t psn, uint8_t syndrome, uint32_t msn)
{
	struct trace_packet answer = packet(opcode, psn);

	answer.syndrome = syndrome;
	answer.msn = msn & WIRE_24BIT_MASK;
	if (wire_op_family(opcode) == WIRE_FAMILY_READ_RESPONSE)
		answer.payload = MTU;
	stream_response(&stream, &answer);
}

static void ack(uint32_t psn, uint32_t credits, uint32_t msn)
{
	reply(WIRE_ACKNOWLEDGE, psn, syndrome_make(AETH_ACK, credit_encode(credits)), msn);
}

static void ack_unlimited(uint32_t psn, uint32_t msn)
{
	reply(WIRE_ACKNOWLEDGE, psn, syndrome_make(AETH_ACK, CREDIT_CODE_UNLIMITED), msn);
}

static void nak(uint32_t psn, enum aeth_kind kind, uint8_t code)
{
	reply(WIRE_ACKNOWLEDGE, psn, syndrome_make(kind, code), stream.msn);
}

static void broken(enum trace_rule rule, uint64_t times)
{
	for (int i = 0; i < TRACE_RULE_COUNT; i++)
		if (stream.rules[i].count != (i == (int)rule ? times : 0))
			fail_msg("%s: %d times", rule_rows[i].text, (int)stream.rules[i].count);
}
#define nothing_broken() broken(TRACE_RULE_COUNT, 0)

/* By rule C12: its example, MSN 18h and 6 credits. */
static void test_lsn(void **state)
{
	(void)state;
	begin();
	for (uint32_t i = 0; i < 0x18; i++)
		ask(WIRE_SEND_ONLY, i, ASKS);
	ack(0x17, 6, 0x18);
	assert_int_equal(stream.lsn, 0x1e);
	assert_int_equal(stream_limit(&stream), 0x1e);
	assert_int_equal(stream_ssn(&stream), 0x18);
	/* Two of the next requests need no receive WQE. */
	ask(WIRE_SEND_ONLY, 0x18, 0);
	ask(WIRE_WRITE_ONLY, 0x19, 0);
	ask(WIRE_SEND_ONLY, 0x1a, 0);
	ask_read(0x1b, 10);
	assert_int_equal(stream.lsn, 0x20);
	/* The repeated ACK, after further requests were started, has no effect. */
	ack(0x17, 6, 0x18);
	assert_int_equal(stream.lsn, 0x20);
	/*
	 * By rule U3: an old ACK does not lower the LSN, and neither does one with fewer credits.
	 */
	ack(0x10, 0, 0x11);
	assert_int_equal(stream.lsn, 0x20);
	ack(0x17, 4, 0x18);
	assert_int_equal(stream.lsn, 0x20);
	assert_int_equal(stream.counts.stale_acks, 1);
	nothing_broken();
	end();
}

/* By rule C9: credits that arrive before the first request are the first limit. */
static void test_initial_credits(void **state)
{
	(void)state;
	begin();
	ack(99, 2, 0);
	ask(WIRE_SEND_ONLY, 100, 0);
	assert_int_equal(stream_ssn(&stream), 1);
	assert_int_equal(stream_limit(&stream), 2);
	ask(WIRE_SEND_ONLY, 101, 0);
	assert_int_equal(stream.counts.limited, 0);
	assert_int_equal(stream.counts.limit_times, 1);
	ask(WIRE_SEND_ONLY, 102, ASKS);
	assert_int_equal(stream.counts.limited, 1);
	assert_int_equal(stream.counts.unsolicited_acks, 1);
	nothing_broken();
	end();
}

/*
 * By rules C5, C9 and C13: messages that begin before the initial credits arrive have no credits.
 */
static void test_late_initial_credits(void **state)
{
	(void)state;
	begin();
	ask(WIRE_WRITE_ONLY, 100, 0);
	ask(WIRE_SEND_ONLY, 101, ASKS);
	ack(99, 1, 0);
	assert_int_equal(stream_ssn(&stream), 2);
	assert_int_equal(stream_limit(&stream), 2); /* the WRITE needs none */
	assert_int_equal(stream.counts.limited, 1);
	ask(WIRE_SEND_ONLY, 102, ASKS);
	assert_int_equal(stream.counts.limited, 2);
	nothing_broken();
	end();

	/* If the capture starts within a connection, earlier credits are unknown. */
	begin();
	ask(WIRE_SEND_ONLY, 100, ASKS);
	ack(99, 1, 5);
	assert_int_equal(stream_ssn(&stream), 6);
	assert_int_equal(stream.counts.limited, 0);
	ask(WIRE_SEND_ONLY, 101, ASKS);
	assert_int_equal(stream.counts.limited, 1);
	nothing_broken();
	end();

	/* If the capture starts within a message, the SSN is unknown. */
	begin();
	ask(WIRE_SEND_LAST, 100, ASKS);
	ack(99, 1, 5);
	assert_int_equal(stream_ssn(&stream), UINT32_MAX);
	end();
}

/*
 * By rule C13: a limited packet has AckReq, and nothing follows until it is acknowledged or credits
 * arrive.
 */
static void test_limited(void **state)
{
	(void)state;
	begin();
	ack(99, 0, 0);
	ask(WIRE_SEND_FIRST, 100, ASKS);
	assert_int_equal(stream.counts.limited, 1);
	nothing_broken();
	ask(WIRE_SEND_MIDDLE, 101, 0);
	broken(RULE_LIMITED_BEYOND_LSN, 1);
	ack(101, 0, 0);
	ask(WIRE_SEND_LAST, 102, ASKS); /* the message has a receive WQE now */
	broken(RULE_LIMITED_BEYOND_LSN, 1);
	end();

	begin();
	ack(99, 0, 0);
	ask(WIRE_SEND_ONLY, 100, 0);
	broken(RULE_LIMITED_WITHOUT_ACK_REQ, 1);
	end();

	begin();
	ack(99, 0, 0);
	ask(WIRE_SEND_FIRST, 100, ASKS);
	ack(99, 1, 0); /* credits for the message, before its packet arrives */
	ask(WIRE_SEND_LAST, 101, ASKS);
	nothing_broken();
	end();
}

/* By rule C15: no request overtakes a limited one. */
static void test_overtaking(void **state)
{
	(void)state;
	begin();
	ack(99, 0, 0);
	ask(WIRE_SEND_ONLY, 100, ASKS);
	ask(WIRE_WRITE_ONLY, 101, ASKS);
	broken(RULE_PASSES_LIMITED, 1);
	end();

	/* By rule C13: all packets of a WRITE with immediate may be sent. */
	begin();
	ack(99, 0, 0);
	ask(WIRE_WRITE_FIRST, 100, 0);
	ask(WIRE_WRITE_LAST_IMM, 101, ASKS);
	assert_int_equal(stream.counts.limited, 1);
	assert_int_equal(stream.counts.writes_immediate, 1);
	nothing_broken();
	ack(101, 0, 1);
	ask(WIRE_SEND_ONLY, 102, ASKS);
	nothing_broken();
	end();
}

/* By rule C14: WRITE, READ and Atomic are never limited. */
static void test_uncredited(void **state)
{
	(void)state;
	begin();
	ack(99, 0, 0);
	ask(WIRE_WRITE_ONLY, 100, 0);
	ask_read(101, 10);
	ask(WIRE_FETCH_ADD, 102, ASKS);
	assert_int_equal(stream.counts.limited, 0);
	assert_int_equal(stream_limit(&stream), 3);
	nothing_broken();
	end();
}

/* All numbers wrap at 24 bits; a capture that starts within a connection determines them. */
static void test_wrap(void **state)
{
	(void)state;
	begin();
	for (uint32_t i = 0; i < 4; i++) {
		ask(WIRE_SEND_ONLY, NEAR_WRAP + i, ASKS);
		ack(NEAR_WRAP + i, 4, NEAR_WRAP + 1 + i);
		assert_int_equal(stream_ssn(&stream), (NEAR_WRAP + 1 + i) & WIRE_24BIT_MASK);
		assert_int_equal(stream_limit(&stream), i + 5);
	}
	assert_int_equal(stream.counts.acks, 4);
	assert_int_equal(stream.counts.resent_packets + stream.counts.missing_packets, 0);
	assert_int_equal(stream.unacked, stream.next);
	assert_int_equal(stream.lsn, 6);
	nothing_broken();
	end();

	/* SSN FFFFFFh is not beyond LSN 0, but SSN 1 is. */
	begin();
	ask(WIRE_SEND_ONLY, 0, ASKS);
	ack(0, 2, NEAR_WRAP);
	assert_int_equal(stream.lsn, 0);
	ask(WIRE_SEND_ONLY, 1, 0);
	ask(WIRE_SEND_ONLY, 2, 0);
	assert_int_equal(stream.counts.limited, 0);
	ask(WIRE_SEND_ONLY, 3, ASKS);
	assert_int_equal(stream.counts.limited, 1);
	end();
}

/*
 * By rule C8: an ACK that repeats the last one with other credits is unsolicited, also after a
 * duplicate of a request; an ACK without a change responds to the duplicate.
 */
static void test_unsolicited(void **state)
{
	(void)state;
	begin();
	ask(WIRE_SEND_ONLY, 7, ASKS);
	ack(7, 0, 1);
	ack(7, 3, 1);
	assert_int_equal(stream.counts.unsolicited_acks, 1);
	assert_int_equal(stream_limit(&stream), 4);
	ask(WIRE_SEND_ONLY, 7, ASKS);
	ack(7, 3, 1);
	assert_int_equal(stream.counts.resent_packets, 1);
	assert_int_equal(stream.counts.resent_acknowledged, 1);
	assert_int_equal(stream.counts.repeated_acks, 1);
	assert_int_equal(stream.counts.unsolicited_acks, 1);
	ask(WIRE_SEND_ONLY, 7, ASKS);
	ack(7, 4, 1);
	ack(7, 4, 1);
	assert_int_equal(stream.counts.repeated_acks, 2);
	assert_int_equal(stream.counts.unsolicited_acks, 2);
	nothing_broken();
	end();
}

/*
 * Rules S10, C5: an RNR NAK without credits, one despite credits, and a retry before its timer
 * expires.
 */
static void test_rnr(void **state)
{
	(void)state;
	begin();
	ack(99, 1, 0);
	ask(WIRE_SEND_ONLY, 100, ASKS);
	ask(WIRE_SEND_ONLY, 101, ASKS);
	ack(100, 0, 1);
	nak(101, AETH_RNR_NAK, 1); /* 10 us */
	nothing_broken();
	now += 10000;
	ask(WIRE_SEND_ONLY, 101, ASKS);
	assert_int_equal(stream.counts.rnr_naks, 1);
	assert_int_equal(stream.counts.rnr_ns, 11000);
	nothing_broken();
	nak(101, AETH_RNR_NAK, 1);
	ask(WIRE_SEND_ONLY, 101, ASKS);
	broken(RULE_RNR_EARLY, 1);
	end();

	begin();
	ack(99, 1, 0);
	ask(WIRE_SEND_ONLY, 100, ASKS);
	nak(100, AETH_RNR_NAK, 1);
	broken(RULE_CREDITS_TOO_HIGH, 1);
	end();
}

/* By rules S4 and S11: NAKs for PSN sequence errors. */
static void test_sequence_nak(void **state)
{
	(void)state;
	begin();
	ask(WIRE_SEND_ONLY, 1, ASKS);
	ack_unlimited(1, 1);
	ask(WIRE_SEND_ONLY, 3, ASKS);
	nak(2, AETH_NAK, NAK_PSN_SEQUENCE);
	ask(WIRE_SEND_ONLY, 2, ASKS);
	ask(WIRE_SEND_ONLY, 3, ASKS);
	assert_int_equal(stream.counts.sequence_naks, 1);
	assert_int_equal(stream.counts.late_packets, 1);
	assert_int_equal(stream.counts.resent_packets, 1);
	ack_unlimited(3, 3);
	nothing_broken();
	ask(WIRE_SEND_ONLY, 5, ASKS);
	nak(4, AETH_NAK, NAK_PSN_SEQUENCE);
	nak(4, AETH_NAK, NAK_PSN_SEQUENCE);
	broken(RULE_NAK_TWICE, 1);
	now += 100000000;
	ask(WIRE_SEND_ONLY, 4, ASKS);
	assert_int_equal(stream.rules[RULE_NAK_LATE].count, 1);
	end();
}

/* By rule S7: an ACK that arrives too late. */
static void test_late_ack(void **state)
{
	(void)state;
	begin();
	ask(WIRE_SEND_ONLY, 1, ASKS);
	ack_unlimited(1, 1);
	ask(WIRE_SEND_ONLY, 2, ASKS);
	now += 100000000;
	ack_unlimited(2, 2);
	broken(RULE_ACK_LATE, 1);
	assert_int_equal(stream_round_trips(&stream).count, 2);
	assert_int_equal(stream_round_trips(&stream).least, 1000);
	end();
}

/*
 * By rules S2 and S12: the second of three responses is lost, and the missing ones are requested
 * again.
 */
static void test_read(void **state)
{
	uint8_t right = syndrome_make(AETH_ACK, CREDIT_CODE_UNLIMITED);

	(void)state;
	begin_with((struct stream_params){ .mtu = MTU, .read_depth = 1 });
	ask_read(NEAR_WRAP, 3 * MTU);
	assert_int_equal(stream.reads, 1);
	ask(WIRE_SEND_ONLY, NEAR_WRAP + 3, 0);
	reply(WIRE_READ_RESPONSE_FIRST, NEAR_WRAP, right, 1);
	reply(WIRE_READ_RESPONSE_LAST, NEAR_WRAP + 2, right, 1);
	assert_int_equal(stream.reads, 1);
	assert_int_equal((stream.unacked - stream.first), 1);
	ask_read(NEAR_WRAP + 1, 2 * MTU);
	reply(WIRE_READ_RESPONSE_MIDDLE, NEAR_WRAP + 1, 0, 0);
	assert_int_equal(stream.reads, 0);
	reply(WIRE_READ_RESPONSE_LAST, NEAR_WRAP + 2, right, 1);
	ack_unlimited(NEAR_WRAP + 3, 2);
	assert_int_equal(stream.counts.reads, 1);
	assert_int_equal(stream.counts.resent_packets, 1);
	assert_int_equal(stream.counts.read_bytes, 3 * MTU);
	assert_int_equal(stream.counts.repeated_responses, 1);
	assert_int_equal(stream.counts.implied_naks, 0);
	assert_int_equal(stream.unacked, stream.next);
	assert_int_equal(stream_ssn(&stream), 2);
	nothing_broken();
	ask_read(NEAR_WRAP + 4, 1);
	ask_read(NEAR_WRAP + 5, 1);
	broken(RULE_READ_DEPTH, 1);
	/* By rule S8 an ACK after them shows that their responses were lost. */
	ask(WIRE_SEND_ONLY, NEAR_WRAP + 6, ASKS);
	ack_unlimited(NEAR_WRAP + 6, 5);
	assert_int_equal(stream.counts.implied_naks, 2);
	end();
}

/* The response of a READ is lost again, after its retransmission. */
static void test_read_lost_twice(void **state)
{
	(void)state;
	begin_with((struct stream_params){ .mtu = MTU, .read_depth = 1 });
	ask_read(1, 1);
	ask(WIRE_SEND_ONLY, 2, ASKS);
	ask(WIRE_SEND_ONLY, 3, ASKS);
	ack_unlimited(2, 2);
	assert_int_equal(stream.counts.implied_naks, 1);
	ask_read(1, 1);
	assert_int_equal(stream.reads, 1);
	/* This ACK may have been sent before the READ was received again. */
	ack_unlimited(3, 3);
	assert_int_equal(stream.counts.implied_naks, 1);
	assert_int_equal(stream.reads, 1);
	/* This one is of a later packet. */
	ask(WIRE_SEND_ONLY, 4, ASKS);
	ack_unlimited(4, 4);
	assert_int_equal(stream.counts.implied_naks, 2);
	assert_int_equal(stream.reads, 0);
	ask_read(1, 1);
	reply(WIRE_READ_RESPONSE_ONLY, 1, syndrome_make(AETH_ACK, CREDIT_CODE_UNLIMITED), 1);
	assert_int_equal(stream.reads, 0);
	assert_int_equal(stream.counts.orphan_responses, 0);
	nothing_broken();
	end();
}

/* Packets that are missing from the capture: nothing is concluded from their possible contents. */
static void test_gap(void **state)
{
	(void)state;
	begin();
	ack(99, 2, 0);
	ask(WIRE_SEND_ONLY, 100, 0);
	ask(WIRE_SEND_LAST, 105, ASKS);
	assert_int_equal(stream_limit(&stream), -1);
	assert_int_equal(stream_ssn(&stream), UINT32_MAX);
	ack(105, 1, 4);
	assert_int_equal(stream_ssn(&stream), 4);
	assert_int_equal(stream.lsn, 5);
	assert_int_equal(stream.counts.missing_packets, 0);
	stream_finish(&stream);
	assert_int_equal(stream.counts.missing_packets, 4);
	nothing_broken();
	stream_free(&stream);
}

/* Packets that violate one of the rules each. */
static void test_shape(void **state)
{
	struct trace_packet odd;

	(void)state;
	begin();
	ask(WIRE_SEND_FIRST, 1, TRACE_SOLICITED);
	broken(RULE_SOLICITED, 1); /* By rule S15 */
	end();

	begin();
	odd = packet(WIRE_SEND_FIRST, 1);
	odd.payload = MTU - 4;
	stream_request(&stream, &odd);
	broken(RULE_LENGTH, 1); /* By rule S1 */
	end();

	begin();
	ask(WIRE_SEND_FIRST, 1, 0);
	ask(WIRE_WRITE_LAST, 2, 0);
	broken(RULE_OPCODE_ORDER, 1); /* By rule S5 */
	end();

	begin();
	ask(WIRE_SEND_ONLY, 1, 0);
	ack_unlimited(1, 1);
	ack(1, 2, 1);
	broken(RULE_CREDITS_MIXED, 1); /* By rule C2, C7 */
	end();

	/* By rule C11: the MSN is known if the capture contains the start of the connection. */
	begin_with((struct stream_params){ .start_is_known = true, .start = 1 });
	ask(WIRE_SEND_ONLY, 1, 0);
	ack_unlimited(1, 2);
	broken(RULE_MSN, 1);
	end();

	begin_with((struct stream_params){ .start_is_known = true, .start = 1 });
	ack(0, 2, 1);
	ask(WIRE_SEND_ONLY, 1, 0);
	broken(RULE_INITIAL_MSN, 1);
	end();
}

/* Every event is recorded, with the state after it. */
static void test_events(void **state)
{
	static const uint8_t kinds[] = { STREAM_UNSOLICITED, STREAM_SENT,    STREAM_LIMITED,
					 STREAM_ACK,	     STREAM_RNR_NAK, STREAM_RESENT,
					 STREAM_SEQUENCE_NAK };

	(void)state;
	begin();
	ack(99, 1, 0);
	ask(WIRE_SEND_ONLY, 100, 0);
	ask(WIRE_SEND_ONLY, 101, ASKS);
	ack(100, 0, 1);
	nak(101, AETH_RNR_NAK, 1);
	now += 10000;
	ask(WIRE_SEND_ONLY, 101, ASKS);
	nak(101, AETH_NAK, NAK_PSN_SEQUENCE);
	assert_int_equal(stream.events.count, sizeof(kinds));
	for (size_t i = 0; i < sizeof(kinds); i++) {
		assert_int_equal(stream.events.items[i].kind, kinds[i]);
		assert_int_equal(stream.events.items[i].frame, i + 1);
	}
	assert_int_equal(stream.events.items[2].limit, 1);
	assert_int_equal(stream.events.items[2].messages, 2);
	assert_true(stream_message_at(&stream, stream.next) == 2.0);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lsn),
		cmocka_unit_test(test_initial_credits),
		cmocka_unit_test(test_late_initial_credits),
		cmocka_unit_test(test_limited),
		cmocka_unit_test(test_overtaking),
		cmocka_unit_test(test_uncredited),
		cmocka_unit_test(test_wrap),
		cmocka_unit_test(test_unsolicited),
		cmocka_unit_test(test_rnr),
		cmocka_unit_test(test_sequence_nak),
		cmocka_unit_test(test_late_ack),
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_read_lost_twice),
		cmocka_unit_test(test_gap),
		cmocka_unit_test(test_shape),
		cmocka_unit_test(test_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
