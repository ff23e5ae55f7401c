/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "wakeup.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "progress_priv.h"

/*
 * With more addresses than this, polling each socket is slower than one epoll call and one socket.
 */
#define MANY_ADDRESSES 8

struct wakeup_watch {
	struct wakeup_watch *next;
	int fd;
	void (*callback)(void *arg);
	void *arg;
};

bool wakeup_is_armed(const struct progress *progress)
{
	return wakeup_armed_flag(&progress->wakeup);
}

static int epoll_control(struct wakeup *wakeup, int operation, enum wakeup_source source, int fd,
			 uint32_t events)
{
	struct epoll_event event = {
		.events = events,
		.data.u64 = (uint64_t)source << 32 | (uint32_t)fd,
	};

	return epoll_ctl(wakeup->epoll_fd, operation, fd, &event) ? -errno : 0;
}

/* Caller holds wakeup.lock. */
static void set_socket_events(struct progress *progress, uint32_t events)
{
	int address_epoll_fd = progress->wakeup.address_epoll_fd;

	if (address_epoll_fd >= 0)
		epoll_control(&progress->wakeup, EPOLL_CTL_MOD, SOURCE_ADDRESS, address_epoll_fd,
			      events);
	for (unsigned int i = 0; address_epoll_fd < 0 && i < progress->address_count; i++)
		epoll_control(&progress->wakeup, EPOLL_CTL_MOD, SOURCE_ADDRESS,
			      link_addr_fd(progress->address[i].addr), events);
	for (unsigned int i = 0; i < progress->group_count; i++)
		epoll_control(&progress->wakeup, EPOLL_CTL_MOD, SOURCE_ADDRESS,
			      link_group_fd(progress->group[i]->link), events);
}

void wakeup_arm(struct progress *progress)
{
	struct wakeup *wakeup = &progress->wakeup;

	pthread_mutex_lock(&wakeup->lock);
	if (!wakeup_armed_flag(wakeup)) {
		atomic_store_explicit(&wakeup->armed, true, memory_order_seq_cst);
		set_socket_events(progress, EPOLLIN);
	}
	pthread_mutex_unlock(&wakeup->lock);
}

void wakeup_disarm(struct progress *progress)
{
	struct wakeup *wakeup = &progress->wakeup;
	bool changed;

	pthread_mutex_lock(&wakeup->lock);
	changed = wakeup_armed_flag(wakeup);
	if (changed) {
		set_socket_events(progress, 0);
		atomic_store_explicit(&wakeup->armed, false, memory_order_seq_cst);
	}
	pthread_mutex_unlock(&wakeup->lock);
	/*
	 * The progress thread may be asleep without timeout, and must start to check whether polls
	 * continue.
	 */
	if (changed)
		wakeup_thread(progress);
}

static int add_socket(struct progress *progress, int fd)
{
	return epoll_control(&progress->wakeup, EPOLL_CTL_ADD, SOURCE_ADDRESS, fd,
			     wakeup_is_armed(progress) ? EPOLLIN : 0);
}

static int add_to_many(int address_epoll_fd, struct link_addr *addr)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = addr };

	return epoll_ctl(address_epoll_fd, EPOLL_CTL_ADD, link_addr_fd(addr), &event) ? -errno : 0;
}

