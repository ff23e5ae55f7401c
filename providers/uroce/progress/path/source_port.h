/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * UDP source ports of QPs.  Receivers accept any port; different ports spread connections over the
 * queues and paths of the network, and keep the receiver's kernel from merging packets of different
 * QPs.  The formulas are those of the kernel's rxe, so that captures of both look the same.
 */
#ifndef UROCE_PROGRESS_PATH_SOURCE_PORT_H
#define UROCE_PROGRESS_PATH_SOURCE_PORT_H

#include <stdint.h>

/* Port from a flow label (20 bits), as exchanged by the connection manager: 49152..65535. */
uint16_t source_port_from_flow_label(uint32_t flow_label);
/* Port of a connected QP without flow label; the same at both ends. */
uint16_t source_port_connected(uint32_t qpn, uint32_t dest_qpn);
/* Port of a datagram QP, which has many destinations. */
uint16_t source_port_datagram(uint32_t qpn);

#endif
