/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "passing.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link.h"

int link_send_with_fds(int fd, const void *bytes, size_t length, const int *fds, size_t count)
{
	_Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(LINK_SLOTS * sizeof(int))] = { 0 };
	struct iovec piece = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = length };
	struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1 };
	struct cmsghdr *cmsg = (struct cmsghdr *)(void *)control;

	if (count) {
		message.msg_control = control;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(cmsg), fds, count * sizeof(int));
	}
	return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/*
 * The one descriptor of a message, or -1.  A control buffer for one has room for two, and those of
 * a message that has two belong to nothing.
 */
static int only_descriptor(const struct cmsghdr *cmsg)
{
	int fds[CMSG_SPACE(sizeof(int)) / sizeof(int)];
	size_t count;

	if (!cmsg || cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
		return -1;
	count = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	memcpy(fds, CMSG_DATA(cmsg), count * sizeof(int));
	if (count == 1)
		return fds[0];
	while (count > 0)
		close(fds[--count]);
	return -1;
}

ssize_t link_receive_with_fd(int fd, void *bytes, size_t room, int flags, int *with)
{
	_Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(int))];
	struct iovec piece = { .iov_base = bytes, .iov_len = room };
	struct msghdr message = {
		.msg_iov = &piece,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	ssize_t length = recvmsg(fd, &message, flags | MSG_CMSG_CLOEXEC);

	*with = length < 0 ? -1 : only_descriptor(CMSG_FIRSTHDR(&message));
	return length;
}
