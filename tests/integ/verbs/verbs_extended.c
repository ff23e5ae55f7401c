/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The extended interfaces: ibv_wr_*() and ibv_start_poll() ... ibv_end_poll().
 */
#include <arpa/inet.h>
#include <time.h>

#include "verbs_pair.h"

#define ALL_OPS                                                                                 \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND | \
	 IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |                              \
	 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)

static struct pair pair;
static struct ibv_qp_ex *ex;

static int set_up(void **state)
{
	pair_open(&pair, &(struct pair_options){ .send_ops = ALL_OPS });
	ex = ibv_qp_to_qp_ex(pair.a.qp);
	assert_non_null(ex);
	*state = &pair;
	return 0;
}

static void begin(uint64_t wr_id, unsigned int flags)
{
	ex->wr_id = wr_id;
	ex->wr_flags = flags;
}

static void every_builder(void **state)
{
	uint64_t *target = (uint64_t *)(pair.b.buffer + 8192);
	uintptr_t here = (uintptr_t)pair.a.buffer, there = (uintptr_t)pair.b.buffer;
	uint32_t lkey = pair.a.mr->lkey, rkey = pair.b.mr->rkey;
	struct ibv_sge list[2] = { { .addr = here, .length = 10, .lkey = lkey },
				   { .addr = here + 10, .length = 20, .lkey = lkey } };
	struct ibv_data_buf buffers[2] = { { .addr = "hello, ", .length = 7 },
					   { .addr = "world", .length = 6 } };
	struct ibv_wc wc;

	(void)state;
	for (int i = 0; i < 1000; i++)
		pair.a.buffer[i] = (uint8_t)(i * 3);
	*target = 5;
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(post_recv(&pair.b, i, 1000 * i, 1000), 0);

	ibv_wr_start(ex);
	begin(1, IBV_SEND_SIGNALED);
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, lkey, here, 300);
	begin(2, 0);
	ibv_wr_send_imm(ex, htonl(0x11223344));
	ibv_wr_set_inline_data(ex, "inline", 7);
	begin(3, IBV_SEND_SIGNALED);
	ibv_wr_rdma_write_imm(ex, rkey, there + 4096, htonl(7));
	ibv_wr_set_sge_list(ex, 2, list);
	begin(4, 0);
	ibv_wr_rdma_write(ex, rkey, there + 5000);
	ibv_wr_set_inline_data_list(ex, 2, buffers);
	begin(5, IBV_SEND_SIGNALED);
	ibv_wr_rdma_read(ex, rkey, there + 5000);
	ibv_wr_set_sge(ex, lkey, here + 2000, 13);
	begin(6, IBV_SEND_SIGNALED);
	ibv_wr_atomic_cmp_swp(ex, rkey, (uintptr_t)target, 5, 9);
	ibv_wr_set_sge(ex, lkey, here + 3000, 8);
	begin(7, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
	ibv_wr_atomic_fetch_add(ex, rkey, (uintptr_t)target, 4);
	ibv_wr_set_sge(ex, lkey, here + 3008, 8);
	begin(8, IBV_SEND_SIGNALED);
	ibv_wr_send(ex); /* no data at all */
	assert_int_equal(ibv_wr_complete(ex), 0);

	for (uint64_t i = 1; i <= 8; i++) {
		if (i != 2 && i != 4)
			expect_wc(&pair.a, i, IBV_WC_SUCCESS);
	}
	expect_no_wc(&pair.a);
	assert_int_equal(expect_wc(&pair.b, 0, IBV_WC_SUCCESS).byte_len, 300);
	assert_memory_equal(pair.b.buffer, pair.a.buffer, 300);
	wc = expect_wc(&pair.b, 1, IBV_WC_SUCCESS);
	assert_int_equal(wc.imm_data, htonl(0x11223344));
	assert_string_equal((char *)pair.b.buffer + 1000, "inline");
	wc = expect_wc(&pair.b, 2, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_memory_equal(pair.b.buffer + 4096, pair.a.buffer, 30);
	assert_string_equal((char *)pair.a.buffer + 2000, "hello, world");
	assert_int_equal(*(uint64_t *)(pair.a.buffer + 3000), 5);
	assert_int_equal(*(uint64_t *)(pair.a.buffer + 3008), 9);
	assert_int_equal(*target, 13);
	assert_int_equal(expect_wc(&pair.b, 3, IBV_WC_SUCCESS).byte_len, 0);
}

static void abort_and_errors_post_nothing(void **state)
{
	(void)state;
	ibv_wr_start(ex);
	begin(1, IBV_SEND_SIGNALED);
	ibv_wr_rdma_write(ex, pair.b.mr->rkey, (uintptr_t)pair.b.buffer);
	ibv_wr_set_inline_data(ex, "x", 1);
	ibv_wr_abort(ex);

	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, pair.b.mr->rkey, (uintptr_t)pair.b.buffer);
	ibv_wr_set_inline_data(ex, pair.a.buffer, 100000);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);

	ibv_wr_start(ex);
	ibv_wr_rdma_read(ex, pair.b.mr->rkey, (uintptr_t)pair.b.buffer);
	ibv_wr_set_inline_data(ex, "x", 1);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);

	ibv_wr_start(ex);
	ibv_wr_atomic_fetch_add(ex, pair.b.mr->rkey, (uintptr_t)pair.b.buffer, 1);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);

	ibv_wr_start(ex);
	for (int i = 0; i < 5000; i++) {
		ibv_wr_rdma_write(ex, pair.b.mr->rkey, (uintptr_t)pair.b.buffer);
		ibv_wr_set_inline_data(ex, "y", 1);
	}
	assert_int_equal(ibv_wr_complete(ex), ENOMEM);
	expect_no_wc(&pair.a);
	assert_int_equal(pair.b.buffer[0], 0);

	/* The queue pair still works. */
	ibv_wr_start(ex);
	begin(2, IBV_SEND_SIGNALED);
	ibv_wr_rdma_write(ex, pair.b.mr->rkey, (uintptr_t)pair.b.buffer);
	ibv_wr_set_inline_data(ex, "z", 1);
	assert_int_equal(ibv_wr_complete(ex), 0);
	expect_wc(&pair.a, 2, IBV_WC_SUCCESS);
	assert_int_equal(pair.b.buffer[0], 'z');
}

