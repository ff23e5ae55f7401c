/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Users that cannot be distinguished (Documentation/decisions/strangers.md) */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "link_priv.h"

static bool all_uids_are_mapped(void)
{
	unsigned long inside, outside, count, sum = 0;
	FILE *map = fopen("/proc/self/uid_map", "re");

	/* The kernel has no user namespaces. */
	if (!map)
		return true;
	while (fscanf(map, "%lu %lu %lu", &inside, &outside, &count) == 3)
		sum += count;
	fclose(map);
	return sum >= UINT32_MAX;
}

uid_t link_overflow_uid(void)
{
	unsigned int user = 65534;
	FILE *file = fopen("/proc/sys/kernel/overflowuid", "re");

	if (!file)
		return user;
	if (fscanf(file, "%u", &user) != 1)
		user = 65534;
	fclose(file);
	return user;
}

bool link_uid_is_mapped(uid_t user)
{
	return user != link_overflow_uid() || all_uids_are_mapped();
}

int link_check_userns(char error[LINK_ERROR_TEXT])
{
	uid_t user = geteuid();

	if (link_uid_is_mapped(user))
		return 0;
	link_set_error(
		error,
		"user %u stands for all users that this user namespace does not map, so other "
		"users cannot be distinguished from this one: map the user (unshare "
		"--map-root-user), or run as another one",
		user);
	return -EPERM;
}
