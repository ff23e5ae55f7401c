/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "channel.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "id.h"
#include "ucm_core.h"

/* Indexed by descriptor. */
static struct ucm_channel **channels;
static unsigned int table_size;
/* In a forked child: placeholder for the channels of the parent, and st_dev of their eventfds. */
static struct ucm_channel placeholder;
static dev_t placeholder_device;

static struct ucm_channel *get_entry(int fd)
{
	return fd >= 0 && (unsigned int)fd < table_size ? channels[fd] : NULL;
}

static struct ucm_channel *unless_placeholder(struct ucm_channel *channel)
{
	return channel != &placeholder ? channel : NULL;
}

struct ucm_channel *ucm_channel_find(int fd)
{
	return unless_placeholder(get_entry(fd));
}

static bool grow_table(int fd)
{
	unsigned int wanted = (unsigned int)fd + 1;
	struct ucm_channel **grown;

	if (wanted <= table_size)
		return true;
	wanted += wanted / 2 + 16;
	grown = realloc(channels, wanted * sizeof(*grown));
	if (!grown)
		return false;
	memset(grown + table_size, 0, (wanted - table_size) * sizeof(*grown));
	channels = grown;
	table_size = wanted;
	return true;
}

struct ucm_channel *ucm_channel_open(void (*before_insert)(int fd))
{
	struct ucm_channel *channel = calloc(1, sizeof(*channel));
	int error;

	if (!channel) {
		errno = ENOMEM;
		return NULL;
	}
	TAILQ_INIT(&channel->events);
	channel->fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	if (channel->fd < 0) {
		error = errno;
		goto free_channel;
	}
	channel->private_fd = fcntl(channel->fd, F_DUPFD_CLOEXEC, channel->fd + 1);
	if (channel->private_fd < 0) {
		error = errno;
		goto close_fd;
	}
	if (!grow_table(channel->fd)) {
		error = ENOMEM;
		goto close_private;
	}
	before_insert(channel->fd);
	channel->open = true;
	channels[channel->fd] = channel;
	return channel;

close_private:
	close(channel->private_fd);
close_fd:
	close(channel->fd);
free_channel:
	free(channel);
	errno = error;
	return NULL;
}

