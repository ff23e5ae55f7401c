/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "ecn.h"

#include "cwnd.h"
#include "message.h"
#include "packer.h"

#define CNP_INTERVAL_NS UINT64_C(50000)

void eng_set_ecn(struct eng_qp *qp, const struct eng_path *cnp)
{
	qp->ecn.cnp = cnp;
	ecn_forget(qp);
}

void ecn_forget(struct eng_qp *qp)
{
	qp->ecn.cnp_owed = false;
	qp->ecn.quiet_until = 0;
}

/* Of a request that an ACK will answer. */
static bool is_echoed(const struct wire_packet *packet)
{
	enum wire_family family = wire_op_family(packet->opcode);

	return family == WIRE_FAMILY_SEND || family == WIRE_FAMILY_WRITE;
}

void ecn_marked(struct eng_qp *qp, const struct wire_packet *packet, uint64_t now)
{
	struct ecn *ecn = &qp->ecn;
	int32_t *marks = &qp->resp.advert.marks;

	count(qp, ENG_COUNT_ECN_MARKED);
	if (!ecn->cnp || qp->type == ENG_UD || !can_respond(qp))
		return;
	if (is_echoed(packet))
		++*marks;
	if (now < ecn->quiet_until)
		return;
	ecn->cnp_owed = true;
	ecn->quiet_until = now + CNP_INTERVAL_NS;
}

uint32_t ecn_echo(struct eng_qp *qp, uint32_t psn)
{
	struct advert *advert = &qp->resp.advert;
	int32_t packets;

	if (__builtin_expect(advert->marks <= 0, 1))
		return 0;
	packets = psn_diff(psn, advert->last_positive_psn);
	if (packets <= 0 || 2 * advert->marks < packets)
		return 0;
	/* Marks of what came twice, or too early, are echoed once. */
	advert->marks = advert->marks < packets ? advert->marks - packets : 0;
	return WIRE_BTH_BECN;
}

void ecn_notified(struct eng_qp *qp)
{
	struct pacing *pacing = &qp->resp.pacing;
	bool obeyed = false;

	if (is_reliable(qp) && can_respond(qp)) {
		obeyed = can_request(qp) && !qp->req.network.echoes && cwnd_congested(qp);
		/* It does not say what it is about, so also about READ responses, if there are. */
		if (pacing->phase != PACING_HOST && qp->resp.replay_head != 0) {
			pacing_congested(pacing);
			obeyed = true;
		}
	}
	count(qp, obeyed ? ENG_COUNT_CNP_HANDLED : ENG_COUNT_CNP_IGNORED);
}

enum eng_tx ecn_transmit(struct eng_qp *qp, struct eng_burst *burst)
{
	uint8_t *at;

	qp->ecn.cnp_owed = false;
	pack_begin(burst, qp->ecn.cnp);
	burst->kind = ENG_BURST_CNP;
	burst->identification = 0;
	burst->first_psn = 0;
	/* There is something behind it: the answer to what came marked. */
	burst->last = false;
	at = pack_place(burst, 0);
	if (!at || pack_bare(burst, message_cnp(qp, at)) != PACK_DONE)
		return ENG_TX_IDLE;
	count(qp, ENG_COUNT_CNP_SENT);
	return ENG_TX_BURST;
}

void ecn_unsent(struct eng_qp *qp)
{
	qp->ecn.cnp_owed = true;
	qp->counters[ENG_COUNT_CNP_SENT]--;
}
