/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "client.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "broker/names.h"
#include "link/link_priv.h"

enum {
	/* Pause between two searches for a broker, and time limit of all of them */
	SEARCH_PAUSE_MS = 1,
	SEARCH_MS = 5000,
	/*
	 * Maximum of the random delay before a client returns: the clients of a broker that has
	 * ended should not all search at once.
	 */
	RETURN_PAUSE_MS = 4,
	/*
	 * Number of attempts to return: the next broker may end as well while the client waits for
	 * its reply.
	 */
	RETURN_TRIES = 3,
	/* Time limit of a request, including its repetitions with other brokers */
	REQUEST_MS = 10000,
	PING_MS = 500,
	/* Maximum time after the end of a broker in which timeouts do not count as retries */
	LOST_SETTLE_MS = 5000,
	/* Time after the return to another broker in which timeouts do not count as retries */
	RETURN_SETTLE_MS = 1000,
	/* First pause between two attempts to return, which doubles each time, and its maximum */
	RETRY_MS = 100,
	RETRY_MS_MAX = 2000,
	/* Pause before link_maintain_broker() tries again while another thread holds open_lock */
	RECHECK_MS = 1,
	/* Minimum interval between two searches that probes cause */
	PROBE_SEARCH_PAUSE_MS = 100,
	/* How long a check waits for the broker's reply; no other check starts before. */
	CHECK_MS = 2000,
};

static void pause_ms(const struct link_broker *broker, unsigned int milliseconds)
{
	link_broker_wait(broker, -1, 0, link_now_ms() + milliseconds);
}

/* ---- search ---- */

/*
 * Starts a broker at the free name that a search has found.  Also returns 0 if another process has
 * bound that name first: the caller then searches again.
 */
static int start_broker(const struct names_search_result *found, char error[LINK_ERROR_TEXT])
{
	int listener, result;

	if (found->free == UROCE_BROKER_NAMES) {
		link_set_error(error, "all %u names of uroce-broker are taken by other users",
			       UROCE_BROKER_NAMES);
		return -EADDRINUSE;
	}
	listener = names_listen(found->free);
	if (listener < 0)
		return listener == -EADDRINUSE ? 0 : listener;
	result = link_broker_start(listener, error);
	link_close_fd(&listener);
	return result;
}

/*
 * Returns a connection to the user's broker, which is started if there is none, or a negative
 * errno.  On entry *name is the number of a broker that does not reply, or UROCE_BROKER_NAMES; on
 * return it is the number of the connected broker.
 */
static int connect_to_broker(const struct link *link, unsigned int *name,
			     char error[LINK_ERROR_TEXT])
{
	int64_t until = link_now_ms() + SEARCH_MS;
	struct names_search_result found = { 0 };
	int fd, result = 0;

	while (!result && link_now_ms() < until) {
		fd = names_search(link->user, UROCE_BROKER_NAMES, &found);
		if (fd >= 0 && found.number != *name) {
			*name = found.number;
			return fd;
		}
		if (fd >= 0 || fd == -ENOENT)
			result = start_broker(&found, error);
		else if (fd != -EAGAIN)
			result = fd;
		if (fd >= 0)
			link_close_fd(&fd);
		pause_ms(&link->broker, SEARCH_PAUSE_MS);
	}
	return result ? result : -ETIMEDOUT;
}

/* ---- HELLO ---- */

/*
 * Sends *message, a HELLO, to brokers until one replies, and stores the reply, WELCOME, in
 * *message.  unresponsive is the number of a broker that has not replied before, or
 * UROCE_BROKER_NAMES.  Returns the connection or a negative errno.
 */
static int connect_and_hello(struct link *link, union broker_message *message,
			     unsigned int unresponsive, struct link_fds *fds,
			     char error[LINK_ERROR_TEXT])
{
	const union broker_message hello = *message;
	struct link_broker *broker = &link->broker;
	int64_t until = link_now_ms() + SEARCH_MS;
	unsigned int name = unresponsive;
	int fd, result;

	do {
		fd = connect_to_broker(link, &name, error);
		if (fd < 0)
			return fd;
		*message = hello;
		result = link_broker_exchange(broker, fd, message, -1, fds);
		if (!result) {
			broker->name = name;
			broker->secret = message->welcome.secret;
			return fd;
		}
		link_close_fd(&fd);
		if (result == -ECONNRESET) {
			name = unresponsive;
			pause_ms(broker, SEARCH_PAUSE_MS);
		}
	} while (link_broker_is_lost(result) && link_now_ms() < until);
	return result;
}

