/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Deliberate faults of the scheduler, of its deadlines, and of bursts that the transport did not
 * accept.  The linker redirects the engine's calls to this file (CMakeLists.txt).
 */
#include "engine/cc/cwnd.h"
#include "engine/recovery/loss.h"
#include "engine/recovery/probe.h"
#include "engine/rx/responder.h"
#include "engine/tx/tx_sched.h"
#include "sim/mutant/mutant.h"
#include "sim/world.h"

/* Named by the linker: the function that the engine calls instead, and the original one. */
uint64_t __wrap_tx_sched_deadline(const struct eng_qp *qp);
uint64_t __real_tx_sched_deadline(const struct eng_qp *qp);
bool __wrap_tx_sched_recv_post(struct eng_qp *qp);
bool __real_tx_sched_recv_post(struct eng_qp *qp);
enum eng_tx __wrap_tx_sched_transmit(struct eng_qp *qp, struct eng_burst *burst,
				     const struct eng_tx_ctx *ctx);
enum eng_tx __real_tx_sched_transmit(struct eng_qp *qp, struct eng_burst *burst,
				     const struct eng_tx_ctx *ctx);
void __wrap_response_rollback(struct eng_qp *qp, const struct eng_burst *burst);
void __real_response_rollback(struct eng_qp *qp, const struct eng_burst *burst);
uint64_t __wrap_response_deadline(const struct eng_qp *qp);
uint64_t __real_response_deadline(const struct eng_qp *qp);
uint64_t __wrap_probe_deadline(const struct eng_qp *qp, uint64_t timeout);
uint64_t __real_probe_deadline(const struct eng_qp *qp, uint64_t timeout);
uint64_t __wrap_loss_deadline_least(const struct eng_qp *qp);
uint64_t __real_loss_deadline_least(const struct eng_qp *qp);
void __wrap_sq_rewind(struct eng_qp *qp, uint32_t psn);
void __real_sq_rewind(struct eng_qp *qp, uint32_t psn);
bool __wrap_budget_is_open(const struct eng_qp *qp);
bool __real_budget_is_open(const struct eng_qp *qp);

/* Time of a probe that is much too early. */
#define EARLY_PROBE_NS 50000

uint64_t __wrap_tx_sched_deadline(const struct eng_qp *qp)
{
	uint64_t deadline = __real_tx_sched_deadline(qp);

	return deadline != ENG_NEVER && mutant_has(MUTANT_ACK_FORGOTTEN) ? ENG_NEVER : deadline;
}

bool __wrap_tx_sched_recv_post(struct eng_qp *qp)
{
	bool told = __real_tx_sched_recv_post(qp);

	return told && !(qp->tx_sched.ack_due && mutant_has(MUTANT_ACK_NOT_RELEASED));
}

static bool keeps_gathered(const struct eng_qp *qp, const struct eng_tx_ctx *ctx)
{
	return ctx->trigger == ENG_TX_TRIGGER_POLL && qp->tx_sched.gathered > 0 &&
	       !qp->tx_sched.rx_since_tx && mutant_has(MUTANT_GATHERS_FOR_EVER);
}

enum eng_tx __wrap_tx_sched_transmit(struct eng_qp *qp, struct eng_burst *burst,
				     const struct eng_tx_ctx *ctx)
{
	struct eng_tx_ctx told = *ctx;
	enum eng_tx reason;

	if ((ctx->sides & ENG_REQUESTS) && keeps_gathered(qp, ctx)) {
		told.sides &= ~(unsigned int)ENG_REQUESTS;
		reason = __real_tx_sched_transmit(qp, burst, &told);
		return reason == ENG_TX_IDLE ? ENG_TX_BATCH : reason;
	}
	if (ctx->full && mutant_has(MUTANT_IGNORES_FULL))
		told.full = false;
	if (ctx->budget_waits && mutant_has(MUTANT_OVERTAKES))
		told.budget_waits = false;
	return __real_tx_sched_transmit(qp, burst, &told);
}

void __wrap_response_rollback(struct eng_qp *qp, const struct eng_burst *burst)
{
	if (burst->has_ack && mutant_has(MUTANT_RIDING_ACK_LOST))
		return;
	__real_response_rollback(qp, burst);
}

uint64_t __wrap_response_deadline(const struct eng_qp *qp)
{
	uint64_t deadline = __real_response_deadline(qp);

	return deadline != ENG_NEVER && mutant_has(MUTANT_PAUSES_FOR_EVER) ? ENG_NEVER : deadline;
}

uint64_t __wrap_probe_deadline(const struct eng_qp *qp, uint64_t timeout)
{
	uint64_t deadline = __real_probe_deadline(qp, timeout);

	if (deadline == ENG_NEVER)
		return deadline;
	if (qp->req.loss.probes == 0 && mutant_has(MUTANT_EARLY_PROBE))
		return qp->req.last_progress + EARLY_PROBE_NS;
	return deadline;
}

/* The original does not know a deadline as early as that of the fault. */
uint64_t __wrap_loss_deadline_least(const struct eng_qp *qp)
{
	return mutant_has(MUTANT_EARLY_PROBE) ? 0 : __real_loss_deadline_least(qp);
}

void __wrap_sq_rewind(struct eng_qp *qp, uint32_t psn)
{
	if (!mutant_has(MUTANT_UNSENT_FORGOTTEN))
		__real_sq_rewind(qp, psn);
}

bool __wrap_budget_is_open(const struct eng_qp *qp)
{
	if (qp->req.waiting == ENG_TX_BUDGET && mutant_has(MUTANT_SHARE_NEVER_OPENS))
		return false;
	return __real_budget_is_open(qp);
}

const struct mutant mutants_of_schedule[] = {
	{ .name = "ack-forgotten",
	  .fault = "does not say when an ACK that waits has to leave (S7)",
	  .law = MUTANT_ACK_FORGOTTEN },
	{ .name = "ack-not-released",
	  .fault = "keeps an ACK that waits for a receive when one is posted (C10)",
	  .law = MUTANT_ACK_NOT_RELEASED },
	{ .name = "gathers-for-ever",
	  .fault = "keeps posts that were gathered until a packet comes",
	  .law = MUTANT_GATHERS_FOR_EVER },
	{ .name = "riding-ack-lost",
	  .fault = "forgets the ACK behind a burst that was not taken",
	  .law = MUTANT_RIDING_ACK_LOST },
	{ .name = "pauses-for-ever",
	  .fault = "does not say when READ responses go on",
	  .law = MUTANT_PAUSES_FOR_EVER },
	{ .name = "early-probe",
	  .fault = "sends a tail-loss probe after 50 us",
	  .law = MUTANT_EARLY_PROBE },
	{ .name = "unsent-forgotten",
	  .fault = "does not send again what was not taken",
	  .law = MUTANT_UNSENT_FORGOTTEN },
	{ .name = "ignores-full",
	  .fault = "makes long bursts for a transport without room",
	  .law = MUTANT_IGNORES_FULL },
	{ .name = "share-never-opens",
	  .fault = "waits for the share for ever",
	  .law = MUTANT_SHARE_NEVER_OPENS },
	{ .name = "overtakes",
	  .fault = "takes room in the share before those that wait for it",
	  .law = MUTANT_OVERTAKES },
};
const uint32_t mutants_of_schedule_count =
	sizeof(mutants_of_schedule) / sizeof(mutants_of_schedule[0]);
