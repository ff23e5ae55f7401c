/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * ibv_close_device() with objects still open, as in programs that leave their destruction to the
 * kernel, and in languages with garbage collectors, which destroy objects in any order.  From then
 * on the context's objects are unreachable and do nothing; they can be destroyed in any order that
 * other objects allow, or never.
 */
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "verbs_fixture.h"

enum {
	KINDS = 17,
	ORDERS = 60,
	BYTES = 4096,
	PATTERN = 0x5a,
};

static struct ibv_context *open_lo(void)
{
	struct ibv_context *context = ibv_open_device(the_context()->device);

	assert_non_null(context);
	return context;
}

/* A queue pair in its own context, with all objects that it needs. */
struct side {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	uint8_t *bytes;
};

static void side_open(struct side *side, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = { .qp_type = type,
					 .cap = { .max_send_wr = 16,
						  .max_recv_wr = 16,
						  .max_send_sge = 1,
						  .max_recv_sge = 1 } };

	side->context = open_lo();
	side->pd = ibv_alloc_pd(side->context);
	side->channel = ibv_create_comp_channel(side->context);
	side->cq = ibv_create_cq(side->context, 32, NULL, side->channel, 0);
	side->bytes = calloc(1, BYTES);
	side->mr = ibv_reg_mr(side->pd, side->bytes, BYTES, ALL_ACCESS);
	attr.send_cq = side->cq;
	attr.recv_cq = side->cq;
	side->qp = ibv_create_qp(side->pd, &attr);
	assert_non_null(side->mr);
	assert_non_null(side->qp);
}

