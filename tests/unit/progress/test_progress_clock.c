/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Progress on a busy host, where a thread may lose its processor at any point.  The test replaces
 * the clock, and determines what happens between two readings of it.
 */
#include "progress_end.h"

#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "demux_peer.h"
#include "engine/base/aeth.h"
#include "progress/loop.h"
#include "wire/icrc.h"
#include "wire/packet.h"

enum {
	SECOND_NS = 1000000000,
	PSN = 0xfffff0, /* initial PSN of the ends */
	NAK_BYTES = WIRE_BTH_BYTES + 4 + WIRE_ICRC_BYTES,
	RNR_CODE = 1,
	/* Far longer than the timer of RNR_CODE, 10 us. */
	PAUSE_NS = 1000000,
	/* On a busy host even a datagram from one local socket to another takes a while. */
	MANY_TURNS = 10000,
	BETWEEN_TURNS_US = 200,
	/* Advance of the stopped clock for each reading; an ACK delay is many times as long. */
	LOOK_NS = 100,
	LENGTH = 20000, /* bytes of a message of several packets */
};

/* Time that pauses have added to the clock, and its value at the end of the last pause. */
static atomic_uint_fast64_t paused, pause_ended;
/*
 * Number of readings of the clock while it is stopped (at stands_at, plus LOOK_NS for each
 * reading), plus 1; 0: the clock runs.
 */
static atomic_uint_fast64_t looks;
static struct timespec stands_at;
/* Unless NULL, called once, after this thread's next reading of the clock. */
static __thread void (*meanwhile)(void);

int clock_gettime(clockid_t clock, struct timespec *time);

int clock_gettime(clockid_t clock, struct timespec *time)
{
	long result = syscall(SYS_clock_gettime, clock, time);
	void (*what)(void) = meanwhile;

	if (result || clock != CLOCK_MONOTONIC)
		return (int)result;
	if (atomic_load(&looks)) {
		*time = stands_at;
		time->tv_nsec += (long)atomic_fetch_add(&looks, 1) * LOOK_NS;
	}
	time->tv_nsec += (long)atomic_load(&paused);
	time->tv_sec += time->tv_nsec / SECOND_NS;
	time->tv_nsec %= SECOND_NS;
	meanwhile = NULL;
	if (what)
		what();
	return 0;
}

static struct demux_peer peer;
static struct progress_end end;

static void pause_thread(void)
{
	atomic_fetch_add(&paused, PAUSE_NS);
	atomic_store(&pause_ended, progress_now());
}

static void refuse(void)
{
	struct wire_packet nak = {
		.opcode = WIRE_RC | WIRE_ACKNOWLEDGE,
		.migrated = true,
		.pkey = WIRE_DEFAULT_PKEY,
		.dest_qpn = end.qp.qpn,
		.psn = PSN,
		.syndrome = syndrome_make(AETH_RNR_NAK, RNR_CODE),
	};
	uint8_t bytes[NAK_BYTES];

	assert_int_equal(wire_build_headers(&nak, bytes), NAK_BYTES - WIRE_ICRC_BYTES);
	wire_icrc_put(&peer.path, 0, bytes, sizeof(bytes));
	demux_peer_send(&peer, bytes, sizeof(bytes), 0);
}

static bool is_refused(void)
{
	struct eng_qp_info view;

	eng_qp_query(end.qp.engine, &view);
	return view.counters[ENG_COUNT_RECEIVED_RNR] > 0;
}

/*
 * rule S10 test: the RNR NAK timer runs in full from the receipt of the NAK, even if the cycle that
 * receives it has read the clock long before.
 */
static void test_rnr_wait(void **state)
{
	struct progress *progress = get_progress();
	char byte = 1;

	(void)state;
	end_open(&end, progress);
	end.timeout_code = 0; /* never */
	end_connect(&end, 0x123456);
	demux_peer_open(&peer, "127.0.0.1");
	/* No other thread runs a cycle while the lock is held. */
	progress_lock(progress);
	assert_true(end_send(&end, &byte, 1));
	refuse();
	for (int turns = 0; turns < MANY_TURNS && !is_refused(); turns++) {
		usleep(BETWEEN_TURNS_US);
		meanwhile = pause_thread;
		progress_run_once(progress, PROGRESS_CALLER_POLLER);
	}
	assert_true(is_refused());
	assert_true(eng_timer(end.qp.engine) >= pause_ended + rnr_timer_ns(RNR_CODE));
	progress_unlock(progress);
	demux_peer_close(&peer);
	end_close(&end);
	progress_put(progress);
}

/*
 * Returns the byte at place.  A cycle of the progress thread may write it, with the lock of writer
 * held.
 */
static uint8_t byte_at(struct progress_end *writer, const uint8_t *place)
{
	uint8_t byte;

	pthread_mutex_lock(&writer->qp.lock);
	byte = *place;
	pthread_mutex_unlock(&writer->qp.lock);
	return byte;
}

enum order {
	ACK_BEFORE_ANSWER,
	ACK_BEHIND_ANSWER,
	ORDER_UNKNOWN, /* test lost its processor; the progress thread may have sent the ACK */
};

/* Sends one message from a to b and one back, and returns when the ACK of the first one arrived. */
static enum order order_of_ack(struct progress *progress, struct progress_end *a,
			       struct progress_end *b, uint8_t round)
{
	static uint8_t from[LENGTH], request[LENGTH], answer[LENGTH];
	unsigned int sent = a->sent;
	uint64_t turns;
	bool behind, in_time;

	while (wakeup_is_armed(progress))
		progress_poll(progress);
	turns = progress_count(progress, PROGRESS_COUNT_THREAD_CYCLES);
	memset(from, round, LENGTH);
	assert_true(end_write(a, from, LENGTH, request));
	do
		progress_poll(progress);
	while (byte_at(b, request + LENGTH - 1) != round);
	assert_true(end_write(b, from, LENGTH, answer));
	in_time = progress_count(progress, PROGRESS_COUNT_THREAD_CYCLES) == turns;
	while (a->sent == sent)
		progress_poll(progress);
	behind = byte_at(a, answer + LENGTH - 1) == round;
	assert_true(end_poll_for(progress, &b->sent, sent + 1));
	if (!in_time)
		return ORDER_UNKNOWN;
	return behind ? ACK_BEHIND_ANSWER : ACK_BEFORE_ANSWER;
}

static void stop_clock(void)
{
	clock_gettime(CLOCK_MONOTONIC, &stands_at);
	atomic_store(&looks, 1);
}

/*
 * rule S7 test: a peer that waits for the completion of a message of several packets is still
 * polling when the reply arrives, since the ACK comes after it (ib_write_lat then spins on memory).
 * With a clock that hardly advances, a reply is always in time.
 */
static void test_ack_behind_long_answer(void **state)
{
	unsigned int found[ORDER_UNKNOWN + 1] = { 0 };
	struct progress *progress = get_progress();
	struct progress_end a, b;

	(void)state;
	end_pair(&a, &b, progress);
	stop_clock();
	/* The ACK is not delayed for an application that has not posted yet. */
	order_of_ack(progress, &a, &b, 255);
	for (unsigned int round = 0; round < 5000 && found[ACK_BEHIND_ANSWER] < 50; round++)
		found[order_of_ack(progress, &a, &b, round % 254 + 1)]++;
	atomic_store(&looks, 0);
	assert_int_equal(found[ACK_BEHIND_ANSWER], 50);
	assert_int_equal(found[ACK_BEFORE_ANSWER], 0);
	end_close(&a);
	end_close(&b);
	progress_put(progress);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rnr_wait),
		cmocka_unit_test(test_ack_behind_long_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
