/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pd.h"
#include "verbs/abi/ops.h"

enum {
	CACHE_LINE = 64,
};

struct ibv_td *uroce_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	struct uroce_td *td;

	if (attr->comp_mask) {
		errno = EINVAL;
		return NULL;
	}
	td = calloc(1, sizeof(*td));
	if (!td) {
		errno = ENOMEM;
		return NULL;
	}
	td->base.context = context;
	uroce_context_hold(context);
	atomic_init(&td->users, 0);
	return &td->base;
}

int uroce_dealloc_td(struct ibv_td *ibv_td)
{
	struct uroce_td *td = to_uroce_td(ibv_td);
	struct ibv_context *context = td->base.context;

	if (atomic_load(&td->users))
		return EBUSY;
	free(td);
	uroce_context_release(context);
	return 0;
}

/* Returns 0, EINVAL or EOPNOTSUPP. */
static int check_parent_attr(const struct ibv_context *context,
			     const struct ibv_parent_domain_init_attr *attr)
{
	const uint32_t known =
		IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;

	if (attr->comp_mask & ~known)
		return EOPNOTSUPP;
	/* A parent domain cannot extend another parent domain. */
	if (!attr->pd || to_uroce_pd(attr->pd)->extended || attr->pd->context != context)
		return EINVAL;
	if (attr->td && attr->td->context != context)
		return EINVAL;
	if ((attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) &&
	    (!attr->alloc || !attr->free))
		return EINVAL;
	return 0;
}

struct ibv_pd *uroce_alloc_parent_domain(struct ibv_context *context,
					 struct ibv_parent_domain_init_attr *attr)
{
	int error = check_parent_attr(context, attr);
	struct uroce_pd *pd = NULL;

	if (!error) {
		pd = calloc(1, sizeof(*pd));
		error = ENOMEM;
	}
	if (!pd) {
		errno = error;
		return NULL;
	}
	pd->real = pd;
	pd->extended = to_uroce_pd(attr->pd);
	pd->domain = pd->extended;
	atomic_init(&pd->users, 0);
	uroce_pd_get(pd->extended);
	if (attr->td) {
		pd->td = to_uroce_td(attr->td);
		atomic_fetch_add(&pd->td->users, 1);
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) {
		pd->alloc = attr->alloc;
		pd->free = attr->free;
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		pd->pd_context = attr->pd_context;
	pd->base.context = context;
	uroce_context_hold(context);
	pd->base.handle = attr->pd->handle;
	return &pd->base;
}

static bool is_aligned(const void *memory)
{
	return (uintptr_t)memory % CACHE_LINE == 0;
}

/* Returns true if the application's allocator was called; buffer->memory is its result. */
static bool alloc_by_application(struct uroce_buffer *buffer, struct uroce_pd *pd, size_t bytes)
{
	void *memory;

	if (!pd || !pd->alloc)
		return false;
	memory = pd->alloc(&pd->base, pd->pd_context, bytes, CACHE_LINE, buffer->resource);
	if (memory == IBV_ALLOCATOR_USE_DEFAULT)
		return false;
	if (memory && !is_aligned(memory)) {
		pd->free(&pd->base, pd->pd_context, memory, buffer->resource);
		memory = NULL;
	}
	buffer->memory = memory;
	buffer->pd = pd;
	return true;
}

int uroce_buffer_alloc(struct uroce_buffer *buffer, struct uroce_pd *pd, size_t bytes,
		       uint64_t resource)
{
	bytes = (bytes + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1);
	*buffer = (struct uroce_buffer){ .resource = resource };
	if (!alloc_by_application(buffer, pd, bytes))
		buffer->memory = aligned_alloc(CACHE_LINE, bytes);
	if (!buffer->memory)
		return ENOMEM;
	memset(buffer->memory, 0, bytes);
	return 0;
}

void uroce_buffer_free(struct uroce_buffer *buffer)
{
	struct uroce_pd *pd = buffer->pd;

	if (buffer->memory && pd)
		pd->free(&pd->base, pd->pd_context, buffer->memory, buffer->resource);
	else
		free(buffer->memory);
	buffer->memory = NULL;
}

static uint32_t round_up_slots(uint32_t wr)
{
	uint32_t slots = 1;

	while (slots < wr)
		slots *= 2;
	return slots;
}

int uroce_ring_alloc(struct eng_ring *ring, struct uroce_buffer *buffer, struct uroce_pd *pd,
		     uint64_t resource, uint32_t wr, uint32_t slot_bytes)
{
	uint32_t slots = round_up_slots(wr);
	int error = uroce_buffer_alloc(buffer, pd, (size_t)slots * slot_bytes, resource);

	if (!error)
		eng_ring_init(ring, buffer->memory, slot_bytes, slots, wr);
	return error;
}
