/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Handles and events of the multicast groups that an id has joined.  Packets are handled by the QP
 * (ibv_attach_mcast(), which librdmacm calls).
 */
#ifndef UROCE_UCM_MULTICAST_H
#define UROCE_UCM_MULTICAST_H

#include <stdint.h>

struct ucm_event;
struct ucm_id;

struct ucm_group {
	struct ucm_group *next, **link; /* in the list of the id */
	struct ucm_id *id;
	uint32_t handle;
	uint64_t uid;
	uint32_t events_reported;
	struct ucm_event *unread; /* MULTICAST_JOIN until it is read, then NULL */
};

/* Leaves all groups of an id that is being destroyed. */
void ucm_groups_leave(struct ucm_id *id);
void ucm_groups_forked(void);

#endif
