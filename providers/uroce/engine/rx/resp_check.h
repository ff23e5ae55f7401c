/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Checks of a request that has the expected PSN, in the order of rule S5. */
#ifndef UROCE_ENGINE_RX_RESP_CHECK_H
#define UROCE_ENGINE_RX_RESP_CHECK_H

#include "engine/base/nak_table.h"
#include "engine/qp_priv.h"

/* Returns REQUEST_RIGHT or the first error; changes nothing. */
enum request_error check_request(const struct eng_qp *qp, const struct wire_packet *packet);

/*
 * As check_request(), for UC, whose opcode sequence differs and which has no RNR NAKs and no
 * responder resources.
 */
enum request_error check_unreliable(const struct eng_qp *qp, const struct wire_packet *packet);

#endif
