/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Calls that return an errno value set errno to it as well, as drivers of adapters do: programs
 * print it by perror() and "%m".  Each call that can fail is made to fail here, and calls that
 * succeed must leave errno alone.
 */
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs_fixture.h"

#define UNTOUCHED 12345

/* Exit code that a child can return to its parent, in place of the errno of a call. */
static int answers(int result, int wanted)
{
	return result == wanted && errno == (wanted ? wanted : UNTOUCHED) ? 0 : 1;
}

#define ANSWERS(wanted, call) (errno = UNTOUCHED, answers((call), wanted))

#define EXPECT(wanted, call)                                               \
	do {                                                               \
		errno = UNTOUCHED;                                         \
		int result_ = (call), errno_ = errno;                      \
                                                                           \
		assert_int_equal(result_, wanted);                         \
		assert_int_equal(errno_, (wanted) ? (wanted) : UNTOUCHED); \
	} while (0)

static void of_devices(void **state)
{
	struct ibv_query_device_ex_input input = { .comp_mask = 1 };
	struct ibv_values_ex values = { .comp_mask = 1u << 30 };
	struct ibv_context *context = the_context();
	struct ibv_device_attr_ex device;
	struct ibv_gid_entry entry;
	struct ibv_port_attr port;

	(void)state;
	EXPECT(EINVAL, ibv_query_port(context, 2, &port));
	EXPECT(0, ibv_query_port(context, 1, &port));
	/* The function of the header would refuse this without calling the provider. */
	EXPECT(EINVAL, verbs_get_ctx_op(context, query_device_ex)
			       ->query_device_ex(context, &input, &device, sizeof(device)));
	EXPECT(0, ibv_query_device_ex(context, NULL, &device));
	EXPECT(EINVAL, ibv_query_rt_values_ex(context, &values));
	EXPECT(EINVAL, ibv_query_gid_ex(context, 1, port.gid_tbl_len, &entry, 0));
	EXPECT(ENODATA, ibv_query_gid_ex(context, 1, port.gid_tbl_len - 1, &entry, 0));
	EXPECT(EINVAL, ibv_query_gid_ex(context, 1, 0, &entry, 1));
	EXPECT(0, ibv_query_gid_ex(context, 1, 0, &entry, 0));
	errno = 0;
	assert_int_equal(ibv_query_gid_table(context, &entry, 1, 1), -EINVAL);
	assert_int_equal(errno, EINVAL);
}

static void of_domains(void **state)
{
	struct ibv_td_init_attr td_attr = { 0 };
	struct ibv_td *td = ibv_alloc_td(the_context(), &td_attr);
	struct ibv_pd *pd = ibv_alloc_pd(the_context());
	struct ibv_parent_domain_init_attr attr = { .pd = pd, .td = td };
	struct ibv_pd *parent = ibv_alloc_parent_domain(the_context(), &attr);
	struct ibv_xrcd *xrcd = fixture_xrcd(the_context());
	struct ibv_qp_init_attr_ex target = { .qp_type = IBV_QPT_XRC_RECV,
					      .comp_mask = IBV_QP_INIT_ATTR_XRCD,
					      .xrcd = xrcd };
	struct ibv_qp *qp = ibv_create_qp_ex(the_context(), &target);

	(void)state;
	assert_true(td && pd && parent && qp);
	EXPECT(EBUSY, ibv_dealloc_td(td));
	EXPECT(EBUSY, ibv_dealloc_pd(pd));
	EXPECT(EBUSY, ibv_close_xrcd(xrcd));
	EXPECT(0, ibv_destroy_qp(qp));
	EXPECT(0, ibv_close_xrcd(xrcd));
	EXPECT(0, ibv_dealloc_pd(parent));
	EXPECT(0, ibv_dealloc_td(td));
	EXPECT(0, ibv_dealloc_pd(pd));
}

