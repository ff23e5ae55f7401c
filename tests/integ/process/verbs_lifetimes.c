/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Objects in use cannot be destroyed, whatever uses them; destroyed objects cannot be used; and
 * calls in the wrong state or with unknown masks change nothing.
 */
#include <fcntl.h>
#include <stdbool.h>

#include "verbs_fixture.h"

enum { DM_BYTES = 64 };

static struct verbs_fixture fixture;

static int set_up(void **state)
{
	(void)state;
	fixture_open(&fixture);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	fixture_close(&fixture);
	return 0;
}

static struct ibv_srq_init_attr_ex srq_attr(struct ibv_pd *pd, struct ibv_xrcd *xrcd)
{
	return (struct ibv_srq_init_attr_ex){
		.attr = { .max_wr = 4, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = pd,
		.xrcd = xrcd,
		.cq = fixture.cq,
	};
}

static struct ibv_qp *qp_of(struct ibv_pd *pd, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = { .send_cq = fixture.cq,
					 .recv_cq = fixture.cq,
					 .srq = srq,
					 .qp_type = IBV_QPT_RC,
					 .cap = { .max_send_wr = 4, .max_recv_wr = 4 } };
	struct ibv_qp *qp = ibv_create_qp(pd, &attr);

	assert_non_null(qp);
	return qp;
}

static struct ibv_ah *handle_of(struct ibv_pd *pd)
{
	struct ibv_ah_attr attr = { .is_global = 1,
				    .port_num = 1,
				    .grh.sgid_index = the_gid_index() };
	struct ibv_ah *ah;

	assert_int_equal(ibv_query_gid(the_context(), 1, the_gid_index(), &attr.grh.dgid), 0);
	ah = ibv_create_ah(pd, &attr);
	assert_non_null(ah);
	return ah;
}

/* A protection domain cannot be deallocated while it has one object, of whatever kind. */
static void a_domain_outlives_all_that_is_in_it(void **state)
{
	struct ibv_parent_domain_init_attr parent_attr = { 0 };
	struct ibv_alloc_dm_attr dm_attr = { .length = DM_BYTES };
	struct ibv_srq_init_attr basic = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_dm *dm = ibv_alloc_dm(the_context(), &dm_attr);
	struct ibv_pd *pd = ibv_alloc_pd(the_context());
	struct ibv_xrcd *xrcd = fixture_xrcd(the_context());
	struct ibv_srq_init_attr_ex xrc_attr = srq_attr(pd, xrcd);
	void *one;

	(void)state;
#define KEEPS(make, destroy)                                 \
	do {                                                 \
		one = (make);                                \
		assert_non_null(one);                        \
		assert_int_equal(ibv_dealloc_pd(pd), EBUSY); \
		assert_int_equal(ibv_dealloc_pd(pd), EBUSY); \
		assert_int_equal(destroy(one), 0);           \
	} while (0)
	parent_attr.pd = pd;
	KEEPS(ibv_reg_mr(pd, fixture.bytes, 100, ALL_ACCESS), ibv_dereg_mr);
	KEEPS(ibv_alloc_null_mr(pd), ibv_dereg_mr);
	KEEPS(ibv_reg_dm_mr(pd, dm, 0, DM_BYTES, IBV_ACCESS_ZERO_BASED), ibv_dereg_mr);
	KEEPS(ibv_alloc_mw(pd, IBV_MW_TYPE_1), ibv_dealloc_mw);
	KEEPS(handle_of(pd), ibv_destroy_ah);
	KEEPS(qp_of(pd, NULL), ibv_destroy_qp);
	KEEPS(ibv_create_srq(pd, &basic), ibv_destroy_srq);
	KEEPS(ibv_create_srq_ex(the_context(), &xrc_attr), ibv_destroy_srq);
	KEEPS(ibv_alloc_parent_domain(the_context(), &parent_attr), ibv_dealloc_pd);
#undef KEEPS
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

static void what_serves_another_one_stays(void **state)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(the_context());
	struct ibv_cq *cq = ibv_create_cq(the_context(), 10, NULL, channel, 0);
	struct ibv_srq_init_attr basic = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(fixture.pd, &basic), *xrc;
	struct ibv_xrcd *xrcd = fixture_xrcd(the_context());
	struct ibv_srq_init_attr_ex xrc_attr = srq_attr(fixture.pd, xrcd);
	struct ibv_qp_init_attr_ex target_attr = { .qp_type = IBV_QPT_XRC_RECV,
						   .comp_mask = IBV_QP_INIT_ATTR_XRCD,
						   .xrcd = xrcd };
	struct ibv_qp *qp = qp_of(fixture.pd, srq), *target;

	(void)state;
	assert_int_equal(ibv_destroy_comp_channel(channel), EBUSY);
	assert_int_equal(ibv_destroy_srq(srq), EBUSY);
	assert_int_equal(ibv_destroy_cq(fixture.cq), EBUSY);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);