void link_broker_init(struct link_broker *broker)
{
	*broker = (struct link_broker){
		.control = -1,
		.delivery = -1,
		.timer_fd = -1,
		.epoll_fd = -1,
		.messages_fd = -1,
	};
}

void link_broker_close(struct link_broker *broker)
{
	link_close_fd(&broker->control);
	link_close_fd(&broker->delivery);
	for (unsigned int i = 0; i < broker->slots; i++)
		link_close_fd(&broker->slot_lock[i]);
	link_close_fd(&broker->timer_fd);
	link_close_fd(&broker->epoll_fd);
}

/* Watches the control connection only for its end: the thread that awaits a reply reads it. */
static int watch_connections(const struct link_broker *broker)
{
	struct epoll_event end = { .events = EPOLLRDHUP }, delivery = { .events = EPOLLIN };

	if (epoll_ctl(broker->epoll_fd, EPOLL_CTL_ADD, broker->control, &end) ||
	    epoll_ctl(broker->epoll_fd, EPOLL_CTL_ADD, broker->delivery, &delivery))
		return -errno;
	return 0;
}

static void explain_open_failure(int result, char error[LINK_ERROR_TEXT])
{
	if (result == -ENOSPC)
		link_set_error(
			error,
			"all %u queue pair number slots of this network namespace are taken: "
			"end one of the programs that use uroce",
			UROCE_BROKER_SLOTS);
	else if (result == -EMFILE)
		link_set_error(error,
			       "no descriptors left for uroce-broker: raise the limit of open "
			       "files (ulimit -n)");
	else if (error && !error[0])
		link_set_error(error, "cannot reach uroce-broker: %s", strerror(-result));
}

/* Returns true if error is -EMFILE and the limit of open files has been raised. */
static bool raises_fd_limit(int error)
{
	return error == -EMFILE && !link_raise_fd_limit();
}

static int open_epoll(struct link_broker *broker)
{
	struct epoll_event due = { .events = EPOLLIN };

	do {
		broker->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	} while (broker->epoll_fd < 0 && raises_fd_limit(-errno));
	do {
		broker->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	} while (broker->timer_fd < 0 && raises_fd_limit(-errno));
	if (broker->epoll_fd < 0 || broker->timer_fd < 0 ||
	    epoll_ctl(broker->epoll_fd, EPOLL_CTL_ADD, broker->timer_fd, &due))
		return -errno;
	return watch_connections(broker);
}

int link_broker_open(struct link *link, char error[LINK_ERROR_TEXT])
{
	struct link_broker *broker = &link->broker;
	struct link_fds fds;
	union broker_message message;
	int fd;

	do {
		broker_message_init(&message, UROCE_BROKER_HELLO, 0);
		message.hello.role = UROCE_BROKER_WORKER;
		fd = connect_and_hello(link, &message, UROCE_BROKER_NAMES, &fds, error);
	} while (raises_fd_limit(fd));
	if (fd < 0) {
		explain_open_failure(fd, error);
		return fd;
	}
	broker->control = fd;
	broker->delivery = fds.fd[0];
	broker->slot[0] = message.welcome.slot;
	broker->slot_lock[0] = fds.fd[1];
	broker->slots = 1;
	return open_epoll(broker);
}

/* ---- return ---- */

static void unwatch_connections(const struct link_broker *broker)
{
	epoll_ctl(broker->epoll_fd, EPOLL_CTL_DEL, broker->control, NULL);
	epoll_ctl(broker->epoll_fd, EPOLL_CTL_DEL, broker->delivery, NULL);
}

/* Replaces the connections of the old broker; keeps their numbers, which other threads use. */
static void replace_connections(struct link *link, int control, int delivery)
{
	struct link_broker *broker = &link->broker;

	unwatch_connections(broker);
	/* Before the new delivery socket can be read, which may contain WATCH already. */
	atomic_store(&broker->is_pinger, false);
	dup3(control, broker->control, O_CLOEXEC);
	dup3(delivery, broker->delivery, O_CLOEXEC);
	link_close_fd(&control);
	link_close_fd(&delivery);
	watch_connections(broker);
}

