/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "ucm_core.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "channel.h"
#include "ucm/conn/connection.h"
#include "ucm/addr/devices.h"
#include "id.h"
#include "resolve_neigh.h"
#include "ucm/conn/connect_retry.h"
#include "verbs/log.h"
#include "verbs/context/context.h"
#include "verbs/fork.h"

/*
 * How long an exiting process waits: minimum after the last MAD, and maximum for replies to its
 * DREQs.
 */
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

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool exiting; /* under the lock, like exiting_thread */
static pthread_t exiting_thread;
static _Thread_local int saved_cancel_state;

/*
 * Held around calls that wait for other processes.  Taken before the lock, and never by a callback.
 * Variables that are under both locks are written with both held.
 */
static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static struct progress *progress; /* under both locks, like gsi, cm, credits_shown */
static struct gsi *gsi;
static struct cm *cm;
static bool credits_reported;

/* Deadline set in gsi; under the lock, like the two below. */
static uint64_t armed_deadline = CM_NEVER;
static uint64_t last_sent;   /* time of the last attempt to send a MAD */
static uint64_t last_unsent; /* time of the last MAD that could not be sent */

void ucm_api_lock(void)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &saved_cancel_state);
	ucm_lock();
}

void ucm_api_unlock(void)
{
	ucm_unlock();
	pthread_setcancelstate(saved_cancel_state, NULL);
}

int ucm_saved_cancel_state(void)
{
	return saved_cancel_state;
}

void ucm_lock(void)
{
	pthread_mutex_lock(&lock);
}

void ucm_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

struct cm *ucm_cm(void)
{
	return cm;
}

struct gsi *ucm_gsi(void)
{
	return gsi;
}

bool ucm_reports_credits(void)
{
	return credits_reported;
}

void ucm_rearm_timer(void)
{
	uint64_t next = cm_deadline(cm);

	if (ucm_retries_deadline() < next)
		next = ucm_retries_deadline();
	if (ucm_orphans_deadline() < next)
		next = ucm_orphans_deadline();
	if (next == armed_deadline)
		return;
	armed_deadline = next;
	gsi_deadline(gsi, next == CM_NEVER ? ENG_NEVER : next);
}

uint32_t ucm_scope_id_of(const uint8_t *gid, uint32_t device)
{
	return link_gid_is_link_local(gid) ? device : 0;
}

void ucm_gsi_path(const struct cm_path *path, struct gsi_path *to)
{
	*to = (struct gsi_path){
		.scope_id = ucm_scope_id_of(path->dgid, path->device),
		.traffic_class = path->traffic_class,
	};
	memcpy(to->sgid, path->sgid, sizeof(to->sgid));
	memcpy(to->dgid, path->dgid, sizeof(to->dgid));
}

/* A MAD that is not sent is treated as lost by the network: it will be retransmitted. */
static void send_mad(void *owner, const struct cm_path *path, const uint8_t *mad)
{
	struct gsi_path to;
	int error;

	(void)owner;
	ucm_gsi_path(path, &to);
	last_sent = progress_now();
	error = gsi_send(gsi, &to, mad);
	if (!error)
		return;
	last_unsent = last_sent;
	uroce_debug("cannot send a message of the connection manager: %s", strerror(-error));
}

static void receive_mad(void *arg, const struct gsi_mad *mad)
{
	struct cm_path from = { .hop_limit = UCM_HOP_LIMIT };
	unsigned int index;

	(void)arg;
	memcpy(from.sgid, mad->dst, sizeof(from.sgid));
	memcpy(from.dgid, mad->src, sizeof(from.dgid));
	ucm_lock();
	if (cm && ucm_device_of_gid(mad->dst, mad->scope_id, &from.device, &index)) {
		cm_receive(cm, &from, mad->bytes, sizeof(mad->bytes), progress_now());
		ucm_rearm_timer();
	}
	ucm_unlock();
}

static void expire_timers(void *arg, uint64_t now)
{
	(void)arg;
	ucm_lock();
	if (cm) {
		armed_deadline = CM_NEVER;
		cm_expire(cm, now);
		ucm_retries_send(now);
		ucm_orphans_check(cm, now);
		ucm_rearm_timer();
	}
	ucm_unlock();
}

static void first_request_received(void *arg, uint32_t qpn)
{
	(void)arg;
	ucm_lock();
	if (cm && cm_established_by_qpn(cm, qpn, progress_now()) == CM_OK)
		ucm_rearm_timer();
	ucm_unlock();
}

static bool peer_hides_credits(void *arg, uint32_t qpn)
{
	bool promised;

	(void)arg;
	ucm_lock();
	promised = cm && cm_peer_reports_no_credits(cm, qpn);
	ucm_unlock();
	return promised;
}

static void broker_changed(void *arg, uint64_t now)
{
	(void)arg;
	ucm_lock();
	if (cm) {
		ucm_orphans_start_checks(now);
		ucm_rearm_timer();
	}
	ucm_unlock();
}

static const struct gsi_hooks hooks = {
	.receive = receive_mad,
	.expire = expire_timers,
	.first_request = first_request_received,
	.credits_hidden = peer_hides_credits,
	.broker_changed = broker_changed,
};