static void of_memory(void **state)
{
	static uint8_t bytes[4096];
	struct ibv_alloc_dm_attr dm_attr = { .length = 64 };
	struct ibv_dm *dm = ibv_alloc_dm(the_context(), &dm_attr);
	struct ibv_mw_bind bind = { .bind_info = { .mw_access_flags = 1u << 30 } };
	struct ibv_mr *mr, *dm_mr;
	struct ibv_sge sge = { 0 };
	struct ibv_mw *mw;
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	mr = ibv_reg_mr(pair.a.pd, bytes, sizeof(bytes), ALL_ACCESS | IBV_ACCESS_MW_BIND);
	mw = ibv_alloc_mw(pair.a.pd, IBV_MW_TYPE_1);
	dm_mr = ibv_reg_dm_mr(pair.a.pd, dm, 0, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED);
	assert_true(mr && mw && dm_mr);

	EXPECT(EINVAL, ibv_advise_mr(pair.a.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 1u << 20, &sge, 1));
	EXPECT(EINVAL, ibv_bind_mw(pair.a.qp, mw, &bind)); /* unknown access right */
	bind.bind_info.mr = mr;
	bind.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_READ;
	bind.bind_info.addr = (uintptr_t)bytes;
	bind.bind_info.length = 8;
	EXPECT(0, ibv_bind_mw(pair.a.qp, mw, &bind));
	assert_true(mw->rkey != 0);
	EXPECT(EBUSY, ibv_dereg_mr(mr));
	/* This call has return values of its own; errno has more detail. */
	errno = 0;
	assert_int_not_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, NULL, 0, 0),
			     0);
	assert_int_not_equal(errno, 0);
	EXPECT(0, ibv_dealloc_mw(mw));
	EXPECT(0, ibv_dereg_mr(mr));

	EXPECT(EBUSY, ibv_free_dm(dm));
	EXPECT(EFAULT, ibv_memcpy_to_dm(dm, 64, bytes, 4));
	EXPECT(EINVAL, ibv_memcpy_from_dm(bytes, dm, 0, 3));
	EXPECT(0, ibv_memcpy_from_dm(bytes, dm, 0, 4));
	EXPECT(0, ibv_dereg_mr(dm_mr));
	EXPECT(0, ibv_free_dm(dm));
	pair_close(&pair);
}

static void of_completion_queues(void **state)
{
	struct ibv_modify_cq_attr moderation = { .attr_mask = 1u << 30 };
	struct ibv_cq_init_attr_ex attr = { .cqe = 8, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_cq_ex *ex = ibv_create_cq_ex(the_context(), &attr);
	struct ibv_poll_cq_attr poll_attr = { .comp_mask = 1 };
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	EXPECT(EBUSY, ibv_destroy_cq(pair.a.cq));
	EXPECT(EBUSY, ibv_destroy_comp_channel(pair.a.channel));
	EXPECT(EINVAL, ibv_resize_cq(pair.a.cq, 1 << 30));
	EXPECT(0, ibv_resize_cq(pair.a.cq, 100));
	EXPECT(EINVAL, ibv_modify_cq(pair.a.cq, &moderation));
	EXPECT(0, ibv_req_notify_cq(pair.a.cq, 0));
	EXPECT(EINVAL, ibv_start_poll(ex, &poll_attr));
	/* ENOENT means that the CQ is empty, which does not count as an error. */
	poll_attr.comp_mask = 0;
	errno = UNTOUCHED;
	assert_int_equal(ibv_start_poll(ex, &poll_attr), ENOENT);
	assert_int_equal(errno, UNTOUCHED);
	EXPECT(0, ibv_destroy_cq(ibv_cq_ex_to_cq(ex)));
	pair_close(&pair);
}

static void of_queue_pairs(void **state)
{
	const union ibv_gid group = { .raw = { [10] = 0xff, [11] = 0xff, 239, 1, 2, 6 } };
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND }, *bad_send;
	struct ibv_recv_wr recv = { 0 }, *bad_recv;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_qp *rc, *ud;
	struct verbs_fixture fixture;

	(void)state;
	fixture_open(&fixture);
	rc = fixture_qp(&fixture, IBV_QPT_RC, NULL);
	ud = fixture_qp(&fixture, IBV_QPT_UD, NULL);
	EXPECT(EINVAL, to_state(rc, IBV_QPS_RTS));
	EXPECT(EINVAL, ibv_post_send(rc, &send, &bad_send));
	EXPECT(EINVAL, ibv_post_recv(rc, &recv, &bad_recv));
	EXPECT(0, ibv_query_qp(rc, &attr, 0, &init));
	EXPECT(0, to_init(rc, 0));
	EXPECT(0, ibv_post_recv(rc, &recv, &bad_recv));
	EXPECT(EINVAL, ibv_attach_mcast(rc, &group, 0));
	EXPECT(EINVAL, ibv_detach_mcast(ud, &group, 0));
	EXPECT(0, ibv_attach_mcast(ud, &group, 0));
	EXPECT(EBUSY, ibv_destroy_qp(ud));
	EXPECT(0, ibv_detach_mcast(ud, &group, 0));
	EXPECT(0, ibv_destroy_qp(ud));
	EXPECT(0, ibv_destroy_qp(rc));
	fixture_close(&fixture);
}

