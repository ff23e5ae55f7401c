/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "neighbour.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "id.h"
#include "manager.h"
#include "progress/aside.h"

#define MS UINT64_C(1000000)
/* The kernel gives up after three queries within three seconds; a later packet starts again. */
#define NUDGE_NS (500 * MS)
/* A reply takes about 100 us on a working link. */
#define FIRST_PAUSE_NS 250000
#define LONGEST_PAUSE_NS 16000000

static struct ucm_awaited *all; /* under the lock */

static void work(void);
/*
 * Runs in a thread of its own: queries of the kernel's tables take locks, and the progress thread
 * must not block.
 */
static struct aside looking = ASIDE_INITIALIZER(work);

static uint32_t scope_of(const struct ucm_path *path)
{
	return link_gid_is_link_local(path->dgid) ? path->device : 0;
}

bool ucm_neighbour_is_missing(const struct ucm_path *path, const struct ucm_address *destination,
			      struct neighbour *next_hop)
{
	return !ucm_address_is_multicast(destination) &&
	       neighbour_find(path->sgid, path->dgid, scope_of(path), next_hop) &&
	       !neighbour_is_known(next_hop);
}

/* Successive entries often have the same next hop. */
static void look(struct ucm_awaited *list)
{
	const struct ucm_awaited *before = NULL;
	uint64_t now = progress_now();

	for (struct ucm_awaited *one = list; one; before = one, one = one->next) {
		if (before && !memcmp(&before->next_hop, &one->next_hop, sizeof(one->next_hop))) {
			one->known = before->known;
			continue;
		}
		one->known = neighbour_is_known(&one->next_hop);
		if (one->known || (one->nudged && now - one->nudged < NUDGE_NS))
			continue;
		one->nudged = now;
		neighbour_ask(one->path.sgid, one->path.dgid, scope_of(&one->path));
	}
}

/*
 * Caller holds the lock.  Completes and frees the entries that are resolved, timed out or without
 * an id, and puts the others back.
 */
static void settle(struct ucm_awaited *list)
{
	uint64_t now = progress_now();
	struct ucm_awaited *next;
	struct ucm_id *id;

	for (; list; list = next) {
		next = list->next;
		id = ucm_id_again(list->handle, list->serial);
		if (id && !list->known && now < list->until) {
			list->next = all;
			all = list;
			continue;
		}
		if (id)
			ucm_resolved(id, &list->path, list->known ? 0 : -ETIMEDOUT);
		free(list);
	}
}

static void work(void)
{
	struct timespec pause = { .tv_nsec = FIRST_PAUSE_NS };
	struct ucm_awaited *list;

	ucm_lock();
	while ((list = all)) {
		all = NULL;
		ucm_unlock();
		look(list);
		nanosleep(&pause, NULL);
		if (pause.tv_nsec < LONGEST_PAUSE_NS)
			pause.tv_nsec *= 2;
		ucm_lock();
		settle(list);
	}
	ucm_unlock();
}

void ucm_neighbour_await(struct ucm_awaited *awaited)
{
	awaited->next = all;
	all = awaited;
	/* If no thread can be started, this thread does the work, without the lock. */
	ucm_unlock();
	aside_want(&looking);
	ucm_lock();
}

void ucm_neighbours_forked(void)
{
	all = NULL;
	aside_forked(&looking);
}