static int try_return(struct link *link, unsigned int unresponsive)
{
	struct link_broker *broker = &link->broker;
	union broker_message message;
	char error[LINK_ERROR_TEXT];
	struct link_fds fds;
	int fd, result;

	broker_message_init(&message, UROCE_BROKER_HELLO, 0);
	message.hello.role = UROCE_BROKER_RETURNING;
	message.hello.slots = broker->slots;
	memcpy(message.hello.slot, broker->slot, broker->slots * sizeof(broker->slot[0]));
	fd = connect_and_hello(link, &message, unresponsive, &fds, error);
	if (fd < 0)
		return fd;
	result = link_broker_claim_all(link, fd);
	if (!result) {
		replace_connections(link, fd, fds.fd[0]);
		atomic_fetch_add(&broker->changes, 1);
		return 0;
	}
	link_close_fd(&fd);
	link_close_fds(&fds);
	return result;
}

/* Returns to a broker after error, which is -ECONNRESET or -ETIMEDOUT. */
static int return_to_broker(struct link *link, int error)
{
	uint32_t random = 0;

	/* At the first attempt only: without a broker, timeouts must count again later. */
	if (!atomic_load(&link->broker.retry_ms))
		atomic_store(&link->broker.settled_at, link_now_ms() + LOST_SETTLE_MS);
	/* The old broker may still be running, and would take this client for another one. */
	shutdown(link->broker.control, SHUT_RDWR);
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) == sizeof(random))
		pause_ms(&link->broker, random % (RETURN_PAUSE_MS + 1));
	for (unsigned int tries = 0; tries < RETURN_TRIES && link_broker_is_lost(error); tries++)
		error = try_return(link,
				   error == -ETIMEDOUT ? link->broker.name : UROCE_BROKER_NAMES);
	if (!error)
		atomic_store(&link->broker.settled_at, link_now_ms() + RETURN_SETTLE_MS);
	return error;
}

static bool broker_has_ended(const struct link_broker *broker)
{
	struct pollfd end = { .fd = broker->control, .events = POLLRDHUP };

	return poll(&end, 1, 0) > 0;
}

/* 0 stops the timer. */
static void set_timer_ns(const struct link_broker *broker, uint64_t after_ns)
{
	const struct itimerspec due = {
		.it_value = { .tv_sec = (time_t)(after_ns / 1000000000),
			      .tv_nsec = (long)(after_ns % 1000000000) },
	};

	timerfd_settime(broker->timer_fd, 0, &due, NULL);
}

static void set_timer(const struct link_broker *broker, unsigned int after_ms)
{
	set_timer_ns(broker, after_ms * UINT64_C(1000000));
}

void link_broker_wake(struct link_broker *broker, unsigned int after_ms)
{
	if (atomic_load(&broker->retry_ms) == 0)
		set_timer_ns(broker, after_ms ? after_ms * UINT64_C(1000000) : 1);
}

void link_broker_set_pinger(struct link_broker *broker, bool on)
{
	atomic_store(&broker->is_pinger, on);
	set_timer(broker, on ? PING_MS : 0);
}

static int ping_broker(struct link *link)
{
	struct link_broker *broker = &link->broker;
	unsigned int changes = atomic_load(&broker->changes);
	union broker_message message;
	struct link_fds fds;
	int error;

	broker_message_init(&message, UROCE_BROKER_PING, 0);
	error = link_broker_request(link, &message, -1, &fds);
	/* The broker works, so timeouts count again. */
	if (atomic_exchange(&broker->check_pending, false) && !error &&
	    changes == atomic_load(&broker->changes))
		atomic_store(&broker->settled_at, 0);
	return error;
}

void link_check_broker(struct link *link)
{
	struct link_broker *broker = &link->broker;
	int64_t now = link_now_ms();

	if (link_is_unsettled(link) || now < atomic_load(&broker->next_check_ms) ||
	    atomic_load(&broker->retry_ms) != 0)
		return;
	atomic_store(&broker->next_check_ms, now + CHECK_MS);
	atomic_store(&broker->settled_at, now + CHECK_MS);
	atomic_store(&broker->check_pending, true);
	set_timer(broker, RECHECK_MS);
}

/* No broker can be reached or started in time: schedules the next attempt, with longer pauses. */
static void schedule_retry(struct link_broker *broker)
{
	unsigned int after_ms = atomic_load(&broker->retry_ms) * 2;

	/* An ended connection is readable until the next one replaces it. */
	if (broker_has_ended(broker))
		unwatch_connections(broker);
	if (after_ms == 0)
		after_ms = RETRY_MS;
	if (after_ms > RETRY_MS_MAX)
		after_ms = RETRY_MS_MAX;
	atomic_store(&broker->retry_ms, after_ms);
	set_timer(broker, after_ms);
}

