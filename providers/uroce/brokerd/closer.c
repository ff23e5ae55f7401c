/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Closes connections of other users (Documentation/decisions/strangers.md).  Before Linux 6.16
 * another user can send descriptors through its connection, and with a socket that has SO_LINGER
 * set, close() of the connection blocks for as long as that user likes.  So a worker thread closes,
 * and a keeper thread watches the worker: if a close() does not return in time, the keeper cancels
 * the worker, whose signal interrupts the lingering, and starts the next worker.  Both threads
 * exist only while there are descriptors to close, and no other thread waits for them.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "brokerd.h"
#include "link/thread.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

#define THREAD_NAME "uroce-closer"

enum {
	QUEUE_MAX = 128,
	/*
	 * Time that a close() may take.  Longer than any close() that does not linger, unless the
	 * host is overloaded; doubled each time that the worker has not even called close().
	 */
	CLOSE_TIMEOUT_NS = 500000,
	CLOSE_TIMEOUT_MAX_NS = 500000000,
	/* How long closer_close() waits for room in the queue. */
	ROOM_TIMEOUT_NS = CLOSE_TIMEOUT_MAX_NS,
};

static struct closer {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* the full queue has room again */
	pthread_cond_t has_room;
	bool has_keeper; /* the keeper thread exists */
	bool has_worker; /* the worker thread exists and has not finished */
	long timeout_ns;
	unsigned int count;
	/*
	 * Descriptors to close, in any order.  The last entry is for one that a cancelled worker
	 * has not closed.
	 */
	int queue[QUEUE_MAX + 1];
	/* Descriptor that the worker is closing, or -1. */
	int current;
	uint64_t inode; /* inode of current */
	uint64_t closed_count;
} closer = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
	.has_room = PTHREAD_COND_INITIALIZER,
	.timeout_ns = CLOSE_TIMEOUT_NS,
	.current = -1,
};

static bool cancellation_works;

/*
 * The C library loads libgcc_s when a thread is cancelled for the first time, and aborts the
 * program if that fails, for example because no descriptor is left.
 */
static void load_libgcc(void)
{
	cancellation_works = dlopen("libgcc_s.so.1", RTLD_NOW);
}

void closer_prepare(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load_libgcc);
}

/*
 * When a thread is cancelled, the address sanitizer does not notice that its frames are left, and
 * later reports accesses to them as out of bounds.  So worker_main() has no variable whose address
 * is taken.
 */
#define OWN_STACK_FRAME __attribute__((noinline))

/*
 * Identifies the open file: after close() another thread may have got the same descriptor number.
 * statx() is used because the thread sanitizer would report fstat() as a race.
 */
OWN_STACK_FRAME static uint64_t inode_of(int fd)
{
	struct statx status;

	return statx(fd, "", AT_EMPTY_PATH, STATX_INO, &status) ? 0 : status.stx_ino;
}

/* Removes a descriptor from the queue, which is not empty.  Caller holds the lock. */
static int pop_descriptor(void)
{
	if (closer.count == QUEUE_MAX)
		pthread_cond_signal(&closer.has_room);
	return closer.queue[--closer.count];
}

/* Returns the next descriptor for the worker to close, or -1.  Caller holds the lock. */
static int take_descriptor(void)
{
	closer.current = closer.count ? pop_descriptor() : -1;
	closer.inode = closer.current < 0 ? 0 : inode_of(closer.current);
	return closer.current;
}

OWN_STACK_FRAME static void set_cancel_state(int state)
{
	int before;

	pthread_setcancelstate(state, &before);
}

/* The worker can be cancelled only while it calls close(). */
static void *worker_main(void *arg)
{
	int fd;

	(void)arg;
	set_cancel_state(PTHREAD_CANCEL_DISABLE);
	pthread_mutex_lock(&closer.lock);
	while ((fd = take_descriptor()) >= 0) {
		pthread_mutex_unlock(&closer.lock);
		set_cancel_state(PTHREAD_CANCEL_ENABLE);
		close(fd);
		set_cancel_state(PTHREAD_CANCEL_DISABLE);
		pthread_mutex_lock(&closer.lock);
		closer.closed_count++;
	}
	closer.has_worker = false;
	pthread_cond_broadcast(&closer.changed);
	pthread_mutex_unlock(&closer.lock);
	return NULL;
}

