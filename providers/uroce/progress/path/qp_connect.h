/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Opens and closes local addresses and peers; progress_qp_connect() opens those of a QP. */
#ifndef UROCE_PROGRESS_PATH_QP_CONNECT_H
#define UROCE_PROGRESS_PATH_QP_CONNECT_H

#include <stdint.h>

#include "progress/progress_priv.h"
#include "ud_path.h"

/* Closes the peer and address of qp.  Control call; no cycle may find qp any more. */
void qp_disconnect(struct progress *progress, struct progress_qp *qp);

/* Opens the local address gid, or adds a reference to it.  Caller holds route_lock. */
int address_get(struct progress *progress, const uint8_t gid[16], uint32_t scope_id,
		struct link_addr **addr, char error[PROGRESS_ERROR_TEXT]);
/*
 * Opens the local address of route and a link_peer to its dgid; own: for one QP only.  On entry
 * path->eng.wire.src_port is the preferred source port.  Caller holds route_lock.
 */
int path_open(struct progress *progress, const struct progress_route *route, bool own,
	      struct progress_path *path, char error[PROGRESS_ERROR_TEXT]);
/*
 * Opens a path from a local address to dst for datagrams of QP qpn, which many QPs may use.  May
 * be called with locks held.  Returns 0 or a negative errno.
 */
int path_open_peer(struct link_addr *addr, const struct link_dst *dst, uint32_t qpn,
		   struct eng_path *path);
/*
 * Closes peer and drops the reference to addr; either may be NULL.  Caller holds route_lock, unless
 * addr is NULL.
 */
void path_close(struct progress *progress, struct link_addr *addr, struct link_peer *peer);

/* Returns the error of calls in a forked child, with its message. */
int explain_forked(char error[PROGRESS_ERROR_TEXT]);

/* ---- source ports ---- */

/*
 * UDP source ports of QPs.  Receivers accept any port; different ports spread connections over the
 * queues and paths of the network, and keep the receiver's kernel from merging packets of different
 * QPs.  The formulas are those of the kernel's rxe, so that captures of both look the same.
 */

/* Port from a flow label (20 bits), as exchanged by the connection manager: 49152..65535. */
uint16_t source_port_from_flow_label(uint32_t flow_label);
/* Port of a connected QP without flow label; the same at both ends. */
uint16_t source_port_connected(uint32_t qpn, uint32_t dest_qpn);
/* Port of a datagram QP, which has many destinations. */
uint16_t source_port_datagram(uint32_t qpn);

#endif
