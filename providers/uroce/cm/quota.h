/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * How many requests (REQ, SIDR_REQ, DREQ) to a peer may be unanswered at a time: a storm of them
 * would only overrun its socket.  Later ones wait their turn; a request that has to be repeated no
 * longer counts, so that peers that are gone hold up others for no longer than the first pause.
 */
#ifndef UROCE_CM_QUOTA_H
#define UROCE_CM_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

/* Peers share a place when their addresses fall together: it only makes the limit narrower. */
#define QUOTA_PLACES 64

struct quota_node {
	struct quota_node *next, *before; /* while it waits */
	uint32_t place;
	enum { QUOTA_OUT, QUOTA_WAITS, QUOTA_COUNTS } how;
};

struct quota_place {
	struct quota_node *first, *last; /* those that wait */
	uint32_t count;
};

struct quota {
	struct quota_place place[QUOTA_PLACES];
	uint32_t limit;
};

/* gid: 16 bytes of the peer's address.  True: send now.  False: it waits. */
bool cm_quota_enter(struct quota *quota, struct quota_node *node, const uint8_t *gid);
/* Answered, repeated, or no longer wanted; whether it counts, waits or neither. */
void cm_quota_leave(struct quota *quota, struct quota_node *node);
/* The next of this place that may be sent now, which counts from here on; or NULL. */
struct quota_node *cm_quota_next(struct quota *quota, uint32_t place);

#endif
