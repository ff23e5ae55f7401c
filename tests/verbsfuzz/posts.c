/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* ibv_post_send(), ibv_post_recv() and similar calls, with good and bad requests. */
#include <arpa/inet.h>

#include "world.h"

enum {
	MAX_LIST = 4,
	ALL_FLAGS = IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE,
	TOO_LONG = 0x80000001u,
	CAN_SEND = 1 << IBV_QPS_RTS | 1 << IBV_QPS_SQD,
	CAN_RECEIVE = CAN_SEND | 1 << IBV_QPS_INIT | 1 << IBV_QPS_RTR,
};

bool state_refuses(const struct pair *pair, bool receive)
{
	unsigned int refusing = receive ? 1u << IBV_QPS_RESET : (1u << IBV_QPS_RTS) - 1;

	return states_now(pair) & refusing;
}

bool state_accepts(const struct pair *pair, bool receive)
{
	unsigned int refusing = receive ? 1u << IBV_QPS_RESET : (1u << IBV_QPS_RTS) - 1;

	return states_now(pair) & ~refusing;
}

struct pair *pick_in(struct world *world, unsigned int states)
{
	struct pair *pair = NULL;

	for (int tries = 0; tries < 6 && chance(world, 95); tries++) {
		pair = PICK(world, pairs);
		if (pair && !pair->context->closed && (pair->core->possible & states))
			return pair;
	}
	return PICK(world, pairs);
}

struct region *draw_region(struct world *world, const struct domain *domain, int access)
{
	struct region *region = NULL;

	for (int tries = 0; tries < 12; tries++) {
		region = PICK(world, regions);
		if (!region || (domain && region->domain == domain && region->length >= 8 &&
				(region->access & access) == access))
			break;
		/* Sometimes a wrong one. */
		if (chance(world, 1))
			break;
	}
	return region;
}

static uint32_t draw_length(struct world *world)
{
	if (chance(world, 50))
		return below(world, 300);
	return below(world, chance(world, 90) ? 10000 : ARENA_BYTES);
}

/* A part of a region, mostly inside of it. */
static void draw_part(struct world *world, const struct region *region, struct ibv_sge *sge)
{
	uint64_t skipped = below(world, 64);

	if (skipped >= region->length)
		skipped = 0;
	sge->addr = region->start + skipped;
	sge->lkey = region->verbs->lkey;
	if (sge->length > region->length - skipped && chance(world, 97))
		sge->length = (uint32_t)(region->length - skipped);
}

void draw_list(struct world *world, const struct pair *pair, struct list *list, enum list_kind kind)
{
	bool one = kind == LIST_WORD ? chance(world, 95) : chance(world, 70);
	int access = kind == LIST_READ ? 0 : IBV_ACCESS_LOCAL_WRITE;

	list->count = one ? 1 : (int)below(world, COUNT_OF(list->sge) + 1);
	list->bytes = 0;
	for (int i = 0; i < list->count; i++) {
		struct ibv_sge *sge = &list->sge[i];
		struct region *region = draw_region(world, pair->domain, access);

		*sge = (struct ibv_sge){ .length = draw_length(world) };
		if (kind == LIST_WORD && chance(world, 97))
			sge->length = 8;
		if (kind == LIST_INLINE) {
			/* Inline data is read during the call, so the memory must be readable. */
			sge->length %= chance(world, 90) ? 30 : 600;
			sge->addr = (uintptr_t)world->arena + below(world, PAGE);
			sge->lkey = (uint32_t)random_next(&world->random);
		} else if (region) {
			draw_part(world, region, sge);
		}
		if (chance(world, 1))
			sge->lkey ^= 1u << below(world, 32);
		if (kind != LIST_INLINE && random_chance(&world->random, 3))
			sge->length = TOO_LONG;
		list->bytes += sge->length;
	}
}

static const struct domain *domain_of_peer(struct world *world, const struct pair *pair)
{
	for (uint32_t i = 0; i < MAX_PAIRS; i++) {
		const struct pair *peer = &world->pairs[i];

		if (peer->verbs && peer->number == pair->core->attr.dest_qp_num)
			return peer->domain;
	}
	return NULL;
}