	xrc_attr.cq = cq;
	xrc = ibv_create_srq_ex(the_context(), &xrc_attr);
	assert_non_null(xrc);
	assert_int_equal(ibv_destroy_cq(cq), EBUSY);
	assert_int_equal(ibv_close_xrcd(xrcd), EBUSY);
	assert_int_equal(ibv_destroy_srq(xrc), 0);
	target = ibv_create_qp_ex(the_context(), &target_attr);
	assert_non_null(target);
	assert_int_equal(ibv_close_xrcd(xrcd), EBUSY);
	assert_int_equal(ibv_destroy_qp(target), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

static struct ibv_qp *from, *to;

static int set_up_pair(void **state)
{
	(void)state;
	fixture_open_pair(&fixture, &from, &to);
	return 0;
}

static int tear_down_pair(void **state)
{
	(void)state;
	fixture_close_pair(&fixture, from, to);
	return 0;
}

static void post_with_key(uint32_t lkey)
{
	struct ibv_sge sge = fixture_sge(&fixture, 0, 8);
	struct ibv_send_wr wr = { .wr_id = 1,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	sge.lkey = lkey;
	wr.wr.rdma.remote_addr = (uintptr_t)fixture.bytes + 64;
	wr.wr.rdma.rkey = fixture.mr->rkey;
	assert_int_equal(ibv_post_send(from, &wr, &bad), 0);
}

static void the_key_of_a_region_that_is_gone(void **state)
{
	struct ibv_mr *mr = ibv_reg_mr(fixture.pd, fixture.bytes, 8, ALL_ACCESS);
	uint32_t lkey;

	(void)state;
	assert_non_null(mr);
	lkey = mr->lkey;
	assert_int_equal(ibv_dereg_mr(mr), 0);
	memset(fixture.bytes, 0x77, 8);
	post_with_key(lkey);
	fixture_expect(fixture.cq, 1, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(fixture.bytes[64], 0);
}

/* The region is deregistered while its request waits in the send queue (state SQD). */
static void a_region_that_goes_before_its_turn(void **state)
{
	struct ibv_mr *mr = ibv_reg_mr(fixture.pd, fixture.bytes, 8, ALL_ACCESS);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD };

	(void)state;
	assert_non_null(mr);
	assert_int_equal(ibv_modify_qp(from, &attr, IBV_QP_STATE), 0);
	memset(fixture.bytes, 0x77, 8);
	post_with_key(mr->lkey);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(from, &attr, IBV_QP_STATE), 0);
	fixture_expect(fixture.cq, 1, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(fixture.bytes[64], 0);
}

/* rule S10 test: a queue pair that has been destroyed does not answer. */
static void a_peer_that_is_gone(void **state)
{
	struct ibv_qp *gone = to;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD };

	(void)state;
	assert_int_equal(ibv_modify_qp(from, &attr, IBV_QP_STATE), 0);
	attr.timeout = 8; /* 1 ms */
	attr.retry_cnt = 1;
	assert_int_equal(ibv_modify_qp(from, &attr, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT), 0);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(from, &attr, IBV_QP_STATE), 0);
	assert_int_equal(ibv_destroy_qp(gone), 0);
	post_with_key(fixture.mr->lkey);
	fixture_expect(fixture.cq, 1, IBV_WC_RETRY_EXC_ERR);
	to = fixture_qp(&fixture, IBV_QPT_RC, NULL);
	assert_int_not_equal(to->qp_num, from->qp_num);
}

static void a_target_that_is_gone(void **state)
{
	struct ibv_xrcd *xrcd = fixture_xrcd(the_context());
	struct ibv_qp_init_attr_ex target_attr = { .qp_type = IBV_QPT_XRC_RECV,
						   .comp_mask = IBV_QP_INIT_ATTR_XRCD,
						   .xrcd = xrcd };
	struct ibv_qp *target = ibv_create_qp_ex(the_context(), &target_attr);
	const uint32_t all = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
	struct ibv_qp_open_attr attr = { .xrcd = xrcd, .qp_type = IBV_QPT_XRC_RECV };

	(void)state;
	assert_non_null(target);
	attr.qp_num = target->qp_num;
	/* comp_mask must name all three parts, and nothing else but the QP context. */
	for (uint32_t mask = 0; mask <= 2 * all + 1; mask++) {
		struct ibv_qp *opening;

		attr.comp_mask = mask;
		errno = 0;
		opening = ibv_open_qp(the_context(), &attr);
		if ((mask & ~(uint32_t)IBV_QP_OPEN_ATTR_CONTEXT) == all) {
			assert_non_null(opening);
			assert_int_equal(ibv_destroy_qp(opening), 0);
			continue;
		}
		assert_null(opening);
		assert_int_equal(errno, EINVAL);
	}
	attr.comp_mask = all;
	assert_int_equal(ibv_destroy_qp(target), 0);
	errno = 0;
	assert_null(ibv_open_qp(the_context(), &attr));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

static void builders_before_the_time(void **state)
{
	struct ibv_qp_init_attr_ex attr = { .qp_type = IBV_QPT_RC,
					    .comp_mask = IBV_QP_INIT_ATTR_PD |
							 IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					    .send_ops_flags = IBV_QP_EX_WITH_SEND,
					    .cap = { .max_send_wr = 4, .max_send_sge = 1 },
					    .pd = fixture.pd,
					    .send_cq = fixture.cq,
					    .recv_cq = fixture.cq };
	struct ibv_qp *qp = ibv_create_qp_ex(the_context(), &attr);
	const struct pair_options none = { 0 };

	(void)state;
	assert_non_null(qp);
	for (int step = 0; step < 3; step++) {
		struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);

		ibv_wr_start(ex);
		ex->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_send(ex);
		assert_int_equal(ibv_wr_complete(ex), EINVAL);
		if (step == 0)
			assert_int_equal(to_init(qp, 0), 0);
		else if (step == 1)
			assert_int_equal(to_rtr(qp, 0x17, &none), 0);
	}
	fixture_expect_nothing(fixture.cq);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

#define REFUSED(call, error)                    \
	do {                                    \
		errno = 0;                      \
		assert_null(call);              \
		assert_int_equal(errno, error); \
	} while (0)

static void queue_pairs_with_unknown_parts(void **state)
{
	struct ibv_qp_init_attr_ex good = { .qp_type = IBV_QPT_RC,
					    .comp_mask = IBV_QP_INIT_ATTR_PD,
					    .pd = fixture.pd,
					    .send_cq = fixture.cq,
					    .recv_cq = fixture.cq },
				   attr;

	(void)state;
	attr = good, attr.comp_mask = 0;
	REFUSED(ibv_create_qp_ex(the_context(), &attr), EINVAL);
	attr = good, attr.pd = NULL;
	attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	REFUSED(ibv_create_qp_ex(the_context(), &attr), EINVAL);
	attr = good, attr.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	attr.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
	REFUSED(ibv_create_qp_ex(the_context(), &attr), EOPNOTSUPP);
	attr = good, attr.comp_mask |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
	attr.max_tso_header = 64;
	REFUSED(ibv_create_qp_ex(the_context(), &attr), EOPNOTSUPP);
	attr = good, attr.comp_mask |= IBV_QP_INIT_ATTR_IND_TABLE;
	REFUSED(ibv_create_qp_ex(the_context(), &attr), EOPNOTSUPP);
	attr = good, attr.qp_type = IBV_QPT_XRC_RECV;
	REFUSED(ibv_create_qp_ex(the_context(), &attr), EINVAL);
	attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
	REFUSED(ibv_create_qp_ex(the_context(), &attr), EINVAL);
	/* Operations that UD does not have. */
	attr = good, attr.qp_type = IBV_QPT_UD;
	attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE;
	REFUSED(ibv_create_qp_ex(the_context(), &attr), EOPNOTSUPP);
	attr.qp_type = IBV_QPT_UC;
	attr.send_ops_flags = IBV_QP_EX_WITH_RDMA_READ;
	REFUSED(ibv_create_qp_ex(the_context(), &attr), EOPNOTSUPP);
}

static void other_objects_with_unknown_parts(void **state)
{
	struct ibv_query_device_ex_input input = { .comp_mask = 1 };
	struct ibv_xrcd_init_attr xrcd_attr = { .comp_mask = IBV_XRCD_INIT_ATTR_FD, .fd = -1 };
	struct ibv_xrcd *xrcd = fixture_xrcd(the_context());
	struct ibv_srq_init_attr_ex good = srq_attr(fixture.pd, xrcd), attr;
	struct ibv_device_attr_ex device;

	(void)state;
	assert_int_equal(ibv_query_device_ex(the_context(), &input, &device), EINVAL);
	REFUSED(ibv_open_xrcd(the_context(), &xrcd_attr), EINVAL);
	xrcd_attr.comp_mask |= IBV_XRCD_INIT_ATTR_OFLAGS;
	xrcd_attr.oflags = O_CREAT | O_TRUNC;
	REFUSED(ibv_open_xrcd(the_context(), &xrcd_attr), EINVAL);
	xrcd_attr.oflags = O_CREAT;
	xrcd_attr.comp_mask |= 1 << 4;
	REFUSED(ibv_open_xrcd(the_context(), &xrcd_attr), EINVAL);

	attr = good, attr.comp_mask |= IBV_SRQ_INIT_ATTR_TM;
	REFUSED(ibv_create_srq_ex(the_context(), &attr), EOPNOTSUPP);
	attr = good, attr.srq_type = (enum ibv_srq_type)9;
	REFUSED(ibv_create_srq_ex(the_context(), &attr), EOPNOTSUPP);
	attr = good, attr.comp_mask &= ~(uint32_t)IBV_SRQ_INIT_ATTR_CQ;
	REFUSED(ibv_create_srq_ex(the_context(), &attr), EINVAL);
	attr = good, attr.comp_mask &= ~(uint32_t)IBV_SRQ_INIT_ATTR_XRCD;
	REFUSED(ibv_create_srq_ex(the_context(), &attr), EINVAL);
	attr = good, attr.pd = NULL;
	REFUSED(ibv_create_srq_ex(the_context(), &attr), EINVAL);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);

	/* A right that does not exist, and one that makes no sense alone. */
	REFUSED(ibv_reg_mr(fixture.pd, fixture.bytes, 8, 1 << 19), EINVAL);
	REFUSED(ibv_reg_mr(fixture.pd, fixture.bytes, 8, IBV_ACCESS_REMOTE_ATOMIC), EINVAL);
	REFUSED(ibv_reg_mr_iova(fixture.pd, fixture.bytes, 8, UINT64_MAX - 3, ALL_ACCESS), EINVAL);
	REFUSED(ibv_reg_mr(fixture.pd, (void *)8, 8, ALL_ACCESS), EFAULT);
}

/* ibv_create_ah_from_wc(3): on RoCE there is no way back without a global route header. */
static void no_handle_without_a_header(void **state)
{
	struct ibv_wc wc = { .wc_flags = 0 };
	struct ibv_grh grh = { 0 };

	(void)state;
	REFUSED(ibv_create_ah_from_wc(fixture.pd, &wc, &grh, 1), EINVAL);
	wc.wc_flags = IBV_WC_GRH;
	/* Both addresses of the header are zero. */
	assert_null(ibv_create_ah_from_wc(fixture.pd, &wc, &grh, 1));
}

static void polls_that_ask_for_nothing(void **state)
{
	struct ibv_wc wc;

	(void)state;
	post_with_key(fixture.mr->lkey);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ibv_poll_cq(fixture.cq, 0, &wc), 0);
	fixture_expect(fixture.cq, 1, IBV_WC_SUCCESS);
	assert_int_equal(ibv_poll_cq(fixture.cq, 0, NULL), 0);
}

#define WITH_BOX(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define WITH_PAIR(name) cmocka_unit_test_setup_teardown(name, set_up_pair, tear_down_pair)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_BOX(a_domain_outlives_all_that_is_in_it),
		WITH_BOX(what_serves_another_one_stays),
		WITH_PAIR(the_key_of_a_region_that_is_gone),
		WITH_PAIR(a_region_that_goes_before_its_turn),
		WITH_PAIR(a_peer_that_is_gone),
		WITH_BOX(a_target_that_is_gone),
		WITH_BOX(builders_before_the_time),
		WITH_BOX(queue_pairs_with_unknown_parts),
		WITH_BOX(other_objects_with_unknown_parts),
		WITH_BOX(no_handle_without_a_header),
		WITH_PAIR(polls_that_ask_for_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
