/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Generation 3: inputs of the progress layer to the engine beyond the time and the trigger.  Its
 * choices use a random stream of their own, so that older choices of a seed stay the same.
 */
#include <stdio.h>

#include "engine/base/types.h"
#include "sim/plan/plan.h"
#include "sim/random.h"

#define MICROSECOND UINT64_C(1000)
/* Maximum time for which a ring is full: its reader does not get a processor. */
#define FULL_NS (1000 * MICROSECOND)
/* A ring is full for at most half of the timeout divided by this. */
#define FULL_PART 16
/* Minimum timeout: a response without room is tried again within RETRY_NS (ring.c), many times. */
#define TIMEOUT_NS (2000 * MICROSECOND)
/*
 * Minimum in-flight budget; that of production is 7/8 of a socket buffer.  A budget that eight full
 * packets use up is too small: none of them may have AckReq yet, and the others of their burst wait
 * in the queue after another queue pair.
 */
#define SHARE_BYTES 45000

/* Packets without room are sent later: the timeout leaves time for that. */
static void plan_waits(struct plan *plan)
{
	if (plan->timeout_code > 0)
		plan->timeout_code++;
	while (plan->timeout_code > 0 && (UINT64_C(4096) << plan->timeout_code) < TIMEOUT_NS)
		plan->timeout_code++;
}

/* Each direction may be without room at times. */
static void plan_full(struct sim_random *random, struct plan *plan)
{
	uint64_t most = FULL_NS, part = (UINT64_C(2048) << plan->timeout_code) / FULL_PART;

	if (plan->timeout_code > 0 && part < most)
		most = part;
	for (uint32_t side = 0; side < 2; side++) {
		if (!random_chance(random, 700))
			continue;
		plan->full[side] = random_between(random, 1, 200);
		plan->full_ns[side] = 1 + random_skewed(random, most);
	}
}

/* A host with several queue pairs may have a small in-flight budget for all of them. */
static void plan_share(struct sim_random *random, struct plan *plan, uint32_t side)
{
	bool scarce = plan->connections > 1 && random_chance(random, 400);
	uint64_t bytes = random_between(random, SHARE_BYTES, 3 * SHARE_BYTES);

	plan->queues_share[side] = random_chance(random, 600);
	if (!plan->queues_share[side] || plan->flows ||
	    (!scarce &&
	     (plan->end[side].share_bytes == 0 || plan->end[side].share_bytes >= SHARE_BYTES)))
		return;
	plan->end[side].share_bytes = bytes;
	plan->xrc[side].share_bytes = bytes;
	plan->uc_ud[side].share_bytes = bytes;
}

void plan_third_generation(struct plan *plan)
{
	struct sim_random random;

	random_seed(&random, plan->seed, 8);
	for (uint32_t side = 0; side < 2; side++) {
		plan_share(&random, plan, side);
		plan->tells_receives[side] = random_chance(&random, 600);
	}
	plan->lossless_transport = plan->lossless && !plan->flows && random_chance(&random, 600);
	if (plan->lossless_transport)
		plan_waits(plan);
	if (plan->lossless_transport && random_chance(&random, 700))
		plan_full(&random, plan);
	plan->lossy_path = !plan->lossless && !plan->flows && random_chance(&random, 300);
}

void plan_print_progress(const struct plan *plan)
{
	if (plan->lossless_transport)
		printf("# the transport waits, and is full: A %u/1000 for %llu ns, B %u/1000 for "
		       "%llu ns\n",
		       plan->full[0], (unsigned long long)plan->full_ns[0], plan->full[1],
		       (unsigned long long)plan->full_ns[1]);
	if (plan->lossy_path)
		printf("# the path is known to lose packets\n");
	for (uint32_t side = 0; side < 2; side++)
		if (plan->queues_share[side] || plan->tells_receives[side])
			printf("# %c%s%s\n", 'A' + (int)side,
			       plan->queues_share[side] ? " has a share queue" : "",
			       plan->tells_receives[side] ? " tells of receives" : "");
}
