/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Regions, and the bytes of the arena in which they lie: a byte may change only while it belongs to
 * a region that allows local writes, no matter who writes and by which key.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "world.h"

enum {
	MAY_WRITE = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
	REMOTE = MAY_WRITE | IBV_ACCESS_REMOTE_READ,
};

void memory_open(struct world *world)
{
	world->arena =
		mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	world->before = malloc(ARENA_BYTES);
	MUST(world, world->arena != MAP_FAILED && world->before, "no memory");
	random_fill(&world->random, world->arena, ARENA_BYTES);
	memcpy(world->before, world->arena, ARENA_BYTES);
	if (mprotect(world->arena + READ_ONLY_PAGE * PAGE, PAGE, PROT_READ) ||
	    mprotect(world->arena + NO_ACCESS_PAGE * PAGE, PAGE, PROT_NONE))
		finding(world, "mprotect: %s", strerror(errno));
}

/* True if the range has a byte of the page. */
static bool touches(struct world *world, const uint8_t *addr, uint64_t length, uint32_t page)
{
	const uint8_t *first = world->arena + page * PAGE;

	return addr < first + PAGE && addr + length > first;
}

void memory_cover(struct world *world, const struct region *region, int change)
{
	uint64_t first = (uint64_t)(region->addr - world->arena);

	if (region->kind != REGION_PLAIN || !(region->access & IBV_ACCESS_LOCAL_WRITE))
		return;
	for (uint64_t i = first; i < first + region->length; i++) {
		world->cover[i] = (uint8_t)(world->cover[i] + change);
		/* The byte must not change from now on. */
		if (change < 0 && !world->cover[i] && i < READ_ONLY_PAGE * PAGE)
			world->before[i] = world->arena[i];
	}
}

void memory_check(struct world *world)
{
	for (uint32_t i = 0; i < READ_ONLY_PAGE * PAGE; i++)
		MUST(world, world->cover[i] || world->arena[i] == world->before[i],
		     "byte %u of the arena has changed outside of every region", i);
}

static int draw_access(struct world *world)
{
	static const int often[] = {
		IBV_ACCESS_LOCAL_WRITE | REMOTE,
		IBV_ACCESS_LOCAL_WRITE | REMOTE | IBV_ACCESS_MW_BIND,
		IBV_ACCESS_LOCAL_WRITE,
		IBV_ACCESS_REMOTE_READ,
		0,
		IBV_ACCESS_LOCAL_WRITE | REMOTE | IBV_ACCESS_RELAXED_ORDERING,
		IBV_ACCESS_LOCAL_WRITE | REMOTE | IBV_ACCESS_ON_DEMAND,
		IBV_ACCESS_LOCAL_WRITE | REMOTE | IBV_ACCESS_ZERO_BASED,
	};

	if (chance(world, 92))
		return often[chance(world, 60) ? below(world, 2) : below(world, COUNT_OF(often))];
	return (int)(random_next(&world->random) & 0x7ff);
}

static bool draw_range(struct world *world, struct region *region)
{
	uint32_t offset = below(world, ARENA_BYTES);
	uint32_t most = ARENA_BYTES - offset;

	/* Mostly in the pages that can be written. */
	if (chance(world, 90)) {
		offset = below(world, READ_ONLY_PAGE * PAGE);
		most = READ_ONLY_PAGE * PAGE - offset;
	}
	if (chance(world, 70))
		offset &= ~63u;
	region->addr = world->arena + offset;
	region->length = chance(world, 70) ? 1 + below(world, most) : 1 + below(world, 300) % most;
	if (chance(world, 4))
		region->length = 0;
	return region->length;
}

/* Predicts the result of the registration of a range of the arena. */
static enum expect predict(struct world *world, const struct region *region)
{
	/* IBV_ACCESS_FLUSH_GLOBAL; _PERSISTENT is refused, since the arena is not a file. */
	const int flush_global = 1 << 8;
	const int known = flush_global | IBV_ACCESS_LOCAL_WRITE | REMOTE | IBV_ACCESS_MW_BIND |
			  IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND |
			  IBV_ACCESS_RELAXED_ORDERING;
	bool writes = region->access & IBV_ACCESS_LOCAL_WRITE;

	if (!region->length || (region->access & IBV_ACCESS_HUGETLB))
		return EXPECT_EITHER;
	if ((region->access & ~known & ~IBV_ACCESS_OPTIONAL_RANGE) ||
	    ((region->access & MAY_WRITE) && !writes))
		return EXPECT_REFUSED;
	if (region->access & IBV_ACCESS_ON_DEMAND)
		return EXPECT_ACCEPTED;
	if (touches(world, region->addr, region->length, NO_ACCESS_PAGE) ||
	    (writes && touches(world, region->addr, region->length, READ_ONLY_PAGE)))
		return EXPECT_REFUSED;
	return EXPECT_ACCEPTED;
}

/* Checks a result against the prediction; returns true if the region was accepted. */
static bool answered(struct world *world, const struct region *region, enum expect expect,
		     const char *call, bool accepted)
{
	if (region->context->closed) {
		MUST(world, !accepted, "%s in a closed context succeeds", call);
		must_be_closed(world, region->context, call);
		return false;
	}
	MUST(world, accepted ? expect != EXPECT_REFUSED : expect != EXPECT_ACCEPTED,
	     "%s of %llu bytes, access 0x%x: %s", call, (unsigned long long)region->length,
	     (unsigned int)region->access, accepted ? "accepted" : strerror(errno));
	MUST(world, accepted || errno == EINVAL || errno == EFAULT || errno == EOPNOTSUPP, "%s: %s",
	     call, strerror(errno));
	return accepted;
}

