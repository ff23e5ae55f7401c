/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Queue pairs that go to ERR before they were ever connected.  Programs post a last request to see
 * that the queue is empty: it is accepted and flushed, as in any other queue pair in ERR.
 */
#include "verbs_fixture.h"

enum { LONG_BYTES = 100000 };

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

/* The state from which the queue pair is moved to ERR. */
enum origin {
	FROM_RESET,
	FROM_INIT,
	FROM_ERR_AND_RESET,
	FROM_RTS_AND_RESET,
	ORIGINS,
};

static void to_plain_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = FIXTURE_QKEY };
	int last = qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;

	assert_int_equal(
		ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | last), 0);
}

static void to_error_from(struct ibv_qp *qp, enum origin origin)
{
	if (origin == FROM_INIT)
		to_plain_init(qp);
	if (origin == FROM_ERR_AND_RESET)
		assert_int_equal(to_state(qp, IBV_QPS_ERR), 0);
	if (origin == FROM_RTS_AND_RESET)
		fixture_connect(qp, qp->qp_num);
	if (origin >= FROM_ERR_AND_RESET)
		assert_int_equal(to_state(qp, IBV_QPS_RESET), 0);
	assert_int_equal(to_state(qp, IBV_QPS_ERR), 0);
}

static void post_is_flushed(struct ibv_qp *qp, enum ibv_wr_opcode opcode, uint32_t length,
			    struct ibv_ah *ah)
{
	struct ibv_sge sge = fixture_sge(&fixture, 0, length);
	struct ibv_send_wr wr = { .wr_id = 7, .sg_list = &sge, .num_sge = 1, .opcode = opcode },
			   *bad;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)fixture.bytes;
		wr.wr.atomic.rkey = fixture.mr->rkey;
	} else if (ah) {
		wr.wr.ud.ah = ah;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)fixture.bytes;
		wr.wr.rdma.rkey = fixture.mr->rkey;
	}
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	fixture_expect(fixture.cq, 7, IBV_WC_WR_FLUSH_ERR);
}

/* rule S13 test */
static void test_sends_are_flushed(void **state)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD,
						  IBV_QPT_XRC_SEND };
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE_WITH_IMM,
						      IBV_WR_RDMA_READ, IBV_WR_LOCAL_INV };
	struct ibv_ah *ah = fixture_ah(&fixture, the_gid_index(), NULL);

	(void)state;
	for (unsigned int i = 0; i < ORIGINS * 4; i++) {
		enum ibv_qp_type type = types[i % 4];
		struct ibv_ah *to = type == IBV_QPT_UD ? ah : NULL;
		struct ibv_qp *qp = fixture_qp(&fixture, type, NULL);

		to_error_from(qp, (enum origin)(i / 4));
		for (unsigned int j = 0; j < (to ? 1 : 4); j++) {
			post_is_flushed(qp, opcodes[j], 8, to);
			post_is_flushed(qp, opcodes[j], LONG_BYTES, to);
		}
		if (!to)
			post_is_flushed(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, NULL);
		assert_int_equal(ibv_destroy_qp(qp), 0);
	}
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

/* rule S13 test: by the extended interface as well. */
static void test_extended_sends_are_flushed(void **state)
{
	(void)state;
	for (enum origin origin = 0; origin < ORIGINS; origin++) {
		struct ibv_qp_init_attr_ex init = {
			.send_cq = fixture.cq,
			.recv_cq = fixture.cq,
			.cap = { .max_send_wr = 4, .max_send_sge = 1 },
			.qp_type = IBV_QPT_RC,
			.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
			.pd = fixture.pd,
			.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
		};
		struct ibv_qp *qp = ibv_create_qp_ex(the_context(), &init);
		struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);

		to_error_from(qp, origin);
		ibv_wr_start(ex);
		ex->wr_id = 9;
		ex->wr_flags = 0;
		ibv_wr_rdma_write(ex, fixture.mr->rkey, (uintptr_t)fixture.bytes);
		ibv_wr_set_sge(ex, fixture.mr->lkey, (uintptr_t)fixture.bytes, LONG_BYTES);
		assert_int_equal(ibv_wr_complete(ex), 0);
		fixture_expect(fixture.cq, 9, IBV_WC_WR_FLUSH_ERR);
		assert_int_equal(ibv_destroy_qp(qp), 0);
	}
}

/* A CQ overrun moves the queue pairs of the CQ to ERR, whatever their state. */
static void test_overrun_fails_the_unconnected(void **state)
{
	struct ibv_cq *small = ibv_create_cq(the_context(), 1, NULL, NULL, 0);
	struct ibv_qp_init_attr init = { .send_cq = fixture.cq,
					 .recv_cq = small,
					 .cap = { .max_send_wr = 64,
						  .max_recv_wr = 64,
						  .max_send_sge = 1,
						  .max_recv_sge = 1 },
					 .qp_type = IBV_QPT_RC };
	struct ibv_qp *other = ibv_create_qp(fixture.pd, &init),
		      *qp = ibv_create_qp(fixture.pd, &init);
	struct ibv_async_event event;

	(void)state;
	to_plain_init(qp);
	assert_int_equal(to_state(other, IBV_QPS_ERR), 0);
	for (int i = 0; i <= small->cqe; i++)
		assert_int_equal(fixture_post_recv(&fixture, other, 1, 0, 8), 0);
	do {
		assert_int_equal(ibv_get_async_event(the_context(), &event), 0);
		ibv_ack_async_event(&event);
	} while (event.event_type != IBV_EVENT_QP_FATAL);
	assert_ptr_equal(event.element.qp, qp);
	post_is_flushed(qp, IBV_WR_SEND, 8, NULL);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_qp(other), 0);
	assert_int_equal(ibv_destroy_cq(small), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sends_are_flushed),
		cmocka_unit_test(test_extended_sends_are_flushed),
		cmocka_unit_test(test_overrun_fails_the_unconnected),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
