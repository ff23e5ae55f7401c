/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "progress.h"

#include <errno.h>

#include "progress/gsi/gsi_progress.h"
#include "progress/base/helgrind.h"
#include "progress/path/qp_connect.h"
#include "progress/tx/tx.h"
#include "loop.h"

enum {
	/*
	 * How long exit() waits for the progress threads, which may wait for a CPU on a busy host.
	 */
	EXIT_FLUSH_NS = 100000000,
};

/* Protects the workers and the reference count of the instance. */
static pthread_mutex_t instance_lock = PTHREAD_MUTEX_INITIALIZER;
/*
 * Workers by number; number 0 is the instance.  progress_fork_child() reads them without the lock.
 */
static _Atomic(struct progress *) workers[PROGRESS_WORKERS];

static const char *const counter_names[PROGRESS_COUNTER_COUNT] = {
#define PROGRESS_COUNTER_NAME(id, name) [PROGRESS_COUNT_##id] = name,
	PROGRESS_COUNTERS(PROGRESS_COUNTER_NAME)
#undef PROGRESS_COUNTER_NAME
};

/*
 * Returns the first worker whose number is *from or higher, or NULL, and sets *from to the number
 * after it.
 */
static struct progress *next_worker(unsigned int *from)
{
	while (*from < PROGRESS_WORKERS) {
		struct progress *worker = progress_worker((*from)++);

		if (worker)
			return worker;
	}
	return NULL;
}

/*
 * Other threads do not exist in a forked child, locks that they held stay locked, descriptors are
 * shared with the parent: the child releases everything, and must open the device again to use it.
 */
void progress_fork_child(void)
{
	pthread_mutex_init(&instance_lock, NULL);
	/*
	 * Resets the locks that gsi_fork_prepare() has taken, which it does even if no device is
	 * open.
	 */
	gsi_fork_child();
	for (unsigned int i = 0; i < PROGRESS_WORKERS; i++) {
		struct progress *worker = atomic_exchange(&workers[i], NULL);

		if (!worker)
			continue;
		worker->forked = true;
		link_abandon(worker->link);
		wakeup_abandon(&worker->wakeup);
	}
}

/*
 * Takes the locks under which descriptors are created: the child must close all of them, so none
 * may be created during the fork.
 */
void progress_fork_prepare(void)
{
	struct progress *worker;

	pthread_mutex_lock(&instance_lock);
	gsi_fork_prepare();
	/* Wait for all openers first: one may wait for the reply of another worker's link. */
	for (unsigned int i = 0; (worker = next_worker(&i));)
		link_fork_wait_openers(worker->link);
	for (unsigned int i = 0; (worker = next_worker(&i));)
		link_fork_prepare(worker->link);
}

void progress_fork_parent(void)
{
	struct progress *worker;

	for (unsigned int i = 0; (worker = next_worker(&i));)
		link_fork_parent(worker->link);
	gsi_fork_parent();
	pthread_mutex_unlock(&instance_lock);
}

/* Caller holds instance_lock. */
static int get_worker(unsigned int number, const struct progress_hooks *hooks,
		      struct progress **worker, char error[PROGRESS_ERROR_TEXT])
{
	int result;

	*worker = atomic_load(&workers[number]);
	if (*worker)
		return 0;
	result = worker_open(worker, number, hooks, error);
	if (!result)
		atomic_store(&workers[number], *worker);
	return result;
}

int progress_get(struct progress **progress, const struct progress_hooks *hooks,
		 char error[PROGRESS_ERROR_TEXT])
{
	int result;

	pthread_mutex_lock(&instance_lock);
	result = get_worker(0, hooks, progress, error);
	if (!result)
		(*progress)->users++;
	pthread_mutex_unlock(&instance_lock);
	return result;
}

int progress_worker_get(unsigned int number, struct progress **worker,
			char error[PROGRESS_ERROR_TEXT])
{
	int result;

	pthread_mutex_lock(&instance_lock);
	result = get_worker(number, &progress_worker(0)->hooks, worker, error);
	pthread_mutex_unlock(&instance_lock);
	return result;
}

struct progress *progress_worker(unsigned int number)
{
	return atomic_load_explicit(&workers[number], memory_order_acquire);
}

unsigned int progress_worker_number(const struct progress *worker)
{
	return worker->number;
}

/* Caller holds instance_lock. */
static void close_workers(void)
{
	for (unsigned int i = PROGRESS_WORKERS; i-- > 0;) {
		struct progress *worker = atomic_exchange(&workers[i], NULL);

		if (worker)
			worker_close(worker);
	}
}

