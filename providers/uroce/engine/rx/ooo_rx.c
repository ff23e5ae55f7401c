/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "ooo_rx.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

struct ooo_packet {
	struct ooo_packet *next;
	struct wire_packet packet;
	uint8_t payload[WIRE_MAX_MTU];
};

size_t eng_ooo_packet_bytes(void)
{
	return (sizeof(struct ooo_packet) + 63) & ~(size_t)63;
}

/*
 * Returns the link to insert psn at, mostly at the end of the list, or NULL if psn is in the list.
 */
static struct ooo_packet **find_position(struct ooo_queue *ooo, uint32_t psn)
{
	struct ooo_packet **at = &ooo->first;

	if (ooo->last && psn_diff(psn, ooo->last->packet.psn) > 0)
		return &ooo->last->next;
	while (*at && psn_diff((*at)->packet.psn, psn) < 0)
		at = &(*at)->next;
	return *at && (*at)->packet.psn == psn ? NULL : at;
}

void ooo_insert(struct eng_qp *qp, const struct wire_packet *packet)
{
	struct ooo_queue *ooo = &qp->resp.ooo;
	struct ooo_packet **at, *kept;

	if (!ooo->peer_supports || !qp->ops->ooo_alloc || ooo->count >= ENG_AHEAD_PACKETS)
		return;
	at = find_position(ooo, packet->psn);
	if (!at)
		return;
	kept = qp->ops->ooo_alloc(qp->owner);
	if (!kept)
		return;
	kept->packet = *packet;
	memcpy(kept->payload, packet->payload, packet->payload_length);
	kept->packet.payload = kept->payload;
	/* Only UD uses the network header. */
	kept->packet.network_header = NULL;
	kept->next = *at;
	*at = kept;
	if (!kept->next)
		ooo->last = kept;
	ooo->count++;
	count(qp, ENG_COUNT_OOO_BUFFERED);
}

void ooo_pop(struct eng_qp *qp)
{
	struct ooo_queue *ooo = &qp->resp.ooo;
	struct ooo_packet *done = ooo->first;

	ooo->first = done->next;
	if (!ooo->first)
		ooo->last = NULL;
	ooo->count--;
	qp->ops->ooo_free(qp->owner, done);
}

const struct wire_packet *ooo_peek(struct eng_qp *qp)
{
	const struct ooo_queue *ooo = &qp->resp.ooo;

	while (ooo->first && psn_diff(ooo->first->packet.psn, qp->resp.expected_psn) < 0)
		ooo_pop(qp);
	if (!ooo->first || ooo->first->packet.psn != qp->resp.expected_psn)
		return NULL;
	return &ooo->first->packet;
}

void ooo_flush(struct eng_qp *qp)
{
	while (qp->resp.ooo.first)
		ooo_pop(qp);
}

void ooo_check(const struct ooo_queue *ooo)
{
	uint32_t count = 0;

	for (const struct ooo_packet *at = ooo->first; at; at = at->next) {
		assert(!at->next || psn_diff(at->next->packet.psn, at->packet.psn) > 0);
		assert(at->next || at == ooo->last);
		assert(at->packet.payload_length <= sizeof(at->payload));
		count++;
	}
	assert(count == ooo->count);
}
