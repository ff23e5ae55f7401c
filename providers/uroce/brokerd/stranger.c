/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Connections of other users (Documentation/decisions/strangers.md).  Before Linux 6.16 they can
 * have descriptors with them, whose release may take as long as their sender likes.
 */
#include <stdlib.h>
#include <sys/socket.h>

#include "brokerd.h"
#include "closer.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

/* The listener refuses descriptors where the kernel can. */
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
