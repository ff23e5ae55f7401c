/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "gsi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "gsi_priv.h"
#include "gsi_progress.h"
#include "link/broker/port.h"
#include "progress/path/qp_connect.h"
#include "progress/loop.h"

/* Serializes creation and destruction of the instance. */
static pthread_mutex_t instance_lock = PTHREAD_MUTEX_INITIALIZER;
/* Serializes opening and closing of addresses. */
static pthread_mutex_t control_lock = PTHREAD_MUTEX_INITIALIZER;
/* Changed under instance_lock. */
static struct gsi *instance;

unsigned int gsi_slot(const struct gsi *gsi)
{
	return gsi->progress->slot;
}

/* ---- time ---- */

/* Caller holds gsi.lock. */
static void set_gsi_deadline(struct gsi *gsi, uint64_t when)
{
	gsi->deadline = when;
	atomic_store_explicit(&gsi->progress->gsi_wakeup.deadline, when, memory_order_seq_cst);
	wakeup_for_deadline(gsi->progress, when);
}

void gsi_deadline(struct gsi *gsi, uint64_t when)
{
	if (gsi->progress->forked)
		return;
	pthread_mutex_lock(&gsi->lock);
	set_gsi_deadline(gsi, when);
	pthread_mutex_unlock(&gsi->lock);
}

/* Returns true if the deadline has passed, and resets it. */
static bool expire_deadline(struct gsi *gsi, uint64_t now)
{
	bool due;

	pthread_mutex_lock(&gsi->lock);
	due = gsi->deadline <= now;
	if (due)
		set_gsi_deadline(gsi, ENG_NEVER);
	pthread_mutex_unlock(&gsi->lock);
	return due;
}

/* Calls the hooks of what is due or queued.  Callback of the watch; runs in the progress thread. */
static void run_callbacks(void *arg)
{
	struct gsi *gsi = arg;
	unsigned int changes;
	uint64_t now;

	atomic_store_explicit(&gsi->progress->gsi_wakeup.pending, false, memory_order_release);
	now = progress_now();
	if (expire_deadline(gsi, now))
		gsi->hooks.expire(gsi->hooks.arg, now);
	gsi_queue_deliver(gsi);
	gsi_deliver_qp_events(gsi);
	changes = link_broker_changes(gsi->progress->link);
	if (changes != gsi->broker_changes && gsi->hooks.broker_changed)
		gsi->hooks.broker_changed(gsi->hooks.arg, now);
	gsi->broker_changes = changes;
}

/* ---- addresses ---- */

/* Caller holds gsi.lock. */
static void unlink_address(struct gsi *gsi, struct gsi_address *address)
{
	struct gsi_address **from = &gsi->addresses;

	gsi_close_peers(gsi, address);
	while (*from != address)
		from = &(*from)->next;
	*from = address->next;
}

static void close_address(struct gsi *gsi, struct gsi_address *address)
{
	pthread_mutex_lock(&gsi->progress->route_lock);
	path_close(gsi->progress, address->addr, NULL);
	pthread_mutex_unlock(&gsi->progress->route_lock);
	free(address);
}

/* Caller holds control_lock. */
static int open_address(struct gsi *gsi, const uint8_t gid[16], uint32_t scope_id,
			char error[PROGRESS_ERROR_TEXT])
{
	struct gsi_address *address = calloc(1, sizeof(*address));
	int result;

	if (!address) {
		snprintf(error, PROGRESS_ERROR_TEXT, "out of memory");
		return -ENOMEM;
	}
	address->users = 1;
	address->scope_id = scope_id;
	memcpy(address->gid, gid, sizeof(address->gid));
	pthread_mutex_lock(&gsi->progress->route_lock);
	result = address_get(gsi->progress, gid, scope_id, &address->addr, error);
	pthread_mutex_unlock(&gsi->progress->route_lock);
	if (result) {
		free(address);
		return result;
	}
	pthread_mutex_lock(&gsi->lock);
	address->next = gsi->addresses;
	gsi->addresses = address;
	pthread_mutex_unlock(&gsi->lock);
	return 0;
}

