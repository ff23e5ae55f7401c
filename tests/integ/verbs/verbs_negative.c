/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Calls with wrong arguments or in a wrong state, and the errno of each; a call that fails must
 * change nothing.
 */
#include <stdio.h>

#include "verbs_pair.h"

static struct pair pair;

static struct ibv_device_attr device_attr(void)
{
	struct ibv_device_attr attr;

	assert_int_equal(ibv_query_device(the_context(), &attr), 0);
	return attr;
}

static void objects_in_use_stay(void **state)
{
	(void)state;
	assert_int_equal(ibv_dealloc_pd(pair.a.pd), EBUSY);
	assert_int_equal(ibv_destroy_cq(pair.a.cq), EBUSY);
	assert_int_equal(ibv_destroy_comp_channel(pair.a.channel), EBUSY);
}

/* Returns 0, or the errno of creating such a CQ. */
static int cq_errno(int cqe, int vector)
{
	struct ibv_cq *cq;

	errno = 0;
	cq = ibv_create_cq(the_context(), cqe, NULL, NULL, vector);
	if (!cq)
		return errno;
	assert_true(cq->cqe >= cqe);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	return 0;
}

static void completion_queue_sizes(void **state)
{
	int most = device_attr().max_cqe;
	struct ibv_cq *cq;

	(void)state;
	assert_int_equal(cq_errno(1, 0), 0);
	assert_int_equal(cq_errno(most, 0), 0);
	assert_int_equal(cq_errno(0, 0), EINVAL);
	assert_int_equal(cq_errno(-1, 0), EINVAL);
	assert_int_equal(cq_errno(most + 1, 0), EINVAL);
	assert_int_equal(cq_errno(10, -1), EINVAL);
	assert_int_equal(cq_errno(10, the_context()->num_comp_vectors), EINVAL);

	cq = ibv_create_cq(the_context(), 10, NULL, NULL, 0);
	assert_non_null(cq);
	assert_int_equal(ibv_resize_cq(cq, 5000), 0);
	assert_true(cq->cqe >= 5000);
	assert_int_equal(ibv_resize_cq(cq, most + 1), EINVAL);
	assert_int_equal(ibv_resize_cq(cq, 0), EINVAL);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

static void resize_keeps_what_is_unpolled(void **state)
{
	struct ibv_wc wc[8];

	(void)state;
	for (uint64_t i = 0; i < 8; i++)
		assert_int_equal(post_recv(&pair.a, i, 0, 1), 0);
	assert_int_equal(to_state(pair.a.qp, IBV_QPS_ERR), 0);
	assert_int_equal(ibv_resize_cq(pair.a.cq, 7), EINVAL);
	assert_int_equal(ibv_resize_cq(pair.a.cq, 8), 0);
	assert_int_equal(ibv_resize_cq(pair.a.cq, 1000), 0);
	assert_int_equal(ibv_poll_cq(pair.a.cq, 8, wc), 8);
	for (uint64_t i = 0; i < 8; i++)
		assert_int_equal(wc[i].wr_id, i);
}

/* Creates a queue pair with valid attributes after a change by spoil().  Returns 0 or errno. */
static int qp_errno(void (*spoil)(struct ibv_qp_init_attr *attr))
{
	struct ibv_qp_init_attr attr = {
		.send_cq = pair.a.cq,
		.recv_cq = pair.a.cq,
		.cap = { .max_send_wr = 10,
			 .max_recv_wr = 10,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp_cap asked;
	struct ibv_qp *qp;

	spoil(&attr);
	asked = attr.cap;
	errno = 0;
	qp = ibv_create_qp(pair.a.pd, &attr);
	if (!qp)
		return errno;
	/* rule U1 test: at least the requested capacities are granted. */
	assert_true(attr.cap.max_send_wr >= asked.max_send_wr);
	assert_true(attr.cap.max_recv_wr >= asked.max_recv_wr);
	assert_true(attr.cap.max_send_sge >= asked.max_send_sge);
	assert_true(attr.cap.max_recv_sge >= asked.max_recv_sge);
	assert_true(attr.cap.max_inline_data >= asked.max_inline_data);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	return 0;
}

static void as_it_is(struct ibv_qp_init_attr *attr)
{
	(void)attr;
}

static void all_at_most(struct ibv_qp_init_attr *attr)
{
	struct ibv_device_attr device = device_attr();

	attr->cap.max_send_wr = (uint32_t)device.max_qp_wr;
	attr->cap.max_recv_wr = (uint32_t)device.max_qp_wr;
	attr->cap.max_send_sge = (uint32_t)device.max_sge;
	attr->cap.max_recv_sge = (uint32_t)device.max_sge;
	attr->cap.max_inline_data = 512;
}

static void all_nothing(struct ibv_qp_init_attr *attr)
{
	memset(&attr->cap, 0, sizeof(attr->cap));
}

static void sends(struct ibv_qp_init_attr *attr)
{
	attr->cap.max_send_wr = (uint32_t)device_attr().max_qp_wr + 1;
}

static void receives(struct ibv_qp_init_attr *attr)
{
	attr->cap.max_recv_wr = (uint32_t)device_attr().max_qp_wr + 1;
}

static void send_sges(struct ibv_qp_init_attr *attr)
{
	attr->cap.max_send_sge = (uint32_t)device_attr().max_sge + 1;
}

static void recv_sges(struct ibv_qp_init_attr *attr)
{
	attr->cap.max_recv_sge = (uint32_t)device_attr().max_sge + 1;
}

static void inlines(struct ibv_qp_init_attr *attr)
{
	attr->cap.max_inline_data = 1 << 20;
}

static void raw_type(struct ibv_qp_init_attr *attr)
{
	attr->qp_type = IBV_QPT_RAW_PACKET;
}

static void no_send_cq(struct ibv_qp_init_attr *attr)
{
	attr->send_cq = NULL;
}

static void no_recv_cq(struct ibv_qp_init_attr *attr)
{
	attr->recv_cq = NULL;
}

/* rule U1 test */
static void queue_pair_sizes(void **state)
{
	(void)state;
	assert_int_equal(qp_errno(as_it_is), 0);
	assert_int_equal(qp_errno(all_at_most), 0);
	assert_int_equal(qp_errno(all_nothing), 0);
	assert_int_equal(qp_errno(sends), EINVAL);
	assert_int_equal(qp_errno(receives), EINVAL);
	assert_int_equal(qp_errno(send_sges), EINVAL);
	assert_int_equal(qp_errno(recv_sges), EINVAL);
	assert_int_equal(qp_errno(inlines), EINVAL);
	assert_int_equal(qp_errno(raw_type), EOPNOTSUPP);
	assert_int_equal(qp_errno(no_send_cq), EINVAL);
	assert_int_equal(qp_errno(no_recv_cq), EINVAL);
}

static struct ibv_qp *fresh_qp(void)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = pair.a.cq,
		.recv_cq = pair.a.cq,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = ibv_create_qp(pair.a.pd, &attr);

	assert_non_null(qp);
	return qp;
}

static enum ibv_qp_state state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, qp->state);
	return attr.qp_state;
}

