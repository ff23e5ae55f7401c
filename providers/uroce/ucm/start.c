/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Starts the connection manager, and connects it with queue pair 1. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "ucm/addr/devices.h"
#include "ucm/conn/connection.h"
#include "ucm_core.h"
#include "verbs/context/context.h"
#include "verbs/log.h"

/* Under the lock. */
static uint64_t last_sent;   /* time of the last attempt to send a MAD */
static uint64_t last_unsent; /* time of the last MAD that could not be sent */

uint64_t ucm_last_sent(void)
{
	return last_sent;
}

uint64_t ucm_last_unsent(void)
{
	return last_unsent;
}

/* A MAD that is not sent is treated as lost by the network: it will be retransmitted. */
static void send_mad(void *owner, const struct cm_path *path, const uint8_t *mad)
{
	struct gsi_path to;
	int error;

	(void)owner;
	ucm_gsi_path(path, &to);
	last_sent = progress_now();
	error = gsi_send(ucm_gsi(), &to, mad);
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
	if (ucm_cm() && ucm_device_of_gid(mad->dst, mad->scope_id, &from.device, &index)) {
		cm_receive(ucm_cm(), &from, mad->bytes, sizeof(mad->bytes), progress_now());
		ucm_rearm_timer();
	}
	ucm_unlock();
}

static void expire_timers(void *arg, uint64_t now)
{
	(void)arg;
	ucm_lock();
	if (ucm_cm()) {
		ucm_timer_expired();
		cm_expire(ucm_cm(), now);
		ucm_retries_send(now);
		ucm_orphans_check(ucm_cm(), now);
		ucm_rearm_timer();
	}
	ucm_unlock();
}

static void first_request_received(void *arg, uint32_t qpn)
{
	(void)arg;
	ucm_lock();
	if (ucm_cm() && cm_established_by_qpn(ucm_cm(), qpn, progress_now()) == CM_OK)
		ucm_rearm_timer();
	ucm_unlock();
}

static bool peer_hides_credits(void *arg, uint32_t qpn)
{
	bool promised;

	(void)arg;
	ucm_lock();
	promised = ucm_cm() && cm_peer_reports_no_credits(ucm_cm(), qpn);
	ucm_unlock();
	return promised;
}

static void broker_changed(void *arg, uint64_t now)
{
	(void)arg;
	ucm_lock();
	if (ucm_cm()) {
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
	if (ucm_cm())
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
	ucm_set_cm(new_cm, new_gsi, !settings.credits_hidden);
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

	ucm_start_lock();
	error = start_cm(&failed, text);
	if (!error)
		return 0;
	ucm_start_unlock();
	/* This waits for a thread that may wait for start_lock in ucm_addresses_changed(). */
	if (failed)
		uroce_provider_stop(failed);
	return error;
}
