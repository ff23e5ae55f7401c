/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Completion queues beyond creation and poll: moderated events, timestamps of completions, ignored
 * overruns, one polling thread, sizes.
 */
#include "verbs_pair.h"

#include <poll.h>
#include <stdbool.h>
#include <time.h>

enum {
	SHORT_MS = 5,
	/* UINT16_MAX microseconds: an event that arrives earlier has not waited for the period. */
	PERIOD_MS = 65,
	/* A busy host may delay an event that should be early, but not in each try. */
	TRIES = 5,
};

static struct pair pair;

static int moderate(uint16_t count, uint16_t period_us)
{
	struct ibv_modify_cq_attr attr = { .attr_mask = IBV_CQ_ATTR_MODERATE,
					   .moderate = { count, period_us } };

	return ibv_modify_cq(pair.a.cq, &attr);
}

/* Causes count completions in a's CQ, and leaves them there. */
static void complete(int count)
{
	for (int i = 0; i < count; i++)
		assert_int_equal(post_rdma(&pair.a, IBV_WR_RDMA_WRITE, 1, 0, 8, IBV_SEND_SIGNALED,
					   &pair.b, 0),
				 0);
}

/* Returns true if there is an event within this number of ms, which is read and acknowledged. */
static bool event_within(int ms)
{
	struct pollfd fd = { .fd = pair.a.channel->fd, .events = POLLIN };
	void *context;
	struct ibv_cq *cq;

	if (poll(&fd, 1, ms) != 1)
		return false;
	assert_int_equal(ibv_get_cq_event(pair.a.channel, &cq, &context), 0);
	assert_ptr_equal(cq, pair.a.cq);
	ibv_ack_cq_events(cq, 1);
	return true;
}

/* Removes the completions of an earlier try. */
static void drain(void)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(pair.a.cq, 1, &wc) == 1)
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

static void arm(void)
{
	assert_int_equal(ibv_req_notify_cq(pair.a.cq, 0), 0);
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static bool is_early(uint64_t begin)
{
	return now_ns(CLOCK_MONOTONIC) - begin < PERIOD_MS * UINT64_C(1000000);
}

/*
 * Three completions raise no event, and a fourth raises one at once.  Returns false if the period
 * had passed before the event.
 */
static bool is_waited_for_company(void)
{
	uint64_t begin = now_ns(CLOCK_MONOTONIC);

	drain();
	arm();
	complete(3);
	if (event_within(SHORT_MS)) {
		assert_false(is_early(begin));
		return false;
	}
	complete(1);
	assert_true(event_within(PATIENCE_MS));
	return is_early(begin);
}

static void an_event_waits_for_company(void **state)
{
	int tries = 1;

	(void)state;
	assert_int_equal(moderate(4, UINT16_MAX), 0);
	while (!is_waited_for_company())
		assert_true(tries++ < TRIES);
	/* One event for each arming. */
	complete(4);
	assert_false(event_within(100));
	arm();
	complete(4);
	assert_true(event_within(PATIENCE_MS));
}

static void an_event_waits_for_some_time(void **state)
{
	uint64_t begin;

	(void)state;
	assert_int_equal(moderate(1000, 20000), 0);
	arm();
	begin = now_ns(CLOCK_MONOTONIC);
	complete(1);
	assert_true(event_within(PATIENCE_MS));
	assert_true(now_ns(CLOCK_MONOTONIC) - begin >= 20000000);
	/* Without a count the period alone applies. */
	assert_int_equal(moderate(0, 20000), 0);
	arm();
	begin = now_ns(CLOCK_MONOTONIC);
	complete(9);
	assert_true(event_within(PATIENCE_MS));
	assert_true(now_ns(CLOCK_MONOTONIC) - begin >= 20000000);
	/* Without a period no event waits. */
	assert_int_equal(moderate(1000, 0), 0);
	arm();
	complete(1);
	assert_true(event_within(PATIENCE_MS));
}

static bool is_ended_by_other_terms(void)
{
	uint64_t begin = now_ns(CLOCK_MONOTONIC);

	drain();
	assert_int_equal(moderate(100, UINT16_MAX), 0);
	arm();
	complete(1);
	assert_int_equal(moderate(0, 0), 0);
	assert_true(event_within(PATIENCE_MS));
	return is_early(begin);
}

static void other_terms_end_the_wait(void **state)
{
	int tries = 1;

	(void)state;
	while (!is_ended_by_other_terms())
		assert_true(tries++ < TRIES);
	/* A CQ may be destroyed while an event waits: pair_tear_down() does it. */
	assert_int_equal(moderate(100, 30000), 0);
	arm();
	complete(1);
}

static void terms_that_are_refused(void **state)
{
	struct ibv_modify_cq_attr attr = { .attr_mask = 1 << 5 };

	(void)state;
	assert_int_equal(ibv_modify_cq(pair.a.cq, &attr), EINVAL);
	attr.attr_mask = 0;
	assert_int_equal(ibv_modify_cq(pair.a.cq, &attr), 0);
	assert_int_equal(moderate(UINT16_MAX, UINT16_MAX), 0);
}

static struct ibv_cq_ex *create_ex(uint32_t cqe, uint64_t wc_flags, uint32_t flags)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = cqe,
					    .wc_flags = wc_flags,
					    .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
					    .flags = flags };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(the_context(), &attr);

	assert_non_null(cq);
	return cq;
}