void progress_put(struct progress *progress)
{
	/*
	 * A forked child does not free its copy: worker_close() would wait for a thread that only
	 * the parent has.
	 */
	if (progress->forked)
		return;
	pthread_mutex_lock(&instance_lock);
	if (--progress->users == 0)
		close_workers();
	pthread_mutex_unlock(&instance_lock);
}

struct link *progress_link(struct progress *progress)
{
	return progress->link;
}

int progress_qp_add(struct progress *progress, struct progress_qp *qp)
{
	unsigned int slot;
	int result;

	if (progress->forked)
		return -EOWNERDEAD;
	HELGRIND_IS_ATOMIC(qp->queued_deadline);
	/* Protected by the atomic head of the list of scheduled QPs. */
	HELGRIND_IS_ATOMIC(qp->next_scheduled);
	qp->worker = progress;
	deadline_init_qp(qp);
	while ((result = qpn_table_add(&progress->table, qp)) == -ENOSPC) {
		result = link_add_slot(progress->link, &slot);
		if (result)
			return result;
		qpn_table_add_slot(&progress->table, slot);
	}
	return result;
}

void progress_qp_remove(struct progress *progress, struct progress_qp *qp)
{
	if (progress->forked)
		return;
	progress_lock(progress);
	qpn_table_remove(&progress->table, qp);
	deadline_remove_qp(&progress->deadlines, qp);
	tx_unschedule(progress, qp);
	budget_queue_remove(&progress->budget_queue, qp);
	progress_unlock(progress);
	qp_disconnect(progress, qp);
}

void progress_for_each_qp(void (*visit)(struct progress_qp *qp, void *arg), void *arg)
{
	struct progress *worker;

	for (unsigned int i = 0; (worker = next_worker(&i));) {
		progress_lock(worker);
		qpn_table_for_each(&worker->table, true, visit, arg);
		progress_unlock(worker);
	}
}

void progress_sync_all(void)
{
	struct progress *worker;

	for (unsigned int i = 0; (worker = next_worker(&i));)
		progress_sync(worker);
}

void progress_exit_flush(void)
{
	struct progress *worker;
	uint64_t until;

	if (progress_in_cycle() || pthread_mutex_trylock(&instance_lock))
		return;
	for (unsigned int i = 0; (worker = next_worker(&i));)
		exit_flush_start(worker);
	until = progress_now() + EXIT_FLUSH_NS;
	for (unsigned int i = 0; (worker = next_worker(&i));)
		exit_flush_wait(worker, until);
	pthread_mutex_unlock(&instance_lock);
}

const char *progress_counter_name(enum progress_counter counter)
{
	return counter < PROGRESS_COUNTER_COUNT ? counter_names[counter] : "unknown";
}

void progress_count_event(struct progress *progress, enum progress_counter counter)
{
	count_anywhere(progress, counter);
}

void progress_worker_counters(struct progress *worker, uint64_t counters[PROGRESS_COUNTER_COUNT])
{
	struct link_counters link;

	for (int i = 0; i < PROGRESS_COUNTER_COUNT; i++)
		counters[i] =
			atomic_load(&worker->counter[i]) + atomic_load(&worker->cycle_counter[i]);
	if (worker->forked)
		return;
	link_counters(worker->link, &link);
	counters[PROGRESS_COUNT_RECEIVE_OVERFLOW] = link.receive_overflow;
	counters[PROGRESS_COUNT_FORWARDED] = link.forwarded;
	counters[PROGRESS_COUNT_FORWARD_RECEIVED] = link.forward_received;
	counters[PROGRESS_COUNT_FORWARD_LOST] = link.forward_lost;
	counters[PROGRESS_COUNT_MEMORY_SENT] = link.shm_sent;
	counters[PROGRESS_COUNT_MEMORY_RECEIVED] = link.shm_received;
}

void progress_counters(uint64_t counters[PROGRESS_COUNTER_COUNT])
{
	struct progress *worker;

	for (int i = 0; i < PROGRESS_COUNTER_COUNT; i++)
		counters[i] = 0;
	for (unsigned int i = 0; (worker = next_worker(&i));) {
		uint64_t own[PROGRESS_COUNTER_COUNT];

		progress_worker_counters(worker, own);
		for (int id = 0; id < PROGRESS_COUNTER_COUNT; id++)
			counters[id] += own[id];
	}
}