static void wake_waiters(struct ucm_channel *channel)
{
	__atomic_fetch_add(&channel->queued_count, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &channel->queued_count, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void ucm_channel_hold(struct ucm_channel *channel)
{
	channel->users++;
}

void ucm_channel_release(struct ucm_channel *channel)
{
	struct ucm_event *event;

	if (--channel->users || channel->open)
		return;
	while ((event = TAILQ_FIRST(&channel->events))) {
		TAILQ_REMOVE(&channel->events, event, of_channel);
		free(event);
	}
	close(channel->private_fd);
	free(channel);
}

void ucm_channel_close(struct ucm_channel *channel, bool close_fd)
{
	channels[channel->fd] = NULL;
	if (close_fd)
		close(channel->fd);
	channel->open = false;
	ucm_channel_hold(channel);
	ucm_channel_release(channel);
}

void ucm_channel_each(void (*visit)(struct ucm_channel *channel, void *arg), void *arg)
{
	for (unsigned int fd = 0; fd < table_size; fd++) {
		if (unless_placeholder(channels[fd]))
			visit(channels[fd], arg);
	}
}

/*
 * The eventfd and its count are shared with the parent, so the descriptor stays open until the
 * child closes it, but is no longer a channel.  A placeholder stays in the table, because a command
 * written to the descriptor must not reach the eventfd: before Linux 6.9 an eventfd accepts writes
 * of eight bytes or more, and adds the first eight to its count.  The structures are leaked, as
 * other threads of the parent may have been changing them.
 */
void ucm_channel_forked(void)
{
	struct stat status;

	for (unsigned int fd = 0; fd < table_size; fd++) {
		if (!unless_placeholder(channels[fd]))
			continue;
		if (!fstat(channels[fd]->private_fd, &status))
			placeholder_device = status.st_dev;
		close(channels[fd]->private_fd);
		channels[fd] = &placeholder;
	}
}

/*
 * The child may have closed the descriptor by a call that is not redirected, so that its number
 * belongs to another file.
 */
bool ucm_channel_is_placeholder(int fd)
{
	struct stat status;

	if (get_entry(fd) != &placeholder)
		return false;
	if (!fstat(fd, &status) && status.st_dev == placeholder_device)
		return true;
	channels[fd] = NULL;
	return false;
}

void ucm_channel_fd_closed(int fd)
{
	if (get_entry(fd) == &placeholder)
		channels[fd] = NULL;
}

/* Sets the unread pointers of the id and the group that event is about. */
static void set_unread(const struct ucm_event *event, struct ucm_event *unread)
{
	if (event->request)
		event->request->unread_event = unread;
	if (event->group)
		event->group->unread_event = unread;
}

void ucm_channel_queue_event(struct ucm_event *event)
{
	struct ucm_channel *channel = event->id->channel;
	const uint64_t one = 1;

	TAILQ_INSERT_TAIL(&channel->events, event, of_channel);
	TAILQ_INSERT_TAIL(&event->id->events, event, of_id);
	set_unread(event, event);
	/* The count cannot reach its maximum, so write() never blocks. */
	if (write(channel->private_fd, &one, sizeof(one)) != sizeof(one))
		abort();
	wake_waiters(channel);
}

/* Decrements the count of the eventfd, unless the program has read it by itself. */
static void decrement_count(struct ucm_channel *channel)
{
	struct pollfd poll_fd = { .fd = channel->private_fd, .events = POLLIN };
	uint64_t one;

	/* EAGAIN: the program has read the count since poll(). */
	if (poll(&poll_fd, 1, 0) == 1 && read(channel->private_fd, &one, sizeof(one)) < 0 &&
	    errno != EAGAIN)
		abort();
}

void ucm_channel_remove_event(struct ucm_event *event)
{
	struct ucm_channel *channel = event->id->channel;

	TAILQ_REMOVE(&channel->events, event, of_channel);
	TAILQ_REMOVE(&event->id->events, event, of_id);
	set_unread(event, NULL);
	decrement_count(channel);
}

struct ucm_event *ucm_channel_take_event(struct ucm_channel *channel)
{
	struct ucm_event *event = TAILQ_FIRST(&channel->events);

	if (event)
		ucm_channel_remove_event(event);
	return event;
}

bool ucm_channel_is_blocking(const struct ucm_channel *channel)
{
	return !(fcntl(channel->private_fd, F_GETFL) & O_NONBLOCK);
}

static void release_on_cancel(void *arg)
{
	ucm_lock();
	ucm_channel_release(arg);
	ucm_unlock();
}

/*
 * Programs end their event threads by pthread_cancel().  With the kernel's channel this works
 * because write() is a cancellation point while it blocks; here the thread can be cancelled during
 * the futex wait, and only then.  Like write(), and unlike poll(), a futex wait is restarted after
 * a signal handler with SA_RESTART.
 */
int ucm_channel_wait(struct ucm_channel *channel)
{
	uint32_t queued_count = __atomic_load_n(&channel->queued_count, __ATOMIC_ACQUIRE);
	int state, type;
	long waited;

	ucm_unlock();
	pthread_cleanup_push(release_on_cancel, channel);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	pthread_setcancelstate(ucm_saved_cancel_state(), &state);
	waited = syscall(SYS_futex, &channel->queued_count, FUTEX_WAIT_PRIVATE, queued_count, NULL,
			 NULL, 0);
	waited = waited < 0 && errno == EINTR ? EINTR : 0;
	pthread_setcancelstate(state, NULL);
	pthread_setcanceltype(type, NULL);
	pthread_cleanup_pop(0);
	ucm_lock();
	return (int)waited;
}
