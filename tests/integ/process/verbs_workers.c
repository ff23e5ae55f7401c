/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Workers: which worker a queue pair belongs to, and polls of a CQ, which must serve all queue
 * pairs that complete into it.  The slot, the upper bits of a queue pair number, identifies the
 * worker.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs_fixture.h"

enum {
	SLOT_SHIFT = 12,
	THREADS = 4,
	MESSAGES = 2000,
	BUFFER_BYTES = 4096,
	RECEIVE_OFFSET = BUFFER_BYTES / 2,
	BYTES = 64,
	UNDER_WAY = 16,
};

/* UROCE_WORKERS is read when a device is opened, and the_context() is opened once. */
static struct ibv_context *open_with(const char *workers)
{
	struct ibv_context *context;

	if (workers)
		setenv("UROCE_WORKERS", workers, 1);
	else
		unsetenv("UROCE_WORKERS");
	context = ibv_open_device(the_context()->device);
	unsetenv("UROCE_WORKERS");
	return context;
}

/* Objects of one thread, in a context that threads may share. */
struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	uint8_t *bytes;
	int comp_vector;
};

static void make_cqs(struct end *end)
{
	end->send_cq = ibv_create_cq(end->context, 256, NULL, NULL, end->comp_vector);
	assert_non_null(end->send_cq);
	end->recv_cq = end->send_cq;
}

static void make_qp(struct end *end, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = end->send_cq,
		.recv_cq = end->recv_cq,
		.cap = { .max_send_wr = 64,
			 .max_recv_wr = 64,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = type,
	};

	end->pd = ibv_alloc_pd(end->context);
	assert_non_null(end->pd);
	end->bytes = calloc(1, BUFFER_BYTES);
	end->mr = ibv_reg_mr(end->pd, end->bytes, BUFFER_BYTES, ALL_ACCESS);
	assert_non_null(end->mr);
	end->qp = ibv_create_qp(end->pd, &attr);
	assert_non_null(end->qp);
}

static void close_end(struct end *end)
{
	if (end->qp) {
		assert_int_equal(ibv_destroy_qp(end->qp), 0);
		assert_int_equal(ibv_dereg_mr(end->mr), 0);
		assert_int_equal(ibv_dealloc_pd(end->pd), 0);
		free(end->bytes);
	}
	if (end->recv_cq != end->send_cq)
		assert_int_equal(ibv_destroy_cq(end->recv_cq), 0);
	assert_int_equal(ibv_destroy_cq(end->send_cq), 0);
}

static unsigned int slot_of(const struct end *end)
{
	return end->qp->qp_num >> SLOT_SHIFT;
}

static void *make_cqs_in_thread(void *end)
{
	make_cqs(end);
	return NULL;
}

static void make_end(struct end *end, struct ibv_context *context, enum ibv_qp_type type,
		     bool own_thread)
{
	pthread_t thread;

	end->context = context;
	if (own_thread) {
		assert_int_equal(pthread_create(&thread, NULL, make_cqs_in_thread, end), 0);
		pthread_join(thread, NULL);
	} else {
		make_cqs(end);
	}
	make_qp(end, type);
}

/* A thread that makes its first CQ gets a worker of its own, as long as there are any. */
static void thread_has_a_worker(void **state)
{
	struct ibv_context *context = open_with("2");
	struct end main_end = { 0 }, again = { 0 }, other = { 0 }, third = { 0 };

	(void)state;
	assert_int_equal(context->num_comp_vectors, 2);
	make_end(&main_end, context, IBV_QPT_RC, false);
	make_end(&again, context, IBV_QPT_RC, false);
	make_end(&other, context, IBV_QPT_RC, true);
	make_end(&third, context, IBV_QPT_RC, true);
	assert_int_equal(slot_of(&main_end), slot_of(&again));
	assert_int_not_equal(slot_of(&main_end), slot_of(&other));
	assert_int_equal(slot_of(&main_end), slot_of(&third));
	close_end(&main_end);
	close_end(&again);
	close_end(&other);
	close_end(&third);
	assert_int_equal(ibv_close_device(context), 0);
}

