/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Creating queue pairs of all types, and joining multicast groups. */
#include "world.h"

enum {
	FUNCTIONS = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
		    IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |
		    IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
		    IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW |
		    IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_ATOMIC_WRITE,
	FUNCTIONS_UC = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
		       IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
		       IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW |
		       IBV_QP_EX_WITH_SEND_WITH_INV,
	FUNCTIONS_UD = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM,
};

static uint64_t functions_of(enum ibv_qp_type type)
{
	if (type == IBV_QPT_UD)
		return FUNCTIONS_UD;
	return type == IBV_QPT_UC ? FUNCTIONS_UC : FUNCTIONS;
}

static bool sends(enum ibv_qp_type type)
{
	return type != IBV_QPT_XRC_RECV;
}

static bool receives(enum ibv_qp_type type)
{
	return type == IBV_QPT_RC || type == IBV_QPT_UC || type == IBV_QPT_UD;
}

static uint32_t draw_limit(struct world *world, uint32_t usual, uint32_t limit)
{
	uint32_t drawn = below(world, 1000);

	if (drawn < 5)
		return limit + 1 + below(world, 1000);
	if (drawn < 8)
		return limit;
	return drawn < 40 ? 0 : 1 + below(world, usual);
}

static void draw_cap(struct world *world, struct ibv_qp_cap *cap)
{
	uint32_t usual = chance(world, 90) ? 40 : 600;

	cap->max_send_wr = draw_limit(world, usual, (uint32_t)world->limits.max_qp_wr);
	cap->max_recv_wr = draw_limit(world, usual, (uint32_t)world->limits.max_qp_wr);
	cap->max_send_sge = draw_limit(world, 4, (uint32_t)world->limits.max_sge);
	cap->max_recv_sge = draw_limit(world, 4, (uint32_t)world->limits.max_sge);
	cap->max_inline_data = draw_limit(world, 200, 512);
}

/* The type decides which limits matter; excessive values of the others may be refused. */
static enum expect predict_cap(const struct world *world, const struct pair *pair,
			       const struct ibv_qp_cap *cap)
{
	bool send = cap->max_send_wr > (uint32_t)world->limits.max_qp_wr ||
		    cap->max_send_sge > (uint32_t)world->limits.max_sge ||
		    cap->max_inline_data > 512;
	bool recv = cap->max_recv_wr > (uint32_t)world->limits.max_qp_wr ||
		    cap->max_recv_sge > (uint32_t)world->limits.max_sge;

	if ((send && sends(pair->type)) || (recv && receives(pair->type) && !pair->shared))
		return EXPECT_REFUSED;
	return send || recv ? EXPECT_EITHER : EXPECT_ACCEPTED;
}

static bool is_apart(const struct pair *pair, const void *object, const struct context *context)
{
	return object && context != pair->context;
}

/* Returns true if a part is of another context, or the shared queue is of the wrong kind. */
static bool has_foreign_parts(const struct pair *pair)
{
	if (sends(pair->type) && is_apart(pair, pair->send_queue, pair->send_queue->context))
		return true;
	if (!receives(pair->type))
		return false;
	return is_apart(pair, pair->recv_queue, pair->recv_queue->context) ||
	       (pair->shared &&
		(pair->shared->context != pair->context || pair->shared->xrc_domain));
}

static void new_core(struct world *world, struct pair *pair)
{
	for (uint32_t i = 0; i < MAX_PAIRS; i++) {
		if (world->cores[i].openings)
			continue;
		pair->core = &world->cores[i];
		*pair->core = (struct core){ .openings = 1, .possible = 1u << IBV_QPS_RESET };
		return;
	}
}

static void check_cap(struct world *world, const struct pair *pair, const struct ibv_qp_cap *asked)
{
	const struct ibv_qp_cap *cap = &pair->cap;

	if (sends(pair->type))
		MUST(world,
		     cap->max_send_wr >= asked->max_send_wr &&
			     cap->max_send_sge >= asked->max_send_sge &&
			     cap->max_inline_data >= asked->max_inline_data,
		     "create_qp grants less than was asked for");
	if (receives(pair->type) && !pair->shared)
		MUST(world,
		     cap->max_recv_wr >= asked->max_recv_wr &&
			     cap->max_recv_sge >= asked->max_recv_sge,
		     "create_qp grants less than was asked for");
}

