/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Shared receive queues through the stock library: many queue pairs and threads on one, the limit
 * event, resizing, the end of a queue pair, and the calls that are refused.
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "verbs_fixture.h"

enum {
	TO = 64 << 10,
	QPS = 4,
	MESSAGES = 1000, /* of each sender */
	BYTES = 256,
	GRH = 40,
	PLACES = 128,
};

static struct verbs_fixture fixture;
static struct ibv_srq *srq;
static struct ibv_qp *from[QPS], *to[QPS];

static struct ibv_srq *make_srq(uint32_t max_wr)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = max_wr, .max_sge = 2 } };
	struct ibv_srq *made = ibv_create_srq(fixture.pd, &attr);

	assert_non_null(made);
	return made;
}

static void set_up_type(enum ibv_qp_type type)
{
	fixture_open(&fixture);
	srq = make_srq(PLACES);
	for (int i = 0; i < QPS; i++) {
		from[i] = fixture_qp(&fixture, type, NULL);
		to[i] = fixture_qp(&fixture, type, srq);
		assert_ptr_equal(to[i]->srq, srq);
		fixture_connect(from[i], to[i]->qp_num);
		fixture_connect(to[i], from[i]->qp_num);
	}
}

static int set_up(void **state)
{
	(void)state;
	set_up_type(IBV_QPT_RC);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	for (int i = 0; i < QPS; i++) {
		assert_int_equal(ibv_destroy_qp(from[i]), 0);
		assert_int_equal(ibv_destroy_qp(to[i]), 0);
	}
	assert_int_equal(ibv_destroy_srq(srq), 0);
	fixture_close(&fixture);
	return 0;
}

static int send_one(struct ibv_qp *qp, struct ibv_ah *ah, uint32_t dest_qpn, uint64_t wr_id)
{
	struct ibv_sge sge = fixture_sge(&fixture, 0, BYTES - GRH);
	struct ibv_send_wr wr = { .wr_id = wr_id,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	if (ah) {
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = dest_qpn;
		wr.wr.ud.remote_qkey = FIXTURE_QKEY;
	}
	return ibv_post_send(qp, &wr, &bad);
}

/* Receives complete in the order in which they were posted, whichever peer has sent to them. */
static void taken_in_order(enum ibv_qp_type type)
{
	struct ibv_ah *ah;
	struct ibv_wc wc[2];

	set_up_type(type);
	ah = type == IBV_QPT_UD ? fixture_ah(&fixture, the_gid_index(), NULL) : NULL;
	for (uint64_t i = 0; i < 8; i++)
		assert_int_equal(fixture_post_srq(&fixture, srq, i, TO + i * BYTES, BYTES), 0);
	for (uint64_t i = 0; i < 8; i++) {
		assert_int_equal(send_one(from[i % QPS], ah, to[i % QPS]->qp_num, 100 + i), 0);
		assert_true(fixture_next(fixture.cq, &wc[0], PATIENCE_MS));
		assert_true(fixture_next(fixture.cq, &wc[1], PATIENCE_MS));
		for (int n = 0; n < 2; n++) {
			assert_int_equal(wc[n].status, IBV_WC_SUCCESS);
			if (wc[n].wr_id >= 100)
				continue;
			assert_int_equal(wc[n].wr_id, i);
			assert_int_equal(wc[n].qp_num, to[i % QPS]->qp_num);
		}
		assert_int_equal(wc[0].wr_id + wc[1].wr_id, 100 + 2 * i);
	}
	if (ah)
		assert_int_equal(ibv_destroy_ah(ah), 0);
	tear_down(NULL);
}

static void taken_in_order_by_rc(void **state)
{
	(void)state;
	taken_in_order(IBV_QPT_RC);
}

static void taken_in_order_by_uc(void **state)
{
	(void)state;
	taken_in_order(IBV_QPT_UC);
}

static void taken_in_order_by_ud(void **state)
{
	(void)state;
	taken_in_order(IBV_QPT_UD);
}

/* rules C6, C7 test: a sender that finds the queue empty waits and loses nothing. */
static void empty_queue(void **state)
{
	(void)state;
	assert_int_equal(send_one(from[0], NULL, 0, 1), 0);
	fixture_expect_nothing(fixture.cq);
	assert_int_equal(fixture_post_srq(&fixture, srq, 2, TO, BYTES), 0);
	for (uint64_t left = 3; left;) {
		struct ibv_wc wc;

		assert_true(fixture_next(fixture.cq, &wc, PATIENCE_MS));
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		left -= wc.wr_id;
	}
}

static atomic_uint posted, received, failed;

/* Posts the SENDs of one thread; SENDs that find the SRQ empty wait for receives. */
static void *send_many(void *arg)
{
	struct ibv_qp *qp = arg;

	for (uint64_t i = 0; i < MESSAGES;) {
		int error = send_one(qp, NULL, 0, UINT64_MAX);

		if (!error)
			i++;
		else if (error != ENOMEM)
			atomic_fetch_add(&failed, 1);
	}
	return NULL;
}

static void *fill_queue(void *arg)
{
	while (atomic_load(&posted) < QPS * MESSAGES) {
		/* No more than the completion queue has room for. */
		if (atomic_fetch_add(&posted, 1) - atomic_load(&received) >= PLACES ||
		    fixture_post_srq(&fixture, arg, 0, TO, BYTES) != 0)
			atomic_fetch_sub(&posted, 1);
	}
	return NULL;
}

/* Four senders, two threads that fill the queue and one that polls: nothing lost, nothing twice. */
static void many_threads(void **state)
{
	unsigned int sends = 0, of_qp[QPS] = { 0 };
	pthread_t thread[QPS + 2];
	struct ibv_wc wc;

	(void)state;
	atomic_store(&posted, 0);
	atomic_store(&received, 0);
	atomic_store(&failed, 0);
	for (int i = 0; i < QPS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, send_many, from[i]), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[QPS + i], NULL, fill_queue, srq), 0);
	while (sends < QPS * MESSAGES || atomic_load(&received) < QPS * MESSAGES) {
		assert_true(fixture_next(fixture.cq, &wc, 20000));
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		if (wc.opcode == IBV_WC_SEND) {
			sends++;
			continue;
		}
		atomic_fetch_add(&received, 1);
		for (int i = 0; i < QPS; i++)
			of_qp[i] += wc.qp_num == to[i]->qp_num;
	}
	for (int i = 0; i < QPS + 2; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(atomic_load(&failed), 0);
	for (int i = 0; i < QPS; i++)
		assert_int_equal(of_qp[i], MESSAGES);
	fixture_expect_nothing(fixture.cq);
}

