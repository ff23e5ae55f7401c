/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Destroying objects in any order: EBUSY exactly while something uses them. */
#include "world.h"

/* The number of objects of a table that meet a condition, in which "it" is the object. */
#define USERS(world, table, condition)                                                 \
	({                                                                             \
		uint32_t users_ = 0;                                                   \
                                                                                       \
		for (uint32_t i_ = 0; i_ < COUNT_OF((world)->table); i_++) {           \
			const __typeof__((world)->table[0]) *it = &(world)->table[i_]; \
                                                                                       \
			users_ += it->verbs && (condition);                            \
		}                                                                      \
		users_;                                                                \
	})

static uint32_t users_of_context(struct world *world, const struct context *context)
{
	return USERS(world, domains, it->context == context) +
	       USERS(world, channels, it->context == context) +
	       USERS(world, queues, it->context == context) +
	       USERS(world, shared, it->context == context) +
	       USERS(world, xrc_domains, it->context == context) +
	       USERS(world, regions, it->context == context) +
	       USERS(world, windows, it->context == context) +
	       USERS(world, memories, it->context == context) +
	       USERS(world, handles, it->context == context) +
	       USERS(world, pairs, it->context == context);
}

/* The memory of a closed context is freed with its last object. */
static void forget_contexts(struct world *world)
{
	for (uint32_t i = 0; i < MAX_CONTEXTS; i++) {
		struct context *context = &world->contexts[i];

		if (context->verbs && context->closed && !users_of_context(world, context))
			context->verbs = NULL;
	}
}

/* Checks the result of a call that destroys; returns true if the object is destroyed. */
static bool destroyed(struct world *world, const char *call, const void *object, uint32_t users,
		      int answer)
{
	note(world, "%s %p with %u users: %d", call, object, users, answer);
	MUST(world, answer == (users ? EBUSY : 0), "%s with %u users answers %d (%s)", call, users,
	     answer, strerror(answer));
	return !answer;
}

static void destroy_domain(struct world *world)
{
	struct domain *domain = PICK(world, domains);
	uint32_t users;

	if (!domain)
		return;
	users = USERS(world, domains, it->below == domain) +
		USERS(world, regions, it->domain == domain) +
		USERS(world, windows, it->domain == domain) +
		USERS(world, handles, it->domain == domain) +
		USERS(world, shared, it->domain == domain) +
		USERS(world, pairs, it->domain == domain);
	if (destroyed(world, "dealloc_pd", domain->verbs, users, ibv_dealloc_pd(domain->verbs)))
		domain->verbs = NULL;
}

static void destroy_channel(struct world *world)
{
	struct channel *channel = PICK(world, channels);

	if (channel && destroyed(world, "destroy_comp_channel", channel->verbs,
				 USERS(world, queues, it->channel == channel),
				 ibv_destroy_comp_channel(channel->verbs)))
		channel->verbs = NULL;
}

static void destroy_queue(struct world *world)
{
	struct queue *queue = PICK(world, queues);
	uint32_t users;

	if (!queue)
		return;
	users = USERS(world, pairs, it->send_queue == queue || it->recv_queue == queue) +
		USERS(world, shared, it->queue == queue);
	if (destroyed(world, "destroy_cq", queue->verbs, users, ibv_destroy_cq(queue->verbs)))
		queue->verbs = NULL;
}

static void destroy_shared(struct world *world)
{
	struct shared *shared = PICK(world, shared);

	if (!shared ||
	    !destroyed(world, "destroy_srq", shared->verbs,
		       USERS(world, pairs, it->shared == shared), ibv_destroy_srq(shared->verbs)))
		return;
	forget_shared(world, shared);
	shared->verbs = NULL;
}

static void destroy_xrc_domain(struct world *world)
{
	struct xrc_domain *domain = PICK(world, xrc_domains);

	if (domain && destroyed(world, "close_xrcd", domain->verbs,
				USERS(world, pairs, it->xrc_domain == domain) +
					USERS(world, shared, it->xrc_domain == domain),
				ibv_close_xrcd(domain->verbs)))
		domain->verbs = NULL;
}

static void destroy_region(struct world *world)
{
	struct region *region = PICK(world, regions);
	int error;

	if (!region)
		return;
	error = ibv_dereg_mr(region->verbs);
	note(world, "dereg_mr %p: %d", (void *)region->verbs, error);
	/* The model does not know which binds of windows to the region have been executed. */
	MUST(world, !error || (error == EBUSY && region->may_be_bound), "dereg_mr: %s",
	     strerror(error));
	if (error)
		return;
	memory_cover(world, region, -1);
	region->verbs = NULL;
}

static void destroy_window(struct world *world)
{
	struct window *window = PICK(world, windows);

	if (window &&
	    destroyed(world, "dealloc_mw", window->verbs, 0, ibv_dealloc_mw(window->verbs)))
		window->verbs = NULL;
}

static void destroy_memory(struct world *world)
{
	struct device_memory *memory = PICK(world, memories);

	if (memory &&
	    destroyed(world, "free_dm", memory->verbs, USERS(world, regions, it->memory == memory),
		      ibv_free_dm(memory->verbs)))
		memory->verbs = NULL;
}

static void destroy_handle(struct world *world)
{
	struct handle *handle = PICK(world, handles);

	if (handle &&
	    destroyed(world, "destroy_ah", handle->verbs, 0, ibv_destroy_ah(handle->verbs)))
		handle->verbs = NULL;
}

static void destroy_pair(struct world *world)
{
	struct pair *pair = PICK(world, pairs);
	uint32_t groups = 0;

	if (!pair)
		return;
	for (int i = 0; i < MAX_GROUPS; i++)
		groups += pair->attached[i];
	if (!destroyed(world, "destroy_qp", pair->verbs, groups, ibv_destroy_qp(pair->verbs)))
		return;
	forget_works(world, pair);
	pair->core->openings--;
	pair->verbs = NULL;
}

static void (*const destroyers[])(struct world *world) = {
	destroy_domain,	    destroy_channel, destroy_queue,  destroy_shared,
	destroy_xrc_domain, destroy_region,  destroy_window, destroy_memory,
	destroy_handle,	    destroy_pair,    destroy_pair,   destroy_region,
};

void do_destroy(struct world *world)
{
	destroyers[below(world, COUNT_OF(destroyers))](world);
	forget_contexts(world);
}

void destroy_all(struct world *world)
{
	uint32_t left, tries = 0;

	/* Members of a group cannot be destroyed until they have left it. */
	for (uint32_t i = 0; i < MAX_PAIRS; i++) {
		struct pair *pair = &world->pairs[i];

		for (unsigned int j = 0; j < MAX_GROUPS && pair->verbs; j++) {
			union ibv_gid gid = group_gid(j);

			if (pair->attached[j])
				MUST(world, !ibv_detach_mcast(pair->verbs, &gid, 0),
				     "a member cannot leave its group");
			pair->attached[j] = false;
		}
	}
	do {
		do_destroy(world);
		do_close_context(world);
		left = 0;
		for (uint32_t i = 0; i < MAX_CONTEXTS; i++)
			if (world->contexts[i].verbs)
				left += users_of_context(world, &world->contexts[i]) +
					!world->contexts[i].closed;
		MUST(world, tries++ < 20000, "%u objects cannot be destroyed", left);
	} while (left);
}
