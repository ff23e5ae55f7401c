/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * There is no listener at the peer, yet: servers that have told their clients by other means to
 * come (perftest -R does) may need some milliseconds until they do.  So a request that is refused
 * for that reason is made again a few times, before the program hears of it.  Likewise one that is
 * refused because of its path MTU, with that of the peer.
 */
#ifndef UROCE_UCM_RETRY_H
#define UROCE_UCM_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/rdma_user_cm.h>

struct ucm_id;

struct ucm_retry {
	/* While it waits to ask again; place is NULL while a request is under way. */
	struct ucm_retry *next, **place;
	uint64_t when;
	struct ucm_id *id;
	unsigned int count;
	struct rdma_ucm_conn_param param;
};

/* id asks for a connection with param.  Without memory it will not ask twice. */
void ucm_retry_begin(struct ucm_id *id, const struct rdma_ucm_conn_param *param);
/* It was refused for one of those reasons.  true: it will be asked again, false: enough. */
bool ucm_retry_later(struct ucm_id *id, uint64_t now);
/* There was another answer, or id goes. */
void ucm_retry_end(struct ucm_id *id);
/* When ucm_retries_run() has something to do, or UINT64_MAX. */
uint64_t ucm_retries_next(void);
void ucm_retries_run(uint64_t now);
void ucm_retries_forked(void);

#endif