static void side_destroy(struct side *side)
{
	assert_int_equal(ibv_destroy_qp(side->qp), 0);
	assert_int_equal(ibv_destroy_cq(side->cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(side->channel), 0);
	assert_int_equal(ibv_dereg_mr(side->mr), 0);
	assert_int_equal(ibv_dealloc_pd(side->pd), 0);
	free(side->bytes);
}

static void connect_sides(struct side *a, struct side *b)
{
	fixture_connect(a->qp, b->qp->qp_num);
	fixture_connect(b->qp, a->qp->qp_num);
}

static void write_to(struct side *from, const struct side *to)
{
	struct ibv_sge sge = { .addr = (uintptr_t)from->bytes,
			       .length = BYTES,
			       .lkey = from->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 5,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	memset(from->bytes, PATTERN, BYTES);
	wr.wr.rdma.remote_addr = (uintptr_t)to->bytes;
	wr.wr.rdma.rkey = to->mr->rkey;
	assert_int_equal(ibv_post_send(from->qp, &wr, &bad), 0);
}

/* Returns the number of IPv4 sockets on the RoCEv2 port in this network namespace. */
static unsigned int port_sockets(void)
{
	FILE *file = fopen("/proc/self/net/udp", "re");
	unsigned int count = 0, port;
	char line[256];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		count += sscanf(line, " %*d: %*x:%x", &port) == 1 && port == 4791;
	fclose(file);
	return count;
}

/* The broker closes the sockets as soon as it has received that no process uses the address. */
static void expect_port_sockets(unsigned int count)
{
	for (int i = 0; i < PATIENCE_MS && port_sockets() != count; i++)
		usleep(1000);
	assert_int_equal(port_sockets(), count);
}

/* A context that is closed with open objects must give the port back, like one without objects. */
static void what_is_left_behind_gives_the_port_back(void **state)
{
	unsigned int before = port_sockets();
	struct side a, b;

	(void)state;
	for (int i = 0; i < 3; i++) {
		side_open(&a, IBV_QPT_RC);
		side_open(&b, i == 1 ? IBV_QPT_RC : IBV_QPT_UD);
		i == 1 ? connect_sides(&a, &b) : fixture_connect(b.qp, 0);
		assert_true(port_sockets() > before);
		assert_int_equal(ibv_close_device(a.context), 0);
		assert_int_equal(ibv_close_device(b.context), 0);
		expect_port_sockets(before);
		side_destroy(&a);
		side_destroy(&b);
	}
}

static void a_closed_device_does_not_answer(void **state)
{
	struct side a, b;

	(void)state;
	side_open(&a, IBV_QPT_RC);
	side_open(&b, IBV_QPT_RC);
	connect_sides(&a, &b);
	write_to(&a, &b);
	fixture_expect(a.cq, 5, IBV_WC_SUCCESS);
	assert_int_equal(b.bytes[BYTES - 1], PATTERN);
	assert_int_equal(ibv_close_device(b.context), 0);
	memset(b.bytes, 0, BYTES);
	write_to(&a, &b);
	fixture_expect(a.cq, 5, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(b.bytes[0], 0);
	assert_int_equal(b.bytes[BYTES - 1], 0);
	side_destroy(&b);
	side_destroy(&a);
	assert_int_equal(ibv_close_device(a.context), 0);
}

static void send_to(struct side *from, struct side *to)
{
	struct ibv_sge sge = { .addr = (uintptr_t)to->bytes,
			       .length = BYTES,
			       .lkey = to->mr->lkey };
	struct ibv_recv_wr receive = { .wr_id = 7, .sg_list = &sge, .num_sge = 1 }, *bad_receive;
	struct ibv_send_wr wr = { .wr_id = 5,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	assert_int_equal(ibv_post_recv(to->qp, &receive, &bad_receive), 0);
	assert_int_equal(ibv_post_send(from->qp, &wr, &bad), 0);
}

static void take(struct side *side, int count)
{
	struct ibv_wc wc;

	while (count-- > 0) {
		assert_true(fixture_next(side->cq, &wc, PATIENCE_MS));
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
	}
}

/*
 * A queue pair that is moved to ERR or RESET must first send its delayed ACK.  The ACK of the last
 * message is delayed here, as the receiver has replied to each message and is expected to do so
 * again.
 */
static void a_stopped_queue_pair_has_acknowledged(void **state)
{
	static const enum ibv_qp_state stops[] = { IBV_QPS_ERR, IBV_QPS_RESET };
	struct ibv_qp_attr attr = { 0 };
	struct side a, b;

	(void)state;
	side_open(&a, IBV_QPT_RC);
	side_open(&b, IBV_QPT_RC);
	for (int i = 0; i < 20; i++) {
		connect_sides(&a, &b);
		send_to(&a, &b);
		take(&b, 1);
		for (int j = 0; j < 8; j++) {
			send_to(&b, &a);
			take(&a, 2);
			/* The ACK of the reply comes with this message. */
			send_to(&a, &b);
			take(&b, 2);
		}
		attr.qp_state = stops[i % 2];
		assert_int_equal(ibv_modify_qp(b.qp, &attr, IBV_QP_STATE), 0);
		fixture_expect(a.cq, 5, IBV_WC_SUCCESS);
		attr.qp_state = IBV_QPS_RESET;
		assert_int_equal(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE), 0);
		assert_int_equal(ibv_modify_qp(b.qp, &attr, IBV_QP_STATE), 0);
	}
	assert_int_equal(ibv_close_device(a.context), 0);
	assert_int_equal(ibv_close_device(b.context), 0);
	side_destroy(&a);
	side_destroy(&b);
}

static void no_events_any_more(void **state)
{
	struct pollfd pollfd = { .events = POLLIN };
	struct side a, b;

	(void)state;
	side_open(&a, IBV_QPT_RC);
	side_open(&b, IBV_QPT_RC);
	connect_sides(&a, &b);
	assert_int_equal(ibv_req_notify_cq(a.cq, 0), 0);
	write_to(&a, &b);
	pollfd.fd = a.channel->fd;
	assert_int_equal(poll(&pollfd, 1, PATIENCE_MS), 1);
	assert_int_equal(ibv_close_device(a.context), 0);
	/* The event named a CQ that may be destroyed before the event is read. */
	assert_int_equal(poll(&pollfd, 1, 0), 0);
	assert_int_equal(ibv_close_device(b.context), 0);
	side_destroy(&a);
	side_destroy(&b);
}

/* One object of each kind, for destroy(). */
static struct {
	struct ibv_context *context;
	struct ibv_xrcd *xrcd;
	struct ibv_td *td;
	struct ibv_pd *pd, *parent;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_cq_ex *cq_ex;
	struct ibv_srq *srq, *xrc_srq;
	struct ibv_qp *rc, *ud, *sender, *target;
	struct ibv_ah *ah;
	struct ibv_mr *mr, *dm_mr;
	struct ibv_mw *mw;
	struct ibv_dm *dm;
	uint8_t bytes[BYTES];
} all;

static struct ibv_qp *qp_of_all(enum ibv_qp_type type, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = type,
		.send_cq = all.cq,
		.recv_cq = ibv_cq_ex_to_cq(all.cq_ex),
		.srq = srq,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.comp_mask = type == IBV_QPT_XRC_RECV ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD,
		.pd = all.parent,
		.xrcd = all.xrcd,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(all.context, &attr);

	assert_non_null(qp);
	return qp;
}

static void open_queues(void)
{
	struct ibv_srq_init_attr basic = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq_init_attr_ex xrc = {
		.attr = { .max_wr = 4, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = all.pd,
		.xrcd = all.xrcd,
	};
	struct ibv_cq_init_attr_ex cq_attr = { .cqe = 16, .channel = all.channel };
	struct ibv_modify_cq_attr moderate = { .attr_mask = IBV_CQ_ATTR_MODERATE,
					       .moderate = { .cq_count = 4, .cq_period = 1000 } };

	all.cq = ibv_create_cq(all.context, 16, NULL, all.channel, 0);
	all.cq_ex = ibv_create_cq_ex(all.context, &cq_attr);
	assert_int_equal(ibv_modify_cq(all.cq, &moderate), 0);
	all.srq = ibv_create_srq(all.pd, &basic);
	xrc.cq = all.cq;
	all.xrc_srq = ibv_create_srq_ex(all.context, &xrc);
	assert_non_null(all.srq);
	assert_non_null(all.xrc_srq);
	all.rc = qp_of_all(IBV_QPT_RC, all.srq);
	all.ud = qp_of_all(IBV_QPT_UD, NULL);
	all.sender = qp_of_all(IBV_QPT_XRC_SEND, NULL);
	all.target = qp_of_all(IBV_QPT_XRC_RECV, NULL);
}

static void open_all(void)
{
	struct ibv_td_init_attr td_attr = { 0 };
	struct ibv_parent_domain_init_attr parent_attr = { 0 };
	struct ibv_alloc_dm_attr dm_attr = { .length = 64 };
	struct ibv_ah_attr ah_attr = { .is_global = 1,
				       .port_num = 1,
				       .grh.sgid_index = the_gid_index() };

	all.context = open_lo();
	all.xrcd = fixture_xrcd(all.context);
	all.td = ibv_alloc_td(all.context, &td_attr);
	all.pd = ibv_alloc_pd(all.context);
	parent_attr.pd = all.pd;
	parent_attr.td = all.td;
	all.parent = ibv_alloc_parent_domain(all.context, &parent_attr);
	all.channel = ibv_create_comp_channel(all.context);
	open_queues();
	all.mr = ibv_reg_mr(all.pd, all.bytes, BYTES, ALL_ACCESS);
	all.mw = ibv_alloc_mw(all.pd, IBV_MW_TYPE_1);
	all.dm = ibv_alloc_dm(all.context, &dm_attr);
	all.dm_mr = ibv_reg_dm_mr(all.pd, all.dm, 0, 64, IBV_ACCESS_ZERO_BASED);
	assert_int_equal(ibv_query_gid(all.context, 1, the_gid_index(), &ah_attr.grh.dgid), 0);
	all.ah = ibv_create_ah(all.parent, &ah_attr);
	assert_non_null(all.dm_mr);
	assert_non_null(all.ah);
	/* Connected, so that post_all() can leave requests in flight, one of which uses the AH. */
	fixture_connect(all.rc, all.rc->qp_num);
	fixture_connect(all.sender, all.target->qp_num);
	fixture_connect(all.ud, 0);
}

static void post_all(void)
{
	struct ibv_sge sge = { .addr = (uintptr_t)all.bytes, .length = 16, .lkey = all.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	assert_int_equal(ibv_req_notify_cq(all.cq, 0), 0);
	assert_int_equal(ibv_post_send(all.rc, &wr, &bad), 0);
	wr.wr.ud.ah = all.ah;
	wr.wr.ud.remote_qpn = all.ud->qp_num;
	assert_int_equal(ibv_post_send(all.ud, &wr, &bad), 0);
}

static int destroy(int kind)
{
	switch (kind) {
	case 0:
		return ibv_close_xrcd(all.xrcd);
	case 1:
		return ibv_dealloc_td(all.td);
	case 2:
		return ibv_dealloc_pd(all.pd);
	case 3:
		return ibv_dealloc_pd(all.parent);
	case 4:
		return ibv_destroy_comp_channel(all.channel);
	case 5:
		return ibv_destroy_cq(all.cq);
	case 6:
		return ibv_destroy_cq(ibv_cq_ex_to_cq(all.cq_ex));
	case 7:
		return ibv_destroy_srq(all.srq);
	case 8:
		return ibv_destroy_srq(all.xrc_srq);
	case 9:
		return ibv_destroy_qp(all.rc);
	case 10:
		return ibv_destroy_qp(all.ud);
	case 11:
		return ibv_destroy_qp(all.sender);
	case 12:
		return ibv_destroy_qp(all.target);
	case 13:
		return ibv_destroy_ah(all.ah);
	case 14:
		return ibv_dereg_mr(all.mr);
	case 15:
		return ibv_dereg_mr(all.dm_mr);
	default:
		return ibv_dealloc_mw(all.mw) || ibv_free_dm(all.dm);
	}
}

static void shuffle(int order[KINDS], unsigned int seed)
{
	for (int i = 0; i < KINDS; i++)
		order[i] = seed == 1 ? KINDS - 1 - i : i;
	for (int i = KINDS - 1; seed > 1 && i > 0; i--) {
		int other, kept = order[i];

		seed = seed * 1103515245 + 12345;
		other = (int)(seed >> 16) % (i + 1);
		order[i] = order[other];
		order[other] = kept;
	}
}

/* An object in use is tried again after others are destroyed, as garbage collectors do. */
static void destroy_all(const int order[KINDS])
{
	bool gone[KINDS] = { false }, any = true;
	int left = KINDS;

	while (left > 0 && any) {
		any = false;
		for (int i = 0; i < KINDS; i++) {
			int error;

			/* The last kind frees the device memory, after its region, kind 15. */
			if (gone[order[i]] || (order[i] == KINDS - 1 && !gone[15]))
				continue;
			error = destroy(order[i]);
			assert_true(error == 0 || error == EBUSY);
			gone[order[i]] = !error;
			any |= !error;
			left -= !error;
		}
	}
	assert_int_equal(left, 0);
}

static void any_order(void **state)
{
	int order[KINDS];

	(void)state;
	for (unsigned int seed = 0; seed < ORDERS; seed++) {
		open_all();
		post_all();
		assert_int_equal(ibv_close_device(all.context), 0);
		/* Memory that has been freed may be in use for something else by now. */
		free(malloc(sizeof(struct ibv_context)));
		shuffle(order, seed);
		destroy_all(order);
	}
}

/* All calls but those that destroy objects fail or do nothing. */
static void nothing_works_any_more(void **state)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_recv_wr recv = { 0 }, *bad_recv;
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND }, *bad;
	struct ibv_wc wc;
	int order[KINDS];

	(void)state;
	open_all();
	assert_int_equal(ibv_close_device(all.context), 0);
	assert_true(ibv_post_send(all.rc, &send, &bad) != 0);
	assert_true(ibv_post_recv(all.ud, &recv, &bad_recv) != 0);
	assert_true(ibv_post_srq_recv(all.srq, &recv, &bad_recv) != 0);
	assert_true(ibv_modify_qp(all.rc, &attr, IBV_QP_STATE) != 0);
	assert_true(ibv_poll_cq(all.cq, 1, &wc) <= 0);
	assert_true(ibv_req_notify_cq(all.cq, 0) != 0);
	shuffle(order, 0);
	destroy_all(order);
}

/* As with the kernel, objects exist as long as any descriptor of theirs is open: an import's. */
static void an_import_keeps_the_objects(void **state)
{
	struct ibv_context *import;
	struct side a, b;

	(void)state;
	side_open(&a, IBV_QPT_RC);
	side_open(&b, IBV_QPT_RC);
	connect_sides(&a, &b);
	import = ibv_import_device(dup(b.context->cmd_fd));
	assert_non_null(import);
	assert_int_equal(ibv_close_device(b.context), 0);
	write_to(&a, &b);
	fixture_expect(a.cq, 5, IBV_WC_SUCCESS);
	assert_int_equal(b.bytes[0], PATTERN);
	assert_int_equal(ibv_close_device(import), 0);
	write_to(&a, &b);
	fixture_expect(a.cq, 5, IBV_WC_RETRY_EXC_ERR);
	side_destroy(&a);
	assert_int_equal(ibv_close_device(a.context), 0);
	side_destroy(&b);
}

/* An XRC target exists as long as a context is open in which it was opened. */
static void another_ones_opening_keeps_the_target(void **state)
{
	struct ibv_context *one = open_lo(), *two = open_lo();
	FILE *file = tmpfile();
	struct ibv_xrcd_init_attr xrcd_attr = { .comp_mask = IBV_XRCD_INIT_ATTR_FD |
							     IBV_XRCD_INIT_ATTR_OFLAGS,
						.fd = fileno(file),
						.oflags = O_CREAT };
	struct ibv_xrcd *first = ibv_open_xrcd(one, &xrcd_attr);
	struct ibv_xrcd *second = ibv_open_xrcd(two, &xrcd_attr);
	struct ibv_qp_init_attr_ex attr = { .qp_type = IBV_QPT_XRC_RECV,
					    .comp_mask = IBV_QP_INIT_ATTR_XRCD,
					    .xrcd = first };
	struct ibv_qp *target = ibv_create_qp_ex(one, &attr), *opened;
	struct ibv_qp_open_attr open_attr = { .comp_mask = IBV_QP_OPEN_ATTR_NUM |
							   IBV_QP_OPEN_ATTR_XRCD |
							   IBV_QP_OPEN_ATTR_TYPE,
					      .qp_num = target->qp_num,
					      .xrcd = second,
					      .qp_type = IBV_QPT_XRC_RECV };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr seen;

	(void)state;
	opened = ibv_open_qp(two, &open_attr);
	assert_non_null(opened);
	assert_int_equal(ibv_close_device(one), 0);
	fixture_connect(opened, 17);
	assert_int_equal(ibv_query_qp(opened, &seen, IBV_QP_STATE, &init), 0);
	assert_int_equal(seen.qp_state, IBV_QPS_RTS);
	assert_int_equal(ibv_destroy_qp(target), 0);
	assert_int_equal(ibv_close_xrcd(first), 0);
	assert_int_equal(ibv_query_qp(opened, &seen, IBV_QP_STATE, &init), 0);
	assert_int_equal(ibv_close_device(two), 0);
	assert_int_equal(ibv_destroy_qp(opened), 0);
	assert_int_equal(ibv_close_xrcd(second), 0);
	fclose(file);
}

/* A closed context with objects still has its memory, but no objects can be created in it. */
static void nothing_is_created_any_more(void **state)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .cap.max_send_wr = 1 };
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_xrcd_init_attr xrcd_attr = { .comp_mask = IBV_XRCD_INIT_ATTR_FD |
							     IBV_XRCD_INIT_ATTR_OFLAGS,
						.fd = -1,
						.oflags = O_CREAT };
	struct ibv_cq_init_attr_ex cq_attr = { .cqe = 1 };
	struct ibv_alloc_dm_attr dm_attr = { .length = 64 };
	struct ibv_td_init_attr td_attr = { 0 };
	struct ibv_ah_attr ah_attr = { .is_global = 1, .port_num = 1 };
	struct ibv_device_attr device_attr;
	struct ibv_port_attr port_attr;
	struct side side;

	(void)state;
	side_open(&side, IBV_QPT_UD);
	attr.send_cq = side.cq;
	attr.recv_cq = side.cq;
	assert_int_equal(ibv_query_gid(side.context, 1, 0, &ah_attr.grh.dgid), 0);
	assert_int_equal(ibv_close_device(side.context), 0);
#define REFUSED(call)                           \
	do {                                    \
		errno = 0;                      \
		assert_null(call);              \
		assert_int_equal(errno, EBADF); \
	} while (0)
	REFUSED(ibv_alloc_pd(side.context));
	REFUSED(ibv_alloc_td(side.context, &td_attr));
	REFUSED(ibv_create_comp_channel(side.context));
	REFUSED(ibv_create_cq(side.context, 1, NULL, NULL, 0));
	REFUSED(ibv_create_cq_ex(side.context, &cq_attr));
	REFUSED(ibv_alloc_dm(side.context, &dm_attr));
	REFUSED(ibv_open_xrcd(side.context, &xrcd_attr));
	REFUSED(ibv_reg_mr(side.pd, side.bytes, BYTES, 0));
	REFUSED(ibv_alloc_null_mr(side.pd));
	REFUSED(ibv_alloc_mw(side.pd, IBV_MW_TYPE_1));
	REFUSED(ibv_create_qp(side.pd, &attr));
	REFUSED(ibv_create_srq(side.pd, &srq_attr));
	REFUSED(ibv_create_ah(side.pd, &ah_attr));
	/* The results do not matter. */
	ibv_query_device(side.context, &device_attr);
	ibv_query_port(side.context, 1, &port_attr);
	side_destroy(&side);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_left_behind_gives_the_port_back),
		cmocka_unit_test(a_closed_device_does_not_answer),
		cmocka_unit_test(a_stopped_queue_pair_has_acknowledged),
		cmocka_unit_test(no_events_any_more),
		cmocka_unit_test(any_order),
		cmocka_unit_test(nothing_works_any_more),
		cmocka_unit_test(nothing_is_created_any_more),
		cmocka_unit_test(an_import_keeps_the_objects),
		cmocka_unit_test(another_ones_opening_keeps_the_target),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