static void in_reset_nothing_can_be_posted(void **state)
{
	(void)state;
	assert_int_equal(to_state(pair.a.qp, IBV_QPS_RESET), 0);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
}

static void unknown_operations_are_refused(void **state)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = pair.a.cq,
		.recv_cq = pair.a.cq,
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pair.a.pd,
		.send_ops_flags = IBV_QP_EX_WITH_TSO,
	};

	(void)state;
	assert_null(ibv_create_qp_ex(the_context(), &attr));
	assert_int_equal(errno, EOPNOTSUPP);
}

static void extended_poll(void **state)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 100,
		.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	};
	struct ibv_poll_cq_attr poll_attr = { 0 };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(the_context(), &attr);
	struct ibv_recv_wr recv = { 0 }, *bad;
	struct ibv_qp_init_attr qp_attr = { .qp_type = IBV_QPT_RC, .cap = { .max_recv_wr = 10 } };
	uint64_t last = 0;
	struct ibv_qp *qp;
	int result;

	(void)state;
	assert_non_null(cq);
	qp_attr.send_cq = qp_attr.recv_cq = ibv_cq_ex_to_cq(cq);
	qp = ibv_create_qp(pair.a.pd, &qp_attr);
	assert_non_null(qp);
	assert_int_equal(ibv_start_poll(cq, &poll_attr), ENOENT);
	assert_int_equal(to_init(qp, 0), 0);
	for (recv.wr_id = 0; recv.wr_id < 5; recv.wr_id++)
		assert_int_equal(ibv_post_recv(qp, &recv, &bad), 0);
	assert_int_equal(to_state(qp, IBV_QPS_ERR), 0);
	result = ibv_start_poll(cq, &poll_attr);
	for (uint64_t i = 0; i < 5; i++, result = ibv_next_poll(cq)) {
		struct timespec now;

		assert_int_equal(result, 0);
		assert_int_equal(cq->wr_id, i);
		assert_int_equal(cq->status, IBV_WC_WR_FLUSH_ERR);
		assert_int_equal(ibv_wc_read_qp_num(cq), qp->qp_num);
		assert_true(ibv_wc_read_completion_ts(cq) >= last);
		last = ibv_wc_read_completion_ts(cq);
		clock_gettime(CLOCK_REALTIME, &now);
		assert_true((uint64_t)now.tv_sec -
				    ibv_wc_read_completion_wallclock_ns(cq) / 1000000000 <=
			    2);
	}
	assert_int_equal(result, ENOENT);
	ibv_end_poll(cq);
	assert_int_equal(ibv_start_poll(cq, &poll_attr), ENOENT);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);

	attr.wc_flags = IBV_WC_EX_WITH_FLOW_TAG;
	assert_null(ibv_create_cq_ex(the_context(), &attr));
	assert_int_equal(errno, EOPNOTSUPP);
}

#define WITH_EX(name) cmocka_unit_test_setup_teardown(name, set_up, pair_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_EX(every_builder),
		WITH_EX(abort_and_errors_post_nothing),
		WITH_EX(in_reset_nothing_can_be_posted),
		WITH_EX(unknown_operations_are_refused),
		WITH_EX(extended_poll),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