void do_register(struct world *world)
{
	struct domain *domain = PICK(world, domains);
	struct region *region = UNUSED(world, regions);
	uint64_t iova;
	enum expect expect;

	if (!domain || !region)
		return;
	*region = (struct region){ .context = domain->context, .domain = domain };
	draw_range(world, region);
	region->access = draw_access(world);
	iova = chance(world, 80) ? (uintptr_t)region->addr : random_next(&world->random) >> 17;
	region->start = region->access & IBV_ACCESS_ZERO_BASED ? 0 : iova;
	expect = predict(world, region);
	/* From here on bytes may change, but not if the registration is refused. */
	region->verbs = ibv_reg_mr_iova2(domain->verbs, region->addr, region->length, iova,
					 (unsigned int)region->access);
	note(world, "reg_mr %llu bytes, access 0x%x, in %p -> %p",
	     (unsigned long long)region->length, (unsigned int)region->access,
	     (void *)domain->verbs, (void *)region->verbs);
	if (answered(world, region, expect, "reg_mr", region->verbs))
		memory_cover(world, region, 1);
}

void do_register_special(struct world *world)
{
	struct domain *domain = PICK(world, domains);
	struct region *region = UNUSED(world, regions);
	struct device_memory *memory = PICK(world, memories);
	enum expect expect = EXPECT_ACCEPTED;

	if (!domain || !region)
		return;
	*region = (struct region){ .context = domain->context, .domain = domain };
	region->kind = 1 + below(world, 3);
	if (region->kind == REGION_NULL) {
		region->verbs = ibv_alloc_null_mr(domain->verbs);
		region->length = ARENA_BYTES;
		region->addr = world->arena;
	} else if (region->kind == REGION_IMPLICIT) {
		/* It must not be writable: it is all memory of this process. */
		region->access = IBV_ACCESS_ON_DEMAND | IBV_ACCESS_REMOTE_READ;
		region->addr = world->arena;
		region->start = (uintptr_t)world->arena;
		region->length = ARENA_BYTES;
		region->verbs = ibv_reg_mr(domain->verbs, NULL, SIZE_MAX, region->access);
	} else if (memory) {
		region->memory = memory;
		region->length = below(world, DM_BYTES + 100);
		region->access = draw_access(world) | IBV_ACCESS_ZERO_BASED;
		expect = EXPECT_EITHER;
		region->verbs = ibv_reg_dm_mr(domain->verbs, memory->verbs, 0, region->length,
					      (unsigned int)region->access);
		if (region->verbs)
			MUST(world,
			     region->length <= DM_BYTES && memory->context == domain->context,
			     "a region of memory that is not there");
	} else {
		return;
	}
	note(world, "special region of kind %u in %p -> %p", region->kind, (void *)domain->verbs,
	     (void *)region->verbs);
	answered(world, region, expect, "special registration", region->verbs);
	if (region->kind != REGION_PLAIN && !region->verbs)
		region->memory = NULL;
}

void do_reregister(struct world *world)
{
	struct region *region = PICK(world, regions);
	struct domain *domain = PICK(world, domains);
	struct region changed;
	enum expect expect;
	int flags = (int)below(world, 8), error;

	/* Regions of a closed context are only destroyed; the domain may be any of the context. */
	if (!region || !domain || region->kind != REGION_PLAIN || region->context->closed ||
	    domain->context != region->context || !flags)
		return;
	changed = *region;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		draw_range(world, &changed);
		changed.start = (uintptr_t)changed.addr;
	}
	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		changed.access = draw_access(world);
	if ((region->access | changed.access) & IBV_ACCESS_ZERO_BASED)
		changed.start = flags & IBV_REREG_MR_CHANGE_TRANSLATION ? 0 : region->start;
	if (flags & IBV_REREG_MR_CHANGE_PD)
		changed.domain = domain;
	expect = predict(world, &changed);
	if (region->may_be_bound && expect == EXPECT_ACCEPTED)
		expect = EXPECT_EITHER;
	/* During the call the old and the new registration may be in effect. */
	memory_cover(world, &changed, 1);
	error = ibv_rereg_mr(region->verbs, flags, domain->verbs, changed.addr, changed.length,
			     flags & IBV_REREG_MR_CHANGE_ACCESS ? changed.access : 0);
	note(world, "rereg_mr %p, flags %d, %llu bytes, access 0x%x: %d", (void *)region->verbs,
	     flags, (unsigned long long)changed.length, (unsigned int)changed.access, error);
	MUST(world, error ? expect != EXPECT_ACCEPTED : expect != EXPECT_REFUSED,
	     "rereg_mr answers %d", error);
	if (error) {
		memory_cover(world, &changed, -1);
		return;
	}
	memory_cover(world, region, -1);
	*region = changed;
}

void do_advise(struct world *world)
{
	struct region *region = PICK(world, regions);
	struct ibv_sge sge;
	int error;

	if (!region || region->kind != REGION_PLAIN)
		return;
	sge = (struct ibv_sge){ region->start + below(world, 4096), below(world, 8192),
				region->verbs->lkey + below(world, 2) };
	error = ibv_advise_mr(region->domain->verbs, (enum ibv_advise_mr_advice)below(world, 4),
			      below(world, 2), &sge, 1);
	note(world, "advise_mr %p: %d", (void *)region->verbs, error);
	MUST(world, error >= 0 && error < 200, "advise_mr answers %d", error);
}
