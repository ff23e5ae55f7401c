/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "gsi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include "gsi_internal.h"
#include "gsi_service.h"
#include "helgrind.h"
#include "route.h"
#include "turn.h"

enum {
	EVENTS = 16,
	EVENT_ROUNDS = 8,
	/* So long gsi_addr_get() looks for the holder, in steps; after that the helper does. */
	SEEK_TRIES = 200,
	SEEK_STEP_US = 1000,
	/* gsi_flush() waits for so long, and the helper for 15 ms of it until a member has it. */
	FLUSH_NS = 50000000,
	FLUSH_TRIES = 150,
	FLUSH_TURNS = 200,
	FLUSH_STEP_US = 100,
};

/* The instance is made and ended under it. */
static pthread_mutex_t instance_lock = PTHREAD_MUTEX_INITIALIZER;
/* One address at a time is opened or closed. */
static pthread_mutex_t control_lock = PTHREAD_MUTEX_INITIALIZER;
/* Written under instance_lock. */
static struct gsi *instance;

static const char *const for_names[] = {
	[GSI_FOR_THIS] = "this process",
	[GSI_FOR_ANY] = "any process",
	[GSI_FOR_NONE] = "no process",
};

const char *gsi_for_name(enum gsi_for reason)
{
	return reason < sizeof(for_names) / sizeof(for_names[0]) ? for_names[reason] : "unknown";
}

unsigned int gsi_slot(const struct gsi *gsi)
{
	return gsi->progress->slot;
}

/* ---- time ---- */

void gsi_set_deadline(struct gsi *gsi)
{
	uint64_t deadline = gsi->deadline;

	for (struct gsi_address *address = gsi->addresses; address; address = address->next) {
		if (address->role == GSI_SEEKING && address->retry_at < deadline)
			deadline = address->retry_at;
		if (gsi_standby_deadline(address) < deadline)
			deadline = gsi_standby_deadline(address);
	}
	if (gsi_will_deadline(gsi) < deadline)
		deadline = gsi_will_deadline(gsi);
	atomic_store_explicit(&gsi->progress->gsi_wakeup.deadline, deadline, memory_order_seq_cst);
	wakeup_earlier(gsi->progress, deadline);
}

void gsi_deadline(struct gsi *gsi, uint64_t when)
{
	if (gsi->progress->dead)
		return;
	pthread_mutex_lock(&gsi->lock);
	gsi->deadline = when;
	gsi_set_deadline(gsi);
	pthread_mutex_unlock(&gsi->lock);
}

/* Seek holders that have gone; is the caller's deadline over? */
static bool look_at_clock(struct gsi *gsi, uint64_t now)
{
	bool due;

	pthread_mutex_lock(&gsi->lock);
	for (struct gsi_address *address = gsi->addresses; address; address = address->next) {
		gsi_standby_look(address, now);
		gsi_address_seek(address, now);
	}
	gsi_will_execute(gsi, now);
	due = gsi->deadline <= now;
	if (due)
		gsi->deadline = ENG_NEVER;
	gsi_set_deadline(gsi);
	pthread_mutex_unlock(&gsi->lock);
	return due;
}

static void take_events(struct gsi *gsi)
{
	struct epoll_event events[EVENTS];
	int count = EVENTS;

	/* All of them, since what is delivered afterwards may be the last that this process does.
	 */
	for (unsigned int i = 0; i < EVENT_ROUNDS && count == EVENTS; i++) {
		count = epoll_wait(gsi->epoll_fd, events, EVENTS, 0);
		pthread_mutex_lock(&gsi->lock);
		for (int j = 0; j < count; j++)
			gsi_address_event(gsi, events[j].data.u64);
		pthread_mutex_unlock(&gsi->lock);
	}
}

/* ---- before the end, in the helper thread ---- */

/* What waits at the sockets now goes through the queue, and from there to where it belongs. */
static void clear_queue(struct gsi *gsi)
{
	struct progress *progress = gsi->progress;
	enum turn_result last = TURN_WORKED;

	/* A turn takes a few batches, and a delivery some hundred MADs. */
	for (unsigned int i = 0; i < FLUSH_TURNS && last == TURN_WORKED; i++) {
		turn_lock(progress);
		last = turn_make(progress, TURN_HELPER);
		turn_unlock(progress);
		gsi_queue_deliver(gsi);
	}
	for (unsigned int i = 0; i < FLUSH_TURNS && !gsi_queue_is_idle(gsi); i++)
		gsi_queue_deliver(gsi);
}

