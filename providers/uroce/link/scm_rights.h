/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Messages between processes, with file descriptors (SCM_RIGHTS) */
#ifndef UROCE_LINK_SCM_RIGHTS_H
#define UROCE_LINK_SCM_RIGHTS_H

#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

/* Maximum number of descriptors of one message */
enum { LINK_FDS_MAX = 2 };

struct link_fds {
	int fd[LINK_FDS_MAX];
	unsigned int count;
};

void link_close_fds(struct link_fds *descriptors);

/*
 * Sends one message with up to LINK_FDS_MAX descriptors, which the caller keeps.  Returns 0 or a
 * negative errno; does not block and raises no signal.
 */
int link_send_with_fds(int fd, const void *bytes, size_t length, const int *fds, size_t count);
/*
 * Receives the next message into the pieces, with its descriptors, which the caller then owns.
 * flags are those of recvmsg(2).  Returns the number of bytes or a negative errno: -EMSGSIZE if the
 * pieces are too small, -EMFILE if this process has too few descriptors left or the message has
 * more than LINK_FDS_MAX.  After an error there are no descriptors.
 */
ssize_t link_receive_with_fds(int fd, struct iovec *pieces, size_t count, int flags,
			      struct link_fds *fds);
/*
 * As link_receive_with_fds(), for one piece and one descriptor.  *passed_fd is -1 if the message
 * has no descriptor or several.
 */
ssize_t link_receive_with_fd(int fd, void *bytes, size_t room, int flags, int *passed_fd);

#endif
