/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "verbs_pair.h"

#include <stdio.h>
#include <time.h>

enum {
	FIRST_PSN = 0xfffffa, /* just before the wrap, so that tests pass it */
};

struct ibv_context *the_context(void)
{
	static struct ibv_context *context;
	const char *name = getenv("UROCE_TEST_DEVICE");
	struct ibv_device **list;
	int count;

	if (context)
		return context;
	list = ibv_get_device_list(&count);
	assert_non_null(list);
	for (int i = 0; i < count && !context; i++) {
		if (!strcmp(ibv_get_device_name(list[i]), name ? name : "uroce_lo"))
			context = ibv_open_device(list[i]);
	}
	ibv_free_device_list(list);
	assert_non_null(context);
	return context;
}

uint8_t the_gid_index(void)
{
	const char *index = getenv("UROCE_TEST_GID_INDEX");

	return index ? (uint8_t)atoi(index) : 0;
}

int to_init(struct ibv_qp *qp, unsigned int access)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = access };

	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

int to_rtr(struct ibv_qp *qp, uint32_t dest_qpn, const struct pair_options *options)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = options->mtu ? options->mtu : IBV_MTU_1024,
		.dest_qp_num = dest_qpn,
		.rq_psn = FIRST_PSN,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .sgid_index = the_gid_index(), .hop_limit = 1 } },
	};

	/* Both ends are on this host. */
	assert_int_equal(ibv_query_gid(qp->context, 1, the_gid_index(), &attr.ah_attr.grh.dgid), 0);
	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER);
}

int to_rts(struct ibv_qp *qp, const struct pair_options *options)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = FIRST_PSN,
		.timeout = options->timeout ? options->timeout : 10,
		.retry_cnt = 7,
		.rnr_retry = options->rnr_retry ? options->rnr_retry : 7,
		.max_rd_atomic = 4,
	};

	if (options->rnr_retry_zero)
		attr.rnr_retry = 0;
	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				     IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
}

int to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

static uint32_t or_default(uint32_t value, uint32_t otherwise)
{
	return value ? value : otherwise;
}

static struct ibv_qp *create_qp(struct verbs_end *end, const struct pair_options *options)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.cap = { .max_send_wr = or_default(options->send_wr, 16),
			 .max_recv_wr = or_default(options->recv_wr, 16),
			 .max_send_sge = or_default(options->sge, 4),
			 .max_recv_sge = or_default(options->sge, 4),
			 .max_inline_data = or_default(options->inline_data, 64) },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = options->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = end->pd,
	};

	if (options->send_ops) {
		attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		attr.send_ops_flags = options->send_ops;
	}
	return ibv_create_qp_ex(end->pd->context, &attr);
}

static void end_open(struct verbs_end *end, const struct pair_options *options)
{
	struct ibv_context *context = the_context();
	int access = options->no_remote_access ? IBV_ACCESS_LOCAL_WRITE : ALL_ACCESS;

	end->pd = ibv_alloc_pd(context);
	assert_non_null(end->pd);
	end->channel = ibv_create_comp_channel(context);
	assert_non_null(end->channel);
	end->cq = ibv_create_cq(context, options->cqe ? options->cqe : 64, end, end->channel, 0);
	assert_non_null(end->cq);
	end->buffer = aligned_alloc(4096, END_BUFFER);
	assert_non_null(end->buffer);
	memset(end->buffer, 0, END_BUFFER);
	end->mr = ibv_reg_mr(end->pd, end->buffer, END_BUFFER, access);
	assert_non_null(end->mr);
	end->qp = create_qp(end, options);
	assert_non_null(end->qp);
	assert_int_equal(to_init(end->qp, (unsigned int)access & ~1u), 0);
}

void pair_open(struct pair *pair, const struct pair_options *options)
{
	static const struct pair_options none;

	if (!options)
		options = &none;
	end_open(&pair->a, options);
	end_open(&pair->b, options);
	assert_int_equal(to_rtr(pair->a.qp, pair->b.qp->qp_num, options), 0);
	assert_int_equal(to_rtr(pair->b.qp, pair->a.qp->qp_num, options), 0);
	assert_int_equal(to_rts(pair->a.qp, options), 0);
	assert_int_equal(to_rts(pair->b.qp, options), 0);
}

