/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "find_broker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "broker/names.h"

pid_t find_broker(unsigned int *number)
{
	struct names_search_result found;
	struct ucred cred;
	socklen_t bytes = sizeof(cred);
	int fd = names_search(geteuid(), UROCE_BROKER_NAMES, &found);

	assert_true(fd >= 0);
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &bytes), 0);
	close(fd);
	if (number)
		*number = found.number;
	return cred.pid;
}