void draw_remote(struct world *world, const struct pair *pair, uint64_t *addr, uint32_t *key)
{
	struct region *region = draw_region(world, domain_of_peer(world, pair),
					    IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
						    IBV_ACCESS_REMOTE_ATOMIC);
	struct window *window = chance(world, 10) ? PICK(world, windows) : NULL;

	*addr = random_next(&world->random);
	*key = (uint32_t)random_next(&world->random);
	if (region && random_chance(&world->random, 985)) {
		*addr = region->start + below(world, 64);
		if (chance(world, 90))
			*addr = (*addr + 7) & ~UINT64_C(7);
		*key = window ? window->verbs->rkey : region->verbs->rkey;
	}
}

enum expect draw_bind(struct world *world, struct window *window, struct ibv_mw_bind_info *info)
{
	struct region *region =
		draw_region(world, window->domain, IBV_ACCESS_MW_BIND | IBV_ACCESS_LOCAL_WRITE);

	*info = (struct ibv_mw_bind_info){ 0 };
	if (region && region->kind != REGION_PLAIN)
		region = NULL;
	if (region) {
		info->mr = region->verbs;
		info->addr = region->start + below(world, 16);
		info->length = 1 + below(world, 500);
		/* From now on a deregistration may find the region bound. */
		region->may_be_bound = true;
	}
	info->mw_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
	if (chance(world, 20))
		info->mw_access_flags = below(world, 64);
	return EXPECT_EITHER;
}

static enum ibv_wr_opcode draw_opcode(struct world *world, enum ibv_qp_type type)
{
	static const enum ibv_wr_opcode often[] = {
		IBV_WR_SEND,
		IBV_WR_SEND_WITH_IMM,
		IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_CMP_AND_SWP,
		IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_ATOMIC_WRITE,
	};
	static const enum ibv_wr_opcode keys[] = { IBV_WR_LOCAL_INV, IBV_WR_BIND_MW,
						   IBV_WR_SEND_WITH_INV };
	uint32_t usual = COUNT_OF(often), drawn = below(world, 100);

	if (drawn < 1)
		return (enum ibv_wr_opcode)below(world, 20);
	if (drawn < 5)
		return keys[below(world, COUNT_OF(keys))];
	if (type == IBV_QPT_UD)
		usual = 2;
	else if (type == IBV_QPT_UC)
		usual = 4;
	return often[below(world, drawn < 6 ? COUNT_OF(often) : usual)];
}

static bool carries_data(enum ibv_wr_opcode opcode)
{
	return opcode <= IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_SEND_WITH_INV ||
	       opcode == IBV_WR_ATOMIC_WRITE;
}