static void made(struct world *world, struct pair *pair, enum expect expect)
{
	note(world, "create_qp type %d, send %u, recv %u%s -> %p", pair->type,
	     pair->cap.max_send_wr, pair->cap.max_recv_wr, pair->shared ? ", shared" : "",
	     (void *)pair->verbs);
	if (!pair->verbs) {
		if (pair->context->closed)
			return must_be_closed(world, pair->context, "create_qp");
		MUST(world, expect != EXPECT_ACCEPTED, "create_qp: %s", strerror(errno));
		MUST(world, errno == EINVAL || errno == EOPNOTSUPP, "create_qp: %s",
		     strerror(errno));
		return;
	}
	MUST(world, expect != EXPECT_REFUSED && !pair->context->closed, "a bad queue pair is made");
	pair->number = pair->verbs->qp_num;
	/* Not 0, which is failed_epoch before any failure. */
	pair->epoch = 1;
	new_core(world, pair);
	for (uint32_t i = 0; i < MAX_PAIRS; i++)
		MUST(world,
		     pair == &world->pairs[i] || !world->pairs[i].verbs ||
			     world->pairs[i].number != pair->number,
		     "two queue pairs have number %u", pair->number);
	/* Limits that the type does not use are granted as 0, and such objects are not held. */
	if (!sends(pair->type)) {
		pair->send_queue = NULL;
		pair->domain = NULL;
	}
	if (!receives(pair->type)) {
		pair->recv_queue = NULL;
		pair->shared = NULL;
	}
}

static void create_plain(struct world *world, struct pair *pair, struct ibv_qp_cap cap,
			 enum expect expect)
{
	struct ibv_qp_init_attr attr = {
		.qp_context = pair,
		.send_cq = pair->send_queue->verbs,
		.recv_cq = pair->recv_queue->verbs,
		.srq = pair->shared ? pair->shared->verbs : NULL,
		.cap = cap,
		.qp_type = pair->type,
		.sq_sig_all = pair->signal_all,
	};

	pair->verbs = ibv_create_qp(pair->domain->verbs, &attr);
	pair->cap = pair->verbs ? attr.cap : cap;
	made(world, pair, expect);
	if (pair->verbs)
		check_cap(world, pair, &cap);
}

static void create_extended(struct world *world, struct pair *pair, struct ibv_qp_cap cap,
			    enum expect expect)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_context = pair,
		.send_cq = pair->send_queue->verbs,
		.recv_cq = pair->recv_queue->verbs,
		.srq = pair->shared ? pair->shared->verbs : NULL,
		.cap = cap,
		.qp_type = pair->type,
		.sq_sig_all = pair->signal_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pair->domain->verbs,
	};

	if (pair->type == IBV_QPT_XRC_RECV) {
		attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
		attr.xrcd = pair->xrc_domain->verbs;
	} else {
		pair->has_functions = true;
		attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		attr.send_ops_flags = functions_of(pair->type);
		if (chance(world, 3)) {
			attr.send_ops_flags |= IBV_QP_EX_WITH_TSO;
			expect = EXPECT_REFUSED;
		}
	}
	pair->verbs = ibv_create_qp_ex(pair->context->verbs, &attr);
	pair->cap = pair->verbs ? attr.cap : cap;
	made(world, pair, expect);
	if (pair->verbs)
		check_cap(world, pair, &cap);
}

