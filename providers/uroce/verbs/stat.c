/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "stat.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <rdma/uroce-abi.h>

#include "uroce.h"

static pthread_mutex_t stat_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int users;
static int listener = -1; /* changes under stat_lock */
static struct progress *served;

/* One message with the snapshot's descriptor; a client that does not read it loses it. */
static void send_snapshot(int client, int file, uint64_t bytes)
{
	struct uroce_abi_stat_reply reply = {
		.header = { .message = UROCE_ABI_STAT_REPLY, .version = UROCE_ABI_VERSION },
		.bytes = bytes,
	};
	struct iovec piece = { &reply, sizeof(reply) };
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct msghdr message = {
		.msg_iov = &piece,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &file, sizeof(file));
	sendmsg(client, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static bool is_of_this_user(int client)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);

	return getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
	       peer.uid == geteuid();
}

/* In the helper thread, without locks.  One client at a time: others wait in the queue. */
static void client_waits(void *arg)
{
	int client = accept4((int)(intptr_t)arg, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	uint64_t bytes;
	int file;

	if (client < 0)
		return;
	if (is_of_this_user(client)) {
		file = uroce_stat_snapshot(served, &bytes);
		if (file >= 0) {
			send_snapshot(client, file, bytes);
			close(file);
		}
	}
	close(client);
}

static int listen_on(unsigned int slot)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int error, fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int n = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, UROCE_ABI_STAT_NAME,
			 UROCE_ABI_VERSION, slot);

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&name,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) < 0 ||
	    listen(fd, 8) < 0) {
		error = -errno;
		close(fd);
		return error;
	}
	return fd;
}

void uroce_stat_get(struct progress *progress)
{
	int error;

	pthread_mutex_lock(&stat_lock);
	if (users++ > 0)
		goto unlock;
	served = progress;
	listener = listen_on(link_slot(progress_link(progress)));
	error = listener < 0 ? listener
			     : progress_watch(progress, listener, client_waits,
					      (void *)(intptr_t)listener);
	if (error) {
		uroce_complain("uroce-stat will not see this process: %s", strerror(-error));
		if (listener >= 0)
			close(listener);
		listener = -1;
	}
unlock:
	pthread_mutex_unlock(&stat_lock);
}

void uroce_stat_put(struct progress *progress)
{
	pthread_mutex_lock(&stat_lock);
	/* A context that a forked child inherited was never counted there. */
	if (users > 0 && --users == 0 && listener >= 0) {
		progress_unwatch(progress, listener);
		close(listener);
		listener = -1;
	}
	pthread_mutex_unlock(&stat_lock);
}

void uroce_stat_fork_prepare(void)
{
	pthread_mutex_lock(&stat_lock);
}

void uroce_stat_fork_parent(void)
{
	pthread_mutex_unlock(&stat_lock);
}

/* The socket and its name are the parent's. */
void uroce_stat_fork_child(void)
{
	if (listener >= 0)
		close(listener);
	listener = -1;
	users = 0;
	pthread_mutex_unlock(&stat_lock);
}
