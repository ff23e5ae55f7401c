/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Creating the objects that have no queue: contexts, domains, channels, handles, windows. */
#include <fcntl.h>

#include "world.h"

void do_open_context(struct world *world)
{
	struct context *context = UNUSED(world, contexts);

	if (!context)
		return;
	context->verbs = ibv_open_device(world->device);
	context->closed = false;
	note(world, "open_device -> %p", (void *)context->verbs);
	MUST(world, context->verbs, "open_device: %s", strerror(errno));
}

/* After a close, only calls that create objects in a protection domain are still possible. */
struct context *pick_context(struct world *world)
{
	struct context *context = PICK(world, contexts);

	return context && !context->closed ? context : NULL;
}

/* Queue pairs end with their context, and their requests never complete. */
void do_close_context(struct world *world)
{
	struct context *context = pick_context(world);

	if (!context || chance(world, 50))
		return;
	note(world, "close_device %p", (void *)context->verbs);
	context->closed = true;
	for (uint32_t i = 0; i < MAX_PAIRS; i++) {
		struct pair *pair = &world->pairs[i];

		if (!pair->verbs || pair->context != context)
			continue;
		forget_works(world, pair);
		pair->core->ended = true;
		memset(pair->attached, 0, sizeof(pair->attached));
	}
	MUST(world, !ibv_close_device(context->verbs), "close_device fails");
}

void do_alloc_domain(struct world *world)
{
	struct context *context = pick_context(world);
	struct domain *domain = UNUSED(world, domains);

	if (!context || !domain)
		return;
	*domain = (struct domain){ .context = context };
	domain->verbs = ibv_alloc_pd(context->verbs);
	note(world, "alloc_pd -> %p", (void *)domain->verbs);
	MUST(world, domain->verbs, "alloc_pd: %s", strerror(errno));
}

void do_alloc_parent(struct world *world)
{
	struct domain *below = PICK(world, domains), *domain = UNUSED(world, domains);
	struct ibv_parent_domain_init_attr attr = { 0 };

	if (!below || !domain || below->below)
		return;
	attr.pd = below->verbs;
	*domain = (struct domain){ .context = below->context, .below = below };
	domain->verbs = ibv_alloc_parent_domain(below->context->verbs, &attr);
	note(world, "alloc_parent_domain of %p -> %p", (void *)below->verbs, (void *)domain->verbs);
	if (!domain->verbs)
		must_be_closed(world, below->context, "alloc_parent_domain");
	else
		MUST(world, !below->context->closed, "a domain in a closed context");
}

void do_create_channel(struct world *world)
{
	struct context *context = pick_context(world);
	struct channel *channel = UNUSED(world, channels);

	if (!context || !channel)
		return;
	*channel = (struct channel){ .context = context };
	channel->verbs = ibv_create_comp_channel(context->verbs);
	note(world, "create_comp_channel -> %p", (void *)channel->verbs);
	MUST(world, channel->verbs, "create_comp_channel: %s", strerror(errno));
}

void do_open_xrc_domain(struct world *world)
{
	struct context *context = pick_context(world);
	struct xrc_domain *domain = UNUSED(world, xrc_domains);
	struct ibv_xrcd_init_attr attr = { .comp_mask = IBV_XRCD_INIT_ATTR_FD |
							IBV_XRCD_INIT_ATTR_OFLAGS,
					   .fd = chance(world, 50) ? world->xrc_file : -1,
					   .oflags = O_CREAT };

	if (!context || !domain)
		return;
	*domain = (struct xrc_domain){ .context = context };
	domain->verbs = ibv_open_xrcd(context->verbs, &attr);
	note(world, "open_xrcd fd %d -> %p", attr.fd, (void *)domain->verbs);
	MUST(world, domain->verbs, "open_xrcd: %s", strerror(errno));
}

static union ibv_gid loopback_gid(struct world *world)
{
	union ibv_gid gid = { .raw = { [10] = 0xff, [11] = 0xff, 127, 0, 0, 1 } };

	gid.raw[15] = (uint8_t)(1 + below(world, 3));
	return gid;
}

