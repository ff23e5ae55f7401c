/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Helper functions of uroce-broker */
#include <assert.h>
#include <errno.h>
#include <sys/epoll.h>

#include "brokerd.h"

int brokerd_reply_error(int error)
{
	return error == -EMFILE ? -ENFILE : error;
}

int brokerd_watch(const struct brokerd *brokerd, int fd, enum event_source source, void *object)
{
	struct epoll_event event = { .events = EPOLLIN,
				     .data.u64 = (uintptr_t)object | (uint64_t)source };

	assert(((uintptr_t)object & EVENT_SOURCE_MASK) == 0);
	return epoll_ctl(brokerd->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}
