/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "retry.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "connection.h"
#include "event.h"

/* Requests are repeated after 5, 10, 20, 40 and 80 ms. */
#define FIRST_NS UINT64_C(5000000)
#define TIMES 5

/*
 * Waiting entries by their number of attempts: all of a queue wait equally long, so the first one
 * is due first.  Most connections never enter a queue.
 */
static struct queue {
	struct ucm_retry *first, **last; /* last is valid if first is not NULL */
} queues[TIMES];

static struct queue *queue_of(const struct ucm_retry *retry)
{
	return &queues[retry->count - 1];
}

static void append(struct ucm_retry *retry)
{
	struct queue *queue = queue_of(retry);

	retry->place = queue->first ? queue->last : &queue->first;
	retry->next = NULL;
	*retry->place = retry;
	queue->last = &retry->next;
}

static void take_out(struct ucm_retry *retry)
{
	if (!retry->place)
		return;
	*retry->place = retry->next;
	if (retry->next)
		retry->next->place = retry->place;
	else
		queue_of(retry)->last = retry->place;
	retry->place = NULL;
}

void ucm_retry_begin(struct ucm_id *id, const struct rdma_ucm_conn_param *param)
{
	struct ucm_retry *retry = calloc(1, sizeof(*retry));

	if (!retry)
		return;
	retry->id = id;
	retry->param = *param;
	id->retry = retry;
}

bool ucm_retry_later(struct ucm_id *id, uint64_t now)
{
	struct ucm_retry *retry = id->retry;

	if (!retry || retry->count == TIMES) {
		ucm_retry_end(id);
		return false;
	}
	take_out(retry);
	retry->when = now + (FIRST_NS << retry->count++);
	append(retry);
	return true;
}

void ucm_retry_end(struct ucm_id *id)
{
	if (!id->retry)
		return;
	take_out(id->retry);
	free(id->retry);
	id->retry = NULL;
}

uint64_t ucm_retries_next(void)
{
	uint64_t next = UINT64_MAX;

	for (unsigned int i = 0; i < TIMES; i++) {
		const struct ucm_retry *first = queues[i].first;

		if (first && first->when < next)
			next = first->when;
	}
	return next;
}

static void ask_again(struct ucm_retry *retry)
{
	take_out(retry);
	ucm_connection_forget(retry->id);
	if (ucm_connection_make(retry->id) || !ucm_ask(retry->id, &retry->param))
		ucm_event_tell(retry->id, UCM_EVENT_REJECTED, MAD_REJECT_SERVICE_ID);
}

void ucm_retries_run(uint64_t now)
{
	for (unsigned int i = 0; i < TIMES; i++) {
		while (queues[i].first && queues[i].first->when <= now)
			ask_again(queues[i].first);
	}
}

void ucm_retries_forked(void)
{
	memset(queues, 0, sizeof(queues));
}
