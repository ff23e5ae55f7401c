/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The UDP source port of a queue pair.  Any port is right on the wire; that it differs between
 * connections spreads them over the queues and paths of the network, and keeps the receiver's
 * kernel from merging packets of different QPs.  The formulas are those of kernel rxe, so that
 * captures of both look alike.
 */
#ifndef UROCE_PROGRESS_SOURCE_PORT_H
#define UROCE_PROGRESS_SOURCE_PORT_H

#include <stdint.h>

/* From a flow label (20 bits), as the connection manager exchanges it: 49152..65535. */
uint16_t source_port_from_flow_label(uint32_t flow_label);
/* Of a connected QP without flow label; the same at both ends. */
uint16_t source_port_connected(uint32_t qpn, uint32_t dest_qpn);
/* Of a datagram QP, which has many destinations. */
uint16_t source_port_datagram(uint32_t qpn);

#endif
