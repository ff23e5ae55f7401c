/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Deliberate faults of the congestion window and of ECN.  The linker redirects the engine's calls
 * of some functions of cwnd.h and ecn.h to this file (CMakeLists.txt).
 */
#include "engine/cc/cwnd.h"
#include "engine/cc/ecn.h"
#include "sim/mutant/mutant.h"
#include "sim/world.h"

/* Named by the linker: the function that the engine calls instead, and the original one. */
bool __wrap_cwnd_open(const struct eng_qp *qp, uint64_t cost);
bool __real_cwnd_open(const struct eng_qp *qp, uint64_t cost);
void __wrap_cwnd_progress(struct eng_qp *qp, uint64_t cost);
void __real_cwnd_progress(struct eng_qp *qp, uint64_t cost);
bool __wrap_cwnd_congested(struct eng_qp *qp);
bool __real_cwnd_congested(struct eng_qp *qp);
void __wrap_ecn_marked(struct eng_qp *qp, const struct wire_packet *packet, uint64_t now);
void __real_ecn_marked(struct eng_qp *qp, const struct wire_packet *packet, uint64_t now);

/* The world whose engines have a fault; the calls do not identify it. */
static struct world *faulty;

void mutant_start(struct world *world)
{
	faulty = world->mutant && world->mutant->law != MUTANT_LAW_RIGHT ? world : NULL;
}

bool mutant_has(enum mutant_law law)
{
	if (!faulty || faulty->mutant->law != law)
		return false;
	faulty->mutations++;
	return true;
}

/* Returns true if this flow must ignore marks: all flows, or only the first one. */
static bool is_deaf(const struct eng_qp *qp)
{
	const struct sim_end *end = qp->owner;

	return mutant_has(MUTANT_LAW_DEAF) || (end->number == 0 && mutant_has(MUTANT_LAW_SELFISH));
}

bool __wrap_cwnd_open(const struct eng_qp *qp, uint64_t cost)
{
	if (mutant_has(MUTANT_LAW_ONE_PACKET) && eng_in_flight(qp) > 0)
		return false;
	return __real_cwnd_open(qp, cost);
}

static void change_window(struct eng_qp *qp, uint64_t before)
{
	uint64_t *cwnd = &qp->req.cwnd;

	if (*cwnd < before && mutant_has(MUTANT_LAW_NO_FLOOR))
		*cwnd = before / 2;
}

void __wrap_cwnd_progress(struct eng_qp *qp, uint64_t cost)
{
	uint64_t before = qp->req.cwnd;

	if (is_deaf(qp))
		qp->req.cc.ack_has_ece = false;
	if (mutant_has(MUTANT_LAW_EACH_NOTICE))
		qp->req.cwnd_recovery_psn = qp->req.unacked_psn;
	__real_cwnd_progress(qp, cost);
	change_window(qp, before);
}

bool __wrap_cwnd_congested(struct eng_qp *qp)
{
	uint64_t before = qp->req.cwnd;
	bool known;

	if (is_deaf(qp))
		return true;
	if (mutant_has(MUTANT_LAW_EACH_NOTICE))
		qp->req.cwnd_recovery_psn = qp->req.unacked_psn;
	known = __real_cwnd_congested(qp);
	change_window(qp, before);
	return known;
}

void __wrap_ecn_marked(struct eng_qp *qp, const struct wire_packet *packet, uint64_t now)
{
	if (mutant_has(MUTANT_LAW_TELLS_NOTHING))
		return;
	__real_ecn_marked(qp, packet, now);
	if (qp->ecn.cnp && mutant_has(MUTANT_LAW_TELLS_ALWAYS))
		qp->ecn.cnp_pending = true;
}

const struct mutant mutants_of_flows[] = {
	{ .name = "one-packet-window",
	  .fault = "has a window of one packet",
	  .flows = true,
	  .law = MUTANT_LAW_ONE_PACKET },
	{ .name = "no-floor",
	  .fault = "has a window that is cut below two packets",
	  .flows = true,
	  .law = MUTANT_LAW_NO_FLOOR },
	{ .name = "cuts-for-each",
	  .fault = "cuts its window for each notice and not for each round trip",
	  .flows = true,
	  .law = MUTANT_LAW_EACH_NOTICE },
	{ .name = "ignores-marks",
	  .fault = "does not cut its window for marks",
	  .flows = true,
	  .law = MUTANT_LAW_DEAF },
	{ .name = "selfish-flow",
	  .fault = "leaves it to others to cut their windows",
	  .flows = true,
	  .law = MUTANT_LAW_SELFISH },
	{ .name = "cnp-for-each",
	  .fault = "sends a CNP for each mark",
	  .flows = true,
	  .law = MUTANT_LAW_TELLS_ALWAYS },
	{ .name = "no-cnp",
	  .fault = "does not tell of marks",
	  .flows = true,
	  .law = MUTANT_LAW_TELLS_NOTHING },
};
const uint32_t mutants_of_flows_count = sizeof(mutants_of_flows) / sizeof(mutants_of_flows[0]);
