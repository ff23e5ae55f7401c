// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Nothing is counted: a message that finds no receive is refused by an RNR NAK, and the sender's
 * device waits for as long as the receiver's RNR timer says and goes back to it.  What was sent
 * behind it was sent for nothing.
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
 * To the program the transport's own credits look the same: it counts nothing either.  Its device
 * learns from each ACK how many receives are free, and begins no message beyond that, but for a
 * limited request.  A device that does not tell of credits behaves as under "rnr".
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