void do_create_pair(struct world *world)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC,	   IBV_QPT_RC, IBV_QPT_RC,
						  IBV_QPT_UC,	   IBV_QPT_UD, IBV_QPT_XRC_SEND,
						  IBV_QPT_XRC_RECV };
	struct pair *pair = UNUSED(world, pairs);
	struct domain *domain = PICK(world, domains);
	struct xrc_domain *xrc_domain = PICK(world, xrc_domains);
	struct ibv_qp_cap cap;
	enum expect expect;

	if (!pair || !domain)
		return;
	*pair = (struct pair){
		.context = domain->context,
		.domain = domain,
		.send_queue = PICK(world, queues),
		.recv_queue = PICK(world, queues),
		.shared = chance(world, 30) ? PICK(world, shared) : NULL,
		.type = types[below(world, COUNT_OF(types))],
		.signal_all = chance(world, 30),
	};
	if (!pair->send_queue || !pair->recv_queue)
		return;
	draw_cap(world, &cap);
	expect = predict_cap(world, pair, &cap);
	if (pair->type == IBV_QPT_XRC_RECV) {
		if (!xrc_domain || xrc_domain->context->closed)
			return;
		pair->context = xrc_domain->context;
		pair->xrc_domain = xrc_domain;
		create_extended(world, pair, cap, expect);
		return;
	}
	if (has_foreign_parts(pair))
		expect = EXPECT_REFUSED;
	if (chance(world, 40))
		create_extended(world, pair, cap, expect);
	else
		create_plain(world, pair, cap, expect);
}

/* Opens an XRC target once more. */
void do_open_target(struct world *world)
{
	struct pair *pair = UNUSED(world, pairs), *target = PICK(world, pairs);
	struct xrc_domain *domain = PICK(world, xrc_domains);
	struct ibv_qp_open_attr attr = { .comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
						      IBV_QP_OPEN_ATTR_TYPE,
					 .qp_type = IBV_QPT_XRC_RECV };
	bool same;

	if (!pair || !target || !domain || target->type != IBV_QPT_XRC_RECV ||
	    domain->context->closed)
		return;
	attr.qp_num = target->number;
	attr.xrcd = domain->verbs;
	same = domain == target->xrc_domain;
	*pair = (struct pair){ .context = domain->context,
			       .type = IBV_QPT_XRC_RECV,
			       .xrc_domain = domain,
			       .number = target->number,
			       .epoch = 1 };
	pair->verbs = ibv_open_qp(domain->context->verbs, &attr);
	note(world, "open_qp %u -> %p", target->number, (void *)pair->verbs);
	if (!pair->verbs) {
		MUST(world, errno == EINVAL && !same, "open_qp: %s", strerror(errno));
		return;
	}
	pair->core = target->core;
	pair->core->openings++;
}

union ibv_gid group_gid(unsigned int group)
{
	union ibv_gid gid = { .raw = { [10] = 0xff, [11] = 0xff, 239, 9, 9 } };

	gid.raw[15] = (uint8_t)(1 + group);
	return gid;
}

void do_group(struct world *world)
{
	struct pair *pair = PICK(world, pairs);
	unsigned int group = below(world, MAX_GROUPS);
	union ibv_gid gid = group_gid(group);
	bool member, attach = chance(world, 60);
	int error;

	if (!pair)
		return;
	member = pair->attached[group];
	error = attach ? ibv_attach_mcast(pair->verbs, &gid, 0)
		       : ibv_detach_mcast(pair->verbs, &gid, 0);
	note(world, "%s_mcast %u %u: %d", attach ? "attach" : "detach", pair->number, group, error);
	if (pair->type != IBV_QPT_UD) {
		MUST(world, error == EINVAL, "a group takes a queue pair of type %d", pair->type);
	} else if (pair->context->closed) {
		MUST(world, error == (attach ? EIO : EINVAL), "%s in a closed context: %d",
		     attach ? "attach_mcast" : "detach_mcast", error);
	} else if (attach) {
		/* The host may be unable to join the group. */
		MUST(world, !error || (!member && error != EINVAL && error != EIO),
		     "attach_mcast: %s", strerror(error));
		pair->attached[group] |= !error;
	} else {
		MUST(world, error == (member ? 0 : EINVAL), "detach_mcast: %s", strerror(error));
		pair->attached[group] = false;
	}
}
