/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What a QP does on entering a state.  Errors are verdicts: the files below find them, and engine.c
 * alone carries them out.  A verdict is an enum eng_status:
 *
 *   ENG_SUCCESS       the QP goes on
 *   ENG_WR_FLUSH_ERR  the QP enters ERR
 *   any other         the oldest send request fails with it, and then the QP: ERR, but SQE on UC
 *                     and UD, where the receiving side goes on
 */
#ifndef UROCE_ENGINE_QP_TRANSITION_H
#define UROCE_ENGINE_QP_TRANSITION_H

#include "qp_priv.h"

/* Carries out a verdict that is not ENG_SUCCESS. */
void qp_fail(struct eng_qp *qp, enum eng_status verdict);

#endif
