/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "stat.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/uroce-abi.h>

#include "link/passing.h"
#include "link/reception.h"
#include "link/visitor.h"
#include "stat_capture.h"
#include "verbs/uroce.h"

static pthread_mutex_t stat_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int users;
/* Opened and closed under stat_lock. */
static struct link_reception reception;
static bool listening;
static struct progress *served;

/* One message with the snapshot's descriptor; a client that does not read it loses it. */
static void send_snapshot(int client, int file, uint64_t bytes)
{
	struct uroce_abi_stat_reply reply = {
		.header = { .message = UROCE_ABI_STAT_REPLY, .version = UROCE_ABI_VERSION },
		.bytes = bytes,
	};

	link_send_with_fds(client, &reply, sizeof(reply), &file, 1);
}

/* In the helper thread, without locks.  One client at a time: others wait in the queue. */
static void client_waits(void *arg)
{
	struct link *link = progress_link(served);
	struct uroce_abi_header question;
	struct link_visitor client;
	int asked = link_reception_next(link, arg, &question, sizeof(question), &client), file;
	uint64_t bytes;

	if (asked < 0)
		return;
	if (asked != sizeof(question) || question.version != UROCE_ABI_VERSION)
		question.message = 0;
	if (question.message == UROCE_ABI_CAPTURE_REQUEST) {
		stat_capture_asked(served, client.fd);
		return;
	}
	if (question.message == UROCE_ABI_STAT_REQUEST) {
		file = uroce_stat_snapshot(served, &bytes);
		if (file >= 0) {
			send_snapshot(client.fd, file, bytes);
			close(file);
		}
	}
	close(client.fd);
	link_keep_reserve(link);
}

static void stop_listening(void)
{
	link_reception_close(&reception);
	listening = false;
}

void uroce_stat_get(struct progress *progress)
{
	int error;

	pthread_mutex_lock(&stat_lock);
	if (users++ > 0)
		goto unlock;
	served = progress;
	error = link_reception_open(&reception, UROCE_ABI_STAT_NAME,
				    link_slot(progress_link(progress)));
	listening = !error;
	if (listening) {
		error = progress_watch(progress, reception.epoll_fd, client_waits, &reception);
		if (error)
			stop_listening();
	}
	if (error)
		uroce_complain("uroce-stat will not see this process: %s", strerror(-error));
unlock:
	pthread_mutex_unlock(&stat_lock);
}

void uroce_stat_put(struct progress *progress)
{
	pthread_mutex_lock(&stat_lock);
	if (--users == 0 && listening) {
		progress_unwatch(progress, reception.epoll_fd);
		stop_listening();
		stat_capture_end(progress);
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
	if (listening)
		link_reception_abandon(&reception);
	stat_capture_forked();
	listening = false;
	users = 0;
	pthread_mutex_unlock(&stat_lock);
}
