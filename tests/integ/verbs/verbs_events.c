/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Completion events and asynchronous events of a program that sleeps until they arrive.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "verbs_pair.h"

enum {
	LATE_MS = 30, /* time in which no event may arrive */
};

static bool readable(int fd, int ms)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };

	return poll(&pollfd, 1, ms) == 1;
}

static void expect_event(struct verbs_end *end)
{
	struct ibv_cq *cq;
	void *context;

	assert_true(readable(end->channel->fd, PATIENCE_MS));
	assert_int_equal(ibv_get_cq_event(end->channel, &cq, &context), 0);
	assert_ptr_equal(cq, end->cq);
	assert_ptr_equal(context, end);
	ibv_ack_cq_events(cq, 1);
}

static void expect_no_event(struct verbs_end *end)
{
	assert_false(readable(end->channel->fd, LATE_MS));
}

static void send_one(struct pair *pair, int flags)
{
	assert_int_equal(post_recv(&pair->b, 1, 0, 10), 0);
	assert_int_equal(post_send(&pair->a, 2, 0, 10, flags | IBV_SEND_SIGNALED), 0);
}

/* There are no polls here: the helper thread receives, acknowledges and completes. */
static void one_event_for_each_arming(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	send_one(&pair, 0);
	expect_no_event(&pair.b); /* not armed */
	expect_wc(&pair.b, 1, IBV_WC_SUCCESS);
	expect_wc(&pair.a, 2, IBV_WC_SUCCESS);
	for (int i = 0; i < 50; i++) {
		assert_int_equal(ibv_req_notify_cq(pair.b.cq, 0), 0);
		assert_int_equal(ibv_req_notify_cq(pair.a.cq, 0), 0);
		send_one(&pair, 0);
		expect_event(&pair.b);
		expect_wc(&pair.b, 1, IBV_WC_SUCCESS);
		expect_event(&pair.a);
		expect_wc(&pair.a, 2, IBV_WC_SUCCESS);
	}
	send_one(&pair, 0);
	expect_no_event(&pair.b);
	pair_close(&pair);
}

static void solicited_events(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	assert_int_equal(ibv_req_notify_cq(pair.b.cq, 1), 0);
	send_one(&pair, 0);
	expect_no_event(&pair.b);
	send_one(&pair, IBV_SEND_SOLICITED);
	expect_event(&pair.b);
	/* An error counts as solicited. */
	assert_int_equal(ibv_req_notify_cq(pair.b.cq, 1), 0);
	assert_int_equal(post_recv(&pair.b, 9, 0, 10), 0);
	assert_int_equal(to_state(pair.b.qp, IBV_QPS_ERR), 0);
	expect_event(&pair.b);
	pair_close(&pair);
}

/*
 * Completions from before ibv_req_notify_cq() raise an event as well, once: they cannot be
 * distinguished from later ones.
 */
static void completions_before_the_arming(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	send_one(&pair, 0);
	expect_wc(&pair.a, 2, IBV_WC_SUCCESS); /* the message has arrived, but b has not polled */
	assert_int_equal(ibv_req_notify_cq(pair.b.cq, 1), 0);
	expect_no_event(&pair.b); /* not solicited */
	assert_int_equal(ibv_req_notify_cq(pair.b.cq, 0), 0);
	expect_event(&pair.b);
	/* The usual order: a completion that has raised an event does not raise another one. */
	assert_int_equal(ibv_req_notify_cq(pair.b.cq, 0), 0);
	expect_no_event(&pair.b);
	expect_wc(&pair.b, 1, IBV_WC_SUCCESS);
	send_one(&pair, 0);
	expect_event(&pair.b);
	expect_wc(&pair.b, 1, IBV_WC_SUCCESS);
	expect_wc(&pair.a, 2, IBV_WC_SUCCESS);
	/* A completion that has been polled does not raise an event, either. */
	send_one(&pair, IBV_SEND_SOLICITED);
	expect_wc(&pair.a, 2, IBV_WC_SUCCESS);
	expect_wc(&pair.b, 1, IBV_WC_SUCCESS);
	assert_int_equal(ibv_req_notify_cq(pair.b.cq, 0), 0);
	expect_no_event(&pair.b);
	send_one(&pair, 0);
	expect_event(&pair.b);
	/* A solicited completion after one that is not. */
	send_one(&pair, IBV_SEND_SOLICITED);
	for (int i = 0; i < 2; i++)
		expect_wc(&pair.a, 2, IBV_WC_SUCCESS);
	assert_int_equal(ibv_req_notify_cq(pair.b.cq, 1), 0);
	expect_event(&pair.b);
	pair_close(&pair);
}

