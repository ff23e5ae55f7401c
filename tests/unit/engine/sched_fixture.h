/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A queue pair whose scheduler is looked at (engine/tx/tx_sched.c): posts, packets of the peer and
 * bursts, at a time and with a hint that the test sets.  All of it fails the test when it fails.
 */
#ifndef UROCE_TESTS_UNIT_SCHED_FIXTURE_H
#define UROCE_TESTS_UNIT_SCHED_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/tx/tx_sched.h"
#include "engine_fixture.h"

enum {
	SLOTS = 256,
	MTU = 1024,
	BURST_PACKETS = 128,
	BURST_BYTES = 65507,
	/* More packets than this under way, or posts behind a burst, are a stream. */
	STREAM = 16,
	REPLY_WAIT_NS = 50000,
	REST_WAIT_NS = 10000,
	NO_CREDITS_REPORTED = 0x1f,
	LONG = 64, /* packets of a message */
};

extern struct engine_fixture sched_fixture;
/* Inputs of eng_sq_kick() and eng_transmit(), with the time, which the test advances. */
extern struct eng_tx_ctx sched_hint;
/* PSN of the peer's next request. */
extern uint32_t sched_their_psn;

/* The peer acknowledges all but the newest packets. */
void sched_acknowledge_all_but(uint32_t newest);
/* A WRITE of the peer that carries nothing, and a SEND that does, with a receive posted for it. */
void sched_receive_message(void);
void sched_receive_send(void);
/* The next packet of a message of so many. */
void sched_receive_packet(uint8_t opcode, uint32_t packets);
/* A READ request of one response. */
void sched_receive_read(void);
/* ENG_WRITE is posted by sched_post(), which asks whether it leaves. */
void sched_push(enum eng_op op, uint32_t bytes, uint8_t flags);
enum eng_tx sched_post(uint32_t bytes);
/* One burst of at most so many packets leaves. */
struct eng_burst sched_leave(uint32_t max_packets);
/* All that is posted leaves: of a message the first packet is longer, so it takes two bursts. */
void sched_leave_all(void);
/* A burst of this kind leaves, or none for this reason. */
void sched_expect_kind(enum eng_burst_kind kind);
void sched_expect_nothing(enum eng_tx reason);
/* An RC queue pair that the peer knows, whose application polls and posts; or another one. */
int sched_set_up(void **state);
int sched_tear_down(void **state);
void sched_start_again(enum eng_qp_type type, uint32_t mtu);
/* A stream is under way, whose packets have the size of these. */
void sched_stream_of(uint32_t bytes);

#define SCHED_TEST(test) cmocka_unit_test_setup_teardown(test, sched_set_up, sched_tear_down)

#endif
