/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "stat.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/uroce-abi.h>

#include "link/visitor.h"
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

static bool has_asked(int client)
{
	struct uroce_abi_header question;

	return link_read_question(client, &question, sizeof(question)) == sizeof(question) &&
	       question.message == UROCE_ABI_STAT_REQUEST && question.version == UROCE_ABI_VERSION;
}

/* In the helper thread, without locks.  One client at a time: others wait in the queue. */
static void client_waits(void *arg)
{
	struct link *link = progress_link(served);
	struct sockaddr_un from;
	socklen_t from_bytes = sizeof(from);
	int client = link_accept(link, (int)(intptr_t)arg, &from, &from_bytes);
	uint64_t bytes;
	int file;

	if (client < 0)
		return;
	if (has_asked(client)) {
		file = uroce_stat_snapshot(served, &bytes);
		if (file >= 0) {
			send_snapshot(client, file, bytes);
			close(file);
		}
	}
	close(client);
	link_keep_reserve(link);
}

void uroce_stat_get(struct progress *progress)
{
	int error;

	pthread_mutex_lock(&stat_lock);
	if (users++ > 0)
		goto unlock;
	served = progress;
	listener = link_listen(UROCE_ABI_STAT_NAME, link_slot(progress_link(progress)));
	error = listener < 0 ? listener
			     : progress_watch(progress, listener, client_waits,
					      (void *)(intptr_t)listener);
	if (error) {
		uroce_complain("uroce-stat will not see this process: %s", strerror(-error));
		link_stop_listening(&listener);
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
		link_stop_listening(&listener);
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