static void illegal_moves(void **state)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };
	struct ibv_qp *qp = fresh_qp();

	(void)state;
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EINVAL);
	assert_int_equal(to_rtr(qp, 1, &(struct pair_options){ 0 }), EINVAL);
	assert_int_equal(state_of(qp), IBV_QPS_RESET);
	/* A required attribute is missing; one is not permitted; a bit is unknown. */
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_INIT, .port_num = 1 };
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT), EINVAL);
	assert_int_equal(ibv_modify_qp(qp, &attr,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					       IBV_QP_ACCESS_FLAGS | IBV_QP_SQ_PSN),
			 EINVAL);
	assert_int_equal(ibv_modify_qp(qp, &attr,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					       IBV_QP_ACCESS_FLAGS | 1 << 30),
			 EINVAL);
	attr.qp_state = (enum ibv_qp_state)99;
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EINVAL);
	assert_int_equal(state_of(qp), IBV_QPS_RESET);
	assert_int_equal(to_init(qp, 0), 0);
	assert_int_equal(state_of(qp), IBV_QPS_INIT);
	/* cur_qp_state is wrong. */
	attr.cur_qp_state = IBV_QPS_RTS;
	attr.qp_state = IBV_QPS_ERR;
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE), EINVAL);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

enum {
	INIT_MASK = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
	RTR_MASK = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	RTS_MASK = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
		   IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
};

