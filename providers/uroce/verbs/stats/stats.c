/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "stats.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/uroce-abi.h>

#include "link/scm_rights.h"
#include "verbs/fork.h"
#include "verbs/uroce.h"

static pthread_mutex_t stat_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int stat_users;
/* Under stat_lock. */
static bool watching;
static struct progress *served_progress;

/* Sends the snapshot.  It is dropped if the client does not read it. */
static void send_snapshot(int client)
{
	const struct uroce_abi_header reply = { .message = UROCE_ABI_STAT_REPLY,
						.version = UROCE_ABI_VERSION };
	int file = uroce_stats_snapshot(served_progress);

	if (file < 0)
		return;
	link_send_with_fds(client, &reply, sizeof(reply), &file, 1);
	close(file);
}

/* Shows the client the version, which is not that of its request. */
static void refuse_capture(int client)
{
	const struct uroce_abi_header reply = { .message = UROCE_ABI_CAPTURE_READY,
						.version = UROCE_ABI_VERSION };

	link_send_with_fds(client, &reply, sizeof(reply), NULL, 0);
}

/* Runs in the progress thread, without locks.  Serves one client; others wait. */
static void serve_client(void *arg)
{
	struct uroce_abi_header request;
	size_t length;
	int client = link_next_tool(arg, &request, sizeof(request), &length);

	if (client < 0)
		return;
	if (length != sizeof(request))
		request.message = 0;
	if (request.message == UROCE_ABI_CAPTURE_REQUEST && request.version == UROCE_ABI_VERSION) {
		stats_capture_request(served_progress, client);
		return;
	}
	if (request.message == UROCE_ABI_CAPTURE_REQUEST)
		refuse_capture(client);
	/* Served in any version, because the object has a version of its own. */
	if (request.message == UROCE_ABI_STAT_REQUEST)
		send_snapshot(client);
	close(client);
}

void uroce_stats_get(struct progress *progress)
{
	struct link *link = progress_link(progress);
	int error;

	pthread_mutex_lock(&stat_lock);
	if (stat_users++ > 0)
		goto unlock;
	served_progress = progress;
	error = progress_watch(progress, link_tools_fd(link), serve_client, link);
	watching = !error;
	if (error)
		uroce_err("uroce-stat cannot show this process: %s", strerror(-error));
unlock:
	pthread_mutex_unlock(&stat_lock);
}

void uroce_stats_put(struct progress *progress)
{
	pthread_mutex_lock(&stat_lock);
	if (--stat_users == 0 && watching) {
		progress_unwatch(progress, link_tools_fd(progress_link(progress)));
		watching = false;
		stats_capture_end(progress);
	}
	pthread_mutex_unlock(&stat_lock);
}

static void prepare_fork(void)
{
	pthread_mutex_lock(&stat_lock);
}

static void finish_fork_in_parent(void)
{
	pthread_mutex_unlock(&stat_lock);
}

static void finish_fork_in_child(void)
{
	stats_capture_fork_child();
	watching = false;
	stat_users = 0;
	pthread_mutex_unlock(&stat_lock);
}

UROCE_FORK_HANDLERS(UROCE_FORK_STATS, prepare_fork, finish_fork_in_parent, finish_fork_in_child)