/* Reads the next event.  Returns false if there is none within this time. */
static bool next_async(struct ibv_async_event *event, int timeout_ms)
{
	struct pollfd fd = { .fd = the_context()->async_fd, .events = POLLIN };

	if (poll(&fd, 1, timeout_ms) != 1)
		return false;
	assert_int_equal(ibv_get_async_event(the_context(), event), 0);
	ibv_ack_async_event(event);
	return true;
}

static void expect_limit_event(void)
{
	struct ibv_async_event event;

	assert_true(next_async(&event, PATIENCE_MS));
	assert_int_equal(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_ptr_equal(event.element.srq, srq);
}

static void expect_no_event(void)
{
	struct ibv_async_event event;

	assert_false(next_async(&event, 20));
}

static uint32_t limit_now(void)
{
	struct ibv_srq_attr attr;

	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	return attr.srq_limit;
}

static void take_one(void)
{
	struct ibv_wc wc;

	assert_int_equal(send_one(from[0], NULL, 0, 100), 0);
	for (int i = 0; i < 2; i++) {
		assert_true(fixture_next(fixture.cq, &wc, PATIENCE_MS));
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
	}
}

/* One event for each arming, when fewer requests than the limit are left. */
static void limit_event(void **state)
{
	struct ibv_srq_attr attr = { .srq_limit = 3 };

	(void)state;
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(fixture_post_srq(&fixture, srq, i, TO, BYTES), 0);
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
	take_one();
	take_one();
	assert_int_equal(limit_now(), 3); /* three are left, not fewer */
	expect_no_event();
	take_one();
	expect_limit_event();
	assert_int_equal(limit_now(), 0);
	take_one();
	expect_no_event();
	/* Fewer receives than the limit are left: the event is raised at once. */
	attr.srq_limit = 2;
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
	expect_limit_event();
	assert_int_equal(limit_now(), 0);
}

/*
 * A queue pair in error flushes the receives it has taken, raises one event, and leaves the rest.
 */
static void last_wqe_reached(void **state)
{
	struct ibv_async_event event;
	struct ibv_wc wc;

	(void)state;
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(fixture_post_srq(&fixture, srq, i, TO, BYTES), 0);
	take_one();
	assert_int_equal(to_state(to[0], IBV_QPS_ERR), 0);
	assert_true(next_async(&event, PATIENCE_MS));
	assert_int_equal(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_ptr_equal(event.element.qp, to[0]);
	expect_no_event();
	assert_false(fixture_next(fixture.cq, &wc, 20));
	/* The other queue pairs use the receives that are left. */
	assert_int_equal(send_one(from[1], NULL, 0, 100), 0);
	assert_true(fixture_next(fixture.cq, &wc, PATIENCE_MS) &&
		    fixture_next(fixture.cq, &wc, PATIENCE_MS));
}

static void resizing_keeps_what_is_posted(void **state)
{
	struct ibv_srq_attr attr = { .max_wr = 3 };

	(void)state;
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(fixture_post_srq(&fixture, srq, i, TO, BYTES), 0);
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	attr.max_wr = 4;
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), 0);
	assert_int_equal(fixture_post_srq(&fixture, srq, 4, TO, BYTES), ENOMEM);
	attr.max_wr = 1000;
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), 0);
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_true(attr.max_wr >= 1000);
	assert_int_equal(fixture_post_srq(&fixture, srq, 4, TO, BYTES), 0);
	for (uint64_t i = 0; i < 5; i++)
		take_one();
}

