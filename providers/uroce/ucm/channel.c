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
#include "manager.h"
#include "multicast.h"

/* Indexed by descriptor. */
static struct ucm_channel **channels;
static unsigned int channel_places;
/* In a forked child: placeholder for the channels of the parent, and st_dev of their eventfds. */
static struct ucm_channel dead;
static dev_t dead_device;

static struct ucm_channel *entry_of(int fd)
{
	return fd >= 0 && (unsigned int)fd < channel_places ? channels[fd] : NULL;
}

static struct ucm_channel *if_alive(struct ucm_channel *channel)
{
	return channel != &dead ? channel : NULL;
}

struct ucm_channel *ucm_channel_of(int fd)
{
	return if_alive(entry_of(fd));
}

static bool make_place(int fd)
{
	unsigned int wanted = (unsigned int)fd + 1;
	struct ucm_channel **grown;

	if (wanted <= channel_places)
		return true;
	wanted += wanted / 2 + 16;
	grown = realloc(channels, wanted * sizeof(*grown));
	if (!grown)
		return false;
	memset(grown + channel_places, 0, (wanted - channel_places) * sizeof(*grown));
	channels = grown;
	channel_places = wanted;
	return true;
}

struct ucm_channel *ucm_channel_open(void (*taken)(int fd))
{
	struct ucm_channel *channel = calloc(1, sizeof(*channel));
	int error;

	if (!channel) {
		errno = ENOMEM;
		return NULL;
	}
	channel->last_event = &channel->first_event;
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
	if (!make_place(channel->fd)) {
		error = ENOMEM;
		goto close_private;
	}
	taken(channel->fd);
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

static void changed(struct ucm_channel *channel)
{
	__atomic_fetch_add(&channel->changes, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &channel->changes, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
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
	while ((event = channel->first_event)) {
		channel->first_event = event->next;
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
	for (unsigned int fd = 0; fd < channel_places; fd++) {
		if (if_alive(channels[fd]))
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

	for (unsigned int fd = 0; fd < channel_places; fd++) {
		if (!if_alive(channels[fd]))
			continue;
		if (!fstat(channels[fd]->private_fd, &status))
			dead_device = status.st_dev;
		close(channels[fd]->private_fd);
		channels[fd] = &dead;
	}
}

/*
 * The child may have closed the descriptor by a call that is not redirected, so that its number
 * belongs to another file.
 */
bool ucm_channel_is_dead(int fd)
{
	struct stat status;

	if (entry_of(fd) != &dead)
		return false;
	if (!fstat(fd, &status) && status.st_dev == dead_device)
		return true;
	channels[fd] = NULL;
	return false;
}

void ucm_channel_forget_dead(int fd)
{
	if (entry_of(fd) == &dead)
		channels[fd] = NULL;
}

/* Sets the unread pointers of the id and the group that event is about. */
static void set_unread(const struct ucm_event *event, struct ucm_event *unread)
{
	if (event->request)
		event->request->unread = unread;
	if (event->group)
		event->group->unread = unread;
}

void ucm_channel_queue(struct ucm_event *event)
{
	struct ucm_channel *channel = event->id->channel;
	struct ucm_id *id = event->id;
	const uint64_t one = 1;

	event->next = NULL;
	event->link = channel->last_event;
	*event->link = event;
	channel->last_event = &event->next;
	event->next_of_id = NULL;
	event->link_of_id = id->events ? id->last_event : &id->events;
	*event->link_of_id = event;
	id->last_event = &event->next_of_id;
	set_unread(event, event);
	/* The count cannot reach its maximum, so write() never blocks. */
	if (write(channel->private_fd, &one, sizeof(one)) != sizeof(one))
		abort();
	changed(channel);
}

/*
 * Decrements the count of the eventfd.  Does not block if the program has read from the descriptor
 * itself.
 */
static void count_down(struct ucm_channel *channel)
{
	struct pollfd poll_fd = { .fd = channel->private_fd, .events = POLLIN };
	uint64_t one;

	/* EAGAIN: the program has read the count since poll(). */
	if (poll(&poll_fd, 1, 0) == 1 && read(channel->private_fd, &one, sizeof(one)) < 0 &&
	    errno != EAGAIN)
		abort();
}

void ucm_channel_remove(struct ucm_event *event)
{
	struct ucm_channel *channel = event->id->channel;

	*event->link = event->next;
	if (event->next)
		event->next->link = event->link;
	else
		channel->last_event = event->link;
	*event->link_of_id = event->next_of_id;
	if (event->next_of_id)
		event->next_of_id->link_of_id = event->link_of_id;
	else
		event->id->last_event = event->link_of_id;
	set_unread(event, NULL);
	count_down(channel);
}

struct ucm_event *ucm_channel_take(struct ucm_channel *channel)
{
	struct ucm_event *event = channel->first_event;

	if (event)
		ucm_channel_remove(event);
	return event;
}

bool ucm_channel_blocks(const struct ucm_channel *channel)
{
	return !(fcntl(channel->private_fd, F_GETFL) & O_NONBLOCK);
}

static void wait_was_cancelled(void *arg)
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
	uint32_t changes = __atomic_load_n(&channel->changes, __ATOMIC_ACQUIRE);
	int state, type;
	long waited;

	ucm_unlock();
	pthread_cleanup_push(wait_was_cancelled, channel);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	pthread_setcancelstate(ucm_cancel_state(), &state);
	waited = syscall(SYS_futex, &channel->changes, FUTEX_WAIT_PRIVATE, changes, NULL, NULL, 0);
	waited = waited < 0 && errno == EINTR ? EINTR : 0;
	pthread_setcancelstate(state, NULL);
	pthread_setcanceltype(type, NULL);
	pthread_cleanup_pop(0);
	ucm_lock();
	return (int)waited;
}