/* Posting in RTS, by both interfaces; the send queue has room for one request. */
static void of_posting(void **state)
{
	const struct pair_options options = { .send_wr = 1, .send_ops = IBV_QP_EX_WITH_RDMA_WRITE };
	struct ibv_qp_ex *ex;
	struct pair pair;

	(void)state;
	pair_open(&pair, &options);
	ex = ibv_qp_to_qp_ex(pair.a.qp);
	for (int i = 0; i < 100; i++) {
		EXPECT(0, post_rdma(&pair.a, IBV_WR_RDMA_WRITE, 1, 0, 8, IBV_SEND_SIGNALED, &pair.b,
				    0));
		expect_wc(&pair.a, 1, IBV_WC_SUCCESS);
	}
	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, pair.b.mr->rkey, (uintptr_t)pair.b.buffer);
	ibv_wr_set_sge(ex, pair.a.mr->lkey, (uintptr_t)pair.a.buffer, 8);
	EXPECT(0, ibv_wr_complete(ex));
	ibv_wr_start(ex);
	for (int i = 0; i < 2; i++) {
		ibv_wr_rdma_write(ex, pair.b.mr->rkey, (uintptr_t)pair.b.buffer);
		ibv_wr_set_sge(ex, pair.a.mr->lkey, (uintptr_t)pair.a.buffer, 8);
	}
	EXPECT(ENOMEM, ibv_wr_complete(ex));
	pair_close(&pair);
}

static void of_shared_receive_queues(void **state)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq_attr attr = { .max_wr = 1 << 30 };
	struct ibv_recv_wr recv = { .num_sge = -1 }, *bad;
	struct ibv_ah *ah;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct verbs_fixture fixture;
	uint32_t number;

	(void)state;
	fixture_open(&fixture);
	srq = ibv_create_srq(fixture.pd, &init);
	assert_non_null(srq);
	qp = fixture_qp(&fixture, IBV_QPT_RC, srq);
	EXPECT(EINVAL, ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR));
	EXPECT(0, ibv_query_srq(srq, &attr));
	EXPECT(EINVAL, ibv_post_srq_recv(srq, &recv, &bad));
	EXPECT(EINVAL, ibv_get_srq_num(srq, &number));
	EXPECT(EBUSY, ibv_destroy_srq(srq));
	EXPECT(0, ibv_destroy_qp(qp));
	EXPECT(0, ibv_destroy_srq(srq));
	ah = fixture_ah(&fixture, the_gid_index(), NULL);
	EXPECT(0, ibv_destroy_ah(ah));
	fixture_close(&fixture);
}

/* In the child.  No assertions: those jump back into the parent's test runner. */
static int use_what_is_inherited(struct pair *pair, struct ibv_srq *srq)
{
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND }, *bad_send;
	struct ibv_recv_wr recv = { 0 }, *bad_recv;
	struct ibv_modify_cq_attr moderation = { 0 };
	struct ibv_qp_init_attr init;
	struct ibv_srq_attr limits;
	struct ibv_qp_attr attr;

	return ANSWERS(EIO, ibv_req_notify_cq(pair->a.cq, 0)) +
	       ANSWERS(EIO, ibv_modify_cq(pair->a.cq, &moderation)) +
	       ANSWERS(EIO, ibv_query_qp(pair->a.qp, &attr, 0, &init)) +
	       ANSWERS(EIO, ibv_query_srq(srq, &limits)) +
	       ANSWERS(EIO, ibv_post_send(pair->a.qp, &send, &bad_send)) +
	       ANSWERS(EIO, ibv_post_recv(pair->a.qp, &recv, &bad_recv));
}

/* Some calls fail only in a forked child. */
static void in_a_child(void **state)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *srq;
	struct pair pair;
	int status;
	pid_t child;

	(void)state;
	pair_open(&pair, NULL);
	srq = ibv_create_srq(pair.a.pd, &init);
	assert_non_null(srq);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(use_what_is_inherited(&pair, srq));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_devices),
		cmocka_unit_test(of_domains),
		cmocka_unit_test(of_memory),
		cmocka_unit_test(of_completion_queues),
		cmocka_unit_test(of_queue_pairs),
		cmocka_unit_test(of_posting),
		cmocka_unit_test(of_shared_receive_queues),
		cmocka_unit_test(in_a_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
