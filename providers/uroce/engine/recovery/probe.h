/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Probes (RFC 9002, section 6.2).  Where packets are lost, so are NAKs, ACKs and what is sent
 * again, and then both ends are silent until the Local ACK Timeout is over, which is thousands of
 * round trips.  So when nothing has been acknowledged for a probe timeout (rtt.h), and again after
 * twice that time, and so on, one action is taken that makes the peer answer:
 *
 *   no packet under way has AckReq     an ACK solicitation
 *   parts of READs are missing         these are requested once more
 *   a repair is unanswered             it is sent once more
 *   on a network, at first             an ACK solicitation, whose answer tells of losses
 *   the peer keeps what comes early    a repair of the oldest packet
 *   else                               the oldest packet, and none behind it (PROBE)
 *
 * A probe is no retry: it touches neither the timer nor the counters of rule S10.  While a packet
 * with AckReq is under way, there are probes for one second after the peer has reported a loss;
 * and always on a network, to a peer that reports credits, where the last packets of a window may
 * be the ones for which a queue had no room, and nothing else tells of that.
 */
#ifndef UROCE_ENGINE_RECOVERY_PROBE_H
#define UROCE_ENGINE_RECOVERY_PROBE_H

#include "engine/recovery/loss_state.h"

/* When the next probe is due, or ENG_NEVER; timeout is the Local ACK Timeout in ns. */
uint64_t probe_deadline(const struct eng_qp *qp, uint64_t timeout);
/* It is due. */
void probe_send(struct eng_qp *qp, uint64_t now);

#endif
