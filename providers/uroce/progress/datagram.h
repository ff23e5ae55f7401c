/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What datagram queue pairs need beside progress.h: they hear every address of their device and
 * multicast groups, and send to many peers.  All functions are control calls: no QP's lock may be
 * held.  They return 0 or a negative errno; error gets one line for the user.
 */
#ifndef UROCE_PROGRESS_DATAGRAM_H
#define UROCE_PROGRESS_DATAGRAM_H

#include "progress.h"

/* A route to a peer, for any QP to send on. */
struct progress_path {
	struct eng_path eng;
	struct link_addr *addr;
};

/*
 * Open the local address and a route to the peer.  number stands for the queue pair in the choice
 * of the source port, unless the route has a flow label.  route->dest_qpn is not used.
 */
int progress_path_open(struct progress *progress, const struct progress_route *route,
		       uint32_t number, struct progress_path *path,
		       char error[PROGRESS_ERROR_TEXT]);
void progress_path_close(struct progress *progress, struct progress_path *path);

/* Local addresses that QPs hear together (progress_qp.listen). */
struct progress_listen;

struct progress_local {
	uint8_t gid[16];
	uint32_t scope_id; /* interface index, for link-local addresses */
};

/* NULL when memory is out. */
struct progress_listen *progress_listen_new(void);
/*
 * Make local the addresses that are heard: new ones are opened, others closed.  Addresses that
 * cannot be opened are left out; the result is an error only when none can.
 */
int progress_listen_set(struct progress *progress, struct progress_listen *listen,
			const struct progress_local *local, unsigned int count,
			char error[PROGRESS_ERROR_TEXT]);
/* No QP may refer to it any more. */
void progress_listen_close(struct progress *progress, struct progress_listen *listen);

/*
 * Let qp have what comes to multicast group gid on an interface (index); in every group at most
 * once, which the caller makes sure of.  Must be undone before progress_qp_remove().
 */
int progress_group_join(struct progress *progress, struct progress_qp *qp, const uint8_t gid[16],
			uint32_t interface, char error[PROGRESS_ERROR_TEXT]);
void progress_group_leave(struct progress *progress, struct progress_qp *qp, const uint8_t gid[16],
			  uint32_t interface);

#endif
