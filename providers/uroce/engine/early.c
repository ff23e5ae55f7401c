/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "early.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

struct early_packet {
	struct early_packet *next;
	struct wire_packet packet;
	uint8_t payload[WIRE_MAX_MTU];
};

size_t eng_early_bytes(void)
{
	return (sizeof(struct early_packet) + 63) & ~(size_t)63;
}

/* Where a packet with this PSN belongs in the list, most often at its end; NULL: it is there. */
static struct early_packet **find_place(struct early *early, uint32_t psn)
{
	struct early_packet **at = &early->first;

	if (early->last && psn_diff(psn, early->last->packet.psn) > 0)
		return &early->last->next;
	while (*at && psn_diff((*at)->packet.psn, psn) < 0)
		at = &(*at)->next;
	return *at && (*at)->packet.psn == psn ? NULL : at;
}

void early_keep(struct eng_qp *qp, const struct wire_packet *packet)
{
	struct early *early = &qp->resp.early;
	struct early_packet **at, *kept;

	if (!early->understood || !qp->ops->early_memory || early->count >= ENG_AHEAD_PACKETS)
		return;
	at = find_place(early, packet->psn);
	if (!at)
		return;
	kept = qp->ops->early_memory(qp->owner);
	if (!kept)
		return;
	kept->packet = *packet;
	memcpy(kept->payload, packet->payload, packet->payload_length);
	kept->packet.payload = kept->payload;
	/* Of datagrams only. */
	kept->packet.network_header = NULL;
	kept->next = *at;
	*at = kept;
	if (!kept->next)
		early->last = kept;
	early->count++;
	count(qp, ENG_COUNT_EARLY_KEPT);
}

void early_done(struct eng_qp *qp)
{
	struct early *early = &qp->resp.early;
	struct early_packet *done = early->first;

	early->first = done->next;
	if (!early->first)
		early->last = NULL;
	early->count--;
	qp->ops->early_given_back(qp->owner, done);
}

const struct wire_packet *early_next(struct eng_qp *qp)
{
	const struct early *early = &qp->resp.early;

	while (early->first && psn_diff(early->first->packet.psn, qp->resp.expected_psn) < 0)
		early_done(qp);
	if (!early->first || early->first->packet.psn != qp->resp.expected_psn)
		return NULL;
	return &early->first->packet;
}

void early_forget(struct eng_qp *qp)
{
	while (qp->resp.early.first)
		early_done(qp);
}

void early_check(const struct early *early)
{
	uint32_t count = 0;

	for (const struct early_packet *at = early->first; at; at = at->next) {
		assert(!at->next || psn_diff(at->next->packet.psn, at->packet.psn) > 0);
		assert(at->next || at == early->last);
		assert(at->packet.payload_length <= sizeof(at->payload));
		count++;
	}
	assert(count == early->count);
}