/*
 * Delays the next call of link_maintain_broker() while another thread holds open_lock.  If the
 * timer was due, it is set again; otherwise the end of the connection keeps the descriptor
 * readable, so this thread sleeps.
 */
static void delay_until_unlocked(const struct link_broker *broker, bool due)
{
	const struct timespec pause = { .tv_nsec = (long)RECHECK_MS * 1000000 };

	if (due)
		set_timer(broker, RECHECK_MS);
	else
		nanosleep(&pause, NULL);
}

bool link_broker_try_lock(struct link *link, void (*wait_callback)(void *arg), void *arg)
{
	if (pthread_mutex_trylock(&link->open_lock))
		return false;
	link->broker.wait_callback = wait_callback;
	link->broker.wait_arg = arg;
	return true;
}

void link_broker_unlock(struct link *link)
{
	link->broker.wait_callback = NULL;
	pthread_mutex_unlock(&link->open_lock);
}

void link_maintain_broker(struct link *link, void (*wait_callback)(void *arg), void *arg)
{
	struct link_broker *broker = &link->broker;
	uint64_t expired;
	bool due = read(broker->timer_fd, &expired, sizeof(expired)) == sizeof(expired);
	int error = 0;

	if (!due && !broker_has_ended(broker))
		return;
	if (!link_broker_try_lock(link, wait_callback, arg)) {
		delay_until_unlocked(broker, due);
		return;
	}
	/* The thread that held the lock may have returned to a broker already. */
	if (broker_has_ended(broker))
		error = return_to_broker(link, -ECONNRESET);
	else if (due && (atomic_load(&broker->is_pinger) || atomic_load(&broker->check_pending)))
		error = ping_broker(link);
	if (error) {
		schedule_retry(broker);
	} else {
		atomic_store(&broker->retry_ms, 0);
		if (due && atomic_load(&broker->is_pinger))
			set_timer(broker, PING_MS);
	}
	link_broker_unlock(link);
}

unsigned int link_broker_changes(const struct link *link)
{
	return atomic_load(&link->broker.changes);
}

bool link_is_unsettled(const struct link *link)
{
	int64_t settled_at = atomic_load_explicit(&link->broker.settled_at, memory_order_relaxed);

	return settled_at != 0 && link_now_ms() < settled_at;
}

/* ---- requests ---- */

int link_broker_request(struct link *link, union broker_message *message, int passed_fd,
			struct link_fds *fds)
{
	const union broker_message wanted = *message;
	int64_t until = link_now_ms() + REQUEST_MS;
	int error;

	do {
		*message = wanted;
		error = link_broker_exchange(&link->broker, link->broker.control, message,
					     passed_fd, fds);
		if (raises_fd_limit(error)) {
			error = 0;
			continue;
		}
		if (!link_broker_is_lost(error))
			return error;
		error = return_to_broker(link, error);
	} while ((!error || link_broker_is_lost(error)) && link_now_ms() < until);
	return error ? error : -ETIMEDOUT;
}

/* ---- probes ---- */

/*
 * A probe with an unknown secret comes from another broker.  If that broker's name is higher, it
 * has replaced this link's broker, which is stopped; the shutdown then makes link_maintain_broker()
 * return to the new one.  Anyone can send a probe, so the number of searches is limited.
 */
static void check_for_newer_broker(struct link *link)
{
	struct link_broker *broker = &link->broker;
	int64_t now = link_now_ms();
	struct names_search_result found;
	int fd;

	if (now < broker->next_search_ms)
		return;
	broker->next_search_ms = now + PROBE_SEARCH_PAUSE_MS;
	fd = names_search(link->user, UROCE_BROKER_NAMES, &found);
	if (fd >= 0 && found.number > broker->name)
		shutdown(broker->control, SHUT_RDWR);
	if (fd >= 0)
		link_close_fd(&fd);
}

void link_broker_reply_probe(struct link *link, const struct link_endpoint *endpoint,
			     const struct uroce_broker_probe *probe)
{
	union broker_message message;

	if (ntohl(probe->secret) != link->broker.secret) {
		check_for_newer_broker(link);
		return;
	}
	broker_message_init(&message, UROCE_BROKER_PROBED, 0);
	memcpy(message.probed.endpoint.gid, endpoint->gid, sizeof(endpoint->gid));
	message.probed.endpoint.scope_id = endpoint->scope_id;
	message.probed.index = ntohl(probe->index);
	message.probed.round = ntohl(probe->round);
	link_send_with_fds(link->broker.delivery, &message, broker_message_bytes(&message), NULL,
			   0);
}
