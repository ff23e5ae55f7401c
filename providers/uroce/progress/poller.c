/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "poller.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

void poller_is_me(struct poller *poller)
{
	atomic_store_explicit(&poller->tid, (int)syscall(SYS_gettid), memory_order_relaxed);
}

uint64_t poller_sleeps(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) ? 0 : (uint64_t)usage.ru_nvcsw;
}

bool poller_wants_to_run(const struct poller *poller)
{
	int tid = atomic_load_explicit(&poller->tid, memory_order_relaxed), fd;
	char path[64], text[256];
	const char *behind_name;
	ssize_t bytes;

	if (!tid)
		return false;
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	bytes = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[bytes > 0 ? bytes : 0] = '\0';
	/* proc(5): the state is a letter behind the name, which is in parentheses. */
	behind_name = strrchr(text, ')');
	return behind_name && strncmp(behind_name, ") R", 3) == 0;
}
