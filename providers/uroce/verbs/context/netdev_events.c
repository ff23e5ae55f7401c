/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <string.h>

#include "progress/base/work.h"
#include "context.h"
#include "device.h"
#include "verbs/fork.h"
#include "verbs/qp/ud.h"

static pthread_mutex_t watch_lock = PTHREAD_MUTEX_INITIALIZER;
static struct netdev_watch *watch; /* changed under watch_lock */
static unsigned int watch_users;

static _Atomic(void (*)(void)) address_hook;

static void run_address_handlers(void)
{
	void (*hook)(void) = atomic_load(&address_hook);

	uroce_ud_addresses_changed();
	if (hook)
		hook();
}

/* In a work thread: opening an address may take seconds, in which no timer would expire. */
static struct work address_work = WORK_INITIALIZER(run_address_handlers);

void uroce_set_address_hook(void (*hook)(void))
{
	atomic_store(&address_hook, hook);
}

/*
 * Runs in the progress thread.  Must not take watch_lock, which uroce_netdev_events_put() holds
 * while it waits for this callback.
 */
static void handle_netdev_events(void *arg)
{
	/* Negative: the socket buffer overflowed and changes were lost; refresh as well. */
	if (netdev_watch_drain(arg) != 0) {
		uroce_devices_refresh();
		work_schedule(&address_work);
	}
}

void uroce_netdev_events_get(struct progress *progress)
{
	int error;

	pthread_mutex_lock(&watch_lock);
	if (watch_users++ > 0 || watch)
		goto unlock;
	error = netdev_watch_open(&watch);
	if (error) {
		watch = NULL;
		uroce_err("no notification of interface changes: %s", strerror(-error));
		goto unlock;
	}
	error = progress_watch(progress, netdev_watch_fd(watch), handle_netdev_events, watch);
	if (error) {
		netdev_watch_close(watch);
		watch = NULL;
		uroce_err("no notification of interface changes: %s", strerror(-error));
	}
unlock:
	pthread_mutex_unlock(&watch_lock);
}

void uroce_netdev_events_put(struct progress *progress)
{
	bool ended;

	pthread_mutex_lock(&watch_lock);
	ended = --watch_users == 0 && watch;
	if (ended) {
		progress_unwatch(progress, netdev_watch_fd(watch));
		netdev_watch_close(watch);
		watch = NULL;
	}
	pthread_mutex_unlock(&watch_lock);
	/*
	 * Without watch_lock, because the hook of the connection manager waits for a thread in
	 * uroce_netdev_events_get(), which waits for watch_lock.
	 */
	if (ended)
		work_flush(&address_work);
}

static void prepare_fork(void)
{
	pthread_mutex_lock(&watch_lock);
}

static void finish_fork_in_parent(void)
{
	pthread_mutex_unlock(&watch_lock);
}

/* The socket is the parent's: what the child reads from it the parent never gets. */
static void finish_fork_in_child(void)
{
	if (watch)
		netdev_watch_abandon(watch);
	watch = NULL;
	watch_users = 0;
	work_reset_in_child(&address_work);
	pthread_mutex_unlock(&watch_lock);
}

UROCE_FORK_HANDLERS(UROCE_FORK_NETDEV_EVENTS, prepare_fork, finish_fork_in_parent,
		    finish_fork_in_child)
