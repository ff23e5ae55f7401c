/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The peer may reject a request because nothing listens yet: servers that invite clients out of
 * band (perftest -R) may need a few milliseconds before they listen.  Such a request is repeated a
 * few times before the program is notified.  A request that is rejected because of its path MTU is
 * repeated with the MTU of the peer.
 */
#ifndef UROCE_UCM_CONN_CONNECT_RETRY_H
#define UROCE_UCM_CONN_CONNECT_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/rdma_user_cm.h>

#include "cm/cm.h"

struct ucm_id;

struct ucm_retry {
	/* In a queue while waiting for the next attempt; link is NULL during an attempt. */
	struct ucm_retry *next, **link;
	uint64_t due;
	struct ucm_id *id;
	unsigned int attempts;
	uint16_t reason; /* of the last rejection */
	struct rdma_ucm_conn_param param;
};

/* Prepares to repeat the request of id with param.  Without memory it will not be repeated. */
void ucm_retry_prepare(struct ucm_id *id, const struct rdma_ucm_conn_param *param);
/* Called when the request was rejected as above.  Returns true if it will be repeated. */
bool ucm_retry_schedule(struct ucm_id *id, const struct cm_event *rejection);
/* Stops repeating: another reply was received, or id is being destroyed. */
void ucm_retry_cancel(struct ucm_id *id);
/* Returns the time at which ucm_retries_send() must be called, or UINT64_MAX. */
uint64_t ucm_retries_deadline(void);
/* Removes and returns a request that must be repeated now, or returns NULL. */
struct ucm_retry *ucm_retry_take_due(uint64_t now);
void ucm_retries_forked(void);

#endif
