/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* The congestion window: its sums, compared with a model, and its changes at every PSN. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/cc/cwnd.h"
#include "engine_fixture.h"

enum {
	SLOTS = 64,
	NUMBERS = 1 << 24,
	/* Bytes that the kernel charges a socket for a packet of 4 KB in a burst. */
	CHARGE = 4212,
};

static struct engine_fixture fixture;
static struct eng_inflight_budget share;

static int set_up(void **state)
{
	(void)state;
	share = (struct eng_inflight_budget){ .limit = 100 * CHARGE };
	engine_fixture_open(&fixture, ENG_RC, SLOTS, NULL, &share);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	engine_fixture_close(&fixture);
	return 0;
}

static uint64_t in_flight(void)
{
	return fixture.qp->req.cost_next - fixture.qp->req.cost_unacked;
}

/*
 * The weight of a message is its payload and a fixed overhead for each packet; that of a READ
 * within a host is a quarter of it.
 */
static void test_weights(void **state)
{
	static const uint32_t mtus[] = { 256, 1024, 4096 };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		fixture.qp->attr.mtu = mtus[i];
		for (uint32_t length = 0; length < 5 * mtus[i]; length += 1 + mtus[i] / 7) {
			uint32_t packets = length ? (length + mtus[i] - 1) / mtus[i] : 1;
			struct eng_send_wqe wqe = { .op = ENG_WRITE,
						    .length = length,
						    .packets = packets };
			uint64_t sum = 0;

			for (uint32_t k = 0; k < packets; k++) {
				uint32_t left = length - k * mtus[i];

				sum += (left < mtus[i] ? left : mtus[i]) + CHARGE - 4096;
				assert_int_equal(cwnd_cost(fixture.qp, &wqe, k + 1), sum);
			}
			wqe.op = ENG_READ;
			eng_set_cc(fixture.qp, ENG_CC_LOCAL);
			assert_int_equal(cwnd_cost(fixture.qp, &wqe, packets), sum / 4);
			eng_set_cc(fixture.qp, ENG_CC_NETWORK);
			assert_int_equal(cwnd_cost(fixture.qp, &wqe, packets), sum);
		}
	}
	/* The longest message there is. */
	fixture.qp->attr.mtu = 256;
	assert_int_equal(cwnd_cost(fixture.qp,
				   &(struct eng_send_wqe){ .op = ENG_WRITE,
							   .length = ENG_MAX_MESSAGE,
							   .packets = 8388608 },
				   8388608),
			 UINT64_C(0x80000000) + UINT64_C(8388608) * (CHARGE - 4096));
}

/*
 * Packets are sent, rolled back, lost and acknowledged in any order: the bytes in flight equal
 * those of the model, and so do those of the in-flight budget.
 */
static void test_sums(void **state)
{
	uint64_t flight = 0, ahead = 0;

	(void)state;
	/* Small enough to be full now and then. */
	fixture.qp->req.cwnd = fixture.qp->req.cwnd_limit = 6 * CHARGE;
	for (unsigned int step = 0; step < 200000; step++) {
		uint64_t cost = 1 + rand_below(2 * CHARGE);

		switch (rand_below(8)) {
		case 0: /* all packets will be sent again, though they may still arrive */
			ahead = flight;
			flight = 0;
			cwnd_reset_inflight(fixture.qp);
			break;
		case 1:
			if (cost > flight)
				cost = flight;
			flight -= cost;
			cwnd_rollback(fixture.qp, cost);
			break;
		case 2:
		case 3: /* acknowledged packets may be those sent before going back */
			if (cost > flight + ahead)
				cost = flight + ahead;
			flight -= cost < flight ? cost : flight;
			cwnd_progress(fixture.qp, cost);
			break;
		default:
			flight += cost;
			cwnd_sent(fixture.qp, cost);
		}
		budget_publish(fixture.qp);
		assert_int_equal(in_flight(), flight);
		assert_int_equal(share.under_way, flight);
		assert_int_equal(cwnd_room(fixture.qp),
				 flight < fixture.qp->req.cwnd ? fixture.qp->req.cwnd - flight : 0);
		/*
		 * rule S3 test: with nothing in flight any packet may be sent, otherwise it must
		 * fit.
		 */
		assert_int_equal(cwnd_open(fixture.qp, cost),
				 !flight || flight + cost <= fixture.qp->req.cwnd);
		assert_int_equal(cwnd_closes(fixture.qp, cost),
				 flight + 2 * cost > fixture.qp->req.cwnd);
	}
}

/*
 * All losses of one window together reduce it by a quarter, at every PSN; losses of the next window
 * reduce it again.
 */
