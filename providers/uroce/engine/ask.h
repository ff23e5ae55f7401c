/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * When a requester asks for an ACK (AckReq).  Each costs a packet and a system call on either side,
 * and a sender whose requests carry no signal waits for none of them.  So ACKs are asked for where
 * somebody waits for them, and else just often enough that the window, the send queue and the
 * credits never run out without an ACK on its way: one at a time, which says how far the peer has
 * got by then (rule S7).
 *
 * What nobody has asked for is asked for when nothing has moved for a while, by the oldest packet
 * once more (probe.h): so the peer's silence is noticed long before the Local ACK Timeout.
 */
#ifndef UROCE_ENGINE_ASK_H
#define UROCE_ENGINE_ASK_H

#include "qp.h"

/* Does the packet at index of wqe, of this weight, the next to be sent, ask for an ACK? */
bool ask_wanted(const struct eng_qp *qp, const struct eng_send_wqe *wqe, uint32_t index,
		uint64_t cost, uint64_t now);

/* When to ask for what has been sent without, or ENG_NEVER. */
uint64_t ask_deadline(const struct eng_qp *qp);

#endif
