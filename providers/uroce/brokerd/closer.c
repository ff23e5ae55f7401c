/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Closing may take as long as a stranger likes, if it has put a lingering socket into what is
 * closed.  So a worker thread does it, and a keeper looks after it: when a close does not end, the
 * worker is cancelled, the signal ends the lingering, and the next worker goes on.  Both exist
 * while there is something to close, and no other thread waits for them.
 */
#include "closer.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "brokerd.h"

#include "link/thread.h"

#define THREAD_NAME "uroce-closer"

enum {
	QUEUE_MAX = 128,
	/*
	 * Nothing that ends by itself takes longer on a host that has time for it.  Twice as long
	 * each time that the worker has not even begun.
	 */
	PATIENCE_NS = 500000,
	PATIENCE_MAX_NS = 500000000,
};

static struct closer {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool kept;  /* there is a keeper */
	bool works; /* there is a worker, and it has more to do */
	long patience_ns;
	unsigned int count;
	/* In any order; the last entry is for one that the worker gives back. */
	int queue[QUEUE_MAX + 1];
	/* What the worker is closing, or -1. */
	int current;
	uint64_t inode; /* of current */
	uint64_t closed;
} closer = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
	.patience_ns = PATIENCE_NS,
	.current = -1,
};

static bool can_cancel;

/*
 * The C library loads this when a thread is cancelled for the first time, and if it cannot, since
 * no descriptor is free for instance, it aborts the program.
 */
static void load_what_cancelling_needs(void)
{
	can_cancel = dlopen("libgcc_s.so.1", RTLD_NOW);
}

static void get_ready(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load_what_cancelling_needs);
}

/*
 * When a thread is cancelled the address sanitizer does not see that it leaves its frames, and
 * later reports accesses to them as out of bounds.  So work() has no variable that has an address.
 */
#define IN_A_FRAME_OF_ITS_OWN __attribute__((noinline))

/*
 * The number may be another descriptor's by now, that any thread has opened: the inode tells.  (The
 * thread sanitizer would call fstat() a race.)
 */
IN_A_FRAME_OF_ITS_OWN static uint64_t inode_of(int fd)
{
	struct statx status;

	return statx(fd, "", AT_EMPTY_PATH, STATX_INO, &status) ? 0 : status.stx_ino;
}

/* For the worker, that holds the lock: a descriptor, or -1. */
static int take_one(void)
{
	closer.current = closer.count ? closer.queue[--closer.count] : -1;
	closer.inode = closer.current < 0 ? 0 : inode_of(closer.current);
	return closer.current;
}

IN_A_FRAME_OF_ITS_OWN static void set_cancel_state(int state)
{
	int before;

	pthread_setcancelstate(state, &before);
}

/* Cancelled while it closes, and only there. */
static void *work(void *arg)
{
	int fd;

	(void)arg;
	set_cancel_state(PTHREAD_CANCEL_DISABLE);
	pthread_mutex_lock(&closer.lock);
	while ((fd = take_one()) >= 0) {
		pthread_mutex_unlock(&closer.lock);
		set_cancel_state(PTHREAD_CANCEL_ENABLE);
		close(fd);
		set_cancel_state(PTHREAD_CANCEL_DISABLE);
		pthread_mutex_lock(&closer.lock);
		closer.closed++;
	}
	closer.works = false;
	pthread_cond_broadcast(&closer.changed);
	pthread_mutex_unlock(&closer.lock);
	return NULL;
}

/* Caller holds the lock.  False when the worker has closed nothing for as long as it may. */
static bool await_worker(void)
{
	uint64_t closed = closer.closed;
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += closer.patience_ns;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	pthread_cond_clockwait(&closer.changed, &closer.lock, CLOCK_MONOTONIC, &until);
	return !closer.works || closer.closed != closed;
}

/* Caller holds the lock.  No thread can be made, so this one has to wait for the close. */
static void close_here(void)
{
	close(closer.queue[--closer.count]);
}

/* Caller holds the lock, and is without it while this waits. */
static void have_it_done(void)
{
	pthread_t worker;
	bool in_time = true, begun;
	uint64_t closed;

	closer.works = thread_start(&worker, THREAD_NAME, work, NULL) == 0;
	if (!closer.works) {
		close_here();
		return;
	}
	while (closer.works && in_time)
		in_time = await_worker();
	closed = closer.closed;
	pthread_mutex_unlock(&closer.lock);
	if (!in_time && can_cancel)
		pthread_cancel(worker);
	pthread_join(worker, NULL);
	pthread_mutex_lock(&closer.lock);
	closer.works = false;
	begun = !closer.inode || inode_of(closer.current) != closer.inode;
	if (!begun)
		closer.queue[closer.count++] = closer.current;
	/* From glibc 2.41 on a close that was interrupted returns, and the next one ends it. */
	if (begun || closer.closed != closed)
		closer.patience_ns = PATIENCE_NS;
	else if (closer.patience_ns < PATIENCE_MAX_NS)
		closer.patience_ns *= 2;
	closer.current = -1;
	closer.inode = 0;
}

static void *keep(void *arg)
{
	(void)arg;
	pthread_detach(pthread_self());
	pthread_mutex_lock(&closer.lock);
	while (closer.count)
		have_it_done();
	closer.kept = false;
	pthread_cond_broadcast(&closer.changed);
	pthread_mutex_unlock(&closer.lock);
	return NULL;
}

void closer_close(int *fd)
{
	pthread_t keeper;

	if (*fd < 0)
		return;
	get_ready();
	pthread_mutex_lock(&closer.lock);
	if (closer.count >= QUEUE_MAX) {
		pthread_mutex_unlock(&closer.lock);
		brokerd_close(fd);
		return;
	}
	closer.queue[closer.count++] = *fd;
	if (!closer.kept) {
		closer.kept = thread_start(&keeper, THREAD_NAME, keep, NULL) == 0;
		if (!closer.kept)
			close_here();
	}
	pthread_mutex_unlock(&closer.lock);
	*fd = -1;
}
