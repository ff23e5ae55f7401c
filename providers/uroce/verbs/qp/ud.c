/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "ud.h"

#include <errno.h>
#include <string.h>

#include "ah.h"
#include "progress/path/ud_path.h"
#include "verbs/context/device.h"
#include "verbs/fork.h"

/* IBA: a Q_Key with this bit in a work request stands for the Q_Key of the QP. */
#define QKEY_OF_QP 0x80000000u

/* Protects the list of contexts that have UD QPs, and their listen sets. */
static pthread_mutex_t listen_lock = PTHREAD_MUTEX_INITIALIZER;
static struct uroce_context *listeners;

static void finish_fork_in_child(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	listen_lock = fresh;
	/* Listening is left to the parent. */
	listeners = NULL;
}

/* Listens on all GIDs of the device.  listen_lock is held.  Returns 0 or a negative errno. */
static int set_listen_gids(struct uroce_context *context, unsigned int worker,
			   char error[PROGRESS_ERROR_TEXT])
{
	struct progress_local_addr local[UROCE_GID_TABLE];
	unsigned int count = 0;
	struct netdev netdev;

	uroce_device_netdev(context->device, &netdev);
	for (unsigned int i = 0; i < UROCE_GID_TABLE; i++) {
		union ibv_gid gid;

		if (!uroce_gid(context->device, i, &gid))
			continue;
		memcpy(local[count].gid, gid.raw, sizeof(local[count].gid));
		local[count].scope_id = gid_is_link_local(gid.raw) ? netdev.index : 0;
		count++;
	}
	return progress_ud_addrs_set(progress_worker(worker), context->listen[worker], local, count,
				     error);
}

/* Called with listen_lock held. */
static bool is_listener(const struct uroce_context *context)
{
	const struct uroce_context *listener = listeners;

	while (listener && listener != context)
		listener = listener->next_listener;
	return listener;
}

/* Called with listen_lock held.  Returns 0 or a negative errno. */
static int start_listening(struct uroce_context *context, unsigned int worker,
			   char error[PROGRESS_ERROR_TEXT])
{
	int result = -ENOMEM;

	context->listen[worker] = progress_ud_addrs_new();
	if (context->listen[worker])
		result = set_listen_gids(context, worker, error);
	if (!result && !is_listener(context)) {
		context->next_listener = listeners;
		listeners = context;
	}
	if (result && context->listen[worker]) {
		progress_ud_addrs_close(progress_worker(worker), context->listen[worker]);
		context->listen[worker] = NULL;
	}
	return result;
}

int uroce_ud_listen(struct uroce_qp *qp)
{
	struct uroce_context *context = qp->context;
	unsigned int worker = progress_worker_number(qp->progress.worker);
	char text[PROGRESS_ERROR_TEXT] = "";
	int error = 0;

	pthread_mutex_lock(&listen_lock);
	if (!context->listen[worker])
		error = start_listening(context, worker, text);
	pthread_mutex_unlock(&listen_lock);
	if (error) {
		if (text[0])
			uroce_err("%s", text);
		return -error;
	}
	pthread_mutex_lock(&qp->progress.lock);
	qp->progress.ud_addrs = context->listen[worker];
	pthread_mutex_unlock(&qp->progress.lock);
	return 0;
}

void uroce_ud_addresses_changed(void)
{
	char text[PROGRESS_ERROR_TEXT];

	pthread_mutex_lock(&listen_lock);
	/* Errors are ignored: the UD QPs receive nothing until the next change. */
	for (struct uroce_context *context = listeners; context; context = context->next_listener) {
		for (unsigned int i = 0; i < PROGRESS_WORKERS; i++) {
			if (context->listen[i])
				set_listen_gids(context, i, text);
		}
	}
	pthread_mutex_unlock(&listen_lock);
}

void uroce_ud_close(struct uroce_context *context)
{
	struct uroce_context **from = &listeners;

	if (uroce_is_stale(context->generation))
		return;
	pthread_mutex_lock(&listen_lock);
	while (*from && *from != context)
		from = &(*from)->next_listener;
	if (*from)
		*from = context->next_listener;
	pthread_mutex_unlock(&listen_lock);
	for (unsigned int i = 0; i < PROGRESS_WORKERS; i++) {
		if (context->listen[i])
			progress_ud_addrs_close(progress_worker(i), context->listen[i]);
		context->listen[i] = NULL;
	}
	uroce_ah_free_deferred();
}

int uroce_ud_set_dest(struct uroce_qp *qp, struct eng_send_wqe *wqe, struct ibv_ah *ibv_ah,
		      uint32_t dest_qpn, uint32_t qkey)
{
	struct uroce_ah *ah = ibv_ah ? to_uroce_ah(ibv_ah) : NULL;
	bool needed = wqe->op == ENG_SEND || wqe->op == ENG_SEND_IMM;

	if (needed && (!ah || ah->pd->domain != qp->pd->domain || dest_qpn > WIRE_24BIT_MASK))
		return EINVAL;
	wqe->ud.ah = needed ? ah : NULL;
	wqe->ud.path = needed ? &ah->path.eng : NULL;
	wqe->ud.dest_qpn = dest_qpn;
	wqe->ud.qkey = qkey & QKEY_OF_QP ? qp->attr.qkey : qkey;
	return 0;
}

void uroce_ud_hold_ah(const struct eng_send_wqe *wqe)
{
	if (wqe->ud.ah)
		uroce_ah_hold((struct uroce_ah *)(uintptr_t)wqe->ud.ah);
}

static void release_ahs_until(struct uroce_qp *qp, uint32_t end)
{
	for (; qp->ah_held_tail != end; qp->ah_held_tail++) {
		const struct eng_send_wqe *wqe = eng_ring_slot(&qp->sq, qp->ah_held_tail);

		if (wqe->ud.ah)
			uroce_ah_release((struct uroce_ah *)(uintptr_t)wqe->ud.ah);
	}
}

void uroce_ud_release_completed(struct uroce_qp *qp)
{
	release_ahs_until(qp, qp->sq.tail);
}

void uroce_ud_release_all(struct uroce_qp *qp)
{
	if (qp->type != ENG_UD)
		return;
	release_ahs_until(qp, qp->sq.head);
	qp->ah_held_tail = 0;
}

UROCE_FORK_HANDLERS(UROCE_FORK_UD, .child = finish_fork_in_child)
