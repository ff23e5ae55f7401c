/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Effects of a QP's state transitions.  The functions of rx/, tx/ and recovery/ return errors
 * as verdicts, and only engine.c carries them out, by qp_fail().  A verdict is an enum eng_status:
 * - ENG_SUCCESS: the QP goes on
 * - ENG_WR_FLUSH_ERR: the QP enters ERR
 * - any other: the oldest send request fails with it, and then the QP: ERR, but SQE on UC and UD,
 *   where the receiving side goes on
 */
#ifndef UROCE_ENGINE_QP_TRANSITION_H
#define UROCE_ENGINE_QP_TRANSITION_H

#include "qp_priv.h"

/* Carries out a verdict that is not ENG_SUCCESS. */
void qp_fail(struct eng_qp *qp, enum eng_status verdict);

#endif
