/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Objects of another context and of another protection domain: each call that gets one must fail
 * without effects, so that everything can be destroyed afterwards.
 */
#include <stdbool.h>

#include "verbs_fixture.h"

enum { DM_BYTES = 64 };

/* One object of each kind, in a context that was opened separately. */
static struct {
	struct ibv_context *context;
	struct ibv_pd *pd, *parent;
	struct ibv_td *td;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_xrcd *xrcd;
	struct ibv_dm *dm;
	struct ibv_mr *mr;
	struct ibv_qp *target;
	uint8_t bytes[DM_BYTES];
} other;

static struct verbs_fixture fixture;

static struct ibv_dm *alloc_dm(struct ibv_context *context)
{
	struct ibv_alloc_dm_attr attr = { .length = DM_BYTES };
	struct ibv_dm *dm = ibv_alloc_dm(context, &attr);

	assert_non_null(dm);
	return dm;
}

static struct ibv_qp *make_target(struct ibv_context *context, struct ibv_xrcd *xrcd)
{
	struct ibv_qp_init_attr_ex attr = { .qp_type = IBV_QPT_XRC_RECV,
					    .comp_mask = IBV_QP_INIT_ATTR_XRCD,
					    .xrcd = xrcd };

	return ibv_create_qp_ex(context, &attr);
}

static int set_up(void **state)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_parent_domain_init_attr parent = { 0 };
	struct ibv_td_init_attr td = { 0 };

	(void)state;
	fixture_open(&fixture);
	other.context = ibv_open_device(the_context()->device);
	assert_non_null(other.context);
	other.pd = ibv_alloc_pd(other.context);
	other.td = ibv_alloc_td(other.context, &td);
	parent.pd = other.pd;
	other.parent = ibv_alloc_parent_domain(other.context, &parent);
	other.channel = ibv_create_comp_channel(other.context);
	other.cq = ibv_create_cq(other.context, 10, NULL, NULL, 0);
	other.srq = ibv_create_srq(other.pd, &srq);
	other.xrcd = fixture_xrcd(other.context);
	other.dm = alloc_dm(other.context);
	other.mr = ibv_reg_mr(other.pd, other.bytes, sizeof(other.bytes), ALL_ACCESS);
	other.target = make_target(other.context, other.xrcd);
	assert_true(other.pd && other.td && other.parent && other.channel && other.cq &&
		    other.srq && other.mr && other.target);
	return 0;
}

