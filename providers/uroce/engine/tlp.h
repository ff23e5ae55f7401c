/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Where packets are lost now and then, so are NAKs, ACKs and what is sent again: after that nobody
 * speaks until the Local ACK Timeout is over (67 ms by custom, thousands of round trips).  So a
 * requester whose peer has asked for lost packets within the last second asks earlier: when nothing
 * has been acknowledged for some round trips it sends the oldest packet once more, alone and asking
 * for an ACK; then after twice that time, and so on up to the timeout.  The answer says how far the
 * peer has got, and there it goes on.  A probe is no retry: rule S10's timer and counters know
 * nothing of it; and when that timer is over, nobody is there to be asked.
 *
 * READs and Atomics are not probed for: a repeated READ is answered in full.
 */
#ifndef UROCE_ENGINE_TLP_H
#define UROCE_ENGINE_TLP_H

#include "qp.h"

/* unacked_psn and what follows is about to be sent again; no probes until the peer asks for it. */
void tlp_stop(struct eng_qp *qp);
/* The peer did. */
void tlp_told_of_loss(struct eng_qp *qp, uint64_t now);
/* unacked_psn has moved. */
void tlp_progress(struct eng_qp *qp, uint64_t now);
/* When to send one, or ENG_NEVER; timeout_ns is the Local ACK Timeout. */
uint64_t tlp_deadline(const struct eng_qp *qp, uint64_t timeout_ns);
/* Its time has come: only the oldest packet may go now, again. */
void tlp_begin(struct eng_qp *qp, uint64_t timeout_ns, uint64_t now);

#endif
