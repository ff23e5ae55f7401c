/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What responses do to the send queue: acknowledge, complete, send again, fail.  The specification
 * counts this to the requester; the word completer is rxe's.
 */
#ifndef UROCE_ENGINE_COMPLETER_H
#define UROCE_ENGINE_COMPLETER_H

#include "qp.h"

/* A response packet: ACK, NAK, READ or Atomic response. */
void completer_receive(struct eng_qp *qp, const struct wire_packet *packet, uint64_t now);

/* If the oldest request has a local fault, it fails now and the QP goes to ERR. */
void completer_fail_if_oldest(struct eng_qp *qp);

/* Local requests that have been executed complete when all before them have. */
void completer_retire_local(struct eng_qp *qp);

/* UC and UD: what was handed out has been sent, which completes it. */
void completer_sent(struct eng_qp *qp, uint64_t now);

/* SQD: tell that all that was begun is complete, once. */
void completer_tell_drained(struct eng_qp *qp);

/* Complete all posted send requests as flushed (rule S13). */
void completer_flush(struct eng_qp *qp);

/* The Local ACK Timeout and the RNR wait (rule S10). */
uint64_t completer_deadline(const struct eng_qp *qp);
void completer_expire(struct eng_qp *qp, uint64_t now);

#endif