static void remove_socket(int epoll_fd, int fd)
{
	/*
	 * close() is not enough: other processes have the same socket open, so epoll would keep it.
	 */
	epoll_ctl(epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

/*
 * Moves the sockets of all addresses to an epoll set of their own.  On failure they stay where they
 * are, and each one is polled, which takes longer.
 */
static void move_addresses_to_set(struct progress *progress)
{
	struct wakeup *wakeup = &progress->wakeup;
	int address_epoll_fd = epoll_create1(EPOLL_CLOEXEC),
	    error = address_epoll_fd < 0 ? -errno : 0;

	for (unsigned int i = 0; i < progress->address_count && !error; i++)
		error = add_to_many(address_epoll_fd, progress->address[i].addr);
	if (!error)
		error = add_socket(progress, address_epoll_fd);
	if (error) {
		if (address_epoll_fd >= 0)
			close(address_epoll_fd);
		return;
	}
	for (unsigned int i = 0; i < progress->address_count; i++)
		remove_socket(wakeup->epoll_fd, link_addr_fd(progress->address[i].addr));
	wakeup->address_epoll_fd = address_epoll_fd;
}

int wakeup_add_address(struct progress *progress, struct link_addr *addr)
{
	if (progress->wakeup.address_epoll_fd < 0 && progress->address_count >= MANY_ADDRESSES)
		move_addresses_to_set(progress);
	return progress->wakeup.address_epoll_fd < 0
		       ? add_socket(progress, link_addr_fd(addr))
		       : add_to_many(progress->wakeup.address_epoll_fd, addr);
}

int wakeup_add_group(struct progress *progress, struct link_group *group)
{
	return add_socket(progress, link_group_fd(group));
}

void wakeup_remove_group(struct progress *progress, struct link_group *group)
{
	remove_socket(progress->wakeup.epoll_fd, link_group_fd(group));
}

void wakeup_remove_address(struct progress *progress, struct link_addr *addr)
{
	const struct wakeup *wakeup = &progress->wakeup;

	remove_socket(wakeup->address_epoll_fd < 0 ? wakeup->epoll_fd : wakeup->address_epoll_fd,
		      link_addr_fd(addr));
}

int wakeup_readable(struct wakeup *wakeup, struct link_addr *readable[WAKEUP_EVENTS])
{
	struct epoll_event events[WAKEUP_EVENTS];
	long count;

	/* syscall(2), since epoll_pwait() is a cancellation point; see wakeup_thread(). */
	count = syscall(SYS_epoll_pwait, wakeup->address_epoll_fd, events, WAKEUP_EVENTS, 0, NULL,
			0);
	for (long i = 0; i < count; i++)
		readable[i] = events[i].data.ptr;
	return count < 0 ? 0 : (int)count;
}

void wakeup_thread(struct progress *progress)
{
	static const uint64_t one = 1;

	/*
	 * syscall(2), since write() is a cancellation point, and a thread cancelled here would end
	 * in a cycle.  Fails only if the counter is full, and then the progress thread is awake.
	 */
	syscall(SYS_write, progress->wakeup.wake_fd, &one, sizeof(one));
}

void wakeup_for_deadline(struct progress *progress, uint64_t deadline)
{
	if (deadline < atomic_load_explicit(&progress->wakeup.sleeps_until, memory_order_seq_cst))
		wakeup_thread(progress);
}

int wakeup_open(struct progress *progress)
{
	struct wakeup *wakeup = &progress->wakeup;
	int error;

	atomic_init(&wakeup->armed, true);
	pthread_mutex_init(&wakeup->lock, NULL);
	pthread_cond_init(&wakeup->callback_done, NULL);
	wakeup->address_epoll_fd = -1;
	wakeup->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	wakeup->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	error = wakeup->epoll_fd < 0 || wakeup->wake_fd < 0 ? -errno : 0;
	if (!error)
		error = epoll_control(wakeup, EPOLL_CTL_ADD, SOURCE_WAKE, wakeup->wake_fd, EPOLLIN);
	if (!error)
		error = epoll_control(wakeup, EPOLL_CTL_ADD, SOURCE_BROKER,
				      link_broker_fd(progress->link), EPOLLIN);
	if (!error)
		error = epoll_control(wakeup, EPOLL_CTL_ADD, SOURCE_WRITER,
				      link_writers_fd(progress->link), EPOLLIN);
	if (error)
		wakeup_close(wakeup);
	return error;
}

void wakeup_close(struct wakeup *wakeup)
{
	while (wakeup->watches) {
		struct wakeup_watch *watch = wakeup->watches;

		wakeup->watches = watch->next;
		free(watch);
	}
	if (wakeup->epoll_fd >= 0)
		close(wakeup->epoll_fd);
	if (wakeup->wake_fd >= 0)
		close(wakeup->wake_fd);
	if (wakeup->address_epoll_fd >= 0)
		close(wakeup->address_epoll_fd);
	pthread_cond_destroy(&wakeup->callback_done);
	pthread_mutex_destroy(&wakeup->lock);
}

void wakeup_abandon(struct wakeup *wakeup)
{
	close(wakeup->epoll_fd);
	close(wakeup->wake_fd);
	if (wakeup->address_epoll_fd >= 0)
		close(wakeup->address_epoll_fd);
}

/*
 * Calls epoll_pwait2(2), with nanoseconds, if the kernel has it (5.11), else epoll_wait(2), with
 * the timeout rounded up to milliseconds.
 */
int wakeup_wait(struct wakeup *wakeup, struct epoll_event events[WAKEUP_EVENTS],
		uint64_t timeout_ns)
{
#ifdef SYS_epoll_pwait2
	static atomic_bool missing;

	if (!atomic_load_explicit(&missing, memory_order_relaxed)) {
		struct timespec timeout = {
			.tv_sec = (time_t)(timeout_ns / 1000000000),
			.tv_nsec = (long)(timeout_ns % 1000000000),
		};
		long count = syscall(SYS_epoll_pwait2, wakeup->epoll_fd, events, WAKEUP_EVENTS,
				     timeout_ns == ENG_NEVER ? NULL : &timeout, NULL, 0);

		if (count >= 0 || errno == EINTR)
			return (int)count;
		atomic_store_explicit(&missing, true, memory_order_relaxed);
	}
#endif
	uint64_t timeout_ms = timeout_ns / 1000000 + (timeout_ns % 1000000 > 0);

	return epoll_wait(wakeup->epoll_fd, events, WAKEUP_EVENTS,
			  timeout_ns == ENG_NEVER ? -1
			  : timeout_ms > 1000000  ? 1000000
						  : (int)timeout_ms);
}

/* Sets running_watch during the callback, so that progress_unwatch() can wait for the end. */
void wakeup_call_watch(struct wakeup *wakeup, int fd)
{
	struct wakeup_watch *watch;

	pthread_mutex_lock(&wakeup->lock);
	for (watch = wakeup->watches; watch && watch->fd != fd;)
		watch = watch->next;
	wakeup->running_watch = watch;
	pthread_mutex_unlock(&wakeup->lock);
	/* NULL: the watch was removed after the event. */
	if (!watch)
		return;
	watch->callback(watch->arg);
	pthread_mutex_lock(&wakeup->lock);
	wakeup->running_watch = NULL;
	pthread_cond_broadcast(&wakeup->callback_done);
	pthread_mutex_unlock(&wakeup->lock);
}

int progress_watch(struct progress *progress, int fd, void (*callback)(void *arg), void *arg)
{
	struct wakeup *wakeup = &progress->wakeup;
	struct wakeup_watch *watch;
	int error;

	if (progress->forked)
		return -EOWNERDEAD;
	watch = malloc(sizeof(*watch));
	if (!watch)
		return -ENOMEM;
	*watch = (struct wakeup_watch){ .fd = fd, .callback = callback, .arg = arg };
	pthread_mutex_lock(&wakeup->lock);
	error = epoll_control(wakeup, EPOLL_CTL_ADD, SOURCE_WATCH, fd, EPOLLIN);
	if (!error) {
		watch->next = wakeup->watches;
		wakeup->watches = watch;
	}
	pthread_mutex_unlock(&wakeup->lock);
	if (error)
		free(watch);
	return error;
}

void progress_unwatch(struct progress *progress, int fd)
{
	struct wakeup *wakeup = &progress->wakeup;
	struct wakeup_watch **from, *watch;

	if (progress->forked)
		return;
	pthread_mutex_lock(&wakeup->lock);
	for (from = &wakeup->watches; *from && (*from)->fd != fd;)
		from = &(*from)->next;
	watch = *from;
	if (watch) {
		*from = watch->next;
		epoll_ctl(wakeup->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
		/*
		 * A callback that removes its own watch cannot wait for itself; wakeup_call_watch()
		 * does not use the watch after the callback.
		 */
		while (wakeup->running_watch == watch &&
		       !pthread_equal(pthread_self(), wakeup->thread))
			pthread_cond_wait(&wakeup->callback_done, &wakeup->lock);
	}
	pthread_mutex_unlock(&wakeup->lock);
	free(watch);
}
