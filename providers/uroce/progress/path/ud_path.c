/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "ud_path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "qp_connect.h"
#include "progress/loop.h"

int progress_path_open(struct progress *progress, const struct progress_route *route,
		       uint32_t number, struct progress_path *path, char error[PROGRESS_ERROR_TEXT])
{
	int result;

	if (progress->forked)
		return explain_forked(error);
	path->eng.wire.src_port = route->flow_label ? source_port_from_flow_label(route->flow_label)
						    : source_port_datagram(number);
	pthread_mutex_lock(&progress->route_lock);
	result = path_open(progress, route, false, path, error);
	pthread_mutex_unlock(&progress->route_lock);
	return result;
}

void progress_path_close(struct progress *progress, struct progress_path *path)
{
	if (progress->forked)
		return;
	pthread_mutex_lock(&progress->route_lock);
	path_close(progress, path->addr, path->eng.link);
	pthread_mutex_unlock(&progress->route_lock);
}

struct progress_ud_addrs *progress_ud_addrs_new(void)
{
	return calloc(1, sizeof(struct progress_ud_addrs));
}

/*
 * Adds the addresses that can be opened to the set.  Returns 0, or the last error if there are
 * none.  Caller holds route_lock.
 */
static int open_addresses(struct progress *progress, const struct progress_local_addr *local,
			  unsigned int count, struct progress_ud_addrs *set,
			  char error[PROGRESS_ERROR_TEXT])
{
	int result = -EADDRNOTAVAIL;

	for (unsigned int i = 0; i < count; i++) {
		struct link_addr **addr = &set->addr[set->count];
		int failure = address_get(progress, local[i].gid, local[i].scope_id, addr, error);

		if (failure) {
			result = failure;
			continue;
		}
		/* The GRH that is passed to the application contains the traffic class. */
		link_addr_enable_rx_class(*addr);
		set->count++;
	}
	return set->count ? 0 : result;
}

int progress_ud_addrs_set(struct progress *progress, struct progress_ud_addrs *set,
			  const struct progress_local_addr *local, unsigned int count,
			  char error[PROGRESS_ERROR_TEXT])
{
	struct progress_ud_addrs opened = { 0 }, old;
	int result;

	if (progress->forked)
		return explain_forked(error);
	opened.addr = calloc(count + 1, sizeof(struct link_addr *));
	if (!opened.addr)
		return -ENOMEM;
	pthread_mutex_lock(&progress->route_lock);
	result = open_addresses(progress, local, count, &opened, error);
	progress_lock(progress);
	old = *set;
	*set = opened;
	progress_unlock(progress);
	/*
	 * After the new set is complete, so that addresses in both sets are not closed in between.
	 */
	for (unsigned int i = 0; i < old.count; i++)
		path_close(progress, old.addr[i], NULL);
	pthread_mutex_unlock(&progress->route_lock);
	free(old.addr);
	return result;
}

void progress_ud_addrs_close(struct progress *progress, struct progress_ud_addrs *set)
{
	if (!progress->forked) {
		pthread_mutex_lock(&progress->route_lock);
		for (unsigned int i = 0; i < set->count; i++)
			path_close(progress, set->addr[i], NULL);
		pthread_mutex_unlock(&progress->route_lock);
	}
	free(set->addr);
	free(set);
}