/* Returns a queue pair whose receives, 0 ... count - 1, have been flushed into cq. */
static struct ibv_qp *flushed(struct ibv_cq_ex *cq, uint32_t count)
{
	struct ibv_qp_init_attr attr = { .send_cq = ibv_cq_ex_to_cq(cq),
					 .recv_cq = ibv_cq_ex_to_cq(cq),
					 .qp_type = IBV_QPT_RC,
					 .cap = { .max_recv_wr = count } };
	struct ibv_qp *qp = ibv_create_qp(pair.a.pd, &attr);
	struct ibv_recv_wr wr = { 0 }, *bad;

	assert_non_null(qp);
	assert_int_equal(to_init(qp, 0), 0);
	for (; wr.wr_id < count; wr.wr_id++)
		assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
	assert_int_equal(to_state(qp, IBV_QPS_ERR), 0);
	return qp;
}

/* Checks that the CQ contains count completions, with wr_id from, from + 1 ... */
static void expect_row(struct ibv_cq_ex *cq, uint64_t from, uint64_t count)
{
	struct ibv_poll_cq_attr attr = { 0 };
	int result = ibv_start_poll(cq, &attr);

	for (uint64_t i = from; i < from + count; i++, result = ibv_next_poll(cq)) {
		assert_int_equal(result, 0);
		assert_int_equal(cq->wr_id, i);
		assert_int_equal(cq->status, IBV_WC_WR_FLUSH_ERR);
	}
	assert_int_equal(result, ENOENT);
	ibv_end_poll(cq);
}

static void an_overrun_may_be_ignored(void **state)
{
	struct ibv_cq_ex *cq = create_ex(16, 0, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN);
	uint32_t room = (uint32_t)ibv_cq_ex_to_cq(cq)->cqe;
	struct ibv_qp *qp = flushed(cq, room + 50);

	(void)state;
	/* The newest completions are in the CQ, which still works. */
	expect_row(cq, 50, room);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	qp = flushed(cq, 3);
	expect_row(cq, 0, 3);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

static void one_thread_polls(void **state)
{
	struct ibv_cq_ex *cq = create_ex(16, 0, IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
	struct ibv_poll_cq_attr attr = { 0 };
	struct ibv_qp *qp = flushed(cq, 10);

	(void)state;
	expect_row(cq, 0, 10);
	assert_int_equal(ibv_start_poll(cq, &attr), ENOENT);
	attr.comp_mask = 1;
	assert_int_equal(ibv_start_poll(cq, &attr), EINVAL);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

static uint64_t raw_clock(void)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };

	assert_int_equal(ibv_query_rt_values_ex(the_context(), &values), 0);
	return (uint64_t)values.raw_clock.tv_nsec;
}

static void times_are_those_of_the_clocks(void **state)
{
	const uint64_t times =
		IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
	const uint64_t slack = 1000000; /* one clock is read after the other */
	struct ibv_cq_ex *cq = create_ex(16, times, 0);
	uint64_t raw_before = raw_clock(), wall_before = now_ns(CLOCK_REALTIME);
	struct ibv_qp *qp = flushed(cq, 200);
	uint64_t raw_after = raw_clock(), wall_after = now_ns(CLOCK_REALTIME);
	struct ibv_poll_cq_attr attr = { 0 };
	uint64_t last = raw_before;
	int result;

	(void)state;
	/* Completions keep their timestamps when the CQ is resized. */
	assert_int_equal(ibv_resize_cq(ibv_cq_ex_to_cq(cq), 3000), 0);
	result = ibv_start_poll(cq, &attr);
	for (int i = 0; i < 200; i++, result = ibv_next_poll(cq)) {
		uint64_t raw = ibv_wc_read_completion_ts(cq);
		uint64_t wall = ibv_wc_read_completion_wallclock_ns(cq);

		assert_int_equal(result, 0);
		assert_true(raw >= last && raw <= raw_after);
		assert_true(wall + slack >= wall_before && wall <= wall_after + slack);
		last = raw;
	}
	ibv_end_poll(cq);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

static void extended_queues_that_are_refused(void **state)
{
	const struct {
		struct ibv_cq_init_attr_ex attr;
		int error;
	} rows[] = {
		{ { .cqe = 0 }, EINVAL },
		{ { .cqe = UINT32_MAX }, EINVAL },
		{ { .cqe = 10, .comp_vector = 1000 }, EINVAL },
		{ { .cqe = 10, .wc_flags = IBV_WC_EX_WITH_FLOW_TAG }, EOPNOTSUPP },
		{ { .cqe = 10, .wc_flags = IBV_WC_EX_WITH_CVLAN }, EOPNOTSUPP },
		{ { .cqe = 10, .wc_flags = IBV_WC_EX_WITH_TM_INFO }, EOPNOTSUPP },
		{ { .cqe = 10, .comp_mask = 1 << 9 }, EOPNOTSUPP },
		{ { .cqe = 10, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS, .flags = 1 << 9 },
		  EOPNOTSUPP },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ibv_cq_init_attr_ex attr = rows[i].attr;

		errno = 0;
		assert_null(ibv_create_cq_ex(the_context(), &attr));
		assert_int_equal(errno, rows[i].error);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PAIR_TEST(an_event_waits_for_company, &pair),
		PAIR_TEST(an_event_waits_for_some_time, &pair),
		PAIR_TEST(other_terms_end_the_wait, &pair),
		PAIR_TEST(terms_that_are_refused, &pair),
		PAIR_TEST(an_overrun_may_be_ignored, &pair),
		PAIR_TEST(one_thread_polls, &pair),
		PAIR_TEST(times_are_those_of_the_clocks, &pair),
		PAIR_TEST(extended_queues_that_are_refused, &pair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