/* A call that failed must not have added a user to the objects that it named. */
static int tear_down(void **state)
{
	(void)state;
	assert_int_equal(ibv_destroy_qp(other.target), 0);
	assert_int_equal(ibv_dereg_mr(other.mr), 0);
	assert_int_equal(ibv_free_dm(other.dm), 0);
	assert_int_equal(ibv_close_xrcd(other.xrcd), 0);
	assert_int_equal(ibv_destroy_srq(other.srq), 0);
	assert_int_equal(ibv_destroy_cq(other.cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(other.channel), 0);
	assert_int_equal(ibv_dealloc_pd(other.parent), 0);
	assert_int_equal(ibv_dealloc_td(other.td), 0);
	assert_int_equal(ibv_dealloc_pd(other.pd), 0);
	assert_int_equal(ibv_close_device(other.context), 0);
	fixture_close(&fixture);
	return 0;
}

#define REFUSED(call)                            \
	do {                                     \
		errno = 0;                       \
		assert_null(call);               \
		assert_int_equal(errno, EINVAL); \
	} while (0)

static struct ibv_qp *qp_of(struct ibv_pd *pd, struct ibv_cq *send_cq, struct ibv_cq *recv_cq,
			    struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = { .send_cq = send_cq,
					 .recv_cq = recv_cq,
					 .srq = srq,
					 .qp_type = IBV_QPT_RC,
					 .cap = { .max_send_wr = 1, .max_recv_wr = 1 } };

	return ibv_create_qp(pd, &attr);
}

static void queue_pairs(void **state)
{
	/* If comp_mask has the domain only, libibverbs takes the context from the domain. */
	struct ibv_qp_init_attr_ex ex = { .qp_type = IBV_QPT_RC,
					  .comp_mask = IBV_QP_INIT_ATTR_PD |
						       IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					  .pd = fixture.pd,
					  .send_cq = fixture.cq,
					  .recv_cq = fixture.cq };
	struct ibv_qp_open_attr open = { .comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
						      IBV_QP_OPEN_ATTR_TYPE,
					 .qp_num = other.target->qp_num,
					 .xrcd = other.xrcd,
					 .qp_type = IBV_QPT_XRC_RECV };
	struct ibv_qp *qp;

	(void)state;
	REFUSED(qp_of(other.pd, fixture.cq, fixture.cq, NULL));
	REFUSED(qp_of(other.parent, fixture.cq, fixture.cq, NULL));
	REFUSED(qp_of(fixture.pd, other.cq, fixture.cq, NULL));
	REFUSED(qp_of(fixture.pd, fixture.cq, other.cq, NULL));
	REFUSED(qp_of(fixture.pd, fixture.cq, fixture.cq, other.srq));
	REFUSED(ibv_create_qp_ex(other.context, &ex));
	REFUSED(make_target(the_context(), other.xrcd));
	REFUSED(ibv_open_qp(the_context(), &open));
	/* In their own context these objects are accepted. */
	qp = qp_of(other.pd, other.cq, other.cq, other.srq);
	assert_non_null(qp);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	qp = ibv_open_qp(other.context, &open);
	assert_non_null(qp);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static struct ibv_srq *srq_of(struct ibv_pd *pd, struct ibv_xrcd *xrcd, struct ibv_cq *cq)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 4, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = pd,
		.xrcd = xrcd,
		.cq = cq,
	};

	return ibv_create_srq_ex(the_context(), &attr);
}

static void shared_queues(void **state)
{
	struct ibv_xrcd *xrcd = fixture_xrcd(the_context());
	struct ibv_srq *srq;

	(void)state;
	REFUSED(srq_of(other.pd, xrcd, fixture.cq));
	REFUSED(srq_of(fixture.pd, other.xrcd, fixture.cq));
	REFUSED(srq_of(fixture.pd, xrcd, other.cq));
	srq = srq_of(fixture.pd, xrcd, fixture.cq);
	assert_non_null(srq);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

static void completion_queues(void **state)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 10, .channel = other.channel };

	(void)state;
	REFUSED(ibv_create_cq(the_context(), 10, NULL, other.channel, 0));
	REFUSED(ibv_create_cq_ex(the_context(), &attr));
	attr = (struct ibv_cq_init_attr_ex){ .cqe = 10,
					     .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
					     .parent_domain = other.parent };
	REFUSED(ibv_create_cq_ex(the_context(), &attr));
}

static void domains(void **state)
{
	struct ibv_parent_domain_init_attr attr = { .pd = other.pd };

	(void)state;
	REFUSED(ibv_alloc_parent_domain(the_context(), &attr));
	attr.pd = fixture.pd;
	attr.td = other.td;
	REFUSED(ibv_alloc_parent_domain(the_context(), &attr));
}

static void regions(void **state)
{
	struct ibv_dm *dm = alloc_dm(the_context());
	struct ibv_mr *mr;

	(void)state;
	REFUSED(ibv_reg_dm_mr(fixture.pd, other.dm, 0, DM_BYTES,
			      ALL_ACCESS | IBV_ACCESS_ZERO_BASED));
	REFUSED(ibv_reg_dm_mr(other.pd, dm, 0, DM_BYTES, ALL_ACCESS | IBV_ACCESS_ZERO_BASED));
	mr = ibv_reg_dm_mr(fixture.pd, dm, 0, DM_BYTES, ALL_ACCESS | IBV_ACCESS_ZERO_BASED);
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
	/* The region stays in its domain. */
	assert_int_equal(ibv_rereg_mr(fixture.mr, IBV_REREG_MR_CHANGE_PD, other.pd, NULL, 0, 0),
			 IBV_REREG_MR_ERR_CMD);
	assert_ptr_equal(fixture.mr->pd, fixture.pd);
}