/*
 * A program that arms and then polls all completions must not get another event for them: the stock
 * ibv_rc_pingpong -t -e treats an event without a completion as an error.
 */
static void no_event_for_what_is_polled_at_once(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	for (int i = 0; i < 50; i++) {
		assert_int_equal(ibv_req_notify_cq(pair.b.cq, 0), 0);
		for (int sent = 0; sent < 2; sent++)
			send_one(&pair, 0);
		for (int done = 0; done < 2; done++)
			expect_wc(&pair.a, 2, IBV_WC_SUCCESS);
		expect_event(&pair.b);
		assert_int_equal(ibv_req_notify_cq(pair.b.cq, 0), 0);
		for (int done = 0; done < 2; done++)
			expect_wc(&pair.b, 1, IBV_WC_SUCCESS);
	}
	expect_no_event(&pair.b);
	pair_close(&pair);
}

/* A program that polls only one completion for each event gets as many events as it needs. */
static void one_completion_for_each_event(void **state)
{
	enum { BURST = 16 };
	struct pair pair;

	(void)state;
	for (int early = 0; early < 2; early++) {
		pair_open(&pair, NULL);
		if (early)
			assert_int_equal(ibv_req_notify_cq(pair.b.cq, 0), 0);
		for (int i = 0; i < BURST; i++)
			send_one(&pair, 0);
		for (int i = 0; i < BURST; i++)
			expect_wc(&pair.a, 2, IBV_WC_SUCCESS);
		if (!early)
			assert_int_equal(ibv_req_notify_cq(pair.b.cq, 0), 0);
		for (int i = 0; i < BURST; i++) {
			struct ibv_wc wc;

			expect_event(&pair.b);
			assert_int_equal(ibv_req_notify_cq(pair.b.cq, 0), 0);
			assert_int_equal(ibv_poll_cq(pair.b.cq, 1, &wc), 1);
		}
		pair_close(&pair);
	}
}

