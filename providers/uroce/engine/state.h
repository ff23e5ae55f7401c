/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What a QP does on entering a state.
 */
#ifndef UROCE_ENGINE_STATE_H
#define UROCE_ENGINE_STATE_H

#include "qp.h"

/* To ERR, by request or by fault: nothing is sent any more but a NAK that is owed. */
void state_enter_error(struct eng_qp *qp);

/* A send request has failed: ERR, but SQE on UC and UD, where the receiving side goes on. */
void state_enter_send_error(struct eng_qp *qp);

/* The oldest request fails, and with it the QP. */
void state_fail_oldest(struct eng_qp *qp, enum eng_status status);
/* The same if the oldest request has a local fault. */
void state_fail_faulty(struct eng_qp *qp);

#endif
