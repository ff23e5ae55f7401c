/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Helper functions of uroce-broker */
#include <assert.h>
#include <errno.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "brokerd.h"

uint64_t brokerd_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int brokerd_reply_error(int error)
{
	return error == -EMFILE ? -ENFILE : error;
}

void brokerd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

int brokerd_watch(const struct brokerd *brokerd, int fd, enum event_source source, void *object)
{
	struct epoll_event event = { .events = EPOLLIN,
				     .data.u64 = (uintptr_t)object | (uint64_t)source };

	assert(((uintptr_t)object & EVENT_SOURCE_MASK) == 0);
	return epoll_ctl(brokerd->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}
