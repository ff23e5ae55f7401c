/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Memory windows: the access that they give to a peer and for how long, binds that must fail, and
 * their errno or completion status.  b has the windows, a uses them.
 */
#include "verbs_pair.h"

enum {
	ALL_REMOTE = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	BINDABLE = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND,
	START = 8192, /* offset of windows in the buffer */
	LENGTH = 4096,
};

static struct pair pair;
static struct ibv_mr *region; /* of b's buffer */
static struct ibv_mw *mw;

static void open_with(enum ibv_mw_type type, int access)
{
	pair_open(&pair, NULL);
	region = ibv_reg_mr(pair.b.pd, pair.b.buffer, END_BUFFER, access);
	assert_non_null(region);
	mw = ibv_alloc_mw(pair.b.pd, type);
	assert_non_null(mw);
}

static void close_all(void)
{
	if (mw)
		assert_int_equal(ibv_dealloc_mw(mw), 0);
	mw = NULL;
	assert_int_equal(ibv_dereg_mr(region), 0);
	pair_close(&pair);
}

static struct ibv_mw_bind_info part(size_t offset, uint64_t length, unsigned int access)
{
	return (struct ibv_mw_bind_info){ .mr = region,
					  .addr = (uintptr_t)pair.b.buffer + offset,
					  .length = length,
					  .mw_access_flags = access };
}

/* Type 1. */
static int bind_1(uint64_t wr_id, struct ibv_mw_bind_info info)
{
	struct ibv_mw_bind bind = { .wr_id = wr_id,
				    .send_flags = IBV_SEND_SIGNALED,
				    .bind_info = info };

	return ibv_bind_mw(pair.b.qp, mw, &bind);
}

/* Type 2. */
static int bind_2(uint64_t wr_id, uint32_t rkey, struct ibv_mw_bind_info info)
{
	struct ibv_send_wr wr = { .wr_id = wr_id,
				  .opcode = IBV_WR_BIND_MW,
				  .send_flags = IBV_SEND_SIGNALED,
				  .bind_mw = { .mw = mw, .rkey = rkey, .bind_info = info } };
	struct ibv_send_wr *bad;

	return ibv_post_send(pair.b.qp, &wr, &bad);
}

/* Returns the status of a's request with that key.  An error leaves the pair unusable. */
static enum ibv_wc_status access_by(enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t addr,
				    uint32_t length)
{
	post_sge(&pair.a, opcode, 77, sge_of(&pair.a, 0, length), rkey, addr);
	return wait_wc(&pair.a).status;
}

static uint64_t at(size_t offset)
{
	return (uintptr_t)pair.b.buffer + offset;
}

static void type_1_lets_in_what_was_bound(void **state)
{
	(void)state;
	open_with(IBV_MW_TYPE_1, BINDABLE);
	assert_int_equal(bind_1(1, part(START, LENGTH, ALL_REMOTE)), 0);
	assert_int_equal(expect_wc(&pair.b, 1, IBV_WC_SUCCESS).opcode, IBV_WC_BIND_MW);

	memset(pair.a.buffer, 0x5a, LENGTH);
	assert_int_equal(access_by(IBV_WR_RDMA_WRITE, mw->rkey, at(START), LENGTH), 0);
	assert_int_equal(pair.b.buffer[START - 1], 0);
	assert_int_equal(pair.b.buffer[START], 0x5a);
	assert_int_equal(pair.b.buffer[START + LENGTH - 1], 0x5a);
	assert_int_equal(pair.b.buffer[START + LENGTH], 0);
	pair.b.buffer[START + 5] = 0x17;
	assert_int_equal(access_by(IBV_WR_RDMA_READ, mw->rkey, at(START + 5), 1), 0);
	assert_int_equal(pair.a.buffer[0], 0x17);
	assert_int_equal(access_by(IBV_WR_ATOMIC_FETCH_AND_ADD, mw->rkey, at(START + 8), 8), 0);
	assert_int_equal(pair.b.buffer[START + 8], 0x5a + 3);
	/* The region itself gives the peer no access. */
	assert_int_equal(access_by(IBV_WR_RDMA_WRITE, region->rkey, at(START), 1),
			 IBV_WC_REM_ACCESS_ERR);
	close_all();
}

struct refusal {
	unsigned int access; /* of the window */
	enum ibv_wr_opcode opcode;
	int64_t from; /* relative to the window's start */
	uint32_t length;
};

