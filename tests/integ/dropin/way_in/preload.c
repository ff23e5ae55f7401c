/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Emulates librspreload of release 63 and later: it overrides calls of the C library, for all
 * libraries of the program.  A call of uroce's own that arrives here is an error: its socket would
 * become an rsocket, that is, a connection over uroce.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* The library is recognized by this name, as well as by the name of its file. */
int rsocket(int domain, int type, int protocol)
{
	(void)domain, (void)type, (void)protocol;
	return -1;
}

static void check(void *caller, const char *name)
{
	Dl_info info;

	if (dladdr(caller, &info) &&
	    (strstr(info.dli_fname, "/liburoce") || strstr(info.dli_fname, "/libibverbs.so"))) {
		fprintf(stderr, "%s() of %s has come to librspreload\n", name, info.dli_fname);
		_Exit(1);
	}
}

#define TAKE_OVER(name, parameters, ...)                   \
	int name parameters                                \
	{                                                  \
		int(*real) parameters;                     \
                                                           \
		check(__builtin_return_address(0), #name); \
		*(void **)&real = dlsym(RTLD_NEXT, #name); \
		return real(__VA_ARGS__);                  \
	}

TAKE_OVER(socket, (int domain, int type, int protocol), domain, type, protocol)
TAKE_OVER(bind, (int fd, const struct sockaddr *address, socklen_t length), fd, address, length)
TAKE_OVER(close, (int fd), fd)
TAKE_OVER(epoll_create1, (int flags), flags)
TAKE_OVER(epoll_ctl, (int fd, int what, int of, struct epoll_event *event), fd, what, of, event)
