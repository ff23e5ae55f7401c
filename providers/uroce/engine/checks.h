/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The checks of a request that has the expected PSN, in the order of rule S5.
 */
#ifndef UROCE_ENGINE_CHECKS_H
#define UROCE_ENGINE_CHECKS_H

#include "fault.h"
#include "qp.h"

/* FAULT_NONE, or the first fault; changes nothing. */
enum fault check_request(const struct eng_qp *qp, const struct wire_packet *packet);

/* The same for UC, which treats the opcode sequence otherwise and has no responder resources. */
enum fault check_unreliable(const struct eng_qp *qp, const struct wire_packet *packet);

#endif