/* A pair of queue pairs of fixture's domain. */
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

static struct ibv_wc of_receive; /* with wr_id 2 if the receive has completed */

/* Posts a request to the queue pair from.  Returns its status. */
static enum ibv_wc_status end_of(enum ibv_wr_opcode opcode, struct ibv_sge sge, uint32_t rkey,
				 const void *remote)
{
	struct ibv_send_wr wr = { .wr_id = 1,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = opcode,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_wc wc;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)remote;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)remote;
		wr.wr.rdma.rkey = rkey;
	}
	assert_int_equal(ibv_post_send(from, &wr, &bad), 0);
	for (;;) {
		assert_true(fixture_next(fixture.cq, &wc, PATIENCE_MS));
		if (wc.wr_id == 1)
			return wc.status;
		of_receive = wc;
	}
}

static const enum ibv_wr_opcode one_sided[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						IBV_WR_ATOMIC_FETCH_AND_ADD };

/* A request must fail if its remote key is of another domain than the responder's queue pair. */
static void remote_keys_of_another_domain(void **state)
{
	static uint64_t word;

	(void)state;
	for (size_t i = 0; i < sizeof(one_sided) / sizeof(one_sided[0]); i++) {
		struct ibv_pd *pd;
		struct ibv_mr *mr;

		set_up_pair(NULL);
		pd = ibv_alloc_pd(the_context());
		mr = ibv_reg_mr(pd, &word, sizeof(word), ALL_ACCESS);
		assert_non_null(mr);
		word = 0x5555;
		memset(fixture.bytes, 0xee, sizeof(word));
		assert_int_equal(end_of(one_sided[i], fixture_sge(&fixture, 0, sizeof(word)),
					mr->rkey, &word),
				 IBV_WC_REM_ACCESS_ERR);
		assert_int_equal(word, 0x5555);
		assert_int_equal(fixture.bytes[0], 0xee);
		assert_int_equal(ibv_dereg_mr(mr), 0);
		assert_int_equal(ibv_dealloc_pd(pd), 0);
		tear_down_pair(NULL);
	}
}

/* READ results, fetched values and received data need local write access. */
static void local_keys_without_the_right(void **state)
{
	static const enum ibv_wr_opcode writers[] = { IBV_WR_RDMA_READ,
						      IBV_WR_ATOMIC_FETCH_AND_ADD };

	(void)state;
	for (size_t i = 0; i < sizeof(writers) / sizeof(writers[0]); i++) {
		struct ibv_sge sge;
		struct ibv_mr *mr;

		set_up_pair(NULL);
		mr = ibv_reg_mr(fixture.pd, fixture.bytes, 8, 0);
		assert_non_null(mr);
		sge = fixture_sge(&fixture, 0, 8);
		sge.lkey = mr->lkey;
		memset(fixture.bytes, 0xee, 8);
		assert_int_equal(end_of(writers[i], sge, fixture.mr->rkey, fixture.bytes + 64),
				 IBV_WC_LOC_PROT_ERR);
		assert_int_equal(fixture.bytes[0], 0xee);
		assert_int_equal(ibv_dereg_mr(mr), 0);
		tear_down_pair(NULL);
	}
}