static bool is_atomic(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static bool is_local(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_LOCAL_INV || opcode == IBV_WR_BIND_MW;
}

static bool is_served(enum ibv_wr_opcode opcode)
{
	return carries_data(opcode) || is_atomic(opcode) || is_local(opcode) ||
	       opcode == IBV_WR_RDMA_READ;
}

/* Predicts the result of a request if the state allows it and the queue has room. */
static enum expect predict(const struct pair *pair, const struct ibv_send_wr *wr,
			   const struct list *list)
{
	bool inlined = wr->send_flags & IBV_SEND_INLINE;

	if (!is_served(wr->opcode) || (wr->send_flags & ~(unsigned int)ALL_FLAGS) ||
	    wr->num_sge < 0 || (inlined && !carries_data(wr->opcode)))
		return EXPECT_REFUSED;
	if (is_local(wr->opcode))
		return EXPECT_EITHER;
	if (inlined ? list->bytes > pair->cap.max_inline_data
		    : (uint32_t)wr->num_sge > pair->cap.max_send_sge || list->bytes >= TOO_LONG)
		return EXPECT_REFUSED;
	if (pair->type == IBV_QPT_UD && wr->opcode != IBV_WR_SEND &&
	    wr->opcode != IBV_WR_SEND_WITH_IMM)
		return EXPECT_EITHER;
	if ((is_atomic(wr->opcode) && (list->bytes != 8 || wr->num_sge != 1)) ||
	    (wr->opcode == IBV_WR_ATOMIC_WRITE && list->bytes != 8))
		return EXPECT_REFUSED;
	/* Some operations exist on reliable services only. */
	if (pair->type == IBV_QPT_UC && !(wr->opcode <= IBV_WR_SEND_WITH_IMM))
		return EXPECT_EITHER;
	return EXPECT_ACCEPTED;
}

static enum expect address_datagram(struct world *world, const struct pair *pair,
				    struct ibv_send_wr *wr)
{
	struct handle *handle = NULL;
	struct pair *peer = PICK(world, pairs);

	for (int tries = 0; tries < 6; tries++) {
		handle = PICK(world, handles);
		if (!handle || handle->domain == pair->domain)
			break;
	}
	wr->wr.ud.ah = handle ? handle->verbs : NULL;
	wr->wr.ud.remote_qpn =
		peer && chance(world, 95) ? peer->number : (uint32_t)random_next(&world->random);
	wr->wr.ud.remote_qkey = chance(world, 90) ? ANY_QKEY : 0x80000001u;
	/* A parent domain and the one below it are the same to the device. */
	if (!handle || wr->wr.ud.remote_qpn > 0xffffff)
		return EXPECT_REFUSED;
	return handle->domain == pair->domain ? EXPECT_ACCEPTED : EXPECT_EITHER;
}

static enum list_kind list_kind_of(const struct ibv_send_wr *wr)
{
	if (wr->send_flags & IBV_SEND_INLINE)
		return LIST_INLINE;
	if (is_atomic(wr->opcode) || wr->opcode == IBV_WR_ATOMIC_WRITE)
		return LIST_WORD;
	return wr->opcode == IBV_WR_RDMA_READ ? LIST_WRITTEN : LIST_READ;
}

static enum expect draw_send(struct world *world, struct pair *pair, struct ibv_send_wr *wr,
			     struct list *list)
{
	struct window *window = PICK(world, windows);
	struct shared *shared = PICK(world, shared);
	uint64_t addr;
	uint32_t key;
	enum expect expect, other;

	*wr = (struct ibv_send_wr){ .opcode = draw_opcode(world, pair->type) };
	wr->send_flags = below(world, IBV_SEND_INLINE);
	if (chance(world, carries_data(wr->opcode) ? 30 : 3))
		wr->send_flags |= IBV_SEND_INLINE;
	if (chance(world, 1))
		wr->send_flags |= 1u << below(world, 32);
	draw_list(world, pair, list, list_kind_of(wr));
	wr->sg_list = list->sge;
	wr->num_sge = chance(world, 99) ? list->count : -1;
	wr->imm_data = htonl((uint32_t)random_next(&world->random));
	expect = predict(pair, wr, list);
	draw_remote(world, pair, &addr, &key);
	if (wr->opcode == IBV_WR_SEND_WITH_INV || wr->opcode == IBV_WR_LOCAL_INV)
		wr->invalidate_rkey = window ? window->verbs->rkey : key;
	if (pair->type == IBV_QPT_UD) {
		other = address_datagram(world, pair, wr);
		return expect == EXPECT_ACCEPTED ? other : expect;
	}
	if (wr->opcode == IBV_WR_BIND_MW) {
		if (!window)
			wr->opcode = IBV_WR_SEND;
		else
			draw_bind(world, window, &wr->bind_mw.bind_info);
		wr->bind_mw.mw = window ? window->verbs : NULL;
		wr->bind_mw.rkey = window ? ibv_inc_rkey(window->verbs->rkey) : 0;
		return window && expect == EXPECT_ACCEPTED ? EXPECT_EITHER
							   : predict(pair, wr, list);
	}
	if (is_atomic(wr->opcode)) {
		wr->wr.atomic.remote_addr = addr;
		wr->wr.atomic.rkey = key;
	} else {
		wr->wr.rdma.remote_addr = addr;
		wr->wr.rdma.rkey = key;
	}
	wr->qp_type.xrc.remote_srqn = shared && shared->number ? shared->number : below(world, 40);
	return expect;
}

/* Check why the request at the place "bad" was refused. */
static void refused(struct world *world, const struct pair *pair, int error, enum expect expect,
		    bool receive)
{
	uint32_t outstanding = receive ? pair->recvs.count : pair->sends.count;
	uint32_t most = receive ? pair->cap.max_recv_wr : pair->cap.max_send_wr;

	if (pair->context->closed) {
		MUST(world,
		     error == EIO ||
			     (error == EINVAL && (receive || pair->type == IBV_QPT_XRC_RECV)),
		     "a post in a closed context: %d", error);
		return;
	}
	if (error == ENOMEM)
		MUST(world, outstanding >= most, "a post is refused with %u of %u requests",
		     outstanding, most);
	else
		MUST(world,
		     (error == EINVAL || error == EPERM) &&
			     (expect != EXPECT_ACCEPTED || state_refuses(pair, receive)),
		     "a post is refused: %s, states 0x%x", strerror(error), states_now(pair));
}

static void accepted(struct world *world, const struct pair *pair, enum expect expect, bool receive)
{
	MUST(world, !pair->context->closed, "a post in a closed context is accepted");
	MUST(world, expect != EXPECT_REFUSED, "a bad request is accepted");
	MUST(world, state_accepts(pair, receive), "a post is accepted in states 0x%x",
	     states_now(pair));
}

void do_post_send(struct world *world)
{
	struct pair *pair = pick_in(world, CAN_SEND);
	int count = 1 + (int)below(world, MAX_LIST), taken, error;
	struct ibv_send_wr wr[MAX_LIST], *bad = NULL;
	enum expect expect[MAX_LIST];
	struct list list[MAX_LIST];
	uint32_t place[MAX_LIST];

	if (!pair)
		return;
	for (int i = 0; i < count; i++) {
		expect[i] = draw_send(world, pair, &wr[i], &list[i]);
		if (pair->type == IBV_QPT_XRC_RECV)
			expect[i] = EXPECT_REFUSED;
		place[i] = next_work(world);
		wr[i].wr_id = id_of(world, place[i]);
		if (i > 0)
			wr[i - 1].next = &wr[i];
	}
	error = ibv_post_send(pair->verbs, wr, &bad);
	MUST(world, !error || (bad >= wr && bad < wr + count), "bad_wr is none of the list");
	taken = error ? (int)(bad - wr) : count;
	note(world, "post_send %u, %d requests from opcode %d, flags 0x%x, %llu bytes: %d at %d",
	     pair->number, count, wr[0].opcode, wr[0].send_flags, (unsigned long long)list[0].bytes,
	     error, taken);
	for (int i = 0; i < taken; i++) {
		accepted(world, pair, expect[i], false);
		accept_send(world, pair, place[i], wr[i].opcode, wr[i].send_flags);
		if (wr[i].opcode == IBV_WR_BIND_MW)
			wr[i].bind_mw.mw->rkey = wr[i].bind_mw.rkey;
	}
	if (error)
		refused(world, pair, error, expect[taken], false);
}

static void draw_recv(struct world *world, const struct pair *pair, struct ibv_recv_wr *wr,
		      struct list *list)
{
	draw_list(world, pair, list, LIST_WRITTEN);
	*wr = (struct ibv_recv_wr){ .sg_list = list->sge, .num_sge = list->count };
	if (chance(world, 1))
		wr->num_sge = -1;
}

void do_post_recv(struct world *world)
{
	struct pair *pair = pick_in(world, CAN_RECEIVE);
	int count = 1 + (int)below(world, MAX_LIST), taken, error;
	struct ibv_recv_wr wr[MAX_LIST], *bad = NULL;
	enum expect expect[MAX_LIST];
	struct list list[MAX_LIST];
	uint32_t place[MAX_LIST];
	bool receives;

	if (!pair)
		return;
	receives = pair->recv_queue && !pair->shared;
	for (int i = 0; i < count; i++) {
		draw_recv(world, pair, &wr[i], &list[i]);
		expect[i] = !receives || wr[i].num_sge < 0 ||
					    (uint32_t)wr[i].num_sge > pair->cap.max_recv_sge
				    ? EXPECT_REFUSED
				    : EXPECT_ACCEPTED;
		place[i] = next_work(world);
		wr[i].wr_id = id_of(world, place[i]);
		if (i > 0)
			wr[i - 1].next = &wr[i];
	}
	error = ibv_post_recv(pair->verbs, wr, &bad);
	MUST(world, !error || (bad >= wr && bad < wr + count), "bad_wr is none of the list");
	taken = error ? (int)(bad - wr) : count;
	note(world, "post_recv %u, %d requests: %d at %d", pair->number, count, error, taken);
	for (int i = 0; i < taken; i++) {
		accepted(world, pair, expect[i], true);
		accept_recv(world, pair, NULL, place[i], list[i].bytes);
	}
	if (error)
		refused(world, pair, error, expect[taken], true);
	/* Before RTR nothing is taken out of the queue. */
	MUST(world,
	     !receives || pair->context->closed || pair->recvs.count <= pair->cap.max_recv_wr ||
		     states_now(pair) != 1u << IBV_QPS_INIT,
	     "%u receives are accepted, the limit is %u", pair->recvs.count, pair->cap.max_recv_wr);
}

void do_post_shared(struct world *world)
{
	struct shared *shared = PICK(world, shared);
	int count = 1 + (int)below(world, MAX_LIST), taken, error;
	struct ibv_recv_wr wr[MAX_LIST], *bad = NULL;
	struct list list[MAX_LIST];
	uint32_t place[MAX_LIST];
	struct pair any = { 0 };

	if (!shared)
		return;
	any.domain = shared->domain;
	for (int i = 0; i < count; i++) {
		draw_recv(world, &any, &wr[i], &list[i]);
		place[i] = next_work(world);
		wr[i].wr_id = id_of(world, place[i]);
		if (i > 0)
			wr[i - 1].next = &wr[i];
	}
	error = ibv_post_srq_recv(shared->verbs, wr, &bad);
	MUST(world, !error || (bad >= wr && bad < wr + count), "bad_wr is none of the list");
	taken = error ? (int)(bad - wr) : count;
	note(world, "post_srq_recv %p, %d requests: %d at %d", (void *)shared->verbs, count, error,
	     taken);
	if (shared->context->closed) {
		MUST(world, error == EIO, "post_srq_recv in a closed context: %d", error);
		return;
	}
	for (int i = 0; i < taken; i++) {
		MUST(world, wr[i].num_sge >= 0 && (uint32_t)wr[i].num_sge <= shared->max_sge,
		     "a bad receive is accepted");
		accept_recv(world, NULL, shared, place[i], list[i].bytes);
	}
	if (error == ENOMEM)
		MUST(world, shared->outstanding >= shared->max_wr,
		     "post_srq_recv is refused with %u of %u requests", shared->outstanding,
		     shared->max_wr);
	else if (error)
		MUST(world,
		     error == EINVAL && (wr[taken].num_sge < 0 ||
					 (uint32_t)wr[taken].num_sge > shared->max_sge),
		     "post_srq_recv: %s", strerror(error));
}

void do_bind(struct world *world)
{
	struct pair *pair = pick_in(world, CAN_SEND);
	struct window *window = PICK(world, windows);
	uint32_t place = next_work(world);
	struct ibv_mw_bind bind = { .wr_id = id_of(world, place) };
	int error;

	if (!pair || !window)
		return;
	bind.send_flags = below(world, 4);
	draw_bind(world, window, &bind.bind_info);
	error = ibv_bind_mw(pair->verbs, window->verbs, &bind);
	note(world, "bind_mw %p by %u: %d", (void *)window->verbs, pair->number, error);
	if (!error) {
		accepted(world, pair, EXPECT_EITHER, false);
		accept_send(world, pair, place, IBV_WR_BIND_MW, bind.send_flags);
	} else if (error != EIO || !pair->context->closed) {
		MUST(world,
		     error == EINVAL || error == EPERM ||
			     (error == ENOMEM && pair->sends.count >= pair->cap.max_send_wr),
		     "bind_mw: %s", strerror(error));
	}
}

bool post_beacon(struct world *world, struct pair *pair)
{
	uint32_t place = next_work(world);
	struct ibv_send_wr wr = { .wr_id = id_of(world, place),
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct handle *handle = NULL;
	int error;

	if (pair->type == IBV_QPT_UD) {
		for (uint32_t i = 0; i < MAX_HANDLES; i++)
			if (world->handles[i].verbs && world->handles[i].domain == pair->domain)
				handle = &world->handles[i];
		if (!handle)
			return false;
		wr.wr.ud.ah = handle->verbs;
	}
	if (!pair->cap.max_send_wr)
		return false;
	error = ibv_post_send(pair->verbs, &wr, &bad);
	note(world, "last post_send %u: %d", pair->number, error);
	MUST(world, !error, "a post in ERR is refused: %s", strerror(error));
	accept_send(world, pair, place, wr.opcode, wr.send_flags);
	return true;
}