static void test_one_reduction_for_each_window(void **state)
{
	struct requester *req = &fixture.qp->req;
	const uint64_t full = req->cwnd;

	(void)state;
	assert_int_equal(full, 90 * CHARGE);
	for (uint32_t psn = 0; psn < NUMBERS; psn++) {
		bool right;

		req->cwnd = full;
		req->cwnd_recovery_psn = req->unacked_psn;
		req->unacked_psn = psn;
		req->end_psn = (psn + 40) % NUMBERS;
		cwnd_loss(fixture.qp);
		cwnd_loss(fixture.qp);
		req->unacked_psn = (psn + 39) % NUMBERS;
		cwnd_progress(fixture.qp, CHARGE);
		cwnd_loss(fixture.qp);
		right = req->cwnd == full - full / 4;
		/* All packets sent by then are acknowledged. */
		req->unacked_psn = req->end_psn;
		cwnd_progress(fixture.qp, CHARGE);
		right &= req->cwnd > full - full / 4;
		right &= req->cwnd < full - full / 4 + CHARGE;
		cwnd_loss(fixture.qp);
		right &= req->cwnd < (full - full / 4) * 3 / 4 + CHARGE;
		if (!right)
			fail_msg("at PSN %#x", psn);
	}
}

/*
 * Repeated losses reduce the window to two packets; each acknowledged window adds four, up to the
 * limit.
 */
static void test_bounds_and_growth(void **state)
{
	struct requester *req = &fixture.qp->req;

	(void)state;
	for (unsigned int i = 0; i < 50; i++) {
		req->cwnd_recovery_psn = req->unacked_psn;
		cwnd_loss(fixture.qp);
	}
	assert_int_equal(req->cwnd, 2 * CHARGE);
	req->cwnd_recovery_psn = req->unacked_psn;
	for (unsigned int windows = 1; windows <= 30; windows++) {
		uint64_t before = req->cwnd, acknowledged = 0;

		while (acknowledged < before) {
			cwnd_progress(fixture.qp, CHARGE);
			acknowledged += CHARGE;
		}
		assert_true(req->cwnd <= 90 * CHARGE);
		/* The window grows while it is acknowledged, so it is a little less than four. */
		if (before + 4 * CHARGE < 90 * CHARGE)
			assert_uint_in_range(req->cwnd - before, 2 * CHARGE, 4 * CHARGE + CHARGE);
	}
	assert_int_equal(req->cwnd, 90 * CHARGE);
}

/* An ACK is due if a packet in flight has AckReq, at every PSN. */
static void test_an_ack_is_due(void **state)
{
	struct requester *req = &fixture.qp->req;

	(void)state;
	for (uint32_t psn = 0; psn < NUMBERS; psn++) {
		bool right;

		req->unacked_psn = psn;
		req->next_psn = (psn + 3) % NUMBERS;
		req->ackreq_psn = (psn + NUMBERS - 1) % NUMBERS;
		right = !ack_req_in_flight(fixture.qp);
		req->ackreq_psn = psn;
		right &= ack_req_in_flight(fixture.qp);
		req->ackreq_psn = (psn + 2) % NUMBERS;
		right &= ack_req_in_flight(fixture.qp);
		req->unacked_psn = req->next_psn;
		right &= !ack_req_in_flight(fixture.qp);
		if (!right)
			fail_msg("at PSN %#x", psn);
	}
}

/*
 * Two queue pairs: a full in-flight budget stops one that waits for an ACK; it stops one with
 * nothing in flight only while share.queued is set.
 */
static void test_share(void **state)
{
	struct engine_fixture other;

	(void)state;
	engine_fixture_open(&other, ENG_RC, SLOTS, NULL, &share);
	fixture.qp->req.next_psn = 1; /* packet 0 is in flight, with AckReq */
	assert_false(budget_is_contended(fixture.qp));
	cwnd_sent(other.qp, 100 * CHARGE);
	budget_publish(other.qp);
	assert_true(budget_is_contended(fixture.qp));
	assert_false(budget_is_contended(other.qp));
	/*
	 * Nothing in flight: open, unless the owner of the budget calls the queue pair again
	 * (queued).
	 */
	assert_true(budget_is_open(fixture.qp));
	share.queued = true;
	assert_false(budget_is_open(fixture.qp));
	cwnd_sent(fixture.qp, CHARGE);
	budget_publish(fixture.qp);
	assert_false(budget_is_open(fixture.qp));
	/* No packet in flight has AckReq: no ACK would end the wait. */
	fixture.qp->req.ackreq_psn = PSN_MASK;
	assert_true(budget_is_open(fixture.qp));
	fixture.qp->req.ackreq_psn = 0;
	cwnd_progress(other.qp, 2 * CHARGE);
	budget_publish(other.qp);
	assert_true(budget_is_open(fixture.qp));
	cwnd_reset_inflight(other.qp);
	assert_int_equal(share.under_way, CHARGE);
	assert_false(budget_is_contended(fixture.qp));
	engine_fixture_close(&other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_weights),
		TEST(test_sums),
		TEST(test_one_reduction_for_each_window),
		TEST(test_bounds_and_growth),
		TEST(test_an_ack_is_due),
		TEST(test_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
