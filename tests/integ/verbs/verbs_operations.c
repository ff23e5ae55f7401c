/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * ATOMIC_WRITE, invalidation and memory windows by ibv_wr_*(), the largest queue pair, the device's
 * attributes, and its missing features.
 */
#include "verbs_pair.h"

#include <stdbool.h>

enum {
	ALL_OPS = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_LOCAL_INV |
		  IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_ATOMIC_WRITE | IBV_QP_EX_WITH_RDMA_WRITE,
};

static struct pair pair;

/* Posts an ATOMIC_WRITE.  Returns 0 or errno. */
static int atomic_write(uint64_t wr_id, int flags, struct ibv_sge *sge, int count, uint64_t remote)
{
	struct ibv_send_wr wr = { .wr_id = wr_id,
				  .sg_list = sge,
				  .num_sge = count,
				  .opcode = IBV_WR_ATOMIC_WRITE,
				  .send_flags = (unsigned int)flags | IBV_SEND_SIGNALED,
				  .wr.rdma = { .remote_addr = remote, .rkey = pair.b.mr->rkey } };
	struct ibv_send_wr *bad;

	return ibv_post_send(pair.a.qp, &wr, &bad);
}

static void atomic_writes(void **state)
{
	uint64_t *from, *to, here = 0x1020304050607080;
	struct ibv_sge inlined = { (uintptr_t)&here, 8, 0 }, halves[2];

	(void)state;
	pair_open(&pair, NULL);
	from = (uint64_t *)pair.a.buffer;
	to = (uint64_t *)pair.b.buffer;
	from[0] = 0x1122334455667788;
	halves[0] = sge_of(&pair.a, 0, 8);
	assert_int_equal(atomic_write(1, 0, halves, 1, (uintptr_t)&to[1]), 0);
	assert_int_equal(expect_wc(&pair.a, 1, IBV_WC_SUCCESS).opcode, IBV_WC_ATOMIC_WRITE);
	assert_int_equal(to[1], from[0]);
	assert_int_equal(to[0], 0);
	assert_int_equal(to[2], 0);
	assert_int_equal(atomic_write(2, IBV_SEND_INLINE, &inlined, 1, (uintptr_t)&to[2]), 0);
	expect_wc(&pair.a, 2, IBV_WC_SUCCESS);
	assert_int_equal(to[2], here);
	halves[0] = sge_of(&pair.a, 0, 4);
	halves[1] = sge_of(&pair.a, 4, 4);
	assert_int_equal(atomic_write(3, 0, halves, 2, (uintptr_t)&to[3]), 0);
	expect_wc(&pair.a, 3, IBV_WC_SUCCESS);
	assert_int_equal(to[3], from[0]);

	halves[0] = sge_of(&pair.a, 0, 4);
	assert_int_equal(atomic_write(4, 0, halves, 1, (uintptr_t)&to[3]), EINVAL);
	halves[0] = sge_of(&pair.a, 0, 16);
	assert_int_equal(atomic_write(4, 0, halves, 1, (uintptr_t)&to[3]), EINVAL);
	assert_int_equal(atomic_write(4, 0, NULL, 0, (uintptr_t)&to[3]), EINVAL);
	halves[0] = sge_of(&pair.a, 0, 8);
	assert_int_equal(atomic_write(5, 0, halves, 1, (uintptr_t)to + 4), 0);
	expect_wc(&pair.a, 5, IBV_WC_REM_INV_REQ_ERR);
	assert_int_equal(to[0], 0);
	pair_close(&pair);
}

static struct ibv_qp_ex *open_ex(void)
{
	struct ibv_qp_ex *ex;

	pair_open(&pair, &(struct pair_options){ .send_ops = ALL_OPS, .inline_data = 1 });
	ex = ibv_qp_to_qp_ex(pair.a.qp);
	assert_non_null(ex);
	return ex;
}

static void begin(struct ibv_qp_ex *ex, uint64_t wr_id)
{
	ex->wr_id = wr_id;
	ex->wr_flags = IBV_SEND_SIGNALED;
}