static const struct cm_ops ops = {
	.send = send_mad,
	.event = ucm_connection_event,
	.accept_conn = ucm_connection_accept,
	.path_mtu = ucm_connection_mtu,
	.released = ucm_connection_released,
	.last_message = ucm_connection_last_message,
};

/* Returns 0 or a negative errno. */
static int create_cm(struct gsi *queue_pair, struct cm **made)
{
	struct cm_config config = { .ops = &ops, .slot = gsi_slot(queue_pair) };
	void *memory = malloc(cm_bytes());

	if (!memory)
		return -ENOMEM;
	if (getrandom(&config.id_start, sizeof(config.id_start), GRND_NONBLOCK) < 0)
		config.id_start = (uint32_t)progress_now();
	*made = cm_init(memory, &config);
	return 0;
}

/*
 * Caller holds start_lock.  Returns 0, or a negative errno with text. *failed is an instance that
 * the caller must stop without that lock, or NULL.
 */
static int start_cm(struct progress **failed, char text[PROGRESS_ERROR_TEXT])
{
	struct uroce_settings settings;
	struct progress *new_progress;
	struct gsi *new_gsi;
	struct cm *new_cm;
	int error;

	*failed = NULL;
	if (cm)
		return 0;
	error = uroce_provider_start(&new_progress, &settings, text);
	if (error)
		return error;
	error = gsi_get(new_progress, &hooks, &new_gsi, text);
	if (error)
		goto stop;
	error = create_cm(new_gsi, &new_cm);
	if (error)
		goto put_gsi;
	ucm_lock();
	progress = new_progress;
	gsi = new_gsi;
	cm = new_cm;
	credits_reported = !settings.credits_hidden;
	armed_deadline = CM_NEVER;
	ucm_unlock();
	return 0;

put_gsi:
	gsi_put(new_gsi);
stop:
	*failed = new_progress;
	return error;
}

int ucm_start_and_lock(char text[PROGRESS_ERROR_TEXT])
{
	struct progress *failed;
	int error;

	pthread_mutex_lock(&start_lock);
	error = start_cm(&failed, text);
	if (!error)
		return 0;
	pthread_mutex_unlock(&start_lock);
	/*
	 * uroce_provider_stop() waits for a thread that may wait for start_lock in
	 * ucm_addresses_changed().
	 */
	if (failed)
		uroce_provider_stop(failed);
	return error;
}

void ucm_start_lock(void)
{
	pthread_mutex_lock(&start_lock);
}

void ucm_start_unlock(void)
{
	pthread_mutex_unlock(&start_lock);
}

static void fork_prepare(void)
{
	ucm_lock();
}

static void fork_parent(void)
{
	ucm_unlock();
}

/*
 * QP1 and the connections belong to the parent, and the child has none.  The parent's structures
 * are leaked, as other threads of the parent may have been changing them.
 */
static void fork_child(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	progress = NULL;
	gsi = NULL;
	cm = NULL;
	/* Another thread of the parent may have been exiting. */
	exiting = false;
	ucm_listen_addrs_forked();
	ucm_channel_forked();
	ucm_ids_forked();
	ucm_groups_forked();
	ucm_retries_forked();
	ucm_neigh_forked();
	start_lock = fresh;
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

	if (!cm)
		return true;
	cm_each_conn(cm, count_dreq_sent, &unanswered);
	return !unanswered && has_elapsed(last_sent, EXIT_MIN_MS);
}

static bool may_wait(int ms)
{
	return ms < EXIT_WAIT_MS || (ms < EXIT_MAX_MS && !has_elapsed(last_unsent, EXIT_UNSENT_MS));
}

/*
 * Returns false if the lock cannot be taken in time: a signal handler that calls exit() may have
 * interrupted a command of this thread; or the progress thread holds the lock and is blocked by
 * another lock for the same reason.
 */
static bool lock_with_timeout(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += EXIT_LOCK_MS * 1000000L;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000L;
	}
	return pthread_mutex_timedlock(&lock, &until) == 0;
}

/* Caller holds the lock.  Returns false if the lock could not be taken again. */
static bool pause_and_relock(void)
{
	ucm_unlock();
	usleep(1000);
	return lock_with_timeout();
}

/*
 * On exit, destroys all ids, which sends DREQ or REJ to the peers, as the kernel does when a
 * process exits.  Unlike the kernel, the process cannot retransmit later, so it waits until a DREQ
 * has been repeated once, or until it can be sent if its address is about to return.
 */
static void exit_handler(void)
{
	if (!lock_with_timeout())
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &saved_cancel_state);
	exiting = true;
	exiting_thread = pthread_self();
	ucm_channel_each(destroy_channel_ids, NULL);
	for (int i = 0; may_wait(i) && !may_exit(); i++)
		if (!pause_and_relock())
			return;
	exiting = false;
	ucm_api_unlock();
}

/*
 * In a process that uses the kernel's channel, no thread can request events again after exit, since
 * they have all ended by then.
 */
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
		error = pthread_atfork(fork_prepare, fork_parent, fork_child);
	if (error)
		return error;
	uroce_set_address_hook(ucm_addresses_changed);
	atexit(exit_handler);
	watched = true;
	return 0;
}
