/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Datagram QPs, in addition to progress.h: they receive from every address of their device and from
 * multicast groups, and send to many peers.  All functions are control calls: no QP's lock may be
 * held.  They return 0 or a negative errno; error then contains one line for the user, or is
 * unchanged if memory is out.
 */
#ifndef UROCE_PROGRESS_PATH_UD_PATH_H
#define UROCE_PROGRESS_PATH_UD_PATH_H

#include "progress/progress.h"

/* Path to a peer, which any QP may use. */
struct progress_path {
	struct eng_path eng;
	struct link_addr *addr;
};

/*
 * Opens the local address and a path to the peer.  number replaces the QPN in the choice of the
 * source port, unless the route has a flow label.  route->dest_qpn is not used.
 */
int progress_path_open(struct progress *progress, const struct progress_route *route,
		       uint32_t number, struct progress_path *path,
		       char error[PROGRESS_ERROR_TEXT]);
void progress_path_close(struct progress *progress, struct progress_path *path);

/* Set of local addresses from which QPs receive (progress_qp.ud_addrs). */
struct progress_ud_addrs;

struct progress_local_addr {
	uint8_t gid[16];
	uint32_t scope_id; /* interface index of a link-local address */
};

/* Returns NULL if out of memory. */
struct progress_ud_addrs *progress_ud_addrs_new(void);
/*
 * Replaces the set of addresses: new ones are opened, others closed.  Addresses that cannot be
 * opened are left out; if there are no others, the set is empty and the last error is returned.
 * -ENOMEM and -EOWNERDEAD (after fork()) leave the set unchanged.
 */
int progress_ud_addrs_set(struct progress *progress, struct progress_ud_addrs *set,
			  const struct progress_local_addr *local, unsigned int count,
			  char error[PROGRESS_ERROR_TEXT]);
/* Closes the addresses and frees the set; no QP may refer to it any longer. */
void progress_ud_addrs_close(struct progress *progress, struct progress_ud_addrs *set);

/*
 * Makes qp receive the packets of multicast group gid on an interface (index).  The caller ensures
 * that qp joins a group only once.  Must be undone before progress_qp_remove().
 */
int progress_group_join(struct progress *progress, struct progress_qp *qp, const uint8_t gid[16],
			uint32_t interface, char error[PROGRESS_ERROR_TEXT]);
void progress_group_leave(struct progress *progress, struct progress_qp *qp, const uint8_t gid[16],
			  uint32_t interface);

#endif
