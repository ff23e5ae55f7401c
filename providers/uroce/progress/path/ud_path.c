/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "ud_path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "qp_connect.h"
#include "source_port.h"
#include "progress/loop.h"

int progress_path_open(struct progress *progress, const struct progress_route *route,
		       uint32_t number, struct progress_path *path, char error[PROGRESS_ERROR_TEXT])
{
	uint16_t port = route->flow_label ? source_port_from_flow_label(route->flow_label)
					  : source_port_datagram(number);
	int result;

	if (progress->forked)
		return explain_forked(error);
	pthread_mutex_lock(&progress->route_lock);
	result = path_open(progress, route, port, false, &path->addr, &path->eng, error);
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
 * Returns the number of addresses that could be opened; *result is the last error.  Caller holds
 * route_lock.
 */
static unsigned int open_addresses(struct progress *progress,
				   const struct progress_local_addr *local, unsigned int count,
				   struct link_addr **addr, int *result,
				   char error[PROGRESS_ERROR_TEXT])
{
	unsigned int opened = 0;

	for (unsigned int i = 0; i < count; i++) {
		int failure = address_get(progress, local[i].gid, local[i].scope_id, &addr[opened],
					  error);

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

int progress_ud_addrs_set(struct progress *progress, struct progress_ud_addrs *set,
			  const struct progress_local_addr *local, unsigned int count,
			  char error[PROGRESS_ERROR_TEXT])
{
	struct link_addr **addr, **old;
	unsigned int opened, old_count;
	int result = -EADDRNOTAVAIL;

	if (progress->forked)
		return explain_forked(error);
	addr = calloc(count + 1, sizeof(struct link_addr *));
	if (!addr)
		return -ENOMEM;
	pthread_mutex_lock(&progress->route_lock);
	opened = open_addresses(progress, local, count, addr, &result, error);
	progress_lock(progress);
	old = set->addr;
	old_count = set->count;
	set->addr = addr;
	set->count = opened;
	progress_unlock(progress);
	/*
	 * After the new set is complete, so that addresses in both sets are not closed in between.
	 */
	for (unsigned int i = 0; i < old_count; i++)
		path_close(progress, old[i], NULL);
	pthread_mutex_unlock(&progress->route_lock);
	free(old);
	return opened ? 0 : result;
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