static struct ibv_qp_attr good_attr(enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {
		.qp_state = state,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = pair.b.qp->qp_num,
		.port_num = 1,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .sgid_index = the_gid_index() } },
	};

	assert_int_equal(ibv_query_gid(the_context(), 1, the_gid_index(), &attr.ah_attr.grh.dgid),
			 0);
	return attr;
}

/* Checks that ibv_modify_qp() fails and changes nothing; only one value of attr is wrong. */
static void refused(struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct ibv_qp_attr copy = *attr, before, after;
	struct ibv_qp_init_attr init;

	memset(&before, 0, sizeof(before));
	memset(&after, 0, sizeof(after));
	assert_int_equal(ibv_query_qp(qp, &before, mask, &init), 0);
	assert_int_equal(ibv_modify_qp(qp, &copy, mask), EINVAL);
	assert_int_equal(ibv_query_qp(qp, &after, mask, &init), 0);
	assert_memory_equal(&before, &after, sizeof(before));
}

#define REFUSED(state, mask, field, bad)                     \
	do {                                                 \
		struct ibv_qp_attr attr_ = good_attr(state); \
                                                             \
		attr_.field = (bad);                         \
		refused(qp, &attr_, mask);                   \
	} while (0)

static unsigned int empty_gid_index(void)
{
	struct ibv_port_attr port;
	union ibv_gid gid, zero = { 0 };

	assert_int_equal(ibv_query_port(the_context(), 1, &port), 0);
	for (int i = 0; i < port.gid_tbl_len; i++) {
		assert_int_equal(ibv_query_gid(the_context(), 1, i, &gid), 0);
		if (!memcmp(&gid, &zero, sizeof(gid)))
			return (unsigned int)i;
	}
	fail();
	return 0;
}