static void one_worker_is_enough(void **state)
{
	struct ibv_context *context = open_with("1");
	struct end main_end = { 0 }, other = { 0 };

	(void)state;
	assert_int_equal(context->num_comp_vectors, 1);
	make_end(&main_end, context, IBV_QPT_RC, false);
	make_end(&other, context, IBV_QPT_RC, true);
	assert_int_equal(slot_of(&main_end), slot_of(&other));
	assert_null(ibv_create_cq(context, 1, NULL, NULL, 1));
	assert_int_equal(errno, EINVAL);
	close_end(&main_end);
	close_end(&other);
	assert_int_equal(ibv_close_device(context), 0);
}

static void completion_vector_is_a_worker(void **state)
{
	struct ibv_context *context = open_with("3");
	struct end end[3] = { { 0 }, { .comp_vector = 1 }, { .comp_vector = 2 } };

	(void)state;
	for (int i = 0; i < 3; i++)
		make_end(&end[i], context, IBV_QPT_RC, false);
	assert_int_not_equal(slot_of(&end[0]), slot_of(&end[1]));
	assert_int_not_equal(slot_of(&end[0]), slot_of(&end[2]));
	assert_int_not_equal(slot_of(&end[1]), slot_of(&end[2]));
	for (int i = 0; i < 3; i++)
		close_end(&end[i]);
	assert_int_equal(ibv_close_device(context), 0);
}

static void each_cq_has_a_worker(void **state)
{
	struct ibv_context *context = open_with("cq");
	struct end a = { 0 }, b = { 0 };

	(void)state;
	make_end(&a, context, IBV_QPT_RC, false);
	make_end(&b, context, IBV_QPT_RC, false);
	/* With one processor there is one worker. */
	if (context->num_comp_vectors > 1)
		assert_int_not_equal(slot_of(&a), slot_of(&b));
	close_end(&a);
	close_end(&b);
	assert_int_equal(ibv_close_device(context), 0);
}

static void connect_to(struct end *end, uint32_t dest_qpn)
{
	assert_int_equal(to_init(end->qp, ALL_ACCESS), 0);
	assert_int_equal(
		to_rtr(end->qp, dest_qpn, &(struct pair_options){ .timeout = FIXTURE_TIMEOUT }), 0);
	assert_int_equal(to_rts(end->qp, &(struct pair_options){ .timeout = FIXTURE_TIMEOUT }), 0);
}

static void connect_both(struct end *a, struct end *b)
{
	connect_to(a, b->qp->qp_num);
	connect_to(b, a->qp->qp_num);
}