static void what_was_not_bound_stays_out(void **state)
{
	static const struct refusal rows[] = {
		{ ALL_REMOTE, IBV_WR_RDMA_WRITE, LENGTH, 1 },
		{ ALL_REMOTE, IBV_WR_RDMA_WRITE, -1, 1 },
		{ ALL_REMOTE, IBV_WR_RDMA_WRITE, 1, LENGTH },
		{ ALL_REMOTE, IBV_WR_RDMA_READ, 0, LENGTH + 1 },
		{ ALL_REMOTE, IBV_WR_ATOMIC_FETCH_AND_ADD, LENGTH, 8 },
		{ IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_WRITE, 0, 1 },
		{ IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_READ, 0, 1 },
		{ IBV_ACCESS_REMOTE_WRITE, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8 },
		{ 0, IBV_WR_RDMA_READ, 0, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct refusal *row = &rows[i];

		open_with(IBV_MW_TYPE_1, BINDABLE);
		assert_int_equal(bind_1(1, part(START, LENGTH, row->access)), 0);
		expect_wc(&pair.b, 1, IBV_WC_SUCCESS);
		assert_int_equal(access_by(row->opcode, mw->rkey, at(START) + (uint64_t)row->from,
					   row->length),
				 IBV_WC_REM_ACCESS_ERR);
		close_all();
	}
}

static void zero_based_windows_count_from_0(void **state)
{
	const unsigned int access = ALL_REMOTE | IBV_ACCESS_ZERO_BASED;

	(void)state;
	open_with(IBV_MW_TYPE_2, BINDABLE);
	assert_int_equal(bind_2(1, ibv_inc_rkey(mw->rkey), part(START, LENGTH, access)), 0);
	expect_wc(&pair.b, 1, IBV_WC_SUCCESS);
	pair.a.buffer[0] = 9;
	assert_int_equal(access_by(IBV_WR_RDMA_WRITE, ibv_inc_rkey(mw->rkey), LENGTH - 1, 1), 0);
	assert_int_equal(pair.b.buffer[START + LENGTH - 1], 9);
	assert_int_equal(access_by(IBV_WR_RDMA_WRITE, ibv_inc_rkey(mw->rkey), at(START), 1),
			 IBV_WC_REM_ACCESS_ERR);
	close_all();
}

static void a_new_bind_ends_the_old_one(void **state)
{
	uint32_t old;

	(void)state;
	open_with(IBV_MW_TYPE_1, BINDABLE);
	assert_int_equal(bind_1(1, part(START, LENGTH, ALL_REMOTE)), 0);
	old = mw->rkey;
	assert_int_equal(bind_1(2, part(START, LENGTH, ALL_REMOTE)), 0);
	assert_int_not_equal(mw->rkey, old);
	expect_wc(&pair.b, 1, IBV_WC_SUCCESS);
	expect_wc(&pair.b, 2, IBV_WC_SUCCESS);
	assert_int_equal(access_by(IBV_WR_RDMA_WRITE, mw->rkey, at(START), 1), 0);
	assert_int_equal(access_by(IBV_WR_RDMA_WRITE, old, at(START), 1), IBV_WC_REM_ACCESS_ERR);
	close_all();
}

static void a_bind_of_no_bytes_unbinds(void **state)
{
	(void)state;
	open_with(IBV_MW_TYPE_1, BINDABLE);
	assert_int_equal(bind_1(1, part(START, LENGTH, ALL_REMOTE)), 0);
	expect_wc(&pair.b, 1, IBV_WC_SUCCESS);
	assert_int_equal(ibv_dereg_mr(region), EBUSY);
	assert_int_equal(bind_1(2, part(0, 0, 0)), 0);
	expect_wc(&pair.b, 2, IBV_WC_SUCCESS);
	assert_int_equal(access_by(IBV_WR_RDMA_WRITE, mw->rkey, at(START), 1),
			 IBV_WC_REM_ACCESS_ERR);
	close_all();

	/* A bind of no bytes needs no region. */
	open_with(IBV_MW_TYPE_1, BINDABLE);
	assert_int_equal(bind_1(1, (struct ibv_mw_bind_info){ 0 }), 0);
	expect_wc(&pair.b, 1, IBV_WC_SUCCESS);
	close_all();
}

static void a_region_stays_while_a_window_is_bound(void **state)
{
	(void)state;
	open_with(IBV_MW_TYPE_1, BINDABLE);
	assert_int_equal(bind_1(1, part(START, LENGTH, ALL_REMOTE)), 0);
	expect_wc(&pair.b, 1, IBV_WC_SUCCESS);
	assert_int_equal(ibv_dereg_mr(region), EBUSY);
	assert_int_equal(ibv_rereg_mr(region, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
			 IBV_REREG_MR_ERR_CMD);
	assert_int_equal(ibv_dealloc_pd(pair.b.pd), EBUSY);
	/* The window still works. */
	assert_int_equal(access_by(IBV_WR_RDMA_WRITE, mw->rkey, at(START), 1), 0);

	uint32_t rkey = mw->rkey;

	assert_int_equal(ibv_dealloc_mw(mw), 0);
	mw = NULL;
	assert_int_equal(access_by(IBV_WR_RDMA_WRITE, rkey, at(START), 1), IBV_WC_REM_ACCESS_ERR);
	close_all();
}

static int post_invalidate(struct verbs_end *end, enum ibv_wr_opcode opcode, uint64_t wr_id,
			   uint32_t rkey)
{
	struct ibv_send_wr wr = { .wr_id = wr_id,
				  .opcode = opcode,
				  .send_flags = IBV_SEND_SIGNALED,
				  .invalidate_rkey = rkey };
	struct ibv_send_wr *bad;

	return ibv_post_send(end->qp, &wr, &bad);
}

static void type_2_is_invalidated_here(void **state)
{
	uint32_t rkey;

	(void)state;
	open_with(IBV_MW_TYPE_2, BINDABLE);
	rkey = ibv_inc_rkey(mw->rkey);
	assert_int_equal(bind_2(1, rkey, part(START, LENGTH, ALL_REMOTE)), 0);
	expect_wc(&pair.b, 1, IBV_WC_SUCCESS);
	assert_int_equal(access_by(IBV_WR_RDMA_WRITE, rkey, at(START), LENGTH), 0);
	assert_int_equal(post_invalidate(&pair.b, IBV_WR_LOCAL_INV, 2, rkey), 0);
	assert_int_equal(expect_wc(&pair.b, 2, IBV_WC_SUCCESS).opcode, IBV_WC_LOCAL_INV);

	/* The window is free again and can be bound, with any key that has its index. */
	assert_int_equal(bind_2(3, rkey ^ 0x80, part(0, LENGTH, ALL_REMOTE)), 0);
	expect_wc(&pair.b, 3, IBV_WC_SUCCESS);
	assert_int_equal(access_by(IBV_WR_RDMA_WRITE, rkey ^ 0x80, at(0), LENGTH), 0);
	assert_int_equal(access_by(IBV_WR_RDMA_WRITE, rkey, at(START), 1), IBV_WC_REM_ACCESS_ERR);
	close_all();
}

static void type_2_is_invalidated_by_the_peer(void **state)
{
	struct ibv_wc wc;
	uint32_t rkey;

	(void)state;
	open_with(IBV_MW_TYPE_2, BINDABLE);
	rkey = ibv_inc_rkey(mw->rkey);
	assert_int_equal(bind_2(1, rkey, part(START, LENGTH, ALL_REMOTE)), 0);
	expect_wc(&pair.b, 1, IBV_WC_SUCCESS);
	assert_int_equal(post_recv(&pair.b, 2, 0, 64), 0);
	assert_int_equal(post_invalidate(&pair.a, IBV_WR_SEND_WITH_INV, 3, rkey), 0);
	expect_wc(&pair.a, 3, IBV_WC_SUCCESS);
	wc = expect_wc(&pair.b, 2, IBV_WC_SUCCESS);
	assert_true(wc.wc_flags & IBV_WC_WITH_INV);
	assert_int_equal(wc.invalidated_rkey, rkey);
	assert_int_equal(access_by(IBV_WR_RDMA_WRITE, rkey, at(START), 1), IBV_WC_REM_ACCESS_ERR);
	close_all();
}

/* The other 24 bits belong to the window; adapters ignore these bits of the request. */
static void a_bind_takes_the_low_byte_of_its_key(void **state)
{
	uint32_t rkey;

	(void)state;
	open_with(IBV_MW_TYPE_2, BINDABLE);
	rkey = (mw->rkey & ~0xffu) | 0x42;
	assert_int_equal(bind_2(1, 0x42, part(START, LENGTH, ALL_REMOTE)), 0);
	expect_wc(&pair.b, 1, IBV_WC_SUCCESS);
	assert_int_equal(access_by(IBV_WR_RDMA_WRITE, rkey, at(START), LENGTH), 0);
	assert_int_equal(post_invalidate(&pair.b, IBV_WR_LOCAL_INV, 2, rkey), 0);
	expect_wc(&pair.b, 2, IBV_WC_SUCCESS);
	/* The key as it was posted is not valid. */
	assert_int_equal(bind_2(3, 0x42, part(START, LENGTH, ALL_REMOTE)), 0);
	expect_wc(&pair.b, 3, IBV_WC_SUCCESS);
	assert_int_equal(access_by(IBV_WR_RDMA_WRITE, 0x42, at(START), LENGTH),
			 IBV_WC_REM_ACCESS_ERR);
	close_all();
}

/* Requests after a bind on the same queue pair come after it: ibv_bind_mw(3). */
static void a_bind_keeps_its_place(void **state)
{
	uint32_t rkey;

	(void)state;
	open_with(IBV_MW_TYPE_2, BINDABLE);
	rkey = ibv_inc_rkey(mw->rkey);
	/* The SEND waits for a receive; the requests after it wait as well (rule C15). */
	assert_int_equal(post_send(&pair.b, 1, 0, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(bind_2(2, rkey, part(START, LENGTH, ALL_REMOTE)), 0);
	assert_int_equal(post_invalidate(&pair.b, IBV_WR_LOCAL_INV, 3, rkey), 0);
	assert_int_equal(bind_2(4, rkey, part(0, LENGTH, ALL_REMOTE)), 0);
	expect_no_wc(&pair.b);
	assert_int_equal(post_recv(&pair.a, 5, 0, 64), 0);
	for (uint64_t i = 1; i <= 4; i++)
		expect_wc(&pair.b, i, IBV_WC_SUCCESS);
	expect_wc(&pair.a, 5, IBV_WC_SUCCESS);
	assert_int_equal(access_by(IBV_WR_RDMA_WRITE, rkey, at(0), LENGTH), 0);
	close_all();
}

static void a_window_that_is_gone_when_its_turn_comes(void **state)
{
	(void)state;
	open_with(IBV_MW_TYPE_1, BINDABLE);
	assert_int_equal(post_send(&pair.b, 1, 0, 8, IBV_SEND_SIGNALED), 0);
	assert_int_equal(bind_1(2, part(START, LENGTH, ALL_REMOTE)), 0);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	mw = NULL;
	assert_int_equal(post_recv(&pair.a, 3, 0, 64), 0);
	expect_wc(&pair.b, 1, IBV_WC_SUCCESS);
	expect_wc(&pair.b, 2, IBV_WC_MW_BIND_ERR);
	expect_wc(&pair.a, 3, IBV_WC_SUCCESS);
	close_all();
}

/* Errors that can only be found when the bind is executed. */
static void binds_that_fail(void **state)
{
	static const struct {
		int region_access;
		uint64_t from, length;
		unsigned int access;
	} rows[] = {
		{ IBV_ACCESS_LOCAL_WRITE, START, LENGTH, IBV_ACCESS_REMOTE_READ },
		{ IBV_ACCESS_MW_BIND, START, LENGTH, IBV_ACCESS_REMOTE_WRITE },
		{ IBV_ACCESS_MW_BIND, START, LENGTH, IBV_ACCESS_REMOTE_ATOMIC },
		{ BINDABLE, START, END_BUFFER, IBV_ACCESS_REMOTE_READ },
		{ BINDABLE, END_BUFFER, 1, IBV_ACCESS_REMOTE_READ },
		{ BINDABLE, UINT64_MAX, 1, IBV_ACCESS_REMOTE_READ },
		{ BINDABLE, 1, UINT64_MAX, IBV_ACCESS_REMOTE_READ },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		open_with(IBV_MW_TYPE_1, rows[i].region_access);
		assert_int_equal(bind_1(1, part(rows[i].from, rows[i].length, rows[i].access)), 0);
		expect_wc(&pair.b, 1, IBV_WC_MW_BIND_ERR);
		close_all();
	}

	/* A region without the right to write may be read through a window. */
	open_with(IBV_MW_TYPE_1, IBV_ACCESS_MW_BIND);
	assert_int_equal(bind_1(1, part(START, LENGTH, IBV_ACCESS_REMOTE_READ)), 0);
	expect_wc(&pair.b, 1, IBV_WC_SUCCESS);
	close_all();

	/* A window of type 2 must be free. */
	open_with(IBV_MW_TYPE_2, BINDABLE);
	assert_int_equal(bind_2(1, ibv_inc_rkey(mw->rkey), part(0, 8, ALL_REMOTE)), 0);
	assert_int_equal(bind_2(2, mw->rkey, part(0, 8, ALL_REMOTE)), 0);
	expect_wc(&pair.b, 1, IBV_WC_SUCCESS);
	expect_wc(&pair.b, 2, IBV_WC_MW_BIND_ERR);
	close_all();
}

static void invalidations_that_fail(void **state)
{
	(void)state;
	/* Keys of a region and of a type 1 window: work requests cannot invalidate them. */
	open_with(IBV_MW_TYPE_1, BINDABLE);
	assert_int_equal(post_invalidate(&pair.b, IBV_WR_LOCAL_INV, 1, region->rkey), 0);
	expect_wc(&pair.b, 1, IBV_WC_LOC_PROT_ERR);
	close_all();
	open_with(IBV_MW_TYPE_1, BINDABLE);
	assert_int_equal(bind_1(1, part(START, LENGTH, ALL_REMOTE)), 0);
	assert_int_equal(post_invalidate(&pair.b, IBV_WR_LOCAL_INV, 2, mw->rkey), 0);
	expect_wc(&pair.b, 1, IBV_WC_SUCCESS);
	expect_wc(&pair.b, 2, IBV_WC_LOC_PROT_ERR);
	close_all();
	/* By the peer, with a key that is not bound. */
	open_with(IBV_MW_TYPE_2, BINDABLE);
	assert_int_equal(post_recv(&pair.b, 1, 0, 64), 0);
	assert_int_equal(post_invalidate(&pair.a, IBV_WR_SEND_WITH_INV, 2, mw->rkey), 0);
	/* The sender gets no reply, and uses up its retries. */
	expect_wc(&pair.b, 1, IBV_WC_REM_INV_REQ_ERR);
	expect_wc(&pair.a, 2, IBV_WC_RETRY_EXC_ERR);
	close_all();
}

/*
 * A window of type 2 works only for the queue pair that has bound it, and is free when that is
 * destroyed.
 */
static void type_2_belongs_to_its_queue_pair(void **state)
{
	struct pair other;
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp *first;
	uint32_t rkey;

	(void)state;
	open_with(IBV_MW_TYPE_2, BINDABLE);
	pair_open(&other, NULL);
	/* b gets a second queue pair in the same domain, connected to the one of other.a. */
	attr.send_cq = attr.recv_cq = pair.b.cq;
	first = pair.b.qp;
	pair.b.qp = ibv_create_qp(pair.b.pd, &attr);
	assert_non_null(pair.b.qp);
	assert_int_equal(to_init(pair.b.qp, ALL_REMOTE), 0);
	assert_int_equal(to_state(other.a.qp, IBV_QPS_RESET), 0);
	assert_int_equal(to_init(other.a.qp, ALL_REMOTE), 0);
	assert_int_equal(to_rtr(pair.b.qp, other.a.qp->qp_num, &(struct pair_options){ 0 }), 0);
	assert_int_equal(to_rtr(other.a.qp, pair.b.qp->qp_num, &(struct pair_options){ 0 }), 0);
	assert_int_equal(to_rts(pair.b.qp, &(struct pair_options){ 0 }), 0);
	assert_int_equal(to_rts(other.a.qp, &(struct pair_options){ 0 }), 0);

	rkey = ibv_inc_rkey(mw->rkey);
	assert_int_equal(bind_2(1, rkey, part(START, LENGTH, ALL_REMOTE)), 0);
	expect_wc(&pair.b, 1, IBV_WC_SUCCESS);
	/* a is connected to b's first queue pair. */
	assert_int_equal(access_by(IBV_WR_RDMA_WRITE, rkey, at(START), 1), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(region), EBUSY);
	assert_int_equal(ibv_destroy_qp(pair.b.qp), 0);
	pair.b.qp = first;
	assert_int_equal(ibv_dereg_mr(region), 0);
	region = ibv_reg_mr(pair.b.pd, pair.b.buffer, END_BUFFER, BINDABLE);
	pair_close(&other);
	close_all();
}

static void requests_that_are_refused(void **state)
{
	struct ibv_mw_bind_info good, bad;
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED };
	struct ibv_pd *other_pd = ibv_alloc_pd(the_context());
	struct ibv_mr *other, *null_mr;
	uint32_t next;

	(void)state;
	open_with(IBV_MW_TYPE_2, BINDABLE);
	next = ibv_inc_rkey(mw->rkey);
	good = part(START, LENGTH, ALL_REMOTE);
	other = ibv_reg_mr(other_pd, pair.b.buffer, END_BUFFER, BINDABLE);
	null_mr = ibv_alloc_null_mr(pair.b.pd);
	assert_non_null(null_mr);

	errno = 0;
	assert_null(ibv_alloc_mw(pair.b.pd, (enum ibv_mw_type)3));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_alloc_mw(pair.b.pd, (enum ibv_mw_type)0));

	bad = good, bad.length = 0;
	assert_int_equal(bind_2(1, next, bad), EINVAL);
	bad = good, bad.mr = NULL;
	assert_int_equal(bind_2(1, next, bad), EINVAL);
	bad = good, bad.mw_access_flags = IBV_ACCESS_ON_DEMAND;
	assert_int_equal(bind_2(1, next, bad), EINVAL);
	bad = good, bad.mr = other;
	assert_int_equal(bind_2(1, next, bad), EPERM);
	bad = good, bad.mr = null_mr;
	assert_int_equal(bind_2(1, next, bad), EINVAL);
	/* The call of type 1 with a window of type 2, and the other way round. */
	bind.bind_info = good;
	assert_int_equal(ibv_bind_mw(pair.b.qp, mw, &bind), EINVAL);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	mw = ibv_alloc_mw(pair.b.pd, IBV_MW_TYPE_1);
	assert_int_equal(bind_2(1, ibv_inc_rkey(mw->rkey), good), EINVAL);
	bind.send_flags = IBV_SEND_INLINE;
	assert_int_equal(ibv_bind_mw(pair.b.qp, mw, &bind), EINVAL);
	/* The queue pair is in a state that does not allow sends. */
	bind.send_flags = IBV_SEND_SIGNALED;
	assert_int_equal(to_state(pair.b.qp, IBV_QPS_RESET), 0);
	next = mw->rkey;
	assert_int_equal(ibv_bind_mw(pair.b.qp, mw, &bind), EINVAL);
	assert_int_equal(mw->rkey, next);

	assert_int_equal(ibv_dereg_mr(null_mr), 0);
	assert_int_equal(ibv_dereg_mr(other), 0);
	assert_int_equal(ibv_dealloc_pd(other_pd), 0);
	close_all();
}

static void many_windows_have_many_keys(void **state)
{
	enum { MANY = 3000 };
	static struct ibv_mw *windows[MANY];

	(void)state;
	open_with(IBV_MW_TYPE_1, BINDABLE);
	for (int i = 0; i < MANY; i++) {
		windows[i] = ibv_alloc_mw(pair.b.pd, i % 2 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
		assert_non_null(windows[i]);
	}
	/* All tags of an index belong to one window. */
	for (int i = 0; i < MANY; i++) {
		for (int j = i + 1; j < MANY; j++)
			assert_int_not_equal(windows[i]->rkey >> 8, windows[j]->rkey >> 8);
	}
	for (int i = 0; i < MANY; i++)
		assert_int_equal(ibv_dealloc_mw(windows[i]), 0);
	close_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(type_1_lets_in_what_was_bound),
		cmocka_unit_test(what_was_not_bound_stays_out),
		cmocka_unit_test(zero_based_windows_count_from_0),
		cmocka_unit_test(a_new_bind_ends_the_old_one),
		cmocka_unit_test(a_bind_of_no_bytes_unbinds),
		cmocka_unit_test(a_region_stays_while_a_window_is_bound),
		cmocka_unit_test(type_2_is_invalidated_here),
		cmocka_unit_test(type_2_is_invalidated_by_the_peer),
		cmocka_unit_test(a_bind_takes_the_low_byte_of_its_key),
		cmocka_unit_test(a_bind_keeps_its_place),
		cmocka_unit_test(a_window_that_is_gone_when_its_turn_comes),
		cmocka_unit_test(binds_that_fail),
		cmocka_unit_test(invalidations_that_fail),
		cmocka_unit_test(type_2_belongs_to_its_queue_pair),
		cmocka_unit_test(requests_that_are_refused),
		cmocka_unit_test(many_windows_have_many_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