static void bad_values(void **state)
{
	struct ibv_qp *qp = fresh_qp();
	struct ibv_qp_attr attr;

	(void)state;
	REFUSED(IBV_QPS_INIT, INIT_MASK, port_num, 0);
	REFUSED(IBV_QPS_INIT, INIT_MASK, port_num, 2);
	REFUSED(IBV_QPS_INIT, INIT_MASK, pkey_index, 1);
	REFUSED(IBV_QPS_INIT, INIT_MASK, qp_access_flags, 1u << 15);
	attr = good_attr(IBV_QPS_INIT);
	assert_int_equal(ibv_modify_qp(qp, &attr, INIT_MASK), 0);

	REFUSED(IBV_QPS_RTR, RTR_MASK, path_mtu, 0);
	REFUSED(IBV_QPS_RTR, RTR_MASK, path_mtu, IBV_MTU_4096 + 1);
	REFUSED(IBV_QPS_RTR, RTR_MASK, dest_qp_num, 0x1000000);
	REFUSED(IBV_QPS_RTR, RTR_MASK, min_rnr_timer, 32);
	REFUSED(IBV_QPS_RTR, RTR_MASK, max_dest_rd_atomic, device_attr().max_qp_rd_atom + 1);
	REFUSED(IBV_QPS_RTR, RTR_MASK, ah_attr.is_global, 0);
	REFUSED(IBV_QPS_RTR, RTR_MASK, ah_attr.port_num, 2);
	REFUSED(IBV_QPS_RTR, RTR_MASK, ah_attr.grh.sgid_index, (uint8_t)empty_gid_index());
	REFUSED(IBV_QPS_RTR, RTR_MASK, ah_attr.grh.sgid_index, 255);
	REFUSED(IBV_QPS_RTR, RTR_MASK, ah_attr.grh.dgid, (union ibv_gid){ { 0 } });
	attr = good_attr(IBV_QPS_RTR);
	assert_int_equal(ibv_modify_qp(qp, &attr, RTR_MASK), 0);

	REFUSED(IBV_QPS_RTS, RTS_MASK, timeout, 32);
	REFUSED(IBV_QPS_RTS, RTS_MASK, max_rd_atomic, device_attr().max_qp_init_rd_atom + 1);
	attr = good_attr(IBV_QPS_RTS);
	/* rule S2 test: only 24 bits of a PSN are used. */
	attr.sq_psn = 0xab123456;
	/* A larger number of retries counts as 7. */
	attr.retry_cnt = 10;
	attr.rnr_retry = 255;
	assert_int_equal(ibv_modify_qp(qp, &attr, RTS_MASK), 0);
	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_SQ_PSN, &(struct ibv_qp_init_attr){ 0 }),
			 0);
	assert_int_equal(attr.sq_psn, 0x123456);
	assert_int_equal(attr.retry_cnt, 7);
	assert_int_equal(attr.rnr_retry, 7);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void query_tells_what_was_set(void **state)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	(void)state;
	assert_int_equal(ibv_query_qp(pair.a.qp, &attr, 0x1fffff, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RTS);
	assert_int_equal(attr.path_mtu, IBV_MTU_1024);
	assert_int_equal(attr.path_mig_state, IBV_MIG_MIGRATED);
	assert_int_equal(attr.dest_qp_num, pair.b.qp->qp_num);
	assert_int_equal(attr.rq_psn, 0xfffffa);
	assert_int_equal(attr.sq_psn, 0xfffffa);
	assert_int_equal(attr.timeout, 10);
	assert_int_equal(attr.retry_cnt, 7);
	assert_int_equal(attr.rnr_retry, 7);
	assert_int_equal(attr.min_rnr_timer, 1);
	assert_int_equal(attr.max_rd_atomic, 4);
	assert_int_equal(attr.max_dest_rd_atomic, 4);
	assert_int_equal(attr.port_num, 1);
	assert_int_equal(attr.ah_attr.is_global, 1);
	assert_int_equal(attr.ah_attr.grh.hop_limit, 1);
	assert_int_equal(attr.qp_access_flags, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
						       IBV_ACCESS_REMOTE_ATOMIC);
	assert_int_equal(attr.sq_draining, 0);
	assert_true(attr.cap.max_send_wr >= 16 && attr.cap.max_send_sge >= 4);
	assert_ptr_equal(init.send_cq, pair.a.cq);
	assert_ptr_equal(init.recv_cq, pair.a.cq);
	assert_int_equal(init.qp_type, IBV_QPT_RC);
	assert_int_equal(init.sq_sig_all, 0);
}

static void posting_in_the_wrong_state(void **state)
{
	struct verbs_end end = pair.a;

	(void)state;
	end.qp = fresh_qp();
	assert_int_equal(post_send(&end, 0, 0, 1, 0), EINVAL);
	assert_int_equal(post_recv(&end, 0, 0, 1), EINVAL);
	assert_int_equal(to_init(end.qp, 0), 0);
	assert_int_equal(post_send(&end, 0, 0, 1, 0), EINVAL);
	assert_int_equal(post_recv(&end, 0, 0, 1), 0);
	assert_int_equal(to_rtr(end.qp, pair.b.qp->qp_num, &(struct pair_options){ 0 }), 0);
	assert_int_equal(post_send(&end, 0, 0, 1, 0), EINVAL);
	assert_int_equal(post_recv(&end, 0, 0, 1), 0);
	assert_int_equal(ibv_destroy_qp(end.qp), 0);
	expect_no_wc(&pair.a);
}

