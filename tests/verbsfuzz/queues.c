/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Completion queues and shared receive queues: creating, resizing and querying them. */
#include "world.h"

bool may_be_dead(const struct queue *queue)
{
	return queue && !queue->ignores_overrun && queue->peak > queue->least_cqe;
}

static int draw_cqe(struct world *world)
{
	static const int odd[] = { 0, -1, 1 << 30 };

	if (chance(world, 4))
		return odd[below(world, COUNT_OF(odd))];
	return 1 + (int)random_skewed(&world->random, 3000);
}

static bool cqe_is_good(const struct world *world, int64_t cqe)
{
	return cqe >= 1 && cqe <= world->limits.max_cqe;
}

static void made_queue(struct world *world, struct queue *queue, int64_t asked, bool good)
{
	note(world, "create_cq %lld -> %p", (long long)asked, (void *)queue->verbs);
	if (!queue->verbs) {
		MUST(world, !good, "create_cq of %lld: %s", (long long)asked, strerror(errno));
		MUST(world, errno == EINVAL || errno == EOPNOTSUPP, "create_cq: %s",
		     strerror(errno));
		return;
	}
	MUST(world, good, "a bad completion queue is made");
	MUST(world, queue->verbs->cqe >= asked, "create_cq gives %d entries instead of %lld",
	     queue->verbs->cqe, (long long)asked);
	queue->least_cqe = (uint32_t)queue->verbs->cqe;
}

void do_create_queue(struct world *world)
{
	struct context *context = pick_context(world);
	struct queue *queue = UNUSED(world, queues);
	struct channel *channel = chance(world, 60) ? PICK(world, channels) : NULL;
	int cqe = draw_cqe(world);
	int vector = chance(world, 97) ? 0 : (int)below(world, 5) - 2;
	bool good;

	if (!context || !queue)
		return;
	good = cqe_is_good(world, cqe) && vector >= 0 &&
	       vector < context->verbs->num_comp_vectors &&
	       (!channel || channel->context == context);
	*queue = (struct queue){ .context = context, .channel = channel };
	queue->verbs =
		ibv_create_cq(context->verbs, cqe, queue, channel ? channel->verbs : NULL, vector);
	made_queue(world, queue, cqe, good);
}

void do_create_queue_ex(struct world *world)
{
	struct context *context = pick_context(world);
	struct queue *queue = UNUSED(world, queues);
	struct channel *channel = chance(world, 60) ? PICK(world, channels) : NULL;
	struct domain *domain = chance(world, 10) ? PICK(world, domains) : NULL;
	struct ibv_cq_init_attr_ex attr = { 0 };
	struct ibv_cq_ex *ex;
	bool good;

	if (!context || !queue)
		return;
	attr.cqe = (uint32_t)draw_cqe(world);
	attr.cq_context = queue;
	attr.channel = channel ? channel->verbs : NULL;
	attr.wc_flags = random_next(&world->random) & IBV_CREATE_CQ_SUP_WC_FLAGS;
	if (chance(world, 90))
		attr.wc_flags &= IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
	if (chance(world, 50)) {
		attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
		attr.flags = below(world, 4);
	}
	good = cqe_is_good(world, attr.cqe) && (!channel || channel->context == context) &&
	       !(attr.wc_flags &
		 ~(uint64_t)(IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			     IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK));
	*queue = (struct queue){ .context = context, .channel = channel, .extended = true };
	queue->ignores_overrun = attr.flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	/* A plain domain, which is refused: a parent domain would have to outlive the queue. */
	if (domain && !domain->below) {
		attr.comp_mask |= IBV_CQ_INIT_ATTR_MASK_PD;
		attr.parent_domain = domain->verbs;
		good = false;
	}
	ex = ibv_create_cq_ex(context->verbs, &attr);
	queue->verbs = ex ? ibv_cq_ex_to_cq(ex) : NULL;
	made_queue(world, queue, attr.cqe, good);
}

void do_resize(struct world *world)
{
	struct queue *queue = PICK(world, queues);
	int cqe = draw_cqe(world), error;

	if (!queue)
		return;
	error = ibv_resize_cq(queue->verbs, cqe);
	note(world, "resize_cq %p to %d: %d, now %d", (void *)queue->verbs, cqe, error,
	     queue->verbs->cqe);
	if (queue->context->closed) {
		MUST(world, error == EIO || error == EINVAL, "resize_cq of a closed context: %d",
		     error);
		return;
	}
	if (error) {
		MUST(world, error == EINVAL, "resize_cq: %s", strerror(error));
		MUST(world, !cqe_is_good(world, cqe) || queue->peak > (uint32_t)cqe,
		     "resize_cq to %d is refused", cqe);
		return;
	}
	MUST(world, cqe_is_good(world, cqe) && queue->verbs->cqe >= cqe, "resize_cq to %d gives %d",
	     cqe, queue->verbs->cqe);
	if ((uint32_t)queue->verbs->cqe < queue->least_cqe)
		queue->least_cqe = (uint32_t)queue->verbs->cqe;
}

