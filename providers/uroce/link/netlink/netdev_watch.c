/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A bare netlink socket suffices, because only the fact that something has changed matters here.  A
 * forked child can close it without the help of a library.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "netdev.h"

/* Maximum number of netlink datagrams that one netdev_watch_drain() reads */
#define DRAIN_MAX 1024

struct netdev_watch {
	int fd;
};

int netdev_watch_open(struct netdev_watch **result)
{
	struct sockaddr_nl groups = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
	};
	struct netdev_watch *watch = malloc(sizeof(*watch));
	int error;

	if (!watch)
		return -ENOMEM;
	watch->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	if (watch->fd < 0) {
		error = -errno;
		goto free_watch;
	}
	if (bind(watch->fd, (struct sockaddr *)&groups, sizeof(groups))) {
		error = -errno;
		goto close_socket;
	}
	*result = watch;
	return 0;
close_socket:
	close(watch->fd);
free_watch:
	free(watch);
	return error;
}

int netdev_watch_fd(const struct netdev_watch *watch)
{
	return watch->fd;
}

static bool is_change(uint16_t type)
{
	return type == RTM_NEWLINK || type == RTM_DELLINK || type == RTM_NEWADDR ||
	       type == RTM_DELADDR;
}

static int count_changes(const char *bytes, size_t length)
{
	struct nlmsghdr header;
	size_t offset = 0;
	int changes = 0;

	while (length - offset >= sizeof(header)) {
		memcpy(&header, bytes + offset, sizeof(header));
		if (header.nlmsg_len < sizeof(header) || header.nlmsg_len > length - offset)
			break;
		changes += is_change(header.nlmsg_type);
		if (NLMSG_ALIGN(header.nlmsg_len) > length - offset)
			break;
		offset += NLMSG_ALIGN(header.nlmsg_len);
	}
	return changes;
}

int netdev_watch_drain(struct netdev_watch *watch)
{
	char buffer[32768];
	int changes = 0, i;

	for (i = 0; i < DRAIN_MAX; i++) {
		ssize_t bytes = recv(watch->fd, buffer, sizeof(buffer), MSG_DONTWAIT);

		if (bytes >= 0)
			changes += count_changes(buffer, (size_t)bytes);
		else if (errno == ENOBUFS)
			/* Messages were lost: count that as a change. */
			changes++;
		else if (errno == EAGAIN)
			break;
		else if (errno != EINTR)
			return -errno;
	}
	return changes;
}

void netdev_watch_close(struct netdev_watch *watch)
{
	netdev_watch_abandon(watch);
	free(watch);
}

void netdev_watch_abandon(struct netdev_watch *watch)
{
	if (watch->fd >= 0)
		close(watch->fd);
	watch->fd = -1;
}
