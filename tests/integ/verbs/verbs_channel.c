/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Completion events that are not read for a long time: more than the channel's descriptor can
 * hold.  ibv_req_notify_cq(3) promises an event for each arming, however late it is read.
 */
#include <poll.h>
#include <stdbool.h>

#include "verbs_pair.h"

enum {
	CQS = 100,
	/* A pipe of 1 MiB has room for 131072. */
	ROUNDS = 1400,
};

static struct ibv_comp_channel *channel;
static struct ibv_cq *cq[CQS];
static struct ibv_qp *qp[CQS];
static struct ibv_pd *pd;
static unsigned int told[CQS];

/* Queue pairs in ERR: each receive request completes at once, by being flushed. */
static int open_all(void **state)
{
	(void)state;
	pd = ibv_alloc_pd(the_context());
	channel = ibv_create_comp_channel(the_context());
	assert_non_null(channel);
	for (uintptr_t i = 0; i < CQS; i++) {
		struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC,
						 .cap = { .max_recv_wr = 4 } };

		cq[i] = ibv_create_cq(the_context(), 16, (void *)i, channel, 0);
		assert_non_null(cq[i]);
		attr.send_cq = cq[i];
		attr.recv_cq = cq[i];
		qp[i] = ibv_create_qp(pd, &attr);
		assert_non_null(qp[i]);
		assert_int_equal(to_init(qp[i], 0), 0);
		assert_int_equal(to_state(qp[i], IBV_QPS_ERR), 0);
		told[i] = 0;
	}
	return 0;
}

static int close_all(void **state)
{
	(void)state;
	for (int i = 0; i < CQS; i++) {
		if (qp[i])
			assert_int_equal(ibv_destroy_qp(qp[i]), 0);
		if (cq[i])
			assert_int_equal(ibv_destroy_cq(cq[i]), 0);
	}
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	return 0;
}

static void raise_event(int i)
{
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;
	struct ibv_wc wc;

	assert_int_equal(ibv_req_notify_cq(cq[i], 0), 0);
	assert_int_equal(ibv_post_recv(qp[i], &wr, &bad), 0);
	assert_int_equal(ibv_poll_cq(cq[i], 1, &wc), 1);
}

/* Reads and acknowledges an event.  Returns false if there is none within this time. */
static bool read_event(int ms)
{
	struct pollfd pollfd = { .fd = channel->fd, .events = POLLIN };
	struct ibv_cq *from;
	void *number;

	if (poll(&pollfd, 1, ms) != 1)
		return false;
	assert_int_equal(ibv_get_cq_event(channel, &from, &number), 0);
	assert_ptr_equal(from, cq[(uintptr_t)number]);
	told[(uintptr_t)number]++;
	ibv_ack_cq_events(from, 1);
	return true;
}

static void all_events_come_at_last(void **state)
{
	(void)state;
	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < CQS; i++)
			raise_event(i);
	for (int i = 0; i < ROUNDS * CQS; i++)
		assert_true(read_event(PATIENCE_MS));
	for (int i = 0; i < CQS; i++)
		assert_int_equal(told[i], ROUNDS);
	assert_false(read_event(0));
	/* Events of later requests are raised as before. */
	raise_event(7);
	assert_true(read_event(PATIENCE_MS));
	assert_int_equal(told[7], ROUNDS + 1);
	assert_false(read_event(0));
}

/* Events that wait for room are removed with their CQ, and others get the room. */
static void a_cq_goes_with_its_events(void **state)
{
	(void)state;
	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < CQS; i++)
			raise_event(i);
	for (int i = 0; i < CQS - 1; i++) {
		assert_int_equal(ibv_destroy_qp(qp[i]), 0);
		assert_int_equal(ibv_destroy_cq(cq[i]), 0);
		qp[i] = NULL;
		cq[i] = NULL;
	}
	for (int i = 0; i < ROUNDS; i++)
		assert_true(read_event(PATIENCE_MS));
	assert_int_equal(told[CQS - 1], ROUNDS);
	assert_false(read_event(0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_events_come_at_last, open_all, close_all),
		cmocka_unit_test_setup_teardown(a_cq_goes_with_its_events, open_all, close_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
