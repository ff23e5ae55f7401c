/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "ecn.h"

#include "cwnd.h"
#include "engine/tx/pkt_hdr.h"
#include "engine/tx/tx_build.h"

#define CNP_INTERVAL_NS UINT64_C(50000)

void eng_set_ecn(struct eng_qp *qp, const struct eng_path *cnp)
{
	qp->ecn.cnp = cnp;
	ecn_reset(qp);
}

void ecn_reset(struct eng_qp *qp)
{
	qp->ecn.cnp_pending = false;
	qp->ecn.next_cnp = 0;
}

/* Returns true for packets of requests that an ACK acknowledges. */
static bool is_echoed(const struct wire_packet *packet)
{
	enum wire_family family = wire_op_family(packet->opcode);

	return family == WIRE_FAMILY_SEND || family == WIRE_FAMILY_WRITE;
}

void ecn_marked(struct eng_qp *qp, const struct wire_packet *packet, uint64_t now)
{
	struct ecn *ecn = &qp->ecn;
	int32_t *marks = &qp->resp.credit_adv.marks;

	count(qp, ENG_COUNT_ECN_MARKED);
	if (!ecn->cnp || qp->type == ENG_UD || !can_respond(qp))
		return;
	if (is_echoed(packet))
		++*marks;
	if (now < ecn->next_cnp)
		return;
	ecn->cnp_pending = true;
	ecn->next_cnp = now + CNP_INTERVAL_NS;
}

uint32_t ecn_echo(struct eng_qp *qp, uint32_t psn)
{
	struct credit_adv *credit_adv = &qp->resp.credit_adv;
	int32_t packets;

	if (__builtin_expect(credit_adv->marks <= 0, 1))
		return 0;
	packets = psn_diff(psn, credit_adv->last_positive_psn);
	if (packets <= 0 || 2 * credit_adv->marks < packets)
		return 0;
	/* More marks than packets are those of duplicates or out-of-order packets: dropped. */
	credit_adv->marks = credit_adv->marks < packets ? credit_adv->marks - packets : 0;
	return WIRE_BTH_BECN;
}

void ecn_notified(struct eng_qp *qp)
{
	struct pacing *pacing = &qp->resp.pacing;
	bool obeyed = false;

	if (is_reliable(qp) && can_respond(qp)) {
		obeyed = can_request(qp) && !qp->req.cc.peer_echoes_ce && cwnd_congested(qp);
		/*
		 * A CNP does not name its cause, so it applies to READ responses too, if there are
		 * any.
		 */
		if (pacing_is_on_network(pacing) && qp->resp.resp_res_head != 0) {
			pacing_congested(pacing);
			obeyed = true;
		}
	}
	count(qp, obeyed ? ENG_COUNT_CNP_HANDLED : ENG_COUNT_CNP_IGNORED);
}

enum eng_tx ecn_transmit(struct eng_qp *qp, struct eng_burst *burst)
{
	uint8_t *at;

	qp->ecn.cnp_pending = false;
	tx_build_begin(burst, qp->ecn.cnp);
	burst->kind = ENG_BURST_CNP;
	burst->identification = 0;
	burst->first_psn = 0;
	/* Not the last burst: the response to the marked packet may follow. */
	burst->last = false;
	at = tx_build_reserve(burst, 0);
	if (!at || tx_build_add_header_only(burst, message_cnp(qp, at)) != TX_BUILD_OK)
		return ENG_TX_IDLE;
	count(qp, ENG_COUNT_CNP_SENT);
	return ENG_TX_BURST;
}

void ecn_rollback(struct eng_qp *qp)
{
	qp->ecn.cnp_pending = true;
	qp->counters[ENG_COUNT_CNP_SENT]--;
}
