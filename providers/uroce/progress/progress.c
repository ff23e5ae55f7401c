/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "progress.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "gsi_service.h"
#include "helgrind.h"
#include "instance.h"
#include "leave.h"
#include "route.h"
#include "tap.h"
#include "transmit.h"
#include "turn.h"

/* The instance and its users. */
static pthread_mutex_t instance_lock = PTHREAD_MUTEX_INITIALIZER;
/* Read by the handlers of fork(), which take no lock. */
static _Atomic(struct progress *) instance;

static const char *const counter_names[PROGRESS_COUNTER_COUNT] = {
#define PROGRESS_COUNTER_NAME(id, name) [PROGRESS_COUNT_##id] = name,
	PROGRESS_COUNTERS(PROGRESS_COUNTER_NAME)
#undef PROGRESS_COUNTER_NAME
};

static void no_hook(void)
{
}

/*
 * Threads do not live on in a forked child, locks that they held stay held, and the descriptors
 * are the parent's as well: the child lets go of all, and opens the device anew if it is to use it.
 */
void progress_fork_child(void)
{
	struct progress *progress = atomic_load(&instance);

	pthread_mutex_init(&instance_lock, NULL);
	/* Its locks were taken before the fork, be there a device or not. */
	gsi_fork_child();
	if (!progress)
		return;
	progress->dead = true;
	link_abandon(progress->link);
	wakeup_abandon(&progress->wakeup);
	atomic_store(&instance, NULL);
}

/* The child has to find every descriptor that another thread is making at this moment. */
void progress_fork_prepare(void)
{
	struct progress *progress;

	pthread_mutex_lock(&instance_lock);
	gsi_fork_prepare();
	progress = atomic_load(&instance);
	if (progress)
		link_fork_prepare(progress->link);
}

void progress_fork_parent(void)
{
	struct progress *progress = atomic_load(&instance);

	if (progress)
		link_fork_parent(progress->link);
	gsi_fork_parent();
	pthread_mutex_unlock(&instance_lock);
}

static void send_faulty(void *arg, const struct fault_path *path, const struct iovec *pieces,
			unsigned int count, unsigned int segment)
{
	transmit_pieces(arg, path, pieces, count, segment);
}

static void lose_faulty(void *arg, const struct fault_path *path, const uint8_t *bytes,
			uint32_t length)
{
	(void)arg;
	tap_dropped(path->peer, path->qpn, bytes, length);
}

static void count_faulty(void *arg, enum progress_counter counter)
{
	count_anywhere(arg, counter);
}

static int open_fault(struct progress *progress, char error[PROGRESS_ERROR_TEXT])
{
	const struct fault_sink sink = {
		.send = send_faulty, .lost = lose_faulty, .count = count_faulty, .arg = progress
	};
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

static uint32_t random_start(void)
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
	tx_buffer_free(progress->turn_tx);
	free(progress->receive_buffer);
	free(progress->group);
	free(progress->address);
	pthread_mutex_destroy(&progress->turn_lock);
	pthread_mutex_destroy(&progress->route_lock);
	deadline_fini(&progress->deadlines);
	free(progress);
}

/* Made now, so that posts allocate nothing.  Their memory is not touched before they are used. */
static bool fill_stock(struct progress *progress)
{
	unsigned int wanted = tx_buffers_wanted();

	while (progress->tx_count < wanted) {
		struct tx_buffer *tx = tx_buffer_new(progress->max_segments);

		if (!tx)
			return false;
		atomic_init(&progress->tx[progress->tx_count++], tx);
	}
	progress->turn_tx = tx_buffer_new(progress->max_segments);
	return progress->turn_tx;
}

/* What threads look at without a lock. */
static void tell_helgrind(struct progress *progress)
{
	HELGRIND_IS_ATOMIC(progress->turn_counter);
	HELGRIND_IS_ATOMIC(progress->turn_wanted);
	HELGRIND_IS_ATOMIC(progress->answering);
	HELGRIND_IS_ATOMIC(progress->scheduled);
	HELGRIND_IS_ATOMIC(progress->deadlines.earliest);
	HELGRIND_IS_ATOMIC(progress->helper.stop);
	HELGRIND_IS_ATOMIC(progress->helper.leaves);
	HELGRIND_IS_ATOMIC(progress->wakeup.armed);
	HELGRIND_IS_ATOMIC(progress->gsi_wakeup);
}

/* All that needs nothing from outside. */
static struct progress *allocate(const struct progress_hooks *hooks)
{
	struct progress *progress = aligned_alloc(PROGRESS_CACHE_LINE, sizeof(*progress));

	if (!progress)
		return NULL;
	memset(progress, 0, sizeof(*progress));
	tell_helgrind(progress);
	progress->hooks.enter = hooks && hooks->enter ? hooks->enter : no_hook;
	progress->hooks.leave = hooks && hooks->leave ? hooks->leave : no_hook;
	progress->hooks.turn_over = hooks && hooks->turn_over ? hooks->turn_over : no_hook;
	progress->hooks.timed_out = hooks ? hooks->timed_out : NULL;
	pthread_mutex_init(&progress->turn_lock, NULL);
	pthread_mutex_init(&progress->route_lock, NULL);
	deadline_init(&progress->deadlines);
	atomic_init(&progress->gsi_wakeup.fd, -1);
	atomic_init(&progress->gsi_wakeup.deadline, ENG_NEVER);
	progress->users = 1;
	progress->receive_buffer = malloc(LINK_MAX_BYTES + 1);
	if (!progress->receive_buffer) {
		free_memory(progress);
		return NULL;
	}
	return progress;
}