static void windows_by_builders(void **state)
{
	struct ibv_qp_ex *ex = open_ex();
	struct ibv_mr *mr = ibv_reg_mr(pair.a.pd, pair.a.buffer, END_BUFFER,
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = ibv_alloc_mw(pair.a.pd, IBV_MW_TYPE_2);
	struct ibv_mw_bind_info info = { .mr = mr,
					 .addr = (uintptr_t)pair.a.buffer,
					 .length = 100,
					 .mw_access_flags = IBV_ACCESS_REMOTE_WRITE };
	uint32_t rkey = ibv_inc_rkey(mw->rkey);
	uint64_t value = 42;
	struct ibv_wc wc;

	(void)state;
	ibv_wr_start(ex);
	begin(ex, 1);
	ibv_wr_bind_mw(ex, mw, rkey, &info);
	begin(ex, 2);
	ibv_wr_atomic_write(ex, pair.b.mr->rkey, (uintptr_t)pair.b.buffer, &value);
	assert_int_equal(ibv_wr_complete(ex), 0);
	expect_wc(&pair.a, 1, IBV_WC_SUCCESS);
	assert_int_equal(expect_wc(&pair.a, 2, IBV_WC_SUCCESS).opcode, IBV_WC_ATOMIC_WRITE);
	assert_int_equal(*(uint64_t *)pair.b.buffer, 42);
	post_sge(&pair.b, IBV_WR_RDMA_WRITE, 3, sge_of(&pair.b, 0, 8), rkey,
		 (uintptr_t)pair.a.buffer + 8);
	expect_wc(&pair.b, 3, IBV_WC_SUCCESS);
	assert_int_equal(pair.a.buffer[8], 42);

	ibv_wr_start(ex);
	begin(ex, 4);
	ibv_wr_local_inv(ex, rkey);
	begin(ex, 5);
	ibv_wr_bind_mw(ex, mw, ibv_inc_rkey(rkey), &info);
	assert_int_equal(ibv_wr_complete(ex), 0);
	expect_wc(&pair.a, 4, IBV_WC_SUCCESS);
	expect_wc(&pair.a, 5, IBV_WC_SUCCESS);

	/* b invalidates the window by a SEND of two packets. */
	struct ibv_qp_ex *peer = ibv_qp_to_qp_ex(pair.b.qp);

	assert_int_equal(post_recv(&pair.a, 6, 1000, 4000), 0);
	ibv_wr_start(peer);
	begin(peer, 7);
	ibv_wr_send_inv(peer, ibv_inc_rkey(rkey));
	ibv_wr_set_sge(peer, pair.b.mr->lkey, (uintptr_t)pair.b.buffer, 2000);
	assert_int_equal(ibv_wr_complete(peer), 0);
	expect_wc(&pair.b, 7, IBV_WC_SUCCESS);
	wc = expect_wc(&pair.a, 6, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, 2000);
	assert_true(wc.wc_flags & IBV_WC_WITH_INV);
	assert_int_equal(wc.invalidated_rkey, ibv_inc_rkey(rkey));
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	pair_close(&pair);
}

static void builders_that_are_refused(void **state)
{
	struct ibv_qp_ex *ex = open_ex();
	struct ibv_mw *mw = ibv_alloc_mw(pair.a.pd, IBV_MW_TYPE_2);
	struct ibv_mw_bind_info info = { .mr = pair.a.mr,
					 .addr = (uintptr_t)pair.a.buffer,
					 .length = 100 };
	uint64_t value = 42;

	(void)state;
	for (int row = 0; row < 5; row++) {
		ibv_wr_start(ex);
		begin(ex, 1);
		switch (row) {
		case 0:
			info.length = 0;
			ibv_wr_bind_mw(ex, mw, mw->rkey, &info);
			info.length = 100;
			break;
		case 1: /* this and the next two: data for an operation that takes none */
			ibv_wr_bind_mw(ex, mw, mw->rkey, &info);
			ibv_wr_set_sge(ex, pair.a.mr->lkey, (uintptr_t)pair.a.buffer, 1);
			break;
		case 2:
			ibv_wr_local_inv(ex, mw->rkey);
			ibv_wr_set_inline_data(ex, &value, 1);
			break;
		case 3:
			ibv_wr_atomic_write(ex, pair.b.mr->rkey, (uintptr_t)pair.b.buffer, &value);
			ibv_wr_set_sge(ex, pair.a.mr->lkey, (uintptr_t)pair.a.buffer, 8);
			break;
		case 4:
			ex->wr_flags = IBV_SEND_IP_CSUM;
			ibv_wr_send_inv(ex, mw->rkey);
			break;
		}
		assert_int_equal(ibv_wr_complete(ex), EINVAL);
	}
	expect_no_wc(&pair.a);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	pair_close(&pair);
}

/* rule U1: all limits at once. */
static void what_the_device_reports_it_grants(void **state)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD };
	struct ibv_device_attr_ex device;
	struct ibv_pd *pd = ibv_alloc_pd(the_context());
	struct ibv_cq *cq;

	(void)state;
	assert_int_equal(ibv_query_device_ex(the_context(), NULL, &device), 0);
	assert_true(device.orig_attr.max_sge >= 16);
	cq = ibv_create_cq(the_context(), device.orig_attr.max_cqe, NULL, NULL, 0);
	assert_non_null(cq);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct ibv_qp_init_attr attr = {
			.send_cq = cq,
			.recv_cq = cq,
			.qp_type = types[i],
			.cap = { .max_send_wr = (uint32_t)device.orig_attr.max_qp_wr,
				 .max_recv_wr = (uint32_t)device.orig_attr.max_qp_wr,
				 .max_send_sge = (uint32_t)device.orig_attr.max_sge,
				 .max_recv_sge = (uint32_t)device.orig_attr.max_sge,
				 .max_inline_data = 512 },
		};
		struct ibv_qp *qp = ibv_create_qp(pd, &attr);

		assert_non_null(qp);
		assert_true(attr.cap.max_inline_data >= 512);
		assert_int_equal(ibv_destroy_qp(qp), 0);
	}
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void what_the_device_says_of_itself(void **state)
{
	/* IBV_ODP_SUPPORT_FLUSH and _ATOMIC_WRITE, which headers of rdma-core before v58 lack. */
	const uint32_t flush = 1 << 6, atomic_write = 1 << 7;
	const uint32_t xrc = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
			     IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV | atomic_write;
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK }, later;
	struct ibv_device_attr_ex device;

	(void)state;
	assert_int_equal(ibv_query_device_ex(the_context(), NULL, &device), 0);
	assert_true(device.orig_attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW);
	assert_true(device.orig_attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B);
	/* SEND with invalidate, and local invalidate: tested by verbs_windows.c. */
	assert_true(device.orig_attr.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS);
	assert_false(device.orig_attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2A);
	assert_true(device.orig_attr.max_mw > 0);
	assert_true(device.max_dm_size > 0);
	assert_int_equal(device.odp_caps.general_caps, IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT);
	assert_int_equal(device.odp_caps.per_transport_caps.rc_odp_caps,
			 xrc | IBV_ODP_SUPPORT_RECV | flush);
	assert_int_equal(device.xrc_odp_caps, xrc);
	/* Missing features are reported as 0. */
	assert_int_equal(device.tso_caps.max_tso, 0);
	assert_int_equal(device.rss_caps.supported_qpts, 0);
	assert_int_equal(device.max_wq_type_rq, 0);
	assert_int_equal(device.tm_caps.max_num_tags, 0);
	assert_int_equal(device.raw_packet_caps, 0);
	assert_int_equal(device.packet_pacing_caps.supported_qpts, 0);
	assert_int_equal(device.orig_attr.max_ee, 0);
	assert_int_equal(device.orig_attr.max_raw_ethy_qp, 0);

	/* The device's clock is in nanoseconds. */
	assert_int_equal(device.hca_core_clock, 1000000);
	assert_true(device.completion_timestamp_mask == UINT64_MAX);
	assert_int_equal(ibv_query_rt_values_ex(the_context(), &values), 0);
	later = values;
	assert_int_equal(ibv_query_rt_values_ex(the_context(), &later), 0);
	assert_true(later.raw_clock.tv_nsec > values.raw_clock.tv_nsec);
	assert_true(later.raw_clock.tv_nsec - values.raw_clock.tv_nsec < PATIENCE_MS * 1000000L);
	values.comp_mask = 1 << 9;
	assert_int_equal(ibv_query_rt_values_ex(the_context(), &values), EINVAL);
}

