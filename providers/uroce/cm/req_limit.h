/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Limits the unanswered requests (REQ, SIDR_REQ, DREQ) to each peer, because a burst of them would
 * overrun its socket buffer.  Further requests are queued.  A request that is repeated no longer
 * counts, so that an unreachable peer delays others only until the first repetition.
 */
#ifndef UROCE_CM_REQ_LIMIT_H
#define UROCE_CM_REQ_LIMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* Number of hash buckets.  Peers in the same bucket share its limit. */
#define REQ_LIMIT_BUCKETS 64

struct req_limit_node {
	TAILQ_ENTRY(req_limit_node) link; /* in peer_limit.queued */
	uint32_t bucket;
	enum { REQ_LIMIT_NONE, REQ_LIMIT_QUEUED, REQ_LIMIT_COUNTED } state;
};

struct peer_limit {
	TAILQ_HEAD(, req_limit_node) queued;
	uint32_t count;
};

struct req_limit {
	struct peer_limit bucket[REQ_LIMIT_BUCKETS];
	uint32_t limit;
};

void cm_req_limit_init(struct req_limit *req_limit, uint32_t limit);
/*
 * Adds a request to the peer with address gid (16 bytes).  Returns true if it may be sent now,
 * false if it is queued.
 */
bool cm_req_limit_add(struct req_limit *req_limit, struct req_limit_node *node, const uint8_t *gid);
/* Removes a request that is answered, repeated or cancelled; does nothing if it is in no bucket. */
void cm_req_limit_remove(struct req_limit *req_limit, struct req_limit_node *node);
/* Takes and counts the next queued request of a bucket that may be sent now, or returns NULL. */
struct req_limit_node *cm_req_limit_next(struct req_limit *req_limit, uint32_t bucket);

#endif
