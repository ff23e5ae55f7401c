/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Objects that a queue pair of any type needs, for tests of services other than RC.  As in
 * verbs_pair.h, a failing call fails the current test.
 */
#ifndef UROCE_TESTS_VERBS_FIXTURE_H
#define UROCE_TESTS_VERBS_FIXTURE_H

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdbool.h>
#include <time.h>

#include "verbs_pair.h"

#define FIXTURE_BYTES (1 << 18)
#define FIXTURE_QKEY 0x11111111
#define FIXTURE_TIMEOUT 14 /* 67 ms: other programs need the processors, too */

struct verbs_fixture {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *bytes; /* FIXTURE_BYTES */
};

static inline void fixture_open(struct verbs_fixture *fixture)
{
	fixture->pd = ibv_alloc_pd(the_context());
	assert_non_null(fixture->pd);
	fixture->cq = ibv_create_cq(the_context(), 512, NULL, NULL, 0);
	assert_non_null(fixture->cq);
	fixture->bytes = aligned_alloc(4096, FIXTURE_BYTES);
	assert_non_null(fixture->bytes);
	memset(fixture->bytes, 0, FIXTURE_BYTES);
	fixture->mr = ibv_reg_mr(fixture->pd, fixture->bytes, FIXTURE_BYTES, ALL_ACCESS);
	assert_non_null(fixture->mr);
}

static inline void fixture_close(struct verbs_fixture *fixture)
{
	assert_int_equal(ibv_destroy_cq(fixture->cq), 0);
	assert_int_equal(ibv_dereg_mr(fixture->mr), 0);
	assert_int_equal(ibv_dealloc_pd(fixture->pd), 0);
	free(fixture->bytes);
}

static inline struct ibv_qp *fixture_qp(struct verbs_fixture *fixture, enum ibv_qp_type type,
					struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = fixture->cq,
		.recv_cq = fixture->cq,
		.srq = srq,
		.cap = { .max_send_wr = 64,
			 .max_recv_wr = 64,
			 .max_send_sge = 2,
			 .max_recv_sge = 2,
			 .max_inline_data = 64 },
		.qp_type = type,
	};
	struct ibv_qp *qp = ibv_create_qp(fixture->pd, &attr);

	assert_non_null(qp);
	if (srq)
		assert_int_equal(attr.cap.max_recv_wr, 0);
	return qp;
}

/* Opens an XRC domain that belongs to no file. */
static inline struct ibv_xrcd *fixture_xrcd(struct ibv_context *context)
{
	struct ibv_xrcd_init_attr attr = { .comp_mask = IBV_XRCD_INIT_ATTR_FD |
							IBV_XRCD_INIT_ATTR_OFLAGS,
					   .fd = -1,
					   .oflags = O_CREAT };
	struct ibv_xrcd *xrcd = ibv_open_xrcd(context, &attr);

	assert_non_null(xrcd);
	return xrcd;
}

static inline struct ibv_sge fixture_sge(const struct verbs_fixture *fixture, size_t offset,
					 uint32_t length)
{
	return (struct ibv_sge){ .addr = (uintptr_t)fixture->bytes + offset,
				 .length = length,
				 .lkey = fixture->mr->lkey };
}

/* Moves a queue pair to INIT, RTR and RTS.  UD ignores dest_qpn.  PSNs wrap after two packets. */
static inline void fixture_connect(struct ibv_qp *qp, uint32_t dest_qpn)
{
	bool ud = qp->qp_type == IBV_QPT_UD;
	bool acknowledged = !ud && qp->qp_type != IBV_QPT_UC;
	struct ibv_qp_attr attr = { .port_num = 1,
				    .qkey = FIXTURE_QKEY,
				    .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
						       IBV_ACCESS_REMOTE_READ |
						       IBV_ACCESS_REMOTE_ATOMIC,
				    .path_mtu = IBV_MTU_1024,
				    .dest_qp_num = dest_qpn,
				    .rq_psn = 0xfffffe,
				    .sq_psn = 0xfffffe,
				    .max_dest_rd_atomic = 4,
				    .max_rd_atomic = 4,
				    .min_rnr_timer = 1,
				    .timeout = FIXTURE_TIMEOUT,
				    .retry_cnt = 7,
				    .rnr_retry = 7 };
	int common = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = 1;
	attr.ah_attr.grh.sgid_index = the_gid_index();
	assert_int_equal(ibv_query_gid(qp->context, 1, the_gid_index(), &attr.ah_attr.grh.dgid), 0);
	attr.qp_state = IBV_QPS_INIT;
	assert_int_equal(
		ibv_modify_qp(qp, &attr, common | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)), 0);
	attr.qp_state = IBV_QPS_RTR;
	common = ud ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (acknowledged)
		common |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	assert_int_equal(ibv_modify_qp(qp, &attr, common | IBV_QP_STATE), 0);
	attr.qp_state = IBV_QPS_RTS;
	common = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (acknowledged)
		common |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			  IBV_QP_MAX_QP_RD_ATOMIC;
	assert_int_equal(ibv_modify_qp(qp, &attr, common), 0);
}

