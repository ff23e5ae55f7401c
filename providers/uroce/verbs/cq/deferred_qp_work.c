/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "cq.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs/fork.h"

static struct {
	pthread_mutex_t lock;
	unsigned int users;
	int fd;
} work = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

static void (*run_on_qp)(struct progress_qp *qp, void *arg);

void uroce_qp_work_set(void (*run)(struct progress_qp *qp, void *arg))
{
	run_on_qp = run;
}

/* Runs in the progress thread, without locks. */
static void run_work(void *arg)
{
	uint64_t count;

	(void)arg;
	/* Reset the eventfd first: an overrun from now on signals it again. */
	if (read(work.fd, &count, sizeof(count)) == sizeof(count))
		progress_for_each_qp(run_on_qp, NULL);
}

int uroce_qp_work_get(struct progress *progress)
{
	int error = 0;

	pthread_mutex_lock(&work.lock);
	if (!work.users) {
		work.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (work.fd < 0)
			error = errno;
		else
			error = -progress_watch(progress, work.fd, run_work, NULL);
	}
	if (!error) {
		work.users++;
	} else if (work.fd >= 0) {
		close(work.fd);
		work.fd = -1;
	}
	pthread_mutex_unlock(&work.lock);
	return error;
}

void uroce_qp_work_put(struct progress *progress)
{
	pthread_mutex_lock(&work.lock);
	if (--work.users == 0) {
		progress_unwatch(progress, work.fd);
		close(work.fd);
		work.fd = -1;
	}
	pthread_mutex_unlock(&work.lock);
}

static void prepare_fork(void)
{
	pthread_mutex_lock(&work.lock);
}

static void finish_fork_in_parent(void)
{
	pthread_mutex_unlock(&work.lock);
}

static void finish_fork_in_child(void)
{
	work.users = 0;
	if (work.fd >= 0)
		close(work.fd);
	work.fd = -1;
	pthread_mutex_unlock(&work.lock);
}

void uroce_qp_work_schedule(void)
{
	static const uint64_t one = 1;

	/*
	 * write() would be a cancellation point.  The call fails only if the counter of the eventfd
	 * is full, and then the progress thread has been woken already.
	 */
	syscall(SYS_write, work.fd, &one, sizeof(one));
}

UROCE_FORK_HANDLERS(UROCE_FORK_QP_WORK, prepare_fork, finish_fork_in_parent, finish_fork_in_child)
