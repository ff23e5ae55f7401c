/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Messages between processes, and the descriptors that go with them. */
#ifndef UROCE_LINK_PASSING_H
#define UROCE_LINK_PASSING_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Send one message with up to LINK_SLOTS descriptors, which stay the caller's.  0, or a negative
 * errno; it does not wait and raises no signal.
 */
int link_send_with_fds(int fd, const void *bytes, size_t length, const int *fds, size_t count);
/*
 * The next message and the one descriptor that came with it, the caller's from here on, or -1;
 * flags: of recv(2).  As recv(2) it gives the message's bytes, or -1 with errno.
 */
ssize_t link_receive_with_fd(int fd, void *bytes, size_t room, int flags, int *with);

#endif
