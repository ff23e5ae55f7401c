/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Deliberate faults of what is done about losses: packets kept and READ responses placed ahead of
 * their turn, and repairs.  The linker leads the engine's calls here (CMakeLists.txt).  Repairs
 * that are too few heal, and cost: flows find that.  Of what is repaired step by step, and of gaps,
 * tests/conformance/early.c and gaps.c find more.
 */
#include "engine/early.h"
#include "engine/gaps.h"
#include "engine/repair.h"
#include "sim/mutant.h"
#include "sim/world.h"

/* Named by the linker: what the engine calls, and the function itself. */
void __wrap_early_keep(struct eng_qp *qp, const struct wire_packet *packet);
void __real_early_keep(struct eng_qp *qp, const struct wire_packet *packet);
const struct wire_packet *__wrap_early_next(struct eng_qp *qp);
const struct wire_packet *__real_early_next(struct eng_qp *qp);
bool __wrap_gaps_keep(struct eng_qp *qp, const struct wire_packet *packet, uint64_t now);
bool __real_gaps_keep(struct eng_qp *qp, const struct wire_packet *packet, uint64_t now);
uint32_t __wrap_gaps_take(struct eng_qp *qp, uint32_t n);
uint32_t __real_gaps_take(struct eng_qp *qp, uint32_t n);

bool __wrap_repair_begin(struct eng_qp *qp, uint64_t now);
bool __real_repair_begin(struct eng_qp *qp, uint64_t now);
void __wrap_repair_sentinel_answered(struct eng_qp *qp, const struct wire_packet *answer,
				     uint64_t now);
void __real_repair_sentinel_answered(struct eng_qp *qp, const struct wire_packet *answer,
				     uint64_t now);

/* Its bytes are those from one before, which belongs to the headers. */
static struct wire_packet shifted(const struct wire_packet *packet)
{
	struct wire_packet wrong = *packet;

	wrong.payload--;
	return wrong;
}

void __wrap_early_keep(struct eng_qp *qp, const struct wire_packet *packet)
{
	struct wire_packet wrong;

	if (packet->payload_length == 0 || !mutant_has(MUTANT_KEPT_WRONG)) {
		__real_early_keep(qp, packet);
		return;
	}
	wrong = shifted(packet);
	__real_early_keep(qp, &wrong);
}

const struct wire_packet *__wrap_early_next(struct eng_qp *qp)
{
	if (mutant_has(MUTANT_KEPT_NOT_USED))
		early_forget(qp);
	return __real_early_next(qp);
}

bool __wrap_gaps_keep(struct eng_qp *qp, const struct wire_packet *packet, uint64_t now)
{
	struct wire_packet wrong;

	if (packet->payload_length > 0 && mutant_has(MUTANT_PLACED_WRONG)) {
		wrong = shifted(packet);
		return __real_gaps_keep(qp, &wrong, now);
	}
	return __real_gaps_keep(qp, packet, now);
}

uint32_t __wrap_gaps_take(struct eng_qp *qp, uint32_t n)
{
	uint32_t taken = __real_gaps_take(qp, n);

	return taken == 0 && n > 0 && mutant_has(MUTANT_GAP_IS_PASSED) ? n : taken;
}

bool __wrap_repair_begin(struct eng_qp *qp, uint64_t now)
{
	return !mutant_has(MUTANT_REPAIRS_NOTHING) && __real_repair_begin(qp, now);
}

void __wrap_repair_sentinel_answered(struct eng_qp *qp, const struct wire_packet *answer,
				     uint64_t now)
{
	struct requester *req = &qp->req;

	if (mutant_has(MUTANT_SENTINELS_AMONG_DUPLICATES)) {
		req->repeated_psn = psn_sub(req->unacked_psn, 1);
		req->tlp.round_trip_ns = 1;
	}
	__real_repair_sentinel_answered(qp, answer, now);
}

const struct mutant mutants_of_losses[] = {
	{ .name = "passes-gap",
	  .fault = "takes a READ for complete of which a response is missing",
	  .law = MUTANT_GAP_IS_PASSED },
	{ .name = "misplaces-response",
	  .fault = "places wrong bytes when a READ response comes ahead of its turn",
	  .law = MUTANT_PLACED_WRONG },
	{ .name = "keeps-wrong-bytes",
	  .fault = "keeps wrong bytes of a request that comes early",
	  .law = MUTANT_KEPT_WRONG },
	{ .name = "kept-in-vain",
	  .fault = "does not execute what it has kept",
	  .law = MUTANT_KEPT_NOT_USED },
	{ .name = "repairs-nothing",
	  .fault = "sends all again for one packet that is lost",
	  .flows = true,
	  .law = MUTANT_REPAIRS_NOTHING },
	{ .name = "sentinels-among-duplicates",
	  .fault = "takes any ACK of the past for the answer to a sentinel",
	  .flows = true,
	  .law = MUTANT_SENTINELS_AMONG_DUPLICATES },
};
const uint32_t mutants_of_losses_count = sizeof(mutants_of_losses) / sizeof(mutants_of_losses[0]);
