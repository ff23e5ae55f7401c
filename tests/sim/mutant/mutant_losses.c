/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Deliberate faults of loss recovery: packets kept and READ responses placed out of order, and
 * retransmissions.  The linker redirects the engine's calls to this file (CMakeLists.txt).  Too few
 * retransmissions only cost time and packets: flows detect that.
 * tests/conformance/recovery/ooo_rx.c and read_retry.c detect more faults of retransmission step by
 * step, and of holes.
 */
#include "engine/rx/ooo_rx.h"
#include "engine/recovery/read_retry.h"
#include "engine/recovery/retransmit.h"
#include "sim/mutant/mutant.h"
#include "sim/world.h"

/* Named by the linker: the function that the engine calls instead, and the original one. */
void __wrap_ooo_insert(struct eng_qp *qp, const struct wire_packet *packet);
void __real_ooo_insert(struct eng_qp *qp, const struct wire_packet *packet);
const struct wire_packet *__wrap_ooo_peek(struct eng_qp *qp);
const struct wire_packet *__real_ooo_peek(struct eng_qp *qp);
bool __wrap_read_retry_place(struct eng_qp *qp, const struct wire_packet *packet, uint64_t now);
bool __real_read_retry_place(struct eng_qp *qp, const struct wire_packet *packet, uint64_t now);
uint32_t __wrap_read_retry_consume(struct eng_qp *qp, uint32_t n);
uint32_t __real_read_retry_consume(struct eng_qp *qp, uint32_t n);

bool __wrap_retransmit_on_nak(struct eng_qp *qp, uint64_t now);
bool __real_retransmit_on_nak(struct eng_qp *qp, uint64_t now);
void __wrap_loss_enter(struct eng_qp *qp, enum loss_state to);
void __real_loss_enter(struct eng_qp *qp, enum loss_state to);
void __wrap_loss_go_back(struct eng_qp *qp, enum loss_state to);
void __real_loss_go_back(struct eng_qp *qp, enum loss_state to);

/* Longer than any run. */
#define LONG_NS UINT64_C(100000000000)

/* Returns the packet with its payload starting one byte earlier, in the headers. */
static struct wire_packet shifted(const struct wire_packet *packet)
{
	struct wire_packet wrong = *packet;

	wrong.payload--;
	return wrong;
}

void __wrap_ooo_insert(struct eng_qp *qp, const struct wire_packet *packet)
{
	struct wire_packet wrong;

	if (packet->payload_length == 0 || !mutant_has(MUTANT_KEPT_WRONG)) {
		__real_ooo_insert(qp, packet);
		return;
	}
	wrong = shifted(packet);
	__real_ooo_insert(qp, &wrong);
}

const struct wire_packet *__wrap_ooo_peek(struct eng_qp *qp)
{
	if (mutant_has(MUTANT_KEPT_NOT_USED))
		ooo_flush(qp);
	return __real_ooo_peek(qp);
}

bool __wrap_read_retry_place(struct eng_qp *qp, const struct wire_packet *packet, uint64_t now)
{
	struct wire_packet wrong;

	if (packet->payload_length > 0 && mutant_has(MUTANT_PLACED_WRONG)) {
		wrong = shifted(packet);
		return __real_read_retry_place(qp, &wrong, now);
	}
	return __real_read_retry_place(qp, packet, now);
}

uint32_t __wrap_read_retry_consume(struct eng_qp *qp, uint32_t n)
{
	uint32_t taken = __real_read_retry_consume(qp, n);

	return taken == 0 && n > 0 && mutant_has(MUTANT_GAP_IS_PASSED) ? n : taken;
}

bool __wrap_retransmit_on_nak(struct eng_qp *qp, uint64_t now)
{
	return !mutant_has(MUTANT_REPAIRS_NOTHING) && __real_retransmit_on_nak(qp, now);
}

static bool stays(const struct eng_qp *qp, enum loss_state state, enum mutant_law law)
{
	return qp->req.loss.state == state && mutant_has(law);
}

/* Called for all transitions but those that go back to the oldest packet. */
void __wrap_loss_enter(struct eng_qp *qp, enum loss_state to)
{
	if (to == LOSS_OPEN && (stays(qp, LOSS_RECOVERY, MUTANT_STAYS_IN_RECOVERY) ||
				stays(qp, LOSS_GO_BACK, MUTANT_STAYS_IN_GO_BACK) ||
				stays(qp, LOSS_PROBE, MUTANT_STAYS_IN_PROBE)))
		return;
	if (to == LOSS_OPEN && stays(qp, LOSS_RNR_WAIT, MUTANT_STAYS_IN_RNR_WAIT)) {
		qp->req.loss.rnr_until += LONG_NS;
		return;
	}
	if (to == LOSS_RECOVERY && mutant_has(MUTANT_NO_RECOVERY))
		to = LOSS_OPEN;
	__real_loss_enter(qp, to);
}

void __wrap_loss_go_back(struct eng_qp *qp, enum loss_state to)
{
	if ((to == LOSS_GO_BACK && mutant_has(MUTANT_NO_GO_BACK)) ||
	    (to == LOSS_PROBE && mutant_has(MUTANT_NO_PROBE)) ||
	    (to == LOSS_RNR_WAIT && mutant_has(MUTANT_NO_RNR_WAIT)))
		to = LOSS_OPEN;
	__real_loss_go_back(qp, to);
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
	{ .name = "stays-in-recovery",
	  .fault = "does not notice that all that was missing has come",
	  .flows = true,
	  .law = MUTANT_STAYS_IN_RECOVERY },
	{ .name = "stays-in-go-back",
	  .fault = "obeys only the first NAK of a sequence error",
	  .law = MUTANT_STAYS_IN_GO_BACK },
	{ .name = "stays-in-probe",
	  .fault = "sends one packet at a time after a probe",
	  .law = MUTANT_STAYS_IN_PROBE },
	{ .name = "stays-in-rnr-wait",
	  .fault = "waits for ever after an RNR NAK",
	  .law = MUTANT_STAYS_IN_RNR_WAIT },
	{ .name = "no-recovery",
	  .fault = "forgets that a repair is unanswered",
	  .flows = true,
	  .law = MUTANT_NO_RECOVERY },
	{ .name = "no-go-back",
	  .fault = "obeys each NAK for the same packet",
	  .law = MUTANT_NO_GO_BACK },
	{ .name = "no-probe",
	  .fault = "sends all packets again for a probe",
	  .law = MUTANT_NO_PROBE },
	{ .name = "no-rnr-wait",
	  .fault = "does not wait after an RNR NAK",
	  .law = MUTANT_NO_RNR_WAIT },
	{ .name = "repairs-nothing",
	  .fault = "sends all again for one packet that is lost",
	  .flows = true,
	  .law = MUTANT_REPAIRS_NOTHING },
};
const uint32_t mutants_of_losses_count = sizeof(mutants_of_losses) / sizeof(mutants_of_losses[0]);
