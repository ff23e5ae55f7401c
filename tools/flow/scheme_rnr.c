// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * No flow control by the program: a message without a receive WQE is rejected by an RNR NAK, and
 * the sender's device waits for the receiver's RNR timer and retransmits it and everything after
 * it.
 */
#include <stddef.h>

#include "scheme.h"

static void begin(struct scheme_state *s)
{
	(void)s;
}

static bool may_send(const struct scheme_state *s, enum flow_kind kind)
{
	(void)s;
	(void)kind;
	return true;
}

static void sending(struct scheme_state *s, enum flow_kind kind, struct flow_news *news)
{
	(void)s;
	(void)kind;
	(void)news;
}

static void heard(struct scheme_state *s, enum flow_kind kind, const struct flow_news *news)
{
	(void)s;
	(void)kind;
	(void)news;
}

const struct scheme scheme_rnr = {
	.name = "rnr",
	.flags = SCHEME_RNR_IS_PART | SCHEME_POOLS,
	.counted = "nothing",
	.travels = "RNR NAK of the transport, with a timer",
	.told = "for each message that is refused",
	.reserved = "-",
	.source = "transport",
	.begin = begin,
	.may_send = may_send,
	.sending = sending,
	.heard = heard,
	.posted = uncounted_posted,
	.wants_control = wants_no_control,
};

/*
 * End-to-end credits of the transport; the program counts nothing either.  The device reads the
 * number of free receive WQEs from each ACK and starts no message beyond them, except one limited
 * request.  A device that does not report credits behaves as with "rnr".
 */
const struct scheme scheme_credits = {
	.name = "credits",
	.flags = SCHEME_RNR_IS_PART | SCHEME_POOLS | SCHEME_TRANSPORT,
	.counted = "free receives, by the device",
	.travels = "5-bit code beside MSN in each ACK",
	.told = "in each ACK, and in unsolicited ones",
	.reserved = "none: a limited request goes",
	.source = "InfiniBand end-to-end credits",
	.begin = begin,
	.may_send = may_send,
	.sending = sending,
	.heard = heard,
	.posted = uncounted_posted,
	.wants_control = wants_no_control,
};
