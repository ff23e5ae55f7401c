/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Handlers of fork(), exit() and address changes. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "channel.h"
#include "id.h"
#include "resolve_neigh.h"
#include "ucm/conn/connect_retry.h"
#include "ucm_core.h"
#include "verbs/context/context.h"
#include "verbs/fork.h"

/* Wait of an exiting process: minimum after the last MAD, maximum for replies to its DREQs. */
enum {
	EXIT_MIN_MS = 2,
	EXIT_WAIT_MS = 80,
	/* After a MAD that could not be sent, so that its next retransmission is sent as well. */
	EXIT_UNSENT_MS = 300,
	/* Maximum however often sending fails. */
	EXIT_MAX_MS = 600,
	/* Maximum wait for a command that holds the lock. */
	EXIT_LOCK_MS = 100,
};

static bool exiting; /* under the lock, like exiting_thread */
static pthread_t exiting_thread;

/*
 * Queue pair 1 and the connections belong to the parent, and the child has none.  The parent's
 * structures are leaked, as other threads of the parent may have been changing them.
 */
static void fork_child(void)
{
	ucm_core_forked();
	/* Another thread of the parent may have been exiting. */
	exiting = false;
	ucm_listen_addrs_forked();
	ucm_channel_forked();
	ucm_ids_forked();
	ucm_groups_forked();
	ucm_retries_forked();
	ucm_neigh_forked();
	ucm_unlock();
}

static void destroy_channel_ids(struct ucm_channel *channel, void *arg)
{
	(void)arg;
	ucm_ids_destroy(channel);
}

static void count_dreq_sent(void *arg, const struct cm_conn *conn)
{
	*(unsigned int *)arg += cm_conn_state(conn) == CM_DREQ_SENT;
}

static bool has_elapsed(uint64_t when, unsigned int ms)
{
	return progress_now() - when > ms * UINT64_C(1000000);
}

static bool may_exit(void)
{
	unsigned int unanswered = 0;

	if (!ucm_cm())
		return true;
	cm_each_conn(ucm_cm(), count_dreq_sent, &unanswered);
	return !unanswered && has_elapsed(ucm_last_sent(), EXIT_MIN_MS);
}

static bool may_wait(int ms)
{
	return ms < EXIT_WAIT_MS ||
	       (ms < EXIT_MAX_MS && !has_elapsed(ucm_last_unsent(), EXIT_UNSENT_MS));
}

/* Caller holds the lock.  Returns false if the lock could not be taken again. */
static bool pause_and_relock(void)
{
	ucm_unlock();
	usleep(1000);
	return ucm_lock_with_timeout(EXIT_LOCK_MS);
}

/*
 * On exit, destroys all ids, which sends DREQ or REJ to the peers, as the kernel does when a
 * process exits.  Unlike the kernel, the process cannot retransmit later, so it waits until a DREQ
 * has been repeated once, or until it can be sent if its address is about to return.
 */
static void exit_handler(void)
{
	if (!ucm_lock_with_timeout(EXIT_LOCK_MS))
		return;
	ucm_disable_cancel();
	exiting = true;
	exiting_thread = pthread_self();
	ucm_channel_each(destroy_channel_ids, NULL);
	for (int i = 0; may_wait(i) && !may_exit(); i++)
		if (!pause_and_relock())
			return;
	exiting = false;
	ucm_api_unlock();
}

void ucm_block_until_exit(void)
{
	while (exiting && !pthread_equal(exiting_thread, pthread_self())) {
		ucm_unlock();
		usleep(1000);
		ucm_lock();
	}
}

int ucm_install_handlers(void)
{
	static bool watched; /* under the lock */
	int error;

	if (watched)
		return 0;
	error = uroce_fork_init();
	if (!error)
		error = pthread_atfork(ucm_lock, ucm_unlock, fork_child);
	if (error)
		return error;
	uroce_set_address_hook(ucm_addresses_changed);
	atexit(exit_handler);
	watched = true;
	return 0;
}
