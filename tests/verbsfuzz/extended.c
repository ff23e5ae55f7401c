/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* ibv_wr_start() to ibv_wr_complete(): all requests of a batch are posted, or none. */
#include "world.h"

enum {
	MAX_BATCH = 4,
	MAX_BUFFERS = 3,
};

struct batch {
	struct pair *pair;
	struct ibv_qp_ex *ex;
	enum expect expect; /* of all requests until now */
	int count;
	uint32_t place[MAX_BATCH];
	enum ibv_wr_opcode opcode[MAX_BATCH];
	unsigned int flags[MAX_BATCH];
	struct window *window[MAX_BATCH]; /* of a bind */
	uint32_t key[MAX_BATCH];
};

static void expect_no_more_than(struct batch *batch, enum expect expect)
{
	if (expect == EXPECT_REFUSED ||
	    (expect == EXPECT_EITHER && batch->expect == EXPECT_ACCEPTED))
		batch->expect = expect;
}

/* Begins a request for which the type of queue pair has a function. */
static enum ibv_wr_opcode begin(struct world *world, struct batch *batch, struct window *window)
{
	struct ibv_qp_ex *ex = batch->ex;
	uint32_t kinds = 11;
	struct ibv_mw_bind_info info;
	uint64_t addr, word = 5;
	uint32_t key, kind;

	if (batch->pair->type == IBV_QPT_UD)
		kinds = 2;
	else if (batch->pair->type == IBV_QPT_UC)
		kinds = 7;
	draw_remote(world, batch->pair, &addr, &key);
	/* Operations on keys mostly fail, and with them the queue pair. */
	kind = below(world, kinds);
	if (kind >= 4 && kind <= 6 && chance(world, 70))
		kind = below(world, 4) % kinds;
	switch (kind) {
	case 0:
		ibv_wr_send(ex);
		return IBV_WR_SEND;
	case 1:
		ibv_wr_send_imm(ex, 0x1234);
		return IBV_WR_SEND_WITH_IMM;
	case 2:
		ibv_wr_rdma_write(ex, key, addr);
		return IBV_WR_RDMA_WRITE;
	case 3:
		ibv_wr_rdma_write_imm(ex, key, addr, 0x1234);
		return IBV_WR_RDMA_WRITE_WITH_IMM;
	case 4:
		ibv_wr_local_inv(ex, key);
		return IBV_WR_LOCAL_INV;
	case 5:
		ibv_wr_send_inv(ex, key);
		return IBV_WR_SEND_WITH_INV;
	case 6:
		if (!window) {
			ibv_wr_send(ex);
			return IBV_WR_SEND;
		}
		expect_no_more_than(batch, draw_bind(world, window, &info));
		batch->window[batch->count] = window;
		batch->key[batch->count] = ibv_inc_rkey(window->verbs->rkey);
		ibv_wr_bind_mw(ex, window->verbs, batch->key[batch->count], &info);
		return IBV_WR_BIND_MW;
	case 7:
		ibv_wr_rdma_read(ex, key, addr);
		return IBV_WR_RDMA_READ;
	case 8:
		ibv_wr_atomic_cmp_swp(ex, key, addr, 1, 2);
		return IBV_WR_ATOMIC_CMP_AND_SWP;
	case 9:
		ibv_wr_atomic_fetch_add(ex, key, addr, 3);
		return IBV_WR_ATOMIC_FETCH_AND_ADD;
	default:
		ibv_wr_atomic_write(ex, key, addr, &word);
		return IBV_WR_ATOMIC_WRITE;
	}
}

static bool takes_data(enum ibv_wr_opcode opcode)
{
	return opcode != IBV_WR_LOCAL_INV && opcode != IBV_WR_BIND_MW &&
	       opcode != IBV_WR_ATOMIC_WRITE;
}

