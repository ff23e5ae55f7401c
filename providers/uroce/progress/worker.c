/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "progress_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "progress/base/helgrind.h"
#include "progress/tx/capture_hook.h"
#include "progress/tx/tx.h"

static void no_hook(unsigned int worker)
{
	(void)worker;
}

static void send_from_injector(void *arg, const struct fault_path *path, const struct iovec *pieces,
			       unsigned int count, unsigned int segment)
{
	tx_send_pieces(arg, path, pieces, count, segment);
}

static void capture_injector_drop(void *arg, const struct fault_path *path, const uint8_t *bytes,
				  uint32_t length)
{
	(void)arg;
	capture_tx_dropped(path->peer, path->qpn, bytes, length);
}

static void count_injected_fault(void *arg, enum progress_counter counter)
{
	count_anywhere(arg, counter);
}

static int open_fault_injector(struct progress *progress, char error[PROGRESS_ERROR_TEXT])
{
	const struct fault_sink sink = { .send = send_from_injector,
					 .lost = capture_injector_drop,
					 .count = count_injected_fault,
					 .arg = progress };
	const char *text = getenv("UROCE_FAULT");
	struct fault_config config;
	int result;

	if (!text || !*text)
		return 0;
	result = fault_parse(text, &config, error);
	if (!result && fault_open(&progress->fault, &config, &sink)) {
		snprintf(error, PROGRESS_ERROR_TEXT, "out of memory");
		result = -ENOMEM;
	}
	return result;
}

static uint32_t random_first_index(void)
{
	uint32_t start;

	if (getrandom(&start, sizeof(start), GRND_NONBLOCK) != (ssize_t)sizeof(start))
		start = (uint32_t)progress_now();
	return start;
}

static void free_memory(struct progress *progress)
{
	for (unsigned int i = 0; i < progress->tx_count; i++)
		tx_buffer_free(atomic_load(&progress->tx[i]));
	tx_buffer_free(progress->cycle_tx);
	free(progress->receive_buffer);
	free(progress->group);
	free(progress->address);
	pthread_mutex_destroy(&progress->cycle_lock);
	pthread_mutex_destroy(&progress->route_lock);
	pthread_mutex_destroy(&progress->gsi_lock);
	deadline_fini(&progress->deadlines);
	free(progress);
}

/*
 * Allocates all transmit buffers, so that posting allocates nothing.  Returns false if out of
 * memory.  Most of a buffer takes no physical memory before its first use.
 */
static bool fill_tx_pool(struct progress *progress)
{
	unsigned int wanted = tx_pool_size();

	while (progress->tx_count < wanted) {
		struct tx_buffer *tx = tx_buffer_new(progress->max_segments);

		if (!tx)
			return false;
		atomic_init(&progress->tx[progress->tx_count++], tx);
	}
	progress->cycle_tx = tx_buffer_new(progress->max_segments);
	return progress->cycle_tx;
}

/* Declares as atomic (helgrind.h) the fields that threads read without a lock. */
static void annotate_for_helgrind(struct progress *progress)
{
	HELGRIND_IS_ATOMIC(progress->cycle_counter);
	HELGRIND_IS_ATOMIC(progress->cycle_lock_waiters);
	HELGRIND_IS_ATOMIC(progress->sending_responses);
	HELGRIND_IS_ATOMIC(progress->scheduled);
	HELGRIND_IS_ATOMIC(progress->deadlines.earliest);
	HELGRIND_IS_ATOMIC(progress->thread.stop);
	HELGRIND_IS_ATOMIC(progress->thread.exit_requested);
	HELGRIND_IS_ATOMIC(progress->wakeup.armed);
	HELGRIND_IS_ATOMIC(progress->gsi_wakeup);
}

/* Allocates a worker and initializes what needs no other resources. */
static struct progress *allocate_worker(unsigned int number, const struct progress_hooks *hooks)
{
	struct progress *progress = aligned_alloc(PROGRESS_CACHE_LINE, sizeof(*progress));

	if (!progress)
		return NULL;
	memset(progress, 0, sizeof(*progress));
	annotate_for_helgrind(progress);
	progress->number = number;
	progress->hooks.enter = hooks && hooks->enter ? hooks->enter : no_hook;
	progress->hooks.leave = hooks && hooks->leave ? hooks->leave : no_hook;
	progress->hooks.cycle_done = hooks && hooks->cycle_done ? hooks->cycle_done : no_hook;
	progress->hooks.timed_out = hooks ? hooks->timed_out : NULL;
	pthread_mutex_init(&progress->cycle_lock, NULL);
	pthread_mutex_init(&progress->route_lock, NULL);
	pthread_mutex_init(&progress->gsi_lock, NULL);
	deadline_init(&progress->deadlines);
	TAILQ_INIT(&progress->budget_queue.qps);
	atomic_init(&progress->gsi_wakeup.fd, -1);
	atomic_init(&progress->gsi_wakeup.deadline, ENG_NEVER);
	progress->receive_buffer = malloc(LINK_MAX_BYTES + 1);
	if (!progress->receive_buffer) {
		free_memory(progress);
		return NULL;
	}
	return progress;
}

int worker_open(struct progress **opened, unsigned int number, const struct progress_hooks *hooks,
		char error[PROGRESS_ERROR_TEXT])
{
	struct progress *progress = allocate_worker(number, hooks);
	int result;

	if (!progress) {
		snprintf(error, PROGRESS_ERROR_TEXT, "out of memory");
		return -ENOMEM;
	}
	result = open_fault_injector(progress, error);
	if (result)
		goto free_memory;
	result = number ? link_open_further(&progress->link, error)
			: link_open(&progress->link, error);
	if (result)
		goto close_fault;
	progress->slot = link_slot(progress->link);
	progress->max_segments = link_max_segments(progress->link);
	if (!fill_tx_pool(progress)) {
		snprintf(error, PROGRESS_ERROR_TEXT, "out of memory");
		result = -ENOMEM;
		goto close_link_alone;
	}
	qpn_table_init(&progress->table, progress->slot, random_first_index());
	result = progress_thread_start(progress);
	if (result) {
		snprintf(error, PROGRESS_ERROR_TEXT, "cannot start the progress thread: %s",
			 strerror(-result));
		goto close_link;
	}
	*opened = progress;
	return 0;

close_link:
	qpn_table_fini(&progress->table);
close_link_alone:
	link_close(progress->link);
close_fault:
	if (progress->fault)
		fault_close(progress->fault);
free_memory:
	free_memory(progress);
	return result;
}

void worker_close(struct progress *progress)
{
	progress_thread_stop(progress);
	if (progress->fault)
		fault_close(progress->fault);
	qpn_table_fini(&progress->table);
	link_close(progress->link);
	free_memory(progress);
}