static int send_errno(struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;
	int error = ibv_post_send(pair.a.qp, wr, &bad);

	if (error)
		assert_ptr_equal(bad, wr);
	return error;
}

static void bad_send_requests(void **state)
{
	struct ibv_sge sge[40];
	struct ibv_send_wr wr = { .sg_list = sge, .num_sge = 1, .opcode = IBV_WR_SEND };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	(void)state;
	assert_int_equal(ibv_query_qp(pair.a.qp, &attr, IBV_QP_CAP, &init), 0);
	for (int i = 0; i < 40; i++) {
		sge[i].addr = (uintptr_t)pair.a.buffer;
		sge[i].length = 0;
		sge[i].lkey = pair.a.mr->lkey;
	}
	wr.opcode = (enum ibv_wr_opcode)77;
	assert_int_equal(send_errno(&wr), EINVAL);
	wr.opcode = IBV_WR_TSO;
	assert_int_equal(send_errno(&wr), EINVAL);
	wr.opcode = IBV_WR_SEND;
	wr.num_sge = (int)init.cap.max_send_sge + 1;
	assert_int_equal(send_errno(&wr), EINVAL);
	wr.num_sge = -1;
	assert_int_equal(send_errno(&wr), EINVAL);
	wr.num_sge = 1;
	wr.send_flags = 1u << 20;
	assert_int_equal(send_errno(&wr), EINVAL);
	sge[0].length = init.cap.max_inline_data + 1;
	wr.send_flags = IBV_SEND_INLINE;
	assert_int_equal(send_errno(&wr), EINVAL);
	sge[0].length = 8;
	wr.opcode = IBV_WR_RDMA_READ;
	assert_int_equal(send_errno(&wr), EINVAL);
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	assert_int_equal(send_errno(&wr), EINVAL);
	wr.send_flags = 0;
	sge[0].length = 4;
	assert_int_equal(send_errno(&wr), EINVAL);
	wr.num_sge = 0;
	assert_int_equal(send_errno(&wr), EINVAL);
	/* More than 2^31 bytes. */
	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.num_sge = 2;
	sge[0].length = 0x80000000u;
	sge[1].length = 1;
	assert_int_equal(send_errno(&wr), EINVAL);
	expect_no_wc(&pair.a);
}

