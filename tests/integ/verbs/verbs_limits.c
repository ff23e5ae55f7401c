/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A device has as many objects as it reports and no more, and capacities that the type of a queue
 * pair does not use are ignored: ibv_create_qp(3), ibv_create_qp_ex(3).
 */
#include "verbs_fixture.h"

static struct verbs_fixture fixture;
static struct ibv_srq *srq;
static struct ibv_xrcd *xrcd;
static int most; /* maximum number of queue pairs of the device */

static int set_up(void **state)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 4, .max_sge = 1 } };

	(void)state;
	fixture_open(&fixture);
	srq = ibv_create_srq(fixture.pd, &attr);
	xrcd = fixture_xrcd(the_context());
	return srq ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	fixture_close(&fixture);
	return 0;
}

/* Returns 0, or the errno of creating such a queue pair; *cap gets the granted capacities. */
static int qp_errno(enum ibv_qp_type type, struct ibv_srq *shared, struct ibv_qp_cap *cap)
{
	bool target = type == IBV_QPT_XRC_RECV;
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = fixture.cq,
		.recv_cq = fixture.cq,
		.srq = shared,
		.cap = *cap,
		.qp_type = type,
		.comp_mask = target ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD,
		.pd = fixture.pd,
		.xrcd = xrcd,
	};
	struct ibv_qp *qp;

	errno = 0;
	qp = ibv_create_qp_ex(the_context(), &attr);
	if (!qp)
		return errno;
	*cap = attr.cap;
	assert_int_equal(ibv_destroy_qp(qp), 0);
	return 0;
}

static const struct ibv_qp_cap few_sends = { .max_send_wr = 4, .max_send_sge = 1 };

static void limits_without_use_are_ignored(void **state)
{
	static const struct {
		enum ibv_qp_type type;
		bool shared;
	} rows[] = {
		{ IBV_QPT_RC, true },
		{ IBV_QPT_UC, true },
		{ IBV_QPT_UD, true },
		{ IBV_QPT_XRC_SEND, false },
	};
	struct ibv_qp_cap cap;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cap = few_sends;
		cap.max_recv_wr = cap.max_recv_sge = UINT32_MAX;
		assert_int_equal(qp_errno(rows[i].type, rows[i].shared ? srq : NULL, &cap), 0);
		assert_true(cap.max_send_wr >= 4 && cap.max_send_sge >= 1);
		assert_int_equal(cap.max_recv_wr, 0);
		assert_int_equal(cap.max_recv_sge, 0);
	}
	memset(&cap, 0xff, sizeof(cap));
	assert_int_equal(qp_errno(IBV_QPT_XRC_RECV, NULL, &cap), 0);
	assert_memory_equal(&cap, (&(struct ibv_qp_cap){ 0 }), sizeof(cap));
}

/* rule U1 test */
static void other_limits_are_not(void **state)
{
	struct ibv_qp_cap cap = few_sends;

	(void)state;
	cap.max_send_wr = UINT32_MAX;
	assert_int_equal(qp_errno(IBV_QPT_RC, srq, &cap), EINVAL);
	assert_int_equal(qp_errno(IBV_QPT_XRC_SEND, NULL, &cap), EINVAL);
	cap = few_sends;
	cap.max_recv_sge = UINT32_MAX;
	assert_int_equal(qp_errno(IBV_QPT_RC, NULL, &cap), EINVAL);
	cap = few_sends;
	cap.max_inline_data = UINT32_MAX;
	assert_int_equal(qp_errno(IBV_QPT_RC, srq, &cap), EINVAL);
}

/* Another context of the test's device. */
static struct ibv_context *open_again(void)
{
	struct ibv_context *context = ibv_open_device(the_context()->device);

	assert_non_null(context);
	return context;
}

/* Creates queue pairs from qps[number] on until that fails.  Returns the number in qps. */
static int make_all(struct ibv_pd *pd, struct ibv_cq *cq, struct ibv_qp **qps, int number)
{
	struct ibv_qp_init_attr attr = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC };
	struct ibv_qp *qp;

	while ((qp = ibv_create_qp(pd, &attr))) {
		assert_true(number < most);
		qps[number++] = qp;
	}
	assert_int_equal(errno, ENOMEM);
	return number;
}

static struct ibv_qp **room_for_all(void)
{
	struct ibv_device_attr attr;
	struct ibv_qp **qps;

	assert_int_equal(ibv_query_device(the_context(), &attr), 0);
	most = attr.max_qp;
	qps = calloc((size_t)most, sizeof(*qps));
	assert_non_null(qps);
	return qps;
}

/* These objects still exist until they are destroyed: verbs_close.c. */
static void objects_of_closed_contexts_do_not_count(void **state)
{
	struct ibv_context *other = open_again();
	struct ibv_pd *pd = ibv_alloc_pd(other);
	struct ibv_cq *cq = ibv_create_cq(other, 1, NULL, NULL, 0);
	struct ibv_qp_cap cap = few_sends;
	struct ibv_qp **qps;

	(void)state;
	qps = room_for_all();
	assert_int_equal(make_all(pd, cq, qps, 0), most);
	/* The limit applies to all contexts together. */
	assert_int_equal(qp_errno(IBV_QPT_RC, NULL, &cap), ENOMEM);
	assert_int_equal(ibv_close_device(other), 0);
	assert_int_equal(qp_errno(IBV_QPT_RC, NULL, &cap), 0);
	for (int i = 0; i < most; i++)
		assert_int_equal(ibv_destroy_qp(qps[i]), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	free(qps);
}

/* rule U1 test: also after the previous tests have created and destroyed objects. */
static void as_many_queue_pairs_as_reported(void **state)
{
	struct ibv_qp **qps;

	(void)state;
	qps = room_for_all();
	assert_int_equal(make_all(fixture.pd, fixture.cq, qps, 0), most);
	/* A destroyed queue pair makes room for another one. */
	assert_int_equal(ibv_destroy_qp(qps[most - 1]), 0);
	assert_int_equal(make_all(fixture.pd, fixture.cq, qps, most - 1), most);
	for (int i = 0; i < most; i++)
		assert_int_equal(ibv_destroy_qp(qps[i]), 0);
	free(qps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(limits_without_use_are_ignored, set_up, tear_down),
		cmocka_unit_test_setup_teardown(other_limits_are_not, set_up, tear_down),
		cmocka_unit_test_setup_teardown(objects_of_closed_contexts_do_not_count, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(as_many_queue_pairs_as_reported, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
