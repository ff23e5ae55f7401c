/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Deliberate faults of the scheduler, of the times that it tells, and of what becomes of a burst
 * that the transport did not take.  The linker leads the engine's calls here (CMakeLists.txt).
 */
#include "engine/cwnd.h"
#include "engine/recovery/loss.h"
#include "engine/recovery/probe.h"
#include "engine/response.h"
#include "engine/schedule.h"
#include "sim/mutant.h"
#include "sim/world.h"

/* Named by the linker: what the engine calls, and the function itself. */
uint64_t __wrap_schedule_deadline(const struct eng_qp *qp);
uint64_t __real_schedule_deadline(const struct eng_qp *qp);
bool __wrap_schedule_receive_posted(struct eng_qp *qp);
bool __real_schedule_receive_posted(struct eng_qp *qp);
enum eng_tx __wrap_schedule_transmit(struct eng_qp *qp, struct eng_burst *burst,
				     const struct eng_hint *hint);
enum eng_tx __real_schedule_transmit(struct eng_qp *qp, struct eng_burst *burst,
				     const struct eng_hint *hint);
void __wrap_response_unsent(struct eng_qp *qp, const struct eng_burst *burst);
void __real_response_unsent(struct eng_qp *qp, const struct eng_burst *burst);
uint64_t __wrap_response_deadline(const struct eng_qp *qp);
uint64_t __real_response_deadline(const struct eng_qp *qp);
uint64_t __wrap_probe_deadline(const struct eng_qp *qp, uint64_t timeout);
uint64_t __real_probe_deadline(const struct eng_qp *qp, uint64_t timeout);
uint64_t __wrap_loss_deadline_least(const struct eng_qp *qp);
uint64_t __real_loss_deadline_least(const struct eng_qp *qp);
void __wrap_sendqueue_rewind(struct eng_qp *qp, uint32_t psn);
void __real_sendqueue_rewind(struct eng_qp *qp, uint32_t psn);
bool __wrap_cwnd_share_open(const struct eng_qp *qp);
bool __real_cwnd_share_open(const struct eng_qp *qp);

/* So soon a probe comes that is much too early. */
#define EARLY_PROBE_NS 50000

uint64_t __wrap_schedule_deadline(const struct eng_qp *qp)
{
	uint64_t deadline = __real_schedule_deadline(qp);

	return deadline != ENG_NEVER && mutant_has(MUTANT_ACK_FORGOTTEN) ? ENG_NEVER : deadline;
}

bool __wrap_schedule_receive_posted(struct eng_qp *qp)
{
	bool told = __real_schedule_receive_posted(qp);

	return told && !(qp->schedule.ack_due && mutant_has(MUTANT_ACK_NOT_RELEASED));
}

static bool keeps_gathered(const struct eng_qp *qp, const struct eng_hint *hint)
{
	return hint->occasion == ENG_ROUND && qp->schedule.gathered > 0 && !qp->schedule.heard &&
	       mutant_has(MUTANT_GATHERS_FOR_EVER);
}

enum eng_tx __wrap_schedule_transmit(struct eng_qp *qp, struct eng_burst *burst,
				     const struct eng_hint *hint)
{
	struct eng_hint told = *hint;
	enum eng_tx reason;

	if ((hint->sides & ENG_REQUESTS) && keeps_gathered(qp, hint)) {
		told.sides &= ~(unsigned int)ENG_REQUESTS;
		reason = __real_schedule_transmit(qp, burst, &told);
		return reason == ENG_TX_IDLE ? ENG_TX_GATHER : reason;
	}
	if (hint->full && mutant_has(MUTANT_IGNORES_FULL))
		told.full = false;
	if (hint->share_waits && mutant_has(MUTANT_OVERTAKES))
		told.share_waits = false;
	return __real_schedule_transmit(qp, burst, &told);
}

void __wrap_response_unsent(struct eng_qp *qp, const struct eng_burst *burst)
{
	if (burst->ack_rides && mutant_has(MUTANT_RIDING_ACK_LOST))
		return;
	__real_response_unsent(qp, burst);
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

/* It knows of no deadline as early as that. */
uint64_t __wrap_loss_deadline_least(const struct eng_qp *qp)
{
	return mutant_has(MUTANT_EARLY_PROBE) ? 0 : __real_loss_deadline_least(qp);
}

void __wrap_sendqueue_rewind(struct eng_qp *qp, uint32_t psn)
{
	if (!mutant_has(MUTANT_UNSENT_FORGOTTEN))
		__real_sendqueue_rewind(qp, psn);
}

bool __wrap_cwnd_share_open(const struct eng_qp *qp)
{
	if (qp->req.waiting == ENG_TX_SHARE && mutant_has(MUTANT_SHARE_NEVER_OPENS))
		return false;
	return __real_cwnd_share_open(qp);
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