static void end_close(struct verbs_end *end)
{
	assert_int_equal(ibv_destroy_qp(end->qp), 0);
	assert_int_equal(ibv_destroy_cq(end->cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(end->channel), 0);
	assert_int_equal(ibv_dereg_mr(end->mr), 0);
	assert_int_equal(ibv_dealloc_pd(end->pd), 0);
	free(end->buffer);
}

void pair_close(struct pair *pair)
{
	end_close(&pair->a);
	end_close(&pair->b);
}

int pair_set_up(void **state)
{
	pair_open(*state, NULL);
	return 0;
}

int pair_tear_down(void **state)
{
	pair_close(*state);
	return 0;
}

int post_recv(struct verbs_end *end, uint64_t wr_id, size_t offset, uint32_t length)
{
	struct ibv_sge sge = { .addr = (uintptr_t)end->buffer + offset,
			       .length = length,
			       .lkey = end->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = length ? 1 : 0 };
	struct ibv_recv_wr *bad = NULL;
	int error = ibv_post_recv(end->qp, &wr, &bad);

	if (error)
		assert_ptr_equal(bad, &wr);
	return error;
}

/* Posts the request on length bytes of the end's buffer. */
static int post_wr(struct verbs_end *end, struct ibv_send_wr *wr, size_t offset, uint32_t length)
{
	struct ibv_sge sge = sge_of(end, offset, length);
	struct ibv_send_wr *bad = NULL;
	int error;

	wr->sg_list = &sge;
	wr->num_sge = length ? 1 : 0;
	error = ibv_post_send(end->qp, wr, &bad);
	if (error)
		assert_ptr_equal(bad, wr);
	return error;
}

int post_send(struct verbs_end *end, uint64_t wr_id, size_t offset, uint32_t length, int flags)
{
	struct ibv_send_wr wr = { .wr_id = wr_id,
				  .opcode = IBV_WR_SEND,
				  .send_flags = (unsigned int)flags };

	return post_wr(end, &wr, offset, length);
}

int post_rdma(struct verbs_end *end, enum ibv_wr_opcode opcode, uint64_t wr_id, size_t offset,
	      uint32_t length, int flags, const struct verbs_end *remote, size_t remote_offset)
{
	struct ibv_send_wr wr = { .wr_id = wr_id,
				  .opcode = opcode,
				  .send_flags = (unsigned int)flags };

	if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)remote->buffer + remote_offset;
		wr.wr.atomic.rkey = remote->mr->rkey;
		wr.wr.atomic.compare_add = 5;
		wr.wr.atomic.swap = 77;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)remote->buffer + remote_offset;
		wr.wr.rdma.rkey = remote->mr->rkey;
	}
	return post_wr(end, &wr, offset, length);
}

void post_sge(struct verbs_end *end, enum ibv_wr_opcode opcode, uint64_t wr_id, struct ibv_sge sge,
	      uint32_t rkey, uint64_t remote)
{
	struct ibv_send_wr wr = { .wr_id = wr_id,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = opcode,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.remote_addr = remote;
		wr.wr.atomic.compare_add = 3;
	} else {
		wr.wr.rdma.rkey = rkey;
		wr.wr.rdma.remote_addr = remote;
	}
	assert_int_equal(ibv_post_send(end->qp, &wr, &bad), 0);
}

void receive_sge(struct verbs_end *end, uint64_t wr_id, struct ibv_sge sge)
{
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	assert_int_equal(ibv_post_recv(end->qp, &wr, &bad), 0);
}

struct ibv_sge sge_of(const struct verbs_end *end, size_t offset, uint32_t length)
{
	return (struct ibv_sge){ (uintptr_t)end->buffer + offset, length, end->mr->lkey };
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

struct ibv_wc wait_wc(struct verbs_end *end)
{
	uint64_t until = now_ms() + PATIENCE_MS;
	struct ibv_wc wc = { 0 };
	int got;

	do {
		got = ibv_poll_cq(end->cq, 1, &wc);
	} while (!got && now_ms() < until);
	assert_int_equal(got, 1);
	return wc;
}

struct ibv_wc expect_wc(struct verbs_end *end, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc = wait_wc(end);

	if (wc.status != status)
		print_error("status %s instead of %s\n", ibv_wc_status_str(wc.status),
			    ibv_wc_status_str(status));
	assert_int_equal(wc.status, status);
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.qp_num, end->qp->qp_num);
	return wc;
}

void expect_no_wc(struct verbs_end *end)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(end->cq, 1, &wc), 0);
	assert_int_equal(ibv_poll_cq(end->cq, 1, &wc), 0);
}
