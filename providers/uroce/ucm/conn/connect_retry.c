/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "connect_retry.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "ucm/id.h"

/* Requests are repeated after 5, 10, 20, 40 and 80 ms. */
#define FIRST_RETRY_NS UINT64_C(5000000)
#define MAX_RETRIES 5

/*
 * Waiting entries by their number of attempts: all of a queue wait equally long, so the first one
 * is due first.  Most connections never enter a queue.
 */
static struct retry_queue {
	struct ucm_retry *first, **last; /* last is valid if first is not NULL */
} queues[MAX_RETRIES];

static struct retry_queue *get_queue(const struct ucm_retry *retry)
{
	return &queues[retry->attempts - 1];
}

static void append_retry(struct ucm_retry *retry)
{
	struct retry_queue *retry_queue = get_queue(retry);

	retry->link = retry_queue->first ? retry_queue->last : &retry_queue->first;
	retry->next = NULL;
	*retry->link = retry;
	retry_queue->last = &retry->next;
}

static void remove_retry(struct ucm_retry *retry)
{
	if (!retry->link)
		return;
	*retry->link = retry->next;
	if (retry->next)
		retry->next->link = retry->link;
	else
		get_queue(retry)->last = retry->link;
	retry->link = NULL;
}

void ucm_retry_prepare(struct ucm_id *id, const struct rdma_ucm_conn_param *param)
{
	struct ucm_retry *retry = calloc(1, sizeof(*retry));

	if (!retry)
		return;
	retry->id = id;
	retry->param = *param;
	id->retry = retry;
}

bool ucm_retry_schedule(struct ucm_id *id, const struct cm_event *rejection)
{
	struct ucm_retry *retry = id->retry;

	if (!retry || retry->attempts == MAX_RETRIES)
		return false;
	remove_retry(retry);
	retry->due = rejection->now + (FIRST_RETRY_NS << retry->attempts++);
	retry->reason = rejection->type == CM_EVENT_REJECTED ? rejection->mad->rej.reason
							     : MAD_REJECT_INVALID_SERVICE_ID;
	append_retry(retry);
	return true;
}

void ucm_retry_cancel(struct ucm_id *id)
{
	if (!id->retry)
		return;
	remove_retry(id->retry);
	free(id->retry);
	id->retry = NULL;
}

uint64_t ucm_retries_deadline(void)
{
	uint64_t next = UINT64_MAX;

	for (unsigned int i = 0; i < MAX_RETRIES; i++) {
		const struct ucm_retry *first = queues[i].first;

		if (first && first->due < next)
			next = first->due;
	}
	return next;
}

struct ucm_retry *ucm_retry_take_due(uint64_t now)
{
	for (unsigned int i = 0; i < MAX_RETRIES; i++) {
		struct ucm_retry *first = queues[i].first;

		if (first && first->due <= now) {
			remove_retry(first);
			return first;
		}
	}
	return NULL;
}

void ucm_retries_forked(void)
{
	memset(queues, 0, sizeof(queues));
}