/* Nothing here leaves the loopback interface. */
bool draw_address(struct world *world, struct ibv_ah_attr *attr, bool *odd)
{
	static const union ibv_gid nowhere;
	uint32_t index = world->gids ? below(world, (uint32_t)world->gids) : 0;

	*odd = false;
	memset(attr, 0, sizeof(*attr));
	attr->is_global = 1;
	attr->port_num = 1;
	attr->grh.sgid_index = (uint8_t)index;
	attr->grh.dgid = world->gid[index];
	attr->grh.hop_limit = (uint8_t)below(world, 256);
	attr->grh.traffic_class = (uint8_t)below(world, 256);
	attr->grh.flow_label = (uint32_t)random_next(&world->random);
	attr->sl = (uint8_t)below(world, 16);
	if (chance(world, 85))
		return true;
	switch (below(world, 7)) {
	case 0:
		attr->is_global = 0;
		return false;
	case 1:
		attr->port_num = (uint8_t)(below(world, 2) * 2);
		return false;
	case 2:
		attr->grh.sgid_index = (uint8_t)(world->gids + (int)below(world, 200));
		return attr->grh.sgid_index < world->gids;
	case 3:
		attr->grh.dgid = nowhere;
		return false;
	default:
		/* Another address of this host, a group, or one of another family. */
		*odd = true;
		attr->grh.dgid = chance(world, 60) ? loopback_gid(world)
						   : group_gid(below(world, MAX_GROUPS));
		return true;
	}
}

void do_create_handle(struct world *world)
{
	struct domain *domain = PICK(world, domains);
	struct handle *handle = UNUSED(world, handles);
	struct ibv_ah_attr attr;
	bool good, odd;

	if (!domain || !handle)
		return;
	good = draw_address(world, &attr, &odd);
	*handle = (struct handle){ .context = domain->context, .domain = domain };
	handle->verbs = ibv_create_ah(domain->verbs, &attr);
	note(world, "create_ah in %p -> %p", (void *)domain->verbs, (void *)handle->verbs);
	if (handle->verbs) {
		MUST(world, good && !domain->context->closed, "a bad address handle is made");
	} else if (domain->context->closed) {
		must_be_closed(world, domain->context, "create_ah");
	} else {
		MUST(world, odd || (!good && errno == EINVAL), "create_ah: %s", strerror(errno));
	}
}

void do_alloc_window(struct world *world)
{
	struct domain *domain = PICK(world, domains);
	struct window *window = UNUSED(world, windows);
	uint32_t type = chance(world, 95) ? 1 + below(world, 2) : below(world, 4) * 77;

	if (!domain || !window)
		return;
	*window = (struct window){ .context = domain->context, .domain = domain };
	window->verbs = ibv_alloc_mw(domain->verbs, (enum ibv_mw_type)type);
	note(world, "alloc_mw type %u in %p -> %p", type, (void *)domain->verbs,
	     (void *)window->verbs);
	if (window->verbs)
		MUST(world, (type == 1 || type == 2) && !domain->context->closed,
		     "a window of type %u is made", type);
	else if (type == 1 || type == 2)
		must_be_closed(world, domain->context, "alloc_mw");
}

void do_alloc_memory(struct world *world)
{
	struct context *context = pick_context(world);
	struct device_memory *memory = UNUSED(world, memories);
	struct ibv_alloc_dm_attr attr = { .length = chance(world, 80) ? DM_BYTES
								      : below(world, 3) << 20,
					  .log_align_req = below(world, 16) };
	bool good;

	if (!context || !memory)
		return;
	good = attr.length && attr.length <= 1 << 20 && attr.log_align_req <= 12;
	*memory = (struct device_memory){ .context = context };
	memory->verbs = ibv_alloc_dm(context->verbs, &attr);
	note(world, "alloc_dm %zu -> %p", attr.length, (void *)memory->verbs);
	if (memory->verbs && attr.length > DM_BYTES) {
		MUST(world, !ibv_free_dm(memory->verbs), "free_dm of new memory fails");
		memory->verbs = NULL;
	} else if (!memory->verbs) {
		MUST(world, !good || errno == ENOMEM, "alloc_dm: %s", strerror(errno));
	} else {
		MUST(world, good, "bad device memory is made");
	}
}

void do_copy_memory(struct world *world)
{
	struct device_memory *memory = PICK(world, memories);
	uint8_t bytes[256];
	uint32_t offset, length;
	bool good;
	int error;

	if (!memory)
		return;
	offset = below(world, DM_BYTES + 64);
	length = below(world, sizeof(bytes));
	if (chance(world, 80)) {
		offset &= ~3u;
		length &= ~3u;
	}
	good = offset % 4 == 0 && length % 4 == 0 && offset + length <= DM_BYTES;
	random_fill(&world->random, bytes, sizeof(bytes));
	error = chance(world, 50) ? ibv_memcpy_to_dm(memory->verbs, offset, bytes, length)
				  : ibv_memcpy_from_dm(bytes, memory->verbs, offset, length);
	note(world, "memcpy dm %p at %u, %u bytes: %d", (void *)memory->verbs, offset, length,
	     error);
	MUST(world, !error == good, "copy of device memory: %s", strerror(error));
}