/* Into another part than is sent: one thread may receive while another sends. */
static void receive(struct end *end)
{
	/* A UD receive also gets 40 bytes of a network header. */
	struct ibv_sge sge = { .addr = (uintptr_t)end->bytes + RECEIVE_OFFSET,
			       .length = 40 + BYTES,
			       .lkey = end->mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(ibv_post_recv(end->qp, &wr, &bad), 0);
}

static int send_to(struct end *end, struct ibv_ah *ah, uint32_t qpn)
{
	struct ibv_sge sge = { .addr = (uintptr_t)end->bytes,
			       .length = BYTES,
			       .lkey = end->mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;

	if (ah) {
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = qpn;
		wr.wr.ud.remote_qkey = FIXTURE_QKEY;
	}
	return ibv_post_send(end->qp, &wr, &bad);
}

/* Threads stream to each other's queue pairs, each in a worker of its own. */
static struct end ring_end[THREADS];
static atomic_uint ring_ready;

/* Returns NULL, or its end if a completion is missing: assertions print only in cmocka's thread. */
static void *stream(void *arg)
{
	struct end *end = arg;
	unsigned int number = (unsigned int)(end - ring_end), sent = 0, received = 0, posted = 0;
	struct ibv_wc wc;

	make_cqs(end);
	make_qp(end, IBV_QPT_RC);
	atomic_fetch_add(&ring_ready, 1);
	while (atomic_load(&ring_ready) < THREADS)
		usleep(100);
	connect_to(end, ring_end[number ^ 1].qp->qp_num);
	for (unsigned int i = 0; i < UNDER_WAY; i++)
		receive(end);
	atomic_fetch_add(&ring_ready, 1);
	while (atomic_load(&ring_ready) < 2 * THREADS)
		usleep(100);
	while (sent < MESSAGES || received < MESSAGES) {
		for (; posted < MESSAGES && posted - sent < UNDER_WAY; posted++)
			assert_int_equal(send_to(end, NULL, 0), 0);
		if (fixture_poll(end->send_cq, &wc, PATIENCE_MS) != 1) {
			print_error("no completion after %u sent and %u received\n", sent,
				    received);
			return end;
		}
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		if (wc.opcode == IBV_WC_SEND) {
			sent++;
			continue;
		}
		received++;
		receive(end);
	}
	return NULL;
}

static void threads_stream(void **state)
{
	struct ibv_context *context = open_with("4");
	pthread_t thread[THREADS];
	void *stuck[THREADS];

	(void)state;
	for (int i = 0; i < THREADS; i++) {
		ring_end[i].context = context;
		assert_int_equal(pthread_create(&thread[i], NULL, stream, &ring_end[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], &stuck[i]);
	for (int i = 0; i < THREADS; i++) {
		assert_null(stuck[i]);
		close_end(&ring_end[i]);
	}
	assert_int_equal(ibv_close_device(context), 0);
}

/* A queue pair belongs to the worker of its receive CQ, which polls of its send CQ serve, too. */
static void send_cq_of_another_worker(void **state)
{
	struct ibv_context *context = open_with("2");
	struct end a = { .context = context }, b = { .context = context, .comp_vector = 1 };
	struct ibv_wc wc;

	(void)state;
	make_cqs(&a);
	a.recv_cq = ibv_create_cq(context, 64, NULL, NULL, 1);
	assert_non_null(a.recv_cq);
	make_qp(&a, IBV_QPT_RC);
	make_cqs(&b);
	make_qp(&b, IBV_QPT_RC);
	assert_int_equal(slot_of(&a), slot_of(&b));
	connect_both(&a, &b);
	for (int i = 0; i < 100; i++) {
		receive(&b);
		assert_int_equal(send_to(&a, NULL, 0), 0);
		assert_true(fixture_next(a.send_cq, &wc, PATIENCE_MS));
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_true(fixture_next(b.recv_cq, &wc, PATIENCE_MS));
	}
	close_end(&a);
	close_end(&b);
	assert_int_equal(ibv_close_device(context), 0);
}

static void datagram_to_another_worker(void **state)
{
	struct ibv_context *context = open_with("2");
	struct end a = { .context = context }, b = { .context = context, .comp_vector = 1 };
	struct end *both[] = { &a, &b };
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };
	struct ibv_ah *ah;
	struct ibv_wc wc;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct ibv_qp_attr to = { .qp_state = IBV_QPS_INIT,
					  .port_num = 1,
					  .qkey = FIXTURE_QKEY };

		make_cqs(both[i]);
		make_qp(both[i], IBV_QPT_UD);
		assert_int_equal(
			ibv_modify_qp(both[i]->qp, &to,
				      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
			0);
		to.qp_state = IBV_QPS_RTR;
		assert_int_equal(ibv_modify_qp(both[i]->qp, &to, IBV_QP_STATE), 0);
		to.qp_state = IBV_QPS_RTS;
		assert_int_equal(ibv_modify_qp(both[i]->qp, &to, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
	}
	assert_int_equal(ibv_query_gid(context, 1, the_gid_index(), &attr.grh.dgid), 0);
	attr.grh.sgid_index = the_gid_index();
	ah = ibv_create_ah(a.pd, &attr);
	assert_non_null(ah);
	receive(&b);
	assert_int_equal(send_to(&a, ah, b.qp->qp_num), 0);
	assert_true(fixture_next(a.send_cq, &wc, PATIENCE_MS));
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_true(fixture_next(b.recv_cq, &wc, PATIENCE_MS));
	assert_int_equal(ibv_destroy_ah(ah), 0);
	close_end(&a);
	close_end(&b);
	assert_int_equal(ibv_close_device(context), 0);
}

/* A sleeping thread must be woken for its worker's messages while another thread polls. */
static atomic_bool polling_ends;

static void *poll_all_the_time(void *cq)
{
	struct ibv_wc wc;

	while (!atomic_load(&polling_ends))
		assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
	return NULL;
}

static void sleeper_beside_a_poller(void **state)
{
	struct ibv_context *context = open_with("2");
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
	struct ibv_cq *polled = ibv_create_cq(context, 64, NULL, NULL, 0), *from;
	struct end a = { .context = context }, b = { .context = context, .comp_vector = 1 };
	pthread_t poller;
	struct ibv_wc wc;
	void *arg;

	(void)state;
	assert_non_null(channel);
	assert_non_null(polled);
	make_cqs(&a);
	make_qp(&a, IBV_QPT_RC);
	b.send_cq = b.recv_cq = ibv_create_cq(context, 64, NULL, channel, 1);
	make_qp(&b, IBV_QPT_RC);
	connect_both(&a, &b);
	assert_int_equal(pthread_create(&poller, NULL, poll_all_the_time, polled), 0);
	for (int i = 0; i < 100; i++) {
		receive(&b);
		assert_int_equal(ibv_req_notify_cq(b.recv_cq, 0), 0);
		assert_int_equal(send_to(&a, NULL, 0), 0);
		assert_int_equal(ibv_get_cq_event(channel, &from, &arg), 0);
		ibv_ack_cq_events(from, 1);
		assert_true(fixture_next(b.recv_cq, &wc, PATIENCE_MS));
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_true(fixture_next(a.send_cq, &wc, PATIENCE_MS));
	}
	atomic_store(&polling_ends, true);
	pthread_join(poller, NULL);
	close_end(&a);
	close_end(&b);
	assert_int_equal(ibv_destroy_cq(polled), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
	assert_int_equal(ibv_close_device(context), 0);
}

/* A forked child has none of its parent's workers, and makes its own. */
__attribute__((unused)) static void fork_beside_workers(void **state)
{
	struct ibv_context *context = open_with("2");
	struct end a = { .context = context }, b = { .context = context, .comp_vector = 1 };
	struct ibv_wc wc;
	int status;
	pid_t child;

	(void)state;
	make_cqs(&a);
	make_qp(&a, IBV_QPT_RC);
	make_cqs(&b);
	make_qp(&b, IBV_QPT_RC);
	connect_both(&a, &b);
	child = fork();
	if (!child) {
		/* The child cannot use the parent's context, whatever the vector. */
		struct ibv_cq *useless = ibv_create_cq(context, 64, NULL, NULL, 1);
		struct ibv_context *own = open_with("2");
		struct end c = { .context = own }, d = { .context = own, .comp_vector = 1 };

		make_cqs(&c);
		make_qp(&c, IBV_QPT_RC);
		make_cqs(&d);
		make_qp(&d, IBV_QPT_RC);
		connect_both(&c, &d);
		receive(&d);
		if (useless)
			ibv_destroy_cq(useless);
		if (send_to(&c, NULL, 0) || !fixture_next(d.recv_cq, &wc, PATIENCE_MS) ||
		    slot_of(&c) == slot_of(&a) || slot_of(&d) == slot_of(&b))
			_exit(1);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	receive(&b);
	assert_int_equal(send_to(&a, NULL, 0), 0);
	assert_true(fixture_next(b.recv_cq, &wc, PATIENCE_MS));
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	close_end(&a);
	close_end(&b);
	assert_int_equal(ibv_close_device(context), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(thread_has_a_worker),
		cmocka_unit_test(one_worker_is_enough),
		cmocka_unit_test(completion_vector_is_a_worker),
		cmocka_unit_test(each_cq_has_a_worker),
		cmocka_unit_test(threads_stream),
		cmocka_unit_test(send_cq_of_another_worker),
		cmocka_unit_test(datagram_to_another_worker),
		cmocka_unit_test(sleeper_beside_a_poller),
#ifndef __SANITIZE_THREAD__ /* The sanitizer allows no threads after a fork. */
		cmocka_unit_test(fork_beside_workers),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
