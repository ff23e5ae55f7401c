/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Closes connections of other users (Documentation/decisions/strangers.md).  Before Linux 6.16
 * descriptors may have been sent through them, whose release can block for as long as the sender
 * likes.
 */
#include <stdlib.h>
#include <sys/socket.h>

#include "brokerd.h"
#include "closer.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

/*
 * Returns true if the kernel has refused descriptors on this connection, as requested by
 * names_listen().
 */
static bool are_rights_refused(int fd)
{
	int on = 1;
	socklen_t bytes = sizeof(on);

	return !getenv("UROCE_TEST_OLD_KERNEL") &&
	       !getsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &on, &bytes) && !on;
}

void stranger_close(int *fd)
{
	if (are_rights_refused(*fd))
		brokerd_close(fd);
	else
		closer_close(fd);
}