static void what_there_is_not(void **state)
{
	struct ibv_qp_init_attr_ex attr = { .comp_mask = IBV_QP_INIT_ATTR_PD,
					    .cap = { .max_send_wr = 1 } };
	struct ibv_wq_init_attr wq_attr = { .wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1 };
	struct ibv_flow_attr flow_attr = { .size = sizeof(flow_attr), .port = 1 };
	struct ibv_counters_init_attr counters_attr = { 0 };
	struct ibv_ece ece = { 0 };

	(void)state;
	pair_open(&pair, NULL);
	attr.pd = pair.a.pd;
	attr.send_cq = attr.recv_cq = pair.a.cq;
	attr.qp_type = IBV_QPT_RAW_PACKET;
	errno = 0;
	assert_null(ibv_create_qp_ex(the_context(), &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	attr.qp_type = IBV_QPT_DRIVER;
	errno = 0;
	assert_null(ibv_create_qp_ex(the_context(), &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	attr.qp_type = IBV_QPT_UD;
	attr.comp_mask |= IBV_QP_INIT_ATTR_RX_HASH;
	errno = 0;
	assert_null(ibv_create_qp_ex(the_context(), &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	wq_attr.pd = pair.a.pd;
	wq_attr.cq = pair.a.cq;
	errno = 0;
	assert_null(ibv_create_wq(the_context(), &wq_attr));
	assert_int_equal(errno, EOPNOTSUPP);
	errno = 0;
	assert_null(ibv_create_flow(pair.a.qp, &flow_attr));
	assert_int_equal(errno, EOPNOTSUPP);
	errno = 0;
	assert_null(ibv_create_counters(the_context(), &counters_attr));
	assert_int_equal(errno, EOPNOTSUPP);
	/* There are no vendor-specific extensions (enhanced connection establishment). */
	assert_int_equal(ibv_query_ece(pair.a.qp, &ece), EOPNOTSUPP);
	assert_int_equal(ibv_set_ece(pair.a.qp, &ece), EOPNOTSUPP);
	/* A packet's bytes are copied in whatever order is fastest. */
	assert_int_equal(ibv_query_qp_data_in_order(pair.a.qp, IBV_WR_RDMA_WRITE, 0), 0);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(atomic_writes),
		cmocka_unit_test(windows_by_builders),
		cmocka_unit_test(builders_that_are_refused),
		cmocka_unit_test(what_the_device_reports_it_grants),
		cmocka_unit_test(what_the_device_says_of_itself),
		cmocka_unit_test(what_there_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
