/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A queue pair for tests of transmit scheduling (engine/tx/tx_sched.c): posts, packets from the
 * peer and bursts, at a time and in a context (sched_hint) that the test sets.  All functions fail
 * the test on error.
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
	/* More packets than this in flight, or posts sent in one burst, are a stream. */
	STREAM = 16,
	REPLY_WAIT_NS = 50000,
	REST_WAIT_NS = 10000,
	NO_CREDITS_REPORTED = 0x1f,
	LONG = 64, /* packets of a long message */
};

extern struct engine_fixture sched_fixture;
/* Inputs of eng_sq_kick() and eng_transmit(), with the time, which the test advances. */
extern struct eng_tx_ctx sched_hint;
/* PSN of the peer's next request. */
extern uint32_t sched_their_psn;

/* Receives an ACK of all packets in flight except this number of the newest ones. */
void sched_acknowledge_all_but(uint32_t newest);
/* Receive a message without payload: a WRITE, or a SEND, for which a receive is posted first. */
void sched_receive_message(void);
void sched_receive_send(void);
/* Receives the next packet of a message of this number of packets. */
void sched_receive_packet(uint8_t opcode, uint32_t packets);
/* Receives a READ request with one response packet. */
void sched_receive_read(void);
/*
 * sched_push() posts a request.  sched_post() posts an ENG_WRITE and returns the result of
 * eng_sq_kick(), that is, whether the request is sent at once.
 */
void sched_push(enum eng_op op, uint32_t bytes, uint8_t flags);
enum eng_tx sched_post(uint32_t bytes);
/* Sends one burst of at most this number of packets. */
struct eng_burst sched_leave(uint32_t max_packets);
/*
 * Sends all that is posted.  The first packet of a message is longer than the others, so a message
 * takes two bursts.
 */
void sched_leave_all(void);
/* Expect that a burst of this kind is sent, or none, for this reason. */
void sched_expect_kind(enum eng_burst_kind kind);
void sched_expect_nothing(enum eng_tx reason);
/*
 * sched_set_up() opens an RC queue pair that has received an ACK and whose application polls and
 * posts; sched_start_again() replaces it with a new one.
 */
int sched_set_up(void **state);
int sched_tear_down(void **state);
void sched_start_again(enum eng_qp_type type, uint32_t mtu);
/* Posts and sends messages of this size, so that a stream is in flight. */
void sched_stream_of(uint32_t bytes);

#define SCHED_TEST(test) cmocka_unit_test_setup_teardown(test, sched_set_up, sched_tear_down)

#endif
