// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * No flow control by the program: a message without a receive WQE is rejected by an RNR NAK, and
 * the sender's device waits for the receiver's RNR timer and retransmits it and everything after
 * it.
 */
#include <stddef.h>

#include "scheme.h"

static void init_state(struct scheme_state *s)
{
	(void)s;
}

static bool may_send(const struct scheme_state *s, enum flow_kind kind)
{
	(void)s;
	(void)kind;
	return true;
}

static void on_send(struct scheme_state *s, enum flow_kind kind, struct flow_update *update)
{
	(void)s;
	(void)kind;
	(void)update;
}

static void on_receive(struct scheme_state *s, enum flow_kind kind,
		       const struct flow_update *update)
{
	(void)s;
	(void)kind;
	(void)update;
}

const struct scheme scheme_rnr = {
	.name = "rnr",
	.flags = SCHEME_RNR_IS_PART | SCHEME_SHARES_RECEIVES,
	.counted = "nothing",
	.carried_by = "RNR NAK of the transport, with a timer",
	.reported = "for each rejected message",
	.reserved = "-",
	.source = "transport",
	.init = init_state,
	.may_send = may_send,
	.on_send = on_send,
	.on_receive = on_receive,
	.on_post = ignore_post,
	.update_is_due = no_update_is_due,
};

/*
 * End-to-end credits of the transport; as with "rnr", the program counts nothing.  The device reads
 * the number of free receive WQEs from each ACK and starts no message beyond them, except one
 * limited request.  A device that does not report credits behaves as with "rnr".
 */
const struct scheme scheme_credits = {
	.name = "credits",
	.flags = SCHEME_RNR_IS_PART | SCHEME_SHARES_RECEIVES | SCHEME_TRANSPORT_CREDITS,
	.counted = "free receives, by the device",
	.carried_by = "5-bit code in the AETH of each ACK",
	.reported = "in each ACK, and in unsolicited ones",
	.reserved = "none: one limited request may be sent",
	.source = "InfiniBand end-to-end credits",
	.init = init_state,
	.may_send = may_send,
	.on_send = on_send,
	.on_receive = on_receive,
	.on_post = ignore_post,
	.update_is_due = no_update_is_due,
};
