/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "ud_path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "progress/loop.h"

/* Caller holds route_lock, which keeps the list unchanged. */
static struct progress_group *find_group(struct progress *progress, const uint8_t gid[16],
					 uint32_t interface)
{
	for (unsigned int i = 0; i < progress->group_count; i++) {
		struct progress_group *group = progress->group[i];

		if (group->interface == interface && !memcmp(link_group_gid(group->link), gid, 16))
			return group;
	}
	return NULL;
}

/* Caller holds cycle_lock and wakeup.lock. */
static int add_group(struct progress *progress, struct progress_group *group)
{
	unsigned int capacity = progress->group_capacity ? 2 * progress->group_capacity : 4;
	struct progress_group **new_array;
	int error;

	if (progress->group_count == progress->group_capacity) {
		new_array = realloc(progress->group, capacity * sizeof(struct progress_group *));
		if (!new_array)
			return -ENOMEM;
		progress->group = new_array;
		progress->group_capacity = capacity;
	}
	error = wakeup_add_group(progress, group->link);
	if (error)
		return error;
	progress->group[progress->group_count++] = group;
	return 0;
}

/* Caller holds route_lock. */
static int open_group(struct progress *progress, const uint8_t gid[16], uint32_t interface,
		      struct progress_group **opened, char error[PROGRESS_ERROR_TEXT])
{
	struct progress_group *group = calloc(1, sizeof(*group));
	int result;

	if (!group)
		return -ENOMEM;
	group->interface = interface;
	result = link_group_open(progress->link, gid, interface, &group->link, error);
	if (result) {
		free(group);
		return result;
	}
	progress_lock(progress);
	pthread_mutex_lock(&progress->wakeup.lock);
	result = add_group(progress, group);
	pthread_mutex_unlock(&progress->wakeup.lock);
	progress_unlock(progress);
	if (result) {
		link_group_close(group->link);
		free(group);
		return result;
	}
	*opened = group;
	return 0;
}

/* Caller holds route_lock. */
static void close_group(struct progress *progress, struct progress_group *group)
{
	unsigned int i = 0;

	progress_lock(progress);
	pthread_mutex_lock(&progress->wakeup.lock);
	while (progress->group[i] != group)
		i++;
	progress->group[i] = progress->group[--progress->group_count];
	wakeup_remove_group(progress, group->link);
	pthread_mutex_unlock(&progress->wakeup.lock);
	progress_unlock(progress);
	link_group_close(group->link);
	free(group->member);
	free(group);
}

/* Caller holds cycle_lock. */
static int add_member(struct progress_group *group, struct progress_qp *qp)
{
	unsigned int capacity = group->capacity ? 2 * group->capacity : 2;
	struct progress_qp **new_array;

	if (group->count == group->capacity) {
		new_array = realloc(group->member, capacity * sizeof(struct progress_qp *));
		if (!new_array)
			return -ENOMEM;
		group->member = new_array;
		group->capacity = capacity;
	}
	group->member[group->count++] = qp;
	return 0;
}

int progress_group_join(struct progress *progress, struct progress_qp *qp, const uint8_t gid[16],
			uint32_t interface, char error[PROGRESS_ERROR_TEXT])
{
	struct progress_group *group;
	int result = 0;

	if (progress->forked)
		return -EOWNERDEAD;
	pthread_mutex_lock(&progress->route_lock);
	group = find_group(progress, gid, interface);
	if (!group)
		result = open_group(progress, gid, interface, &group, error);
	if (!result) {
		progress_lock(progress);
		result = add_member(group, qp);
		progress_unlock(progress);
		if (result && !group->count)
			close_group(progress, group);
	}
	pthread_mutex_unlock(&progress->route_lock);
	return result;
}

void progress_group_leave(struct progress *progress, struct progress_qp *qp, const uint8_t gid[16],
			  uint32_t interface)
{
	struct progress_group *group;
	unsigned int i = 0;

	if (progress->forked)
		return;
	pthread_mutex_lock(&progress->route_lock);
	group = find_group(progress, gid, interface);
	progress_lock(progress);
	while (group->member[i] != qp)
		i++;
	group->member[i] = group->member[--group->count];
	progress_unlock(progress);
	if (!group->count)
		close_group(progress, group);
	pthread_mutex_unlock(&progress->route_lock);
}