static inline struct ibv_ah *fixture_ah(struct verbs_fixture *fixture, uint8_t gid_index,
					const union ibv_gid *dgid)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1, .grh.sgid_index = gid_index };
	struct ibv_ah *ah;

	if (dgid)
		attr.grh.dgid = *dgid;
	else
		assert_int_equal(ibv_query_gid(the_context(), 1, gid_index, &attr.grh.dgid), 0);
	ah = ibv_create_ah(fixture->pd, &attr);
	assert_non_null(ah);
	return ah;
}

static inline int fixture_post_recv(struct verbs_fixture *fixture, struct ibv_qp *qp,
				    uint64_t wr_id, size_t offset, uint32_t length)
{
	struct ibv_sge sge = fixture_sge(fixture, offset, length);
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(qp, &wr, &bad);
}

static inline int fixture_post_srq(struct verbs_fixture *fixture, struct ibv_srq *srq,
				   uint64_t wr_id, size_t offset, uint32_t length)
{
	struct ibv_sge sge = fixture_sge(fixture, offset, length);
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_srq_recv(srq, &wr, &bad);
}

static inline int fixture_post_datagram(struct ibv_qp *qp, struct ibv_ah *ah, uint32_t dest_qpn,
					uint64_t wr_id, struct ibv_sge sge)
{
	struct ibv_send_wr wr = { .wr_id = wr_id,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND_WITH_IMM,
				  .imm_data = htonl((uint32_t)wr_id),
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = dest_qpn;
	wr.wr.ud.remote_qkey = FIXTURE_QKEY;
	return ibv_post_send(qp, &wr, &bad);
}

/*
 * Polls until there is a completion, or a poll fails, or timeout_ms have passed (0: one poll).
 * Returns the result of the last ibv_poll_cq().  Asserts nothing, so that any thread may call it.
 */
static inline int fixture_poll(struct ibv_cq *cq, struct ibv_wc *wc, int timeout_ms)
{
	struct timespec begin, now;
	int got;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		got = ibv_poll_cq(cq, 1, wc);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (!got &&
		 (now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 <
			 timeout_ms);
	return got;
}

/* fixture_poll() that must not fail.  Returns false if there is no completion in time. */
static inline bool fixture_next(struct ibv_cq *cq, struct ibv_wc *wc, int timeout_ms)
{
	int got = fixture_poll(cq, wc, timeout_ms);

	assert_true(got >= 0);
	return got == 1;
}

static inline struct ibv_wc fixture_expect(struct ibv_cq *cq, uint64_t wr_id,
					   enum ibv_wc_status status)
{
	struct ibv_wc wc = { 0 };

	assert_true(fixture_next(cq, &wc, PATIENCE_MS));
	if (wc.status != status)
		print_error("status %s instead of %s\n", ibv_wc_status_str(wc.status),
			    ibv_wc_status_str(status));
	assert_int_equal(wc.status, status);
	assert_int_equal(wc.wr_id, wr_id);
	return wc;
}

/* Checks that no completion arrives within 20 ms. */
static inline void fixture_expect_nothing(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	assert_false(fixture_next(cq, &wc, 20));
}

/* A fixture and two RC queue pairs that are connected to each other. */
static inline void fixture_open_pair(struct verbs_fixture *fixture, struct ibv_qp **from,
				     struct ibv_qp **to)
{
	fixture_open(fixture);
	*from = fixture_qp(fixture, IBV_QPT_RC, NULL);
	*to = fixture_qp(fixture, IBV_QPT_RC, NULL);
	fixture_connect(*from, (*to)->qp_num);
	fixture_connect(*to, (*from)->qp_num);
}

static inline void fixture_close_pair(struct verbs_fixture *fixture, struct ibv_qp *from,
				      struct ibv_qp *to)
{
	assert_int_equal(ibv_destroy_qp(from), 0);
	assert_int_equal(ibv_destroy_qp(to), 0);
	fixture_close(fixture);
}

#endif
