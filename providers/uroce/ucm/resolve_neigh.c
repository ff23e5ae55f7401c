/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "resolve_neigh.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "id.h"
#include "ucm_core.h"
#include "progress/base/work.h"

#define MS UINT64_C(1000000)
/* The kernel gives up after three queries within three seconds; a later packet starts again. */
#define QUERY_NS (500 * MS)
/* A reply takes about 100 us on a working link. */
#define FIRST_PAUSE_NS 250000
#define LONGEST_PAUSE_NS 16000000

static struct ucm_neigh_wait *pending; /* under the lock */

static void resolve_pending(void);
/*
 * Runs in a thread of its own: queries of the kernel's tables take locks, and the progress thread
 * must not block.
 */
static struct work resolve_work = WORK_INITIALIZER(resolve_pending);

static uint32_t get_scope_id(const struct ucm_path *path)
{
	return gid_is_link_local(path->dgid) ? path->device : 0;
}

bool ucm_neigh_is_unresolved(const struct ucm_path *path, const struct ucm_address *destination,
			     struct neighbour *next_hop)
{
	return !gid_is_multicast(destination->ip) &&
	       neighbour_find(path->sgid, path->dgid, get_scope_id(path), next_hop) &&
	       !neighbour_is_resolved(next_hop);
}

/*
 * Returns true if a next hop was queried for the first time.  Successive entries often have the
 * same next hop.
 */
static bool query_neighbours(struct ucm_neigh_wait *list)
{
	const struct ucm_neigh_wait *previous = NULL;
	uint64_t now = progress_now();
	bool has_new = false;

	for (struct ucm_neigh_wait *wait = list; wait; previous = wait, wait = wait->next) {
		if (previous &&
		    !memcmp(&previous->next_hop, &wait->next_hop, sizeof(wait->next_hop))) {
			wait->resolved = previous->resolved;
			continue;
		}
		wait->resolved = neighbour_is_resolved(&wait->next_hop);
		if (wait->resolved || (wait->queried && now - wait->queried < QUERY_NS))
			continue;
		has_new |= !wait->queried;
		wait->queried = now;
		neighbour_probe(wait->path.sgid, wait->path.dgid, get_scope_id(&wait->path));
	}
	return has_new;
}

/*
 * Caller holds the lock.  Completes and frees the entries that are resolved, timed out or without
 * an id, and puts the others back.
 */
static void complete_waits(struct ucm_neigh_wait *list)
{
	uint64_t now = progress_now();
	struct ucm_neigh_wait *next;
	struct ucm_id *id;

	for (; list; list = next) {
		next = list->next;
		id = ucm_id_revalidate(list->handle, list->serial);
		if (id && !list->resolved && now < list->deadline) {
			list->next = pending;
			pending = list;
			continue;
		}
		if (id)
			list->complete(id, &list->path, list->resolved ? 0 : -ETIMEDOUT);
		free(list);
	}
}

static void resolve_pending(void)
{
	struct timespec pause = { .tv_nsec = FIRST_PAUSE_NS };
	struct ucm_neigh_wait *list;

	ucm_lock();
	while ((list = pending)) {
		pending = NULL;
		ucm_unlock();
		/* A new resolution does not wait as long as one that gets no reply. */
		if (query_neighbours(list))
			pause.tv_nsec = FIRST_PAUSE_NS;
		nanosleep(&pause, NULL);
		if (pause.tv_nsec < LONGEST_PAUSE_NS)
			pause.tv_nsec *= 2;
		ucm_lock();
		complete_waits(list);
	}
	ucm_unlock();
}

void ucm_neigh_resolve_later(struct ucm_neigh_wait *wait)
{
	wait->next = pending;
	pending = wait;
	/* If no thread can be started, this thread does the work, without the lock. */
	ucm_unlock();
	work_schedule(&resolve_work);
	ucm_lock();
}

void ucm_neigh_forked(void)
{
	pending = NULL;
	work_reset_in_child(&resolve_work);
}
