/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Probes (RFC 9002, section 6.2).  On a path that loses packets, NAKs, ACKs and retransmissions are
 * lost as well, and then both ends wait for the Local ACK Timeout, which is thousands of round
 * trips.  So if nothing has been acknowledged for a probe timeout (rtt.h), and again after twice
 * that time, and so on, one action makes the peer respond:
 *
 *   no packet in flight has AckReq              an ACK probe
 *   parts of READs are missing                  they are requested once more
 *   a retransmission is unacknowledged          it is repeated
 *   on a network or lossy path, at first        an ACK probe, whose response shows losses
 *   the peer keeps out-of-order packets         the oldest packet is retransmitted
 *   otherwise                                   only the oldest packet is sent again (PROBE)
 *
 * A probe is no retry: it changes neither the timer nor the counters of rule S10.  While a packet
 * with AckReq is in flight, there are probes for one second after the peer has reported a loss; on
 * a network, to a peer that reports credits, always, because a full queue may have dropped the last
 * packets of a window, and no other packet shows that; and always where this process injects
 * faults, also within a host.
 */
#ifndef UROCE_ENGINE_RECOVERY_PROBE_H
#define UROCE_ENGINE_RECOVERY_PROBE_H

#include "engine/recovery/loss_state.h"

/* Time in ns of the next probe, or ENG_NEVER; timeout: the Local ACK Timeout in ns. */
uint64_t probe_deadline(const struct eng_qp *qp, uint64_t timeout);
/* Sends the probe that is due. */
void probe_send(struct eng_qp *qp, uint64_t now);

#endif