static void receives_without_the_right(void **state)
{
	struct ibv_mr *mr = ibv_reg_mr(fixture.pd, fixture.bytes, 8, 0);
	struct ibv_sge sge = fixture_sge(&fixture, 0, 8);
	struct ibv_recv_wr wr = { .wr_id = 2, .sg_list = &sge, .num_sge = 1 }, *bad;

	(void)state;
	of_receive.wr_id = 0;
	assert_non_null(mr);
	sge.lkey = mr->lkey;
	memset(fixture.bytes, 0xee, 8);
	assert_int_equal(ibv_post_recv(to, &wr, &bad), 0);
	assert_int_equal(end_of(IBV_WR_SEND, fixture_sge(&fixture, 64, 8), 0, NULL),
			 IBV_WC_REM_OP_ERR);
	assert_int_equal(fixture.bytes[0], 0xee);
	if (!of_receive.wr_id)
		of_receive = fixture_expect(fixture.cq, 2, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(of_receive.status, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* Each access right of the responder's queue pair is needed as well. */
static void rights_of_the_queue_pair(void **state)
{
	static const unsigned int needs[] = { IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_READ,
					      IBV_ACCESS_REMOTE_ATOMIC };

	(void)state;
	for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
		struct ibv_qp_attr attr = { .qp_access_flags = ALL_ACCESS & ~needs[i] };

		set_up_pair(NULL);
		assert_int_equal(ibv_modify_qp(to, &attr, IBV_QP_ACCESS_FLAGS), 0);
		memset(fixture.bytes + 64, 0x55, 8);
		assert_int_equal(end_of(one_sided[i], fixture_sge(&fixture, 0, 8), fixture.mr->rkey,
					fixture.bytes + 64),
				 IBV_WC_REM_INV_REQ_ERR);
		assert_int_equal(fixture.bytes[64], 0x55);
		tear_down_pair(NULL);
	}
}

/* Address handles of datagrams that are posted with ibv_wr_*(). */
static void handles_of_another_domain(void **state)
{
	struct ibv_qp_init_attr_ex attr = { .qp_type = IBV_QPT_UD,
					    .comp_mask = IBV_QP_INIT_ATTR_PD |
							 IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					    .send_ops_flags = IBV_QP_EX_WITH_SEND,
					    .cap = { .max_send_wr = 4, .max_send_sge = 1 } };
	struct verbs_fixture there;
	struct ibv_ah *ah;
	struct ibv_qp_ex *ex;
	struct ibv_qp *qp;

	(void)state;
	fixture_open(&fixture);
	fixture_open(&there);
	attr.pd = fixture.pd;
	attr.send_cq = attr.recv_cq = fixture.cq;
	qp = ibv_create_qp_ex(the_context(), &attr);
	assert_non_null(qp);
	fixture_connect(qp, 0);
	ah = fixture_ah(&there, the_gid_index(), NULL);
	ex = ibv_qp_to_qp_ex(qp);
	for (int row = 0; row < 3; row++) {
		ibv_wr_start(ex);
		ex->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_send(ex);
		if (row == 0)
			ibv_wr_set_ud_addr(ex, ah, qp->qp_num, FIXTURE_QKEY);
		else if (row == 1)
			ibv_wr_set_ud_addr(ex, NULL, qp->qp_num, FIXTURE_QKEY);
		/* Row 2 has no address. */
		assert_int_equal(ibv_wr_complete(ex), EINVAL);
	}
	fixture_expect_nothing(fixture.cq);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	fixture_close(&there);
	fixture_close(&fixture);
}

#define WITH_OTHER(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_OTHER(queue_pairs),
		WITH_OTHER(shared_queues),
		WITH_OTHER(completion_queues),
		WITH_OTHER(domains),
		WITH_OTHER(regions),
		cmocka_unit_test(remote_keys_of_another_domain),
		cmocka_unit_test(local_keys_without_the_right),
		cmocka_unit_test_setup_teardown(receives_without_the_right, set_up_pair,
						tear_down_pair),
		cmocka_unit_test(rights_of_the_queue_pair),
		cmocka_unit_test(handles_of_another_domain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