/* Leave what is held to members: how many addresses. */
static unsigned int step_down(struct gsi *gsi)
{
	unsigned int left = 0;

	pthread_mutex_lock(&gsi->lock);
	for (struct gsi_address *address = gsi->addresses; address; address = address->next)
		left += gsi_address_step_down(address);
	pthread_mutex_unlock(&gsi->lock);
	return left;
}

/* One that has said so has the packets steered to itself: no more come here. */
static bool has_holder(const struct gsi_address *address)
{
	return address->role == GSI_HOLDER ||
	       (address->role == GSI_MEMBER && address->standby.slot < LINK_SLOTS);
}

/* Have all of them new holders?  When it is over, those that have none are held here again, now. */
static bool have_holders(struct gsi *gsi, bool over)
{
	uint64_t now = progress_now();
	bool all = true;

	pthread_mutex_lock(&gsi->lock);
	for (struct gsi_address *address = gsi->addresses; address; address = address->next) {
		if (address->leaving && over) {
			address->leaving = false;
			address->retry_at = now;
		}
		gsi_address_seek(address, now);
		all &= has_holder(address);
	}
	gsi_set_deadline(gsi);
	pthread_mutex_unlock(&gsi->lock);
	return all;
}

static void hand_over(struct gsi *gsi)
{
	clear_queue(gsi);
	if (step_down(gsi) > 0) {
		for (unsigned int i = 0; i < FLUSH_TRIES && !have_holders(gsi, false); i++) {
			usleep(FLUSH_STEP_US);
			take_events(gsi);
		}
		have_holders(gsi, true);
		/* What has come until the new holders had themselves steered to. */
		clear_queue(gsi);
	}
	atomic_store(&gsi->leaves, false);
}

/*
 * The thread that calls may have been interrupted by a signal, whose handler calls exit(), with any
 * lock held: it takes none, and waits for the helper for a while only.
 */
void gsi_flush(struct gsi *gsi)
{
	struct progress *progress = gsi->progress;
	uint64_t until = progress_now() + FLUSH_NS;

	/* The helper needs the turn. */
	if (progress->dead || progress_in_turn() ||
	    pthread_equal(pthread_self(), progress->wakeup.thread))
		return;
	atomic_store(&gsi->leaves, true);
	gsi_want_service_in_turn(progress);
	while (atomic_load(&gsi->leaves) && progress_now() < until)
		usleep(FLUSH_STEP_US);
}

/* The callback of the watch, in the helper thread. */
static void serve(void *arg)
{
	struct gsi *gsi = arg;
	uint64_t now;

	atomic_store_explicit(&gsi->progress->gsi_wakeup.work, false, memory_order_release);
	take_events(gsi);
	now = progress_now();
	if (look_at_clock(gsi, now))
		gsi->hooks.expire(gsi->hooks.arg, now);
	gsi_queue_deliver(gsi);
	gsi_tell_news(gsi);
	if (atomic_load(&gsi->leaves))
		hand_over(gsi);
}

/* ---- addresses ---- */

static struct gsi_address *new_address(struct gsi *gsi, const uint8_t gid[16], uint32_t scope_id)
{
	struct gsi_address *address = calloc(1, sizeof(*address));

	if (!address)
		return NULL;
	address->gsi = gsi;
	address->users = 1;
	memcpy(address->gid, gid, sizeof(address->gid));
	address->scope_id = scope_id;
	address->fd = -1;
	address->will_fd = -1;
	address->bell_fd = -1;
	for (unsigned int i = 0; i < LINK_SLOTS; i++)
		address->guest[i] =
			(struct gsi_guest){ .fd = -1, .will_fd = -1, .slot = LINK_SLOTS };
	return address;
}

/*
 * Wait for a holder that is just becoming one; the helper goes on with what takes longer.  -EPERM
 * when another user has the name.
 */