/* Completions of a destroyed queue pair are removed; the remaining ones still raise their event. */
static void completions_that_are_forgotten(void **state)
{
	struct pair pair;
	struct ibv_qp *other;
	struct ibv_wc wc;

	(void)state;
	pair_open(&pair, NULL);
	/* Two queue pairs use one CQ, and the completion of the first one has raised its event. */
	other = ibv_create_qp(pair.b.pd, &(struct ibv_qp_init_attr){ .send_cq = pair.b.cq,
								     .recv_cq = pair.b.cq,
								     .cap = { .max_recv_wr = 4 },
								     .qp_type = IBV_QPT_RC });
	assert_non_null(other);
	assert_int_equal(to_init(other, 0), 0);
	assert_int_equal(ibv_req_notify_cq(pair.b.cq, 0), 0);
	send_one(&pair, 0);
	expect_event(&pair.b);
	expect_wc(&pair.a, 2, IBV_WC_SUCCESS);
	assert_int_equal(ibv_post_recv(other, &(struct ibv_recv_wr){ .wr_id = 7 },
				       &(struct ibv_recv_wr *){ NULL }),
			 0);
	assert_int_equal(to_state(other, IBV_QPS_ERR), 0);
	assert_int_equal(to_state(pair.b.qp, IBV_QPS_RESET), 0);
	assert_int_equal(ibv_req_notify_cq(pair.b.cq, 0), 0);
	expect_event(&pair.b);
	assert_int_equal(ibv_poll_cq(pair.b.cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 7);
	assert_int_equal(ibv_destroy_qp(other), 0);
	pair_close(&pair);
}

static void unread_events_do_not_hold_up_destroy(void **state)
{
	struct pair pair;
	struct ibv_cq *cq;
	void *context;

	(void)state;
	pair_open(&pair, NULL);
	assert_int_equal(ibv_req_notify_cq(pair.b.cq, 0), 0);
	send_one(&pair, 0);
	assert_true(readable(pair.b.channel->fd, PATIENCE_MS));
	/* An event that has not been read is removed with its CQ. */
	assert_int_equal(ibv_destroy_qp(pair.b.qp), 0);
	assert_int_equal(ibv_destroy_cq(pair.b.cq), 0);
	expect_no_event(&pair.b);
	fcntl(pair.b.channel->fd, F_SETFL, O_NONBLOCK);
	assert_int_equal(ibv_get_cq_event(pair.b.channel, &cq, &context), -1);
	pair.b.cq = ibv_create_cq(the_context(), 1, NULL, NULL, 0);
	pair.b.qp = ibv_create_qp(pair.b.pd, &(struct ibv_qp_init_attr){ .send_cq = pair.b.cq,
									 .recv_cq = pair.b.cq,
									 .qp_type = IBV_QPT_RC });
	assert_non_null(pair.b.qp);
	pair_close(&pair);
}

static atomic_bool acknowledged;

static void *acknowledge_late(void *cq)
{
	usleep(50000);
	atomic_store(&acknowledged, true);
	ibv_ack_cq_events(cq, 1);
	return NULL;
}

static void destroy_waits_for_acknowledgement(void **state)
{
	struct ibv_cq *cq;
	pthread_t thread;
	struct pair pair;
	void *context;

	(void)state;
	pair_open(&pair, NULL);
	assert_int_equal(ibv_req_notify_cq(pair.b.cq, 0), 0);
	send_one(&pair, 0);
	assert_int_equal(ibv_get_cq_event(pair.b.channel, &cq, &context), 0);
	atomic_store(&acknowledged, false);
	pthread_create(&thread, NULL, acknowledge_late, cq);
	pair_close(&pair);
	assert_true(atomic_load(&acknowledged));
	pthread_join(thread, NULL);
}

static struct ibv_async_event next_async(void)
{
	struct ibv_async_event event;

	assert_true(readable(the_context()->async_fd, PATIENCE_MS));
	assert_int_equal(ibv_get_async_event(the_context(), &event), 0);
	return event;
}

static void expect_async(enum ibv_event_type type, void *element)
{
	struct ibv_async_event event = next_async();

	ibv_ack_async_event(&event);
	assert_string_equal(ibv_event_type_str(event.event_type), ibv_event_type_str(type));
	assert_ptr_equal(event.element.qp, element);
}

static enum ibv_qp_state state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

/* An overrun makes the CQ, and the queue pair that uses it, fail; no call hangs. */
static void an_overrun(void **state)
{
	struct ibv_wc wc[64];
	struct pair pair;
	int got;

	(void)state;
	pair_open(&pair, &(struct pair_options){ .cqe = 4, .send_wr = 1000 });
	for (int i = 0; i <= pair.a.cq->cqe; i++)
		assert_int_equal(post_rdma(&pair.a, IBV_WR_RDMA_WRITE, 1, 0, 1, IBV_SEND_SIGNALED,
					   &pair.b, 0),
				 0);
	expect_async(IBV_EVENT_CQ_ERR, pair.a.cq);
	expect_async(IBV_EVENT_QP_FATAL, pair.a.qp);
	assert_int_equal(state_of(pair.a.qp), IBV_QPS_ERR);
	assert_int_equal(state_of(pair.b.qp), IBV_QPS_RTS);
	do
		got = ibv_poll_cq(pair.a.cq, 64, wc);
	while (got > 0);
	assert_true(got < 0);
	pair_close(&pair);
}

static void the_send_queue_drains(void **state)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	assert_int_equal(
		post_rdma(&pair.a, IBV_WR_RDMA_WRITE, 1, 0, 10000, IBV_SEND_SIGNALED, &pair.b, 0),
		0);
	assert_int_equal(ibv_modify_qp(pair.a.qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY),
			 0);
	expect_async(IBV_EVENT_SQ_DRAINED, pair.a.qp);
	assert_int_equal(state_of(pair.a.qp), IBV_QPS_SQD);
	expect_wc(&pair.a, 1, IBV_WC_SUCCESS);
	/* Requests posted now wait until the queue leaves SQD. */
	assert_int_equal(
		post_rdma(&pair.a, IBV_WR_RDMA_WRITE, 2, 0, 10, IBV_SEND_SIGNALED, &pair.b, 0), 0);
	usleep(5000);
	expect_no_wc(&pair.a);
	assert_int_equal(to_state(pair.a.qp, IBV_QPS_RTS), 0);
	expect_wc(&pair.a, 2, IBV_WC_SUCCESS);
	pair_close(&pair);
}