static int open_instance(struct progress **opened, const struct progress_hooks *hooks,
			 char error[PROGRESS_ERROR_TEXT])
{
	struct progress *progress = allocate(hooks);
	int result;

	if (!progress) {
		snprintf(error, PROGRESS_ERROR_TEXT, "out of memory");
		return -ENOMEM;
	}
	result = open_fault(progress, error);
	if (result)
		goto free_memory;
	result = link_open(&progress->link, error);
	if (result)
		goto close_fault;
	progress->slot = link_slot(progress->link);
	progress->max_segments = link_max_segments(progress->link);
	if (!fill_stock(progress)) {
		snprintf(error, PROGRESS_ERROR_TEXT, "out of memory");
		result = -ENOMEM;
		goto close_link_alone;
	}
	table_init(&progress->table, progress->slot, random_start());
	result = helper_start(progress);
	if (result) {
		snprintf(error, PROGRESS_ERROR_TEXT, "cannot start the helper thread: %s",
			 strerror(-result));
		goto close_link;
	}
	*opened = progress;
	return 0;

close_link:
	table_fini(&progress->table);
close_link_alone:
	link_close(progress->link);
close_fault:
	if (progress->fault)
		fault_close(progress->fault);
free_memory:
	free_memory(progress);
	return result;
}

int progress_get(struct progress **progress, const struct progress_hooks *hooks,
		 char error[PROGRESS_ERROR_TEXT])
{
	int result = 0;

	pthread_mutex_lock(&instance_lock);
	*progress = atomic_load(&instance);
	if (*progress)
		(*progress)->users++;
	else
		result = open_instance(progress, hooks, error);
	if (!result)
		atomic_store(&instance, *progress);
	pthread_mutex_unlock(&instance_lock);
	return result;
}

static void close_instance(struct progress *progress)
{
	helper_stop(progress);
	if (progress->fault)
		fault_close(progress->fault);
	table_fini(&progress->table);
	link_close(progress->link);
	free_memory(progress);
}

void progress_put(struct progress *progress)
{
	/* A forked child's copy stays: it costs memory that is shared with the parent. */
	if (progress->dead)
		return;
	pthread_mutex_lock(&instance_lock);
	if (--progress->users == 0) {
		atomic_store(&instance, NULL);
		close_instance(progress);
	}
	pthread_mutex_unlock(&instance_lock);
}

struct progress *progress_current(void)
{
	return atomic_load(&instance);
}

struct link *progress_link(struct progress *progress)
{
	return progress->link;
}

int progress_qp_add(struct progress *progress, struct progress_qp *qp)
{
	int result;

	if (progress->dead)
		return -EOWNERDEAD;
	HELGRIND_IS_ATOMIC(qp->queued_deadline);
	/* Handed over with the head of the list of scheduled QPs. */
	HELGRIND_IS_ATOMIC(qp->next_scheduled);
	result = table_add(&progress->table, qp);
	if (result < 0)
		return result;
	result = deadline_add_qp(&progress->deadlines, qp, (uint32_t)result);
	if (result)
		table_remove(&progress->table, qp);
	return result;
}

void progress_qp_remove(struct progress *progress, struct progress_qp *qp)
{
	if (progress->dead)
		return;
	turn_lock(progress);
	table_remove(&progress->table, qp);
	deadline_remove_qp(&progress->deadlines, qp);
	transmit_unschedule(progress, qp);
	share_queue_remove(&progress->share_queue, qp);
	turn_unlock(progress);
	route_close(progress, qp);
}

void progress_each_qp(struct progress *progress, void (*visit)(struct progress_qp *qp, void *arg),
		      void *arg)
{
	if (progress->dead)
		return;
	turn_lock(progress);
	table_visit(&progress->table, true, visit, arg);
	turn_unlock(progress);
}

void progress_leave(void)
{
	struct progress *progress;

	if (progress_in_turn() || pthread_mutex_trylock(&instance_lock))
		return;
	progress = atomic_load(&instance);
	if (progress && !progress->dead)
		leave_settle(progress);
	pthread_mutex_unlock(&instance_lock);
}

const char *progress_counter_name(enum progress_counter counter)
{
	return counter < PROGRESS_COUNTER_COUNT ? counter_names[counter] : "unknown";
}

void progress_note(struct progress *progress, enum progress_counter counter)
{
	count_anywhere(progress, counter);
}

void progress_counters(struct progress *progress, uint64_t counters[PROGRESS_COUNTER_COUNT])
{
	struct link_counters link;

	for (int i = 0; i < PROGRESS_COUNTER_COUNT; i++)
		counters[i] = atomic_load(&progress->counter[i]) +
			      atomic_load(&progress->turn_counter[i]);
	if (progress->dead)
		return;
	link_counters(progress->link, &link);
	counters[PROGRESS_COUNT_RECEIVE_OVERFLOW] = link.receive_overflow;
	counters[PROGRESS_COUNT_FORWARDED] = link.forwarded;
	counters[PROGRESS_COUNT_FORWARD_RECEIVED] = link.forward_received;
	counters[PROGRESS_COUNT_FORWARD_LOST] = link.forward_lost;
	counters[PROGRESS_COUNT_MEMORY_SENT] = link.memory_sent;
	counters[PROGRESS_COUNT_MEMORY_RECEIVED] = link.memory_received;
}