static int find_role(struct gsi_address *address)
{
	struct gsi *gsi = address->gsi;
	bool over = false;
	int error = 0;

	for (unsigned int i = 0; i < SEEK_TRIES && !over; i++) {
		pthread_mutex_lock(&gsi->lock);
		gsi_address_seek(address, progress_now());
		error = address->seek_error;
		over = address->role != GSI_SEEKING || error == -EPERM;
		gsi_set_deadline(gsi);
		pthread_mutex_unlock(&gsi->lock);
		if (!over)
			usleep(SEEK_STEP_US);
	}
	return error == -EPERM ? error : 0;
}

/* Caller holds lock. */
static void take_out(struct gsi *gsi, struct gsi_address *address)
{
	struct gsi_address **from = &gsi->addresses;

	gsi_close_peers(gsi, address);
	gsi_address_leave(address);
	while (*from != address)
		from = &(*from)->next;
	*from = address->next;
	gsi_set_deadline(gsi);
}

static void close_address(struct gsi *gsi, struct gsi_address *address)
{
	pthread_mutex_lock(&gsi->progress->route_lock);
	route_close_both(gsi->progress, address->addr, NULL);
	pthread_mutex_unlock(&gsi->progress->route_lock);
	free(address);
}

/* Caller holds control_lock. */
static int open_address(struct gsi *gsi, const uint8_t gid[16], uint32_t scope_id,
			char error[PROGRESS_ERROR_TEXT])
{
	struct gsi_address *address = new_address(gsi, gid, scope_id);
	int result;

	if (!address) {
		snprintf(error, PROGRESS_ERROR_TEXT, "out of memory");
		return -ENOMEM;
	}
	pthread_mutex_lock(&gsi->progress->route_lock);
	result = route_get_address(gsi->progress, gid, scope_id, &address->addr, error);
	pthread_mutex_unlock(&gsi->progress->route_lock);
	if (result) {
		free(address);
		return result;
	}
	pthread_mutex_lock(&gsi->lock);
	address->id = ++gsi->next_address_id;
	address->next = gsi->addresses;
	gsi->addresses = address;
	pthread_mutex_unlock(&gsi->lock);
	result = find_role(address);
	if (!result)
		return 0;
	pthread_mutex_lock(&gsi->lock);
	take_out(gsi, address);
	pthread_mutex_unlock(&gsi->lock);
	close_address(gsi, address);
	snprintf(error, PROGRESS_ERROR_TEXT,
		 "another user's program keeps queue pair 1 of the address (abstract UNIX sockets "
		 "@uroce/*/gsi/*, see ss -xlp): end it");
	return result;
}

int gsi_addr_get(struct gsi *gsi, const uint8_t gid[16], uint32_t scope_id,
		 char error[PROGRESS_ERROR_TEXT])
{
	struct gsi_address *address;
	int result = 0;

	if (gsi->progress->dead)
		return route_explain_dead(error);
	pthread_mutex_lock(&control_lock);
	pthread_mutex_lock(&gsi->lock);
	address = gsi_address_find(gsi, gid, scope_id);
	if (address)
		address->users++;
	pthread_mutex_unlock(&gsi->lock);
	if (!address)
		result = open_address(gsi, gid, scope_id, error);
	pthread_mutex_unlock(&control_lock);
	return result;
}

void gsi_addr_put(struct gsi *gsi, const uint8_t gid[16], uint32_t scope_id)
{
	struct gsi_address *address;
	bool last;

	if (gsi->progress->dead)
		return;
	pthread_mutex_lock(&control_lock);
	pthread_mutex_lock(&gsi->lock);
	address = gsi_address_find(gsi, gid, scope_id);
	last = --address->users == 0;
	if (last)
		take_out(gsi, address);
	pthread_mutex_unlock(&gsi->lock);
	if (last)
		close_address(gsi, address);
	pthread_mutex_unlock(&control_lock);
}

/* ---- the instance ---- */

static void free_instance(struct gsi *gsi)
{
	if (gsi->epoll_fd >= 0)
		close(gsi->epoll_fd);
	gsi_will_close(gsi);
	pthread_mutex_destroy(&gsi->lock);
	pthread_mutex_destroy(&gsi->queue_lock);
	free(gsi->queue);
	free(gsi->waiting.entry);
	free(gsi);
}