static void requests_before_the_bad_one_are_posted(void **state)
{
	struct ibv_sge sge = { .addr = (uintptr_t)pair.a.buffer,
			       .length = 1,
			       .lkey = pair.a.mr->lkey };
	struct ibv_send_wr wr[3], *bad = NULL;
	struct ibv_recv_wr recv[3], *bad_recv = NULL;

	(void)state;
	for (int i = 0; i < 3; i++) {
		wr[i] = (struct ibv_send_wr){ .wr_id = (uint64_t)i,
					      .next = i < 2 ? &wr[i + 1] : NULL,
					      .sg_list = &sge,
					      .num_sge = 1,
					      .opcode = IBV_WR_RDMA_WRITE,
					      .send_flags = IBV_SEND_SIGNALED };
		wr[i].wr.rdma.remote_addr = (uintptr_t)pair.b.buffer;
		wr[i].wr.rdma.rkey = pair.b.mr->rkey;
		recv[i] = (struct ibv_recv_wr){ .next = i < 2 ? &recv[i + 1] : NULL };
	}
	wr[2].opcode = IBV_WR_TSO;
	assert_int_equal(ibv_post_send(pair.a.qp, wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr[2]);
	expect_wc(&pair.a, 0, IBV_WC_SUCCESS);
	expect_wc(&pair.a, 1, IBV_WC_SUCCESS);
	expect_no_wc(&pair.a);

	recv[1].num_sge = 40;
	assert_int_equal(ibv_post_recv(pair.b.qp, recv, &bad_recv), EINVAL);
	assert_ptr_equal(bad_recv, &recv[1]);
	assert_int_equal(post_send(&pair.a, 5, 0, 0, IBV_SEND_SIGNALED), 0);
	expect_wc(&pair.b, 0, IBV_WC_SUCCESS);
	expect_wc(&pair.a, 5, IBV_WC_SUCCESS);
}

/* rule U1 test: queues hold as many requests as were granted, and not one more. */
static void full_queues(void **state)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	(void)state;
	assert_int_equal(ibv_query_qp(pair.a.qp, &attr, IBV_QP_CAP, &init), 0);
	for (uint32_t i = 0; i < init.cap.max_recv_wr; i++)
		assert_int_equal(post_recv(&pair.a, i, 0, 1), 0);
	assert_int_equal(post_recv(&pair.a, 0, 0, 1), ENOMEM);
	/* The requests stay in the queue, as the peer has posted no receive. */
	for (uint32_t i = 0; i < init.cap.max_send_wr; i++)
		assert_int_equal(post_send(&pair.a, i, 0, 1, 0), 0);
	assert_int_equal(post_send(&pair.a, 0, 0, 1, 0), ENOMEM);
}

static void address_handles(void **state)
{
	struct ibv_qp_attr good = good_attr(IBV_QPS_RTR);
	struct ibv_ah_attr attr = good.ah_attr;
	struct ibv_ah *ah = ibv_create_ah(pair.a.pd, &attr);

	(void)state;
	assert_non_null(ah);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	attr.is_global = 0;
	assert_null(ibv_create_ah(pair.a.pd, &attr));
	assert_int_equal(errno, EINVAL);
	attr = good.ah_attr;
	attr.grh.sgid_index = (uint8_t)empty_gid_index();
	assert_null(ibv_create_ah(pair.a.pd, &attr));
	assert_int_equal(errno, EINVAL);
	attr = good.ah_attr;
	attr.port_num = 3;
	assert_null(ibv_create_ah(pair.a.pd, &attr));
	assert_int_equal(errno, EINVAL);
}

/* A WRITE to a region that has been deregistered must fail. */
static void a_region_that_is_gone(void **state)
{
	struct ibv_mr *mr = ibv_reg_mr(pair.b.pd, pair.b.buffer, 4096,
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	uint32_t rkey;

	(void)state;
	assert_non_null(mr);
	rkey = mr->rkey;
	assert_int_equal(ibv_dereg_mr(mr), 0);

	struct ibv_sge sge = { .addr = (uintptr_t)pair.a.buffer,
			       .length = 8,
			       .lkey = pair.a.mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE
	};

	wr.wr.rdma.remote_addr = (uintptr_t)pair.b.buffer;
	wr.wr.rdma.rkey = rkey;
	assert_int_equal(send_errno(&wr), 0);
	expect_wc(&pair.a, 1, IBV_WC_REM_ACCESS_ERR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PAIR_TEST(objects_in_use_stay, &pair),
		cmocka_unit_test(completion_queue_sizes),
		PAIR_TEST(resize_keeps_what_is_unpolled, &pair),
		PAIR_TEST(queue_pair_sizes, &pair),
		PAIR_TEST(illegal_moves, &pair),
		PAIR_TEST(bad_values, &pair),
		PAIR_TEST(query_tells_what_was_set, &pair),
		PAIR_TEST(posting_in_the_wrong_state, &pair),
		PAIR_TEST(bad_send_requests, &pair),
		PAIR_TEST(requests_before_the_bad_one_are_posted, &pair),
		PAIR_TEST(full_queues, &pair),
		PAIR_TEST(address_handles, &pair),
		PAIR_TEST(a_region_that_is_gone, &pair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