int gsi_addr_get(struct gsi *gsi, const uint8_t gid[16], uint32_t scope_id,
		 char error[PROGRESS_ERROR_TEXT])
{
	struct gsi_address *address;
	int result = 0;

	if (gsi->progress->forked)
		return explain_forked(error);
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

	if (gsi->progress->forked)
		return;
	pthread_mutex_lock(&control_lock);
	pthread_mutex_lock(&gsi->lock);
	address = gsi_address_find(gsi, gid, scope_id);
	last = --address->users == 0;
	if (last)
		unlink_address(gsi, address);
	pthread_mutex_unlock(&gsi->lock);
	if (last)
		close_address(gsi, address);
	pthread_mutex_unlock(&control_lock);
}

/* ---- the instance ---- */

static void free_instance(struct gsi *gsi)
{
	if (gsi->watch_fd >= 0)
		close(gsi->watch_fd);
	gsi_last_close(&gsi->last);
	pthread_mutex_destroy(&gsi->lock);
	pthread_mutex_destroy(&gsi->queue_lock);
	free(gsi->queue);
	free(gsi);
}

static struct gsi *new_instance(struct progress *progress, const struct gsi_hooks *hooks)
{
	struct gsi *gsi = calloc(1, sizeof(*gsi));

	if (!gsi)
		return NULL;
	gsi->progress = progress;
	gsi->hooks = *hooks;
	gsi->users = 1;
	gsi->deadline = ENG_NEVER;
	gsi_last_open(&gsi->last);
	pthread_mutex_init(&gsi->lock, NULL);
	pthread_mutex_init(&gsi->queue_lock, NULL);
	if (getrandom(&gsi->psn, sizeof(gsi->psn), GRND_NONBLOCK) < 0)
		gsi->psn = (uint32_t)progress_now();
	gsi->queue = calloc(GSI_QUEUE_MAX, sizeof(*gsi->queue));
	gsi->watch_fd = eventfd(0, EFD_CLOEXEC);
	if (!gsi->queue || gsi->watch_fd < 0) {
		free_instance(gsi);
		return NULL;
	}
	return gsi;
}

/* Sets or clears the instance that cycles use.  Caller holds instance_lock. */
static void publish_instance(struct progress *progress, struct gsi *gsi)
{
	instance = gsi;
	progress_lock(progress);
	pthread_mutex_lock(&progress->gsi_lock);
	progress->gsi = gsi;
	pthread_mutex_unlock(&progress->gsi_lock);
	progress_unlock(progress);
	atomic_store(&progress->gsi_wakeup.fd, gsi ? gsi->watch_fd : -1);
}

/* Starts the watch first, since MADs arrive as soon as the broker knows of the instance. */
static int start_instance(struct gsi *gsi)
{
	struct progress *progress = gsi->progress;
	int error = progress_watch(progress, gsi->watch_fd, run_callbacks, gsi);

	if (error)
		return error;
	publish_instance(progress, gsi);
	error = link_gsi_begin(progress->link, gsi->last.fd);
	if (!error)
		return 0;
	publish_instance(progress, NULL);
	progress_unwatch(progress, gsi->watch_fd);
	return error;
}

int gsi_get(struct progress *progress, const struct gsi_hooks *hooks, struct gsi **result,
	    char error[PROGRESS_ERROR_TEXT])
{
	struct gsi *gsi = NULL;
	int failure = 0;

	if (progress->forked)
		return explain_forked(error);
	pthread_mutex_lock(&instance_lock);
	if (instance) {
		gsi = instance;
		gsi->users++;
	} else {
		gsi = new_instance(progress, hooks);
		failure = gsi ? start_instance(gsi) : -ENOMEM;
		if (failure && gsi)
			free_instance(gsi);
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
	link_gsi_end(gsi->progress->link);
	publish_instance(gsi->progress, NULL);
	progress_unwatch(gsi->progress, gsi->watch_fd);
	atomic_store(&gsi->progress->gsi_wakeup.pending, false);
	atomic_store(&gsi->progress->gsi_wakeup.deadline, ENG_NEVER);
	free_instance(gsi);
}

void gsi_put(struct gsi *gsi)
{
	if (gsi->progress->forked)
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
	close(gsi->watch_fd);
	if (gsi->last.fd >= 0)
		close(gsi->last.fd);
}