void do_moderate(struct world *world)
{
	struct queue *queue = PICK(world, queues);
	struct ibv_modify_cq_attr attr = { .attr_mask = IBV_CQ_ATTR_MODERATE };
	int error;

	if (!queue)
		return;
	attr.moderate.cq_count = (uint16_t)below(world, 20);
	attr.moderate.cq_period = (uint16_t)below(world, 200);
	error = ibv_modify_cq(queue->verbs, &attr);
	note(world, "modify_cq %p: %d", (void *)queue->verbs, error);
	MUST(world, error == (queue->context->closed ? EIO : 0), "modify_cq: %s", strerror(error));
}

/* ---- shared receive queues ---- */

static void made_shared(struct world *world, struct shared *shared, bool good)
{
	note(world, "create_srq of %u in %p -> %p", shared->max_wr, (void *)shared->domain->verbs,
	     (void *)shared->verbs);
	if (!shared->verbs) {
		if (shared->context->closed)
			return must_be_closed(world, shared->context, "create_srq");
		MUST(world, !good && (errno == EINVAL || errno == EOPNOTSUPP), "create_srq: %s",
		     strerror(errno));
		return;
	}
	MUST(world, good && !shared->context->closed, "a bad shared receive queue is made");
	if (shared->xrc_domain)
		MUST(world, !ibv_get_srq_num(shared->verbs, &shared->number) && shared->number,
		     "an XRC shared receive queue has no number");
}

void do_create_shared(struct world *world)
{
	struct domain *domain = PICK(world, domains);
	struct shared *shared = UNUSED(world, shared);
	struct ibv_srq_init_attr attr = { 0 };
	struct ibv_srq_init_attr_ex ex = { 0 };
	bool good;

	if (!domain || !shared)
		return;
	*shared = (struct shared){ .context = domain->context, .domain = domain };
	attr.attr.max_wr = chance(world, 95) ? 1 + below(world, 200) : below(world, 2) * 100000;
	attr.attr.max_sge = chance(world, 95) ? below(world, 5) : 1000;
	shared->max_wr = attr.attr.max_wr;
	shared->max_sge = attr.attr.max_sge;
	good = attr.attr.max_wr && attr.attr.max_wr <= (uint32_t)world->limits.max_srq_wr &&
	       attr.attr.max_sge <= (uint32_t)world->limits.max_srq_sge;
	if (chance(world, 60)) {
		shared->verbs = ibv_create_srq(domain->verbs, &attr);
		made_shared(world, shared, good);
		return;
	}
	shared->xrc_domain = PICK(world, xrc_domains);
	shared->queue = PICK(world, queues);
	if (!shared->xrc_domain || !shared->queue) {
		shared->queue = NULL;
		return;
	}
	ex = (struct ibv_srq_init_attr_ex){
		.attr = attr.attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = domain->verbs,
		.xrcd = shared->xrc_domain->verbs,
		.cq = shared->queue->verbs,
	};
	good = good && shared->xrc_domain->context == domain->context &&
	       shared->queue->context == domain->context;
	shared->verbs = ibv_create_srq_ex(domain->context->verbs, &ex);
	made_shared(world, shared, good);
}

static void query_shared(struct world *world, const struct shared *shared)
{
	struct ibv_srq_attr attr = { 0 };
	int error = ibv_query_srq(shared->verbs, &attr);

	MUST(world, error == (shared->context->closed ? EIO : 0), "query_srq: %s", strerror(error));
	if (!error)
		MUST(world, attr.max_wr >= shared->max_wr && attr.max_sge >= shared->max_sge,
		     "query_srq gives %u requests of %u parts", attr.max_wr, attr.max_sge);
}

void do_modify_shared(struct world *world)
{
	struct shared *shared = PICK(world, shared);
	struct ibv_srq_attr attr = { 0 };
	int mask = (int)below(world, chance(world, 90) ? 4 : 8), error;
	uint32_t max_wr;
	bool bad;

	if (!shared)
		return;
	query_shared(world, shared);
	attr.max_wr = 1 + below(world, 300);
	attr.srq_limit = below(world, 100);
	max_wr = mask & IBV_SRQ_MAX_WR ? attr.max_wr : shared->max_wr;
	bad = (mask & ~3) || ((mask & IBV_SRQ_LIMIT) && attr.srq_limit > max_wr);
	error = ibv_modify_srq(shared->verbs, &attr, mask);
	note(world, "modify_srq %p, mask %d, max %u, limit %u: %d", (void *)shared->verbs, mask,
	     attr.max_wr, attr.srq_limit, error);
	if (shared->context->closed) {
		MUST(world, error == EIO || (error == EINVAL && bad),
		     "modify_srq of a closed context: %d", error);
		return;
	}
	if (error) {
		MUST(world, error == EINVAL, "modify_srq: %s", strerror(error));
		MUST(world, bad || shared->outstanding > max_wr, "modify_srq is refused");
		return;
	}
	MUST(world, !bad, "a bad modify_srq succeeds");
	shared->max_wr = max_wr;
}
