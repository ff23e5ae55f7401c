/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Effects of deregistering memory during traffic: the messages that need it fail, with the right
 * status on both sides, and nothing is written there any more.  area_go() keeps the image that all
 * bytes of the memory must have from then on.
 */
#include "sim/oracle/oracle.h"
#include "sim/world.h"

void oracle_gone(struct sim_end *end)
{
	/* READs that the peer has requested may be refused now, whatever it sends next. */
	if (!service_is_uc_ud(end->type) && end->script->remote.gone)
		end->oracle.may_be_in_error = true;
}

bool oracle_lacks_local(const struct sim_end *end, const struct message *message)
{
	if (message->length == 0 || op_is_local(message->op))
		return false;
	if (op_is_read(message->op) || op_is_atomic(message->op))
		return end->script->landing.gone;
	return end->script->source.gone && !(message->flags & ENG_INLINE);
}

/* Returns the syndrome of the NAK, or 0; end is the sender. */
uint8_t oracle_lacks_remote(const struct sim_end *end, const struct message *message)
{
	if (message->length == 0 || op_is_local(message->op))
		return 0;
	if (op_is_send(message->op))
		return end->peer->queue->script->landing.gone ? 0x63 : 0;
	return end->peer->script->remote.gone ? 0x62 : 0;
}
