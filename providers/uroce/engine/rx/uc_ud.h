/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Receiving on services without responses: UC, where a hole drops the rest of a message and the
 * next first packet resumes, and UD, where each packet is a message.
 */
#ifndef UROCE_ENGINE_RX_UC_UD_H
#define UROCE_ENGINE_RX_UC_UD_H

#include "engine/qp_priv.h"

/* Both return ENG_SUCCESS or the error that the QP fails with. */
enum eng_status unreliable_receive(struct eng_qp *qp, const struct wire_packet *packet,
				   uint64_t now);
enum eng_status datagram_receive(struct eng_qp *qp, const struct wire_packet *packet, uint64_t now);

#endif
