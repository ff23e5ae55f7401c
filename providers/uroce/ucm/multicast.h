/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Multicast groups that an id has joined.  The packets are the queue pair's business
 * (ibv_attach_mcast(), which librdmacm calls); here is what names the group.
 */
#ifndef UROCE_UCM_MULTICAST_H
#define UROCE_UCM_MULTICAST_H

#include <stdint.h>

struct ucm_event;
struct ucm_id;

struct ucm_group {
	struct ucm_group *next, **link; /* in the id's list of groups */
	struct ucm_id *id;
	uint32_t handle;
	uint64_t uid;
	uint32_t events_reported;
	struct ucm_event *unread; /* that it was joined, or NULL */
};

/* All groups of an id, which goes. */
void ucm_groups_leave(struct ucm_id *id);
void ucm_groups_forked(void);

#endif