static struct gsi *new_instance(struct progress *progress, const struct gsi_hooks *hooks)
{
	struct gsi *gsi = calloc(1, sizeof(*gsi));

	if (!gsi)
		return NULL;
	HELGRIND_IS_ATOMIC(gsi->delivering);
	HELGRIND_IS_ATOMIC(gsi->leaves);
	gsi->progress = progress;
	gsi->hooks = *hooks;
	gsi->users = 1;
	gsi->deadline = ENG_NEVER;
	gsi_will_open(&gsi->will);
	pthread_mutex_init(&gsi->lock, NULL);
	pthread_mutex_init(&gsi->queue_lock, NULL);
	if (getrandom(&gsi->psn, sizeof(gsi->psn), GRND_NONBLOCK) < 0)
		gsi->psn = (uint32_t)progress_now();
	gsi->queue = calloc(GSI_QUEUE_MAX, sizeof(*gsi->queue));
	gsi->waiting.entry = calloc(GSI_QUEUE_MAX, sizeof(*gsi->waiting.entry));
	gsi->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (!gsi->queue || !gsi->waiting.entry || gsi->epoll_fd < 0) {
		free_instance(gsi);
		return NULL;
	}
	return gsi;
}

/* Caller holds instance_lock.  The rx demux sees it, or does no more. */
static void publish(struct progress *progress, struct gsi *gsi)
{
	instance = gsi;
	turn_lock(progress);
	progress->gsi = gsi;
	turn_unlock(progress);
	atomic_store(&progress->gsi_wakeup.fd, gsi ? gsi->epoll_fd : -1);
}

int gsi_get(struct progress *progress, const struct gsi_hooks *hooks, struct gsi **result,
	    char error[PROGRESS_ERROR_TEXT])
{
	struct gsi *gsi = NULL;
	int failure = 0;

	if (progress->dead)
		return route_explain_dead(error);
	pthread_mutex_lock(&instance_lock);
	if (instance) {
		gsi = instance;
		gsi->users++;
	} else {
		gsi = new_instance(progress, hooks);
		failure = gsi ? progress_watch(progress, gsi->epoll_fd, serve, gsi) : -ENOMEM;
		if (failure && gsi)
			free_instance(gsi);
		if (!failure)
			publish(progress, gsi);
	}
	pthread_mutex_unlock(&instance_lock);
	if (failure)
		snprintf(error, PROGRESS_ERROR_TEXT, "cannot serve queue pair 1: %s",
			 strerror(-failure));
	else
		*result = gsi;
	return failure;
}

static void close_instance(struct gsi *gsi)
{
	publish(gsi->progress, NULL);
	progress_unwatch(gsi->progress, gsi->epoll_fd);
	atomic_store(&gsi->progress->gsi_wakeup.work, false);
	atomic_store(&gsi->progress->gsi_wakeup.deadline, ENG_NEVER);
	free_instance(gsi);
}

void gsi_put(struct gsi *gsi)
{
	if (gsi->progress->dead)
		return;
	pthread_mutex_lock(&instance_lock);
	if (--gsi->users == 0)
		close_instance(gsi);
	pthread_mutex_unlock(&instance_lock);
}

/* ---- fork ---- */

void gsi_fork_prepare(void)
{
	pthread_mutex_lock(&instance_lock);
	if (instance)
		pthread_mutex_lock(&instance->lock);
}

void gsi_fork_parent(void)
{
	if (instance)
		pthread_mutex_unlock(&instance->lock);
	pthread_mutex_unlock(&instance_lock);
}

void gsi_fork_child(void)
{
	struct gsi *gsi = instance;

	pthread_mutex_init(&instance_lock, NULL);
	pthread_mutex_init(&control_lock, NULL);
	instance = NULL;
	if (!gsi)
		return;
	close(gsi->epoll_fd);
	for (struct gsi_address *address = gsi->addresses; address; address = address->next)
		gsi_address_abandon(address);
	gsi_ports_abandon(gsi);
	gsi_will_abandon(gsi);
}