/* Returns 0, or the errno of creating such an SRQ. */
static int srq_errno(uint32_t max_wr, uint32_t max_sge)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = max_wr, .max_sge = max_sge } };
	struct ibv_srq *made;

	errno = 0;
	made = ibv_create_srq(fixture.pd, &attr);
	if (!made)
		return errno;
	assert_true(attr.attr.max_wr >= max_wr && attr.attr.max_sge >= max_sge);
	assert_int_equal(ibv_destroy_srq(made), 0);
	return 0;
}

static int srq_ex_errno(struct ibv_srq_init_attr_ex attr)
{
	struct ibv_srq *made;

	attr.attr.max_wr = 10;
	attr.attr.max_sge = 1;
	errno = 0;
	made = ibv_create_srq_ex(the_context(), &attr);
	if (!made)
		return errno;
	assert_int_equal(ibv_destroy_srq(made), 0);
	return 0;
}

static void creations(void **state)
{
	const uint32_t type = IBV_SRQ_INIT_ATTR_TYPE, pd = IBV_SRQ_INIT_ATTR_PD;
	struct ibv_device_attr device;

	(void)state;
	assert_int_equal(ibv_query_device(the_context(), &device), 0);
	assert_int_equal(srq_errno(1, 0), 0);
	assert_int_equal(srq_errno((uint32_t)device.max_srq_wr, (uint32_t)device.max_srq_sge), 0);
	assert_int_equal(srq_errno((uint32_t)device.max_srq_wr + 1, 1), EINVAL);
	assert_int_equal(srq_errno(1, (uint32_t)device.max_srq_sge + 1), EINVAL);
	assert_int_equal(srq_errno(0, 1), EINVAL);
	assert_int_equal(srq_ex_errno((struct ibv_srq_init_attr_ex){ .comp_mask = pd | type,
								     .pd = fixture.pd }),
			 0);
	assert_int_equal(srq_ex_errno((struct ibv_srq_init_attr_ex){ .comp_mask = type }), EINVAL);
	assert_int_equal(srq_ex_errno((struct ibv_srq_init_attr_ex){ .comp_mask = pd | type,
								     .pd = fixture.pd,
								     .srq_type = IBV_SRQT_XRC }),
			 EINVAL);
	assert_int_equal(srq_ex_errno((struct ibv_srq_init_attr_ex){ .comp_mask = pd | type,
								     .pd = fixture.pd,
								     .srq_type = IBV_SRQT_TM }),
			 EOPNOTSUPP);
}

