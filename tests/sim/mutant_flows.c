/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Deliberate faults of the law of the window.  The linker leads the engine's calls of some
 * functions of cwnd.h here (CMakeLists.txt).
 */
#include "engine/cwnd.h"
#include "sim/mutant.h"
#include "sim/world.h"

/* Named by the linker: what the engine calls, and the function itself. */
bool __wrap_cwnd_open(const struct eng_qp *qp, uint64_t cost);
bool __real_cwnd_open(const struct eng_qp *qp, uint64_t cost);

/* The world whose engines have a fault; they cannot tell. */
static struct world *faulty;

void mutant_start(struct world *world)
{
	faulty = world->mutant && world->mutant->law != MUTANT_LAW_RIGHT ? world : NULL;
}

static bool has_fault(enum mutant_law law)
{
	if (!faulty || faulty->mutant->law != law)
		return false;
	faulty->mutations++;
	return true;
}

bool __wrap_cwnd_open(const struct eng_qp *qp, uint64_t cost)
{
	if (has_fault(MUTANT_LAW_ONE_PACKET) && eng_in_flight(qp) > 0)
		return false;
	return __real_cwnd_open(qp, cost);
}

const struct mutant mutants_of_flows[] = {
	{ .name = "one-packet-window",
	  .fault = "has a window of one packet",
	  .flows = true,
	  .law = MUTANT_LAW_ONE_PACKET },
};
const uint32_t mutants_of_flows_count = sizeof(mutants_of_flows) / sizeof(mutants_of_flows[0]);
