/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Local operations: LOCAL_INV and BIND_MW (MW bind), which are never sent.  They are executed when
 * their turn in the send queue comes, and complete in order with all other requests.
 */
#ifndef UROCE_ENGINE_TX_LOCAL_OP_H
#define UROCE_ENGINE_TX_LOCAL_OP_H

#include "engine/qp_priv.h"

/* Executes the request.  Returns the status of its completion. */
enum eng_status local_execute(struct eng_qp *qp, const struct eng_send_wqe *wqe);

#endif