static void wrong_uses(void **state)
{
	struct ibv_srq_attr attr = { .srq_limit = PLACES + 1 };
	struct ibv_sge sge[3] = { fixture_sge(&fixture, 0, 1), fixture_sge(&fixture, 0, 1),
				  fixture_sge(&fixture, 0, 1) };
	struct ibv_recv_wr second = { .sg_list = sge, .num_sge = 3 };
	struct ibv_recv_wr first = { .next = &second, .sg_list = sge, .num_sge = 2 }, *bad = NULL;
	uint32_t number;

	(void)state;
	assert_int_equal(ibv_destroy_srq(srq), EBUSY);
	assert_int_equal(ibv_dealloc_pd(fixture.pd), EBUSY);
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), EINVAL);
	assert_int_equal(ibv_modify_srq(srq, &attr, 1 << 5), EINVAL);
	attr.max_wr = 1 << 20;
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	assert_int_equal(ibv_get_srq_num(srq, &number), EINVAL);
	/* A queue pair with a shared queue has none of its own. */
	assert_int_equal(fixture_post_recv(&fixture, to[0], 1, TO, 1), EINVAL);
	/* Requests before a wrong one are posted. */
	assert_int_equal(ibv_post_srq_recv(srq, &first, &bad), EINVAL);
	assert_ptr_equal(bad, &second);
	for (int i = 1; i < PLACES; i++)
		assert_int_equal(fixture_post_srq(&fixture, srq, 1, TO, 1), 0);
	assert_int_equal(fixture_post_srq(&fixture, srq, 1, TO, 1), ENOMEM);
}

static int read_into(struct ibv_qp *qp, uint64_t wr_id, uint8_t *bytes, struct ibv_mr *mr)
{
	struct ibv_sge sge = { .addr = (uintptr_t)bytes + TO, .length = 8, .lkey = mr->lkey };
	struct ibv_send_wr wr = { .wr_id = wr_id,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_READ,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)fixture.bytes;
	wr.wr.rdma.rkey = fixture.mr->rkey;
	return ibv_post_send(qp, &wr, &bad);
}

/*
 * The queue has one protection domain and the queue pair another one.  Receives are checked against
 * the domain of the queue, requests against that of the queue pair.
 */
static void domains_of_queue_and_queue_pair(void **state)
{
	struct verbs_fixture other;
	struct ibv_sge sge;
	struct ibv_recv_wr wr = { .wr_id = 3, .sg_list = &sge, .num_sge = 1 }, *bad;

	(void)state;
	fixture_open(&other);
	for (int wrong = 0; wrong < 2; wrong++) {
		struct ibv_qp *a = fixture_qp(&fixture, IBV_QPT_RC, NULL);
		struct ibv_qp *b = fixture_qp(&other, IBV_QPT_RC, srq);

		fixture_connect(a, b->qp_num);
		fixture_connect(b, a->qp_num);
		assert_int_equal(fixture_post_srq(&fixture, srq, 1, TO, BYTES), 0);
		assert_int_equal(send_one(a, NULL, 0, 100), 0);
		fixture_expect(other.cq, 1, IBV_WC_SUCCESS);
		fixture_expect(fixture.cq, 100, IBV_WC_SUCCESS);
		assert_int_equal(read_into(b, 2, other.bytes, other.mr), 0);
		fixture_expect(other.cq, 2, IBV_WC_SUCCESS);
		if (wrong) {
			assert_int_equal(read_into(b, 4, fixture.bytes, fixture.mr), 0);
			fixture_expect(other.cq, 4, IBV_WC_LOC_PROT_ERR);
		} else {
			sge = fixture_sge(&other, TO, BYTES);
			assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
			assert_int_equal(send_one(a, NULL, 0, 101), 0);
			fixture_expect(other.cq, 3, IBV_WC_LOC_PROT_ERR);
			fixture_expect(fixture.cq, 101, IBV_WC_REM_OP_ERR);
		}
		assert_int_equal(ibv_destroy_qp(a), 0);
		assert_int_equal(ibv_destroy_qp(b), 0);
	}
	fixture_close(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(taken_in_order_by_rc),
		cmocka_unit_test(taken_in_order_by_uc),
		cmocka_unit_test(taken_in_order_by_ud),
		cmocka_unit_test_setup_teardown(empty_queue, set_up, tear_down),
		cmocka_unit_test_setup_teardown(many_threads, set_up, tear_down),
		cmocka_unit_test_setup_teardown(limit_event, set_up, tear_down),
		cmocka_unit_test_setup_teardown(last_wqe_reached, set_up, tear_down),
		cmocka_unit_test_setup_teardown(resizing_keeps_what_is_posted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(creations, set_up, tear_down),
		cmocka_unit_test_setup_teardown(wrong_uses, set_up, tear_down),
		cmocka_unit_test_setup_teardown(domains_of_queue_and_queue_pair, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
