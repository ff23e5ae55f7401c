/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "scm_rights.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void link_close_fds(struct link_fds *descriptors)
{
	while (descriptors->count > 0)
		close(descriptors->fd[--descriptors->count]);
}

int link_send_with_fds(int fd, const void *bytes, size_t length, const int *fds, size_t count)
{
	_Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(LINK_FDS_MAX * sizeof(int))] = { 0 };
	struct iovec piece = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = length };
	struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1 };
	struct cmsghdr *cmsg = (struct cmsghdr *)(void *)control;

	assert(count <= LINK_FDS_MAX);
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

static void extract_fds(struct msghdr *message, struct link_fds *fds)
{
	const struct cmsghdr *cmsg = CMSG_FIRSTHDR(message);

	if (!cmsg || cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
		return;
	fds->count = (unsigned int)((cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int));
	memcpy(fds->fd, CMSG_DATA(cmsg), fds->count * sizeof(int));
}

ssize_t link_receive_with_fds(int fd, struct iovec *pieces, size_t count, int flags,
			      struct link_fds *fds)
{
	_Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(LINK_FDS_MAX * sizeof(int))];
	struct msghdr message = {
		.msg_iov = pieces,
		.msg_iovlen = count,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	ssize_t length = recvmsg(fd, &message, flags | MSG_CMSG_CLOEXEC);

	fds->count = 0;
	if (length < 0)
		return -errno;
	extract_fds(&message, fds);
	if (!(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return length;
	link_close_fds(fds);
	return message.msg_flags & MSG_CTRUNC ? -EMFILE : -EMSGSIZE;
}

ssize_t link_receive_with_fd(int fd, void *bytes, size_t room, int flags, int *passed_fd)
{
	struct iovec piece = { .iov_base = bytes, .iov_len = room };
	struct link_fds descriptors;
	ssize_t length = link_receive_with_fds(fd, &piece, 1, flags, &descriptors);

	*passed_fd = -1;
	if (descriptors.count == 1)
		*passed_fd = descriptors.fd[0];
	else
		link_close_fds(&descriptors);
	return length;
}
