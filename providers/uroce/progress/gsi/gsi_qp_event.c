/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Reports events of QPs of this process to the connection manager. */
#include <string.h>

#include "gsi_priv.h"

static void queue_event(struct gsi *gsi, const struct gsi_qp_event *qp_event)
{
	pthread_mutex_lock(&gsi->queue_lock);
	if (gsi->qp_event_count < GSI_QP_EVENTS_MAX)
		gsi->qp_event[gsi->qp_event_count++] = *qp_event;
	pthread_mutex_unlock(&gsi->queue_lock);
}

/*
 * Only queues the event, since the hooks are not called during a cycle; the RTU, which may be in
 * the same batch, is queued as well.
 */
void gsi_report_qp_event(struct progress *progress, uint32_t qpn, enum eng_event event)
{
	const struct gsi_qp_event qp_event = { qpn, event == ENG_EVENT_CREDITS_HIDDEN };
	bool requested = event == ENG_EVENT_COMM_EST || event == ENG_EVENT_FIRST_REQUEST;
	bool queued = false;

	if (!requested && !qp_event.credits_hidden)
		return;
	pthread_mutex_lock(&progress->gsi_lock);
	if (progress->gsi) {
		queue_event(progress->gsi, &qp_event);
		queued = true;
	}
	pthread_mutex_unlock(&progress->gsi_lock);
	if (queued)
		gsi_kick(progress);
}

static void deliver_event(struct gsi *gsi, const struct gsi_qp_event *qp_event)
{
	const struct gsi_hooks *hooks = &gsi->hooks;

	if (!qp_event->credits_hidden && hooks->first_request)
		hooks->first_request(hooks->arg, qp_event->qpn);
	if (qp_event->credits_hidden && hooks->credits_hidden &&
	    hooks->credits_hidden(hooks->arg, qp_event->qpn))
		count_anywhere(gsi->progress, PROGRESS_COUNT_CREDITS_MISSED);
}

/*
 * Called after the MADs have been delivered, since the peer has usually sent its RTU before its
 * first request.
 */
void gsi_deliver_qp_events(struct gsi *gsi)
{
	struct gsi_qp_event events[GSI_QP_EVENTS_MAX];
	unsigned int count;

	pthread_mutex_lock(&gsi->queue_lock);
	count = gsi->qp_event_count;
	memcpy(events, gsi->qp_event, count * sizeof(events[0]));
	gsi->qp_event_count = 0;
	pthread_mutex_unlock(&gsi->queue_lock);
	for (unsigned int i = 0; i < count; i++)
		deliver_event(gsi, &events[i]);
}
