/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "datagram.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "route.h"
#include "source_port.h"
#include "turn.h"

int progress_path_open(struct progress *progress, const struct progress_route *route,
		       uint32_t number, struct progress_path *path, char error[PROGRESS_ERROR_TEXT])
{
	uint16_t port = route->flow_label ? source_port_from_flow_label(route->flow_label)
					  : source_port_datagram(number);
	int result;

	if (progress->forked)
		return route_explain_dead(error);
	pthread_mutex_lock(&progress->route_lock);
	result = route_open(progress, route, port, false, &path->addr, &path->eng, error);
	pthread_mutex_unlock(&progress->route_lock);
	return result;
}

void progress_path_close(struct progress *progress, struct progress_path *path)
{
	if (progress->forked)
		return;
	pthread_mutex_lock(&progress->route_lock);
	route_close_both(progress, path->addr, path->eng.link);
	pthread_mutex_unlock(&progress->route_lock);
}

struct progress_listen *progress_listen_new(void)
{
	return calloc(1, sizeof(struct progress_listen));
}

/*
 * Returns the number of addresses that could be opened; *result is the last error.  Caller holds
 * route_lock.
 */
static unsigned int open_addresses(struct progress *progress, const struct progress_local *local,
				   unsigned int count, struct link_addr **addr, int *result,
				   char error[PROGRESS_ERROR_TEXT])
{
	unsigned int opened = 0;

	for (unsigned int i = 0; i < count; i++) {
		int failure = route_get_address(progress, local[i].gid, local[i].scope_id,
						&addr[opened], error);

		if (failure) {
			*result = failure;
			continue;
		}
		/* The GRH that is passed to the application contains the traffic class. */
		link_addr_enable_rx_class(addr[opened]);
		opened++;
	}
	return opened;
}

int progress_listen_set(struct progress *progress, struct progress_listen *listen,
			const struct progress_local *local, unsigned int count,
			char error[PROGRESS_ERROR_TEXT])
{
	struct link_addr **addr, **old;
	unsigned int opened, old_count;
	int result = -EADDRNOTAVAIL;

	if (progress->forked)
		return route_explain_dead(error);
	addr = calloc(count + 1, sizeof(struct link_addr *));
	if (!addr)
		return -ENOMEM;
	pthread_mutex_lock(&progress->route_lock);
	opened = open_addresses(progress, local, count, addr, &result, error);
	turn_lock(progress);
	old = listen->addr;
	old_count = listen->count;
	listen->addr = addr;
	listen->count = opened;
	turn_unlock(progress);
	/*
	 * After the new set is complete, so that addresses in both sets are not closed in between.
	 */
	for (unsigned int i = 0; i < old_count; i++)
		route_close_both(progress, old[i], NULL);
	pthread_mutex_unlock(&progress->route_lock);
	free(old);
	return opened ? 0 : result;
}

void progress_listen_close(struct progress *progress, struct progress_listen *listen)
{
	if (!progress->forked) {
		pthread_mutex_lock(&progress->route_lock);
		for (unsigned int i = 0; i < listen->count; i++)
			route_close_both(progress, listen->addr[i], NULL);
		pthread_mutex_unlock(&progress->route_lock);
	}
	free(listen->addr);
	free(listen);
}