/*
 * Waits for the worker.  Returns false if it has not closed anything within timeout_ns.  Caller
 * holds the lock.
 */
static bool wait_for_worker(void)
{
	const struct timespec until = clock_after(CLOCK_MONOTONIC, closer.timeout_ns);
	uint64_t closed = closer.closed_count;

	pthread_cond_clockwait(&closer.changed, &closer.lock, CLOCK_MONOTONIC, &until);
	return !closer.has_worker || closer.closed_count != closed;
}

/*
 * Closes a descriptor in this thread, which may block, because no thread could be started.  Caller
 * holds the lock, which is released while closing.
 */
static void close_in_this_thread(void)
{
	int fd = pop_descriptor();

	pthread_mutex_unlock(&closer.lock);
	close(fd);
	pthread_mutex_lock(&closer.lock);
}

/*
 * Runs a worker until it has finished or was cancelled.  Caller holds the lock, which is released
 * while waiting.
 */
static void run_worker(void)
{
	pthread_t worker;
	bool in_time = true, close_begun;
	uint64_t closed;

	closer.has_worker = thread_start(&worker, THREAD_NAME, worker_main, NULL) == 0;
	if (!closer.has_worker) {
		close_in_this_thread();
		return;
	}
	while (closer.has_worker && in_time)
		in_time = wait_for_worker();
	closed = closer.closed_count;
	pthread_mutex_unlock(&closer.lock);
	if (!in_time && cancellation_works)
		pthread_cancel(worker);
	pthread_join(worker, NULL);
	pthread_mutex_lock(&closer.lock);
	closer.has_worker = false;
	close_begun = !closer.inode || inode_of(closer.current) != closer.inode;
	if (!close_begun)
		closer.queue[closer.count++] = closer.current;
	/*
	 * Since glibc 2.41 an interrupted close() returns to its caller, and cancellation takes
	 * effect at the next close(), so closed_count is checked as well.
	 */
	if (close_begun || closer.closed_count != closed)
		closer.timeout_ns = CLOSE_TIMEOUT_NS;
	else if (closer.timeout_ns < CLOSE_TIMEOUT_MAX_NS)
		closer.timeout_ns *= 2;
	closer.current = -1;
	closer.inode = 0;
}

static void *keeper_main(void *arg)
{
	(void)arg;
	pthread_detach(pthread_self());
	pthread_mutex_lock(&closer.lock);
	while (closer.count)
		run_worker();
	closer.has_keeper = false;
	pthread_cond_broadcast(&closer.changed);
	pthread_mutex_unlock(&closer.lock);
	return NULL;
}

/* Returns false if the queue is still full after a wait.  Caller holds the lock. */
static bool wait_for_room(void)
{
	const struct timespec until = clock_after(CLOCK_MONOTONIC, ROOM_TIMEOUT_NS);

	while (closer.count >= QUEUE_MAX) {
		if (pthread_cond_clockwait(&closer.has_room, &closer.lock, CLOCK_MONOTONIC, &until))
			return closer.count < QUEUE_MAX;
	}
	return true;
}

/*
 * Closes *fd in another thread and sets it to -1.  If the queue stays full although each close() is
 * cancelled in time, closes it in this thread, which may block.
 */
static void close_in_background(int *fd)
{
	pthread_t keeper;

	if (*fd < 0)
		return;
	closer_prepare();
	pthread_mutex_lock(&closer.lock);
	if (!wait_for_room()) {
		pthread_mutex_unlock(&closer.lock);
		link_close_fd(fd);
		return;
	}
	closer.queue[closer.count++] = *fd;
	if (!closer.has_keeper) {
		closer.has_keeper = thread_start(&keeper, THREAD_NAME, keeper_main, NULL) == 0;
		if (!closer.has_keeper)
			close_in_this_thread();
	}
	pthread_mutex_unlock(&closer.lock);
	*fd = -1;
}

/* Returns true if the kernel refuses descriptors on this connection (names_listen()). */
static bool are_rights_refused(int fd)
{
	int on = 1;
	socklen_t bytes = sizeof(on);

	return !getsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &on, &bytes) && !on;
}

void closer_close(int *fd)
{
	if (are_rights_refused(*fd))
		link_close_fd(fd);
	else
		close_in_background(fd);
}
