/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <errno.h>
#include <netinet/udp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fd.h"
#include "link_priv.h"

/*
 * One step is enough for some addresses and their transmit sockets.  It is small because programs
 * that use select(2) need descriptor numbers below 1024.
 */
#define FD_LIMIT_STEP 512

int link_set_option(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) ? -errno : 0;
}

int link_raise_fd_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return -errno;
	if (limit.rlim_cur >= limit.rlim_max)
		return -EMFILE;
	if (limit.rlim_max - limit.rlim_cur > FD_LIMIT_STEP)
		limit.rlim_cur += FD_LIMIT_STEP;
	else
		limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &limit) ? -errno : 0;
}

int link_socket(int family, int type)
{
	int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 && errno == EMFILE && link_raise_fd_limit() == 0)
		fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return fd < 0 ? -errno : fd;
}

void link_close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void link_set_error(char error[LINK_ERROR_TEXT], const char *format, ...)
{
	va_list args;

	if (!error)
		return;
	va_start(args, format);
	vsnprintf(error, LINK_ERROR_TEXT, format, args);
	va_end(args);
}

int64_t link_now_ms(void)
{
	return (int64_t)(clock_ns(CLOCK_MONOTONIC) / 1000000);
}

size_t link_put_udp_segment(uint8_t *control, uint16_t bytes)
{
	struct cmsghdr *cmsg = (struct cmsghdr *)(void *)control;

	memset(cmsg, 0, LINK_SEGMENT_BYTES);
	cmsg->cmsg_level = IPPROTO_UDP;
	cmsg->cmsg_type = UDP_SEGMENT;
	cmsg->cmsg_len = CMSG_LEN(sizeof(bytes));
	memcpy(CMSG_DATA(cmsg), &bytes, sizeof(bytes));
	return LINK_SEGMENT_BYTES;
}
