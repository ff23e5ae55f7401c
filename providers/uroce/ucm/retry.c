/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "retry.h"

#include <stddef.h>
#include <stdlib.h>

#include "command.h"
#include "connection.h"
#include "event.h"

/* After 5, 10, 20, 40 and 80 ms. */
#define FIRST_NS UINT64_C(5000000)
#define TIMES 5

static struct ucm_retry *retries;

void ucm_retry_begin(struct ucm_id *id, const struct rdma_ucm_conn_param *param)
{
	struct ucm_retry *retry = calloc(1, sizeof(*retry));

	if (!retry)
		return;
	retry->id = id;
	retry->when = UINT64_MAX;
	retry->param = *param;
	retry->next = retries;
	retries = retry;
	id->retry = retry;
}

bool ucm_retry_later(struct ucm_id *id, uint64_t now)
{
	struct ucm_retry *retry = id->retry;

	if (!retry || retry->count == TIMES) {
		ucm_retry_end(id);
		return false;
	}
	retry->when = now + (FIRST_NS << retry->count++);
	return true;
}

void ucm_retry_end(struct ucm_id *id)
{
	struct ucm_retry **place = &retries;

	if (!id->retry)
		return;
	while (*place != id->retry)
		place = &(*place)->next;
	*place = id->retry->next;
	free(id->retry);
	id->retry = NULL;
}

uint64_t ucm_retries_next(void)
{
	uint64_t next = UINT64_MAX;

	for (const struct ucm_retry *retry = retries; retry; retry = retry->next)
		next = retry->when < next ? retry->when : next;
	return next;
}

void ucm_retries_run(uint64_t now)
{
	struct ucm_retry *retry = retries, *next;

	for (; retry; retry = next) {
		next = retry->next;
		if (retry->when > now)
			continue;
		retry->when = UINT64_MAX;
		ucm_connection_forget(retry->id);
		if (ucm_connection_make(retry->id) || !ucm_ask(retry->id, &retry->param))
			ucm_event_tell(retry->id, UCM_EVENT_REJECTED, MAD_REJECT_SERVICE_ID);
	}
}

void ucm_retries_forked(void)
{
	retries = NULL;
}
