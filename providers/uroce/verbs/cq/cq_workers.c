/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "cq_workers.h"

#include <sched.h>
#include <unistd.h>

#include "cq.h"
#include "verbs/fork.h"
#include "verbs/mr/mkey_table.h"

_Static_assert((int)MKEY_TABLE_READERS == PROGRESS_WORKERS, "each worker visits the key table");

enum { WORD_BITS = 8 * sizeof(unsigned long) };

/* Union of the affinity masks of all threads that called count_cpus(), in the form of cpu_set_t. */
static _Atomic unsigned long cpus_seen[CPU_SETSIZE / WORD_BITS];
/* Number of workers assigned so far; modulo their maximum it gives the next one. */
static atomic_uint workers_assigned;
/* Worker of the calling thread, or -1. */
static _Thread_local int thread_worker = -1;

/*
 * Number of processors that the process may use.  Each thread may be bound to a different one, so
 * their affinity masks are combined.
 */
static unsigned int count_cpus(void)
{
	unsigned long own[CPU_SETSIZE / WORD_BITS] = { 0 };
	unsigned int count = 0;

	/* Fails if the kernel's mask is larger than CPU_SETSIZE. */
	if (sched_getaffinity(0, sizeof(own), (cpu_set_t *)(void *)own))
		return (unsigned int)sysconf(_SC_NPROCESSORS_ONLN);
	for (unsigned int i = 0; i < CPU_SETSIZE / WORD_BITS; i++) {
		unsigned long word = atomic_fetch_or(&cpus_seen[i], own[i]) | own[i];

		count += (unsigned int)__builtin_popcountl(word);
	}
	return count;
}

unsigned int uroce_workers_max(const struct uroce_settings *settings)
{
	unsigned int count = settings->workers ? settings->workers : count_cpus();

	return count < PROGRESS_WORKERS ? count : PROGRESS_WORKERS;
}

static unsigned int choose_worker_number(const struct uroce_settings *settings, int comp_vector)
{
	unsigned int max = uroce_workers_max(settings);

	if (comp_vector > 0)
		return (unsigned int)comp_vector;
	if (settings->worker_for_each_cq)
		return atomic_fetch_add(&workers_assigned, 1) % max;
	if (thread_worker < 0)
		thread_worker = (int)(atomic_fetch_add(&workers_assigned, 1) % max);
	return (unsigned int)thread_worker;
}

struct progress *uroce_cq_choose_worker(const struct uroce_context *context, int comp_vector)
{
	unsigned int number = choose_worker_number(&context->settings, comp_vector);
	char text[PROGRESS_ERROR_TEXT];
	struct progress *worker;

	if (number == 0 || uroce_is_stale(context->generation))
		return context->progress;
	if (progress_worker_get(number, &worker, text)) {
		uroce_debug("cannot create worker %u, using worker 0: %s", number, text);
		/* The thread's next CQs use worker 0 without another attempt. */
		thread_worker = 0;
		return context->progress;
	}
	uroce_settings_apply(&context->settings, worker);
	mkey_table_admit(number);
	return worker;
}

void uroce_cq_attach(struct uroce_cq *cq, struct progress *worker)
{
	unsigned int number = progress_worker_number(worker);

	pthread_mutex_lock(&cq->lock);
	if (cq->workers.users[number]++ == 0 && worker != cq->workers.own)
		atomic_fetch_or(&cq->workers.other_workers, 1u << number);
	pthread_mutex_unlock(&cq->lock);
}

void uroce_cq_detach(struct uroce_cq *cq, struct progress *worker)
{
	unsigned int number = progress_worker_number(worker);

	pthread_mutex_lock(&cq->lock);
	if (--cq->workers.users[number] == 0)
		atomic_fetch_and(&cq->workers.other_workers, ~(1u << number));
	pthread_mutex_unlock(&cq->lock);
}

struct progress *uroce_worker_set_pop(uint32_t *workers)
{
	unsigned int number = (unsigned int)__builtin_ctz(*workers);

	*workers &= *workers - 1;
	return progress_worker(number);
}