/* The event is raised if the first packet arrives before the application has left RTR. */
static void communication_established(void **state)
{
	const struct pair_options none = { 0 };
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	assert_int_equal(to_state(pair.b.qp, IBV_QPS_RESET), 0);
	assert_int_equal(to_init(pair.b.qp, 0), 0);
	assert_int_equal(post_recv(&pair.b, 1, 0, 10), 0);
	assert_int_equal(to_rtr(pair.b.qp, pair.a.qp->qp_num, &none), 0);
	assert_int_equal(post_send(&pair.a, 2, 0, 10, IBV_SEND_SIGNALED), 0);
	expect_async(IBV_EVENT_COMM_EST, pair.b.qp);
	expect_wc(&pair.b, 1, IBV_WC_SUCCESS);
	expect_wc(&pair.a, 2, IBV_WC_SUCCESS);
	/* An end in RTS raises no event. */
	assert_int_equal(to_rts(pair.b.qp, &none), 0);
	assert_int_equal(post_recv(&pair.a, 3, 0, 10), 0);
	assert_int_equal(post_send(&pair.b, 4, 0, 10, IBV_SEND_SIGNALED), 0);
	expect_wc(&pair.b, 4, IBV_WC_SUCCESS);
	expect_wc(&pair.a, 3, IBV_WC_SUCCESS);
	assert_false(readable(the_context()->async_fd, LATE_MS));
	pair_close(&pair);
}

static void unread_asyncs_do_not_hold_up_destroy(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, &(struct pair_options){ .cqe = 4, .send_wr = 1000 });
	for (int i = 0; i <= pair.a.cq->cqe; i++)
		assert_int_equal(post_rdma(&pair.a, IBV_WR_RDMA_WRITE, 1, 0, 1, IBV_SEND_SIGNALED,
					   &pair.b, 0),
				 0);
	assert_true(readable(the_context()->async_fd, PATIENCE_MS));
	usleep(20000);
	pair_close(&pair);
	assert_false(readable(the_context()->async_fd, LATE_MS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_event_for_each_arming),
		cmocka_unit_test(solicited_events),
		cmocka_unit_test(completions_before_the_arming),
		cmocka_unit_test(no_event_for_what_is_polled_at_once),
		cmocka_unit_test(one_completion_for_each_event),
		cmocka_unit_test(completions_that_are_forgotten),
		cmocka_unit_test(unread_events_do_not_hold_up_destroy),
		cmocka_unit_test(destroy_waits_for_acknowledgement),
		cmocka_unit_test(an_overrun),
		cmocka_unit_test(the_send_queue_drains),
		cmocka_unit_test(communication_established),
		cmocka_unit_test(unread_asyncs_do_not_hold_up_destroy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