static bool takes_inline(enum ibv_wr_opcode opcode)
{
	return takes_data(opcode) && opcode != IBV_WR_RDMA_READ &&
	       opcode != IBV_WR_ATOMIC_CMP_AND_SWP && opcode != IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static void set_inline(struct world *world, struct batch *batch, enum ibv_wr_opcode opcode)
{
	uint32_t count = below(world, MAX_BUFFERS + 1), bytes = 0;
	struct ibv_data_buf buffers[MAX_BUFFERS];

	for (uint32_t i = 0; i < count; i++) {
		buffers[i].addr = world->arena + below(world, PAGE);
		buffers[i].length = below(world, chance(world, 95) ? 40 : 600);
		bytes += (uint32_t)buffers[i].length;
	}
	ibv_wr_set_inline_data_list(batch->ex, count, buffers);
	if (!takes_inline(opcode) || bytes > batch->pair->cap.max_inline_data)
		expect_no_more_than(batch, EXPECT_REFUSED);
}

static void set_list(struct world *world, struct batch *batch, enum ibv_wr_opcode opcode)
{
	bool atomic = opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	struct list list;

	draw_list(world, batch->pair, &list, atomic ? LIST_WORD : LIST_WRITTEN);
	ibv_wr_set_sge_list(batch->ex, (size_t)list.count, list.sge);
	if (!takes_data(opcode) || (uint32_t)list.count > batch->pair->cap.max_send_sge ||
	    list.bytes > 1u << 31 || (atomic && (list.count != 1 || list.bytes != 8)))
		expect_no_more_than(batch, EXPECT_REFUSED);
}

static void set_data(struct world *world, struct batch *batch, enum ibv_wr_opcode opcode)
{
	/* A request may have no data, except for an Atomic, which needs a place for its result. */
	if (chance(world, takes_data(opcode) ? 10 : 97)) {
		if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
			expect_no_more_than(batch, EXPECT_REFUSED);
	} else if (chance(world, takes_inline(opcode) ? 40 : 3)) {
		set_inline(world, batch, opcode);
	} else {
		set_list(world, batch, opcode);
	}
}

static void set_datagram_address(struct world *world, struct batch *batch)
{
	struct handle *handle = PICK(world, handles);
	struct pair *peer = PICK(world, pairs);

	if (!handle || chance(world, 3)) {
		expect_no_more_than(batch, EXPECT_REFUSED);
		return;
	}
	ibv_wr_set_ud_addr(batch->ex, handle->verbs, peer->number, ANY_QKEY);
	expect_no_more_than(batch, handle->domain == batch->pair->domain ? EXPECT_ACCEPTED
									 : EXPECT_EITHER);
}

static void build(struct world *world, struct batch *batch)
{
	int number = batch->count;
	struct window *window = PICK(world, windows);
	enum ibv_wr_opcode opcode;

	batch->place[number] = next_work(world);
	batch->flags[number] = below(world, IBV_SEND_INLINE);
	if (chance(world, 1)) {
		batch->flags[number] |= 1u << (5 + below(world, 20));
		expect_no_more_than(batch, EXPECT_REFUSED);
	}
	batch->ex->wr_id = id_of(world, batch->place[number]);
	batch->ex->wr_flags = batch->flags[number];
	opcode = begin(world, batch, window);
	batch->opcode[number] = opcode;
	set_data(world, batch, opcode);
	if (batch->pair->type == IBV_QPT_UD)
		set_datagram_address(world, batch);
	if (batch->pair->type == IBV_QPT_XRC_SEND)
		ibv_wr_set_xrc_srqn(batch->ex, below(world, 20));
	batch->count++;
}

static void check_refused(struct world *world, const struct batch *batch, int error)
{
	const struct pair *pair = batch->pair;

	if (pair->context->closed) {
		MUST(world, error == EIO, "wr_complete in a closed context: %d", error);
		return;
	}
	if (error == ENOMEM)
		MUST(world, pair->sends.count + (uint32_t)batch->count > pair->cap.max_send_wr,
		     "%d requests are refused with %u of %u", batch->count, pair->sends.count,
		     pair->cap.max_send_wr);
	else
		MUST(world,
		     (error == EINVAL || error == EPERM) &&
			     (batch->expect != EXPECT_ACCEPTED || state_refuses(pair, false)),
		     "wr_complete: %s, states 0x%x", strerror(error), states_now(pair));
}

void do_post_extended(struct world *world)
{
	struct pair *pair = pick_in(world, 1 << IBV_QPS_RTS | 1 << IBV_QPS_SQD);
	struct batch batch = { .pair = pair, .expect = EXPECT_ACCEPTED };
	int count = (int)below(world, MAX_BATCH + 1), error;

	if (!pair || !pair->has_functions)
		return;
	batch.ex = ibv_qp_to_qp_ex(pair->verbs);
	ibv_wr_start(batch.ex);
	while (batch.count < count)
		build(world, &batch);
	if (chance(world, 8)) {
		note(world, "wr_abort %u, %d requests", pair->number, count);
		ibv_wr_abort(batch.ex);
		return;
	}
	error = ibv_wr_complete(batch.ex);
	note(world, "wr_complete %u, %d requests: %d", pair->number, count, error);
	if (error) {
		check_refused(world, &batch, error);
		return;
	}
	MUST(world,
	     !pair->context->closed && batch.expect != EXPECT_REFUSED && state_accepts(pair, false),
	     "a bad batch is accepted, states 0x%x", states_now(pair));
	for (int i = 0; i < count; i++) {
		accept_send(world, pair, batch.place[i], batch.opcode[i], batch.flags[i]);
		if (batch.window[i])
			batch.window[i]->verbs->rkey = batch.key[i];
	}
}
