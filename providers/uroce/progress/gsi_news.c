/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Reports events of QPs of this process to the connection manager. */
#include <string.h>

#include "gsi_internal.h"

/* Queues the event during the cycle, like a MAD: both may be in the same batch. */
void gsi_queue_pair_event(struct progress *progress, uint32_t qpn, enum eng_event event)
{
	const struct gsi_news news = { qpn, event == ENG_EVENT_CREDITS_HIDDEN };
	bool requested = event == ENG_EVENT_COMM_EST || event == ENG_EVENT_FIRST_REQUEST;
	struct gsi *gsi = progress->gsi;

	if (!gsi || (!requested && !news.credits_hidden))
		return;
	pthread_mutex_lock(&gsi->queue_lock);
	if (gsi->news_count < GSI_NEWS_MAX)
		gsi->news[gsi->news_count++] = news;
	pthread_mutex_unlock(&gsi->queue_lock);
	gsi_want_service_in_turn(progress);
}

static void tell_one(struct gsi *gsi, const struct gsi_news *news)
{
	const struct gsi_hooks *hooks = &gsi->hooks;

	if (!news->credits_hidden && hooks->first_request)
		hooks->first_request(hooks->arg, news->qpn);
	if (news->credits_hidden && hooks->credits_hidden &&
	    hooks->credits_hidden(hooks->arg, news->qpn))
		count_anywhere(gsi->progress, PROGRESS_COUNT_CREDITS_MISSED);
}

/*
 * Called after the MADs have been delivered, since the peer has usually sent its RTU before its
 * first request.
 */
void gsi_tell_news(struct gsi *gsi)
{
	struct gsi_news news[GSI_NEWS_MAX];
	unsigned int count;

	pthread_mutex_lock(&gsi->queue_lock);
	count = gsi->news_count;
	memcpy(news, gsi->news, count * sizeof(news[0]));
	gsi->news_count = 0;
	pthread_mutex_unlock(&gsi->queue_lock);
	for (unsigned int i = 0; i < count; i++)
		tell_one(gsi, &news[i]);
}
