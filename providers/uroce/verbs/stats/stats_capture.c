/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "stats.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/uroce-abi.h>

#include "capture/capture.h"
#include "link/scm_rights.h"
#include "progress/base/work.h"
#include "verbs/log.h"

static void end_capture(void);

/* The uroce-stat that captures, of which there is one at a time. */
static struct {
	pthread_mutex_t lock;
	int fd; /* of the connection, or -1 */
	bool watched;
	bool capturing;
	struct work end_work; /* stopping may block while the file is written */
} capture_client = { .lock = PTHREAD_MUTEX_INITIALIZER,
		     .fd = -1,
		     .end_work = WORK_INITIALIZER(end_capture) };

/* text describes the error, or is NULL. */
static void send_reply(int fd, enum uroce_abi_message kind, int error, const char *text,
		       const struct capture_counts *counts)
{
	struct uroce_abi_capture reply = {
		.header = { .message = kind, .version = UROCE_ABI_VERSION },
		.error = error,
	};

	if (text)
		snprintf(reply.text, sizeof(reply.text), "%s", text);
	if (counts) {
		reply.packets = counts->packets;
		reply.lost = counts->lost;
	}
	send(fd, &reply, sizeof(reply), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static bool is_start(const struct uroce_abi_capture *message, ssize_t bytes)
{
	return bytes == (ssize_t)sizeof(*message) &&
	       message->header.message == UROCE_ABI_CAPTURE_START &&
	       message->header.version == UROCE_ABI_VERSION &&
	       memchr(message->text, '\0', sizeof(message->text));
}

/* Caller holds the lock.  Takes ownership of file. */
static void start_capture(const char *options, int file)
{
	char error[CAPTURE_ERROR_TEXT] = "";
	struct capture_config config;
	int result = capture_config_parse_options(&config, options, error);

	if (!result && config.files) {
		snprintf(error, sizeof(error), "ring= is only supported in UROCE_CAPTURE");
		result = -EINVAL;
	}
	if (result) {
		close(file);
	} else {
		snprintf(config.name, sizeof(config.name), "the file of uroce-stat");
		config.report_error = uroce_err;
		result = capture_start(&config, file, error);
	}
	capture_client.capturing = !result;
	send_reply(capture_client.fd, UROCE_ABI_CAPTURE_REPLY, result, error, NULL);
}

/* Caller holds the lock; the connection is no longer watched. */
static void end_capture_locked(void)
{
	struct capture_counts counts = { 0 };

	if (capture_client.fd < 0)
		return;
	if (capture_client.capturing) {
		capture_stop(&counts);
		send_reply(capture_client.fd, UROCE_ABI_CAPTURE_REPLY, 0, NULL, &counts);
	}
	close(capture_client.fd);
	capture_client.fd = -1;
	capture_client.watched = false;
	capture_client.capturing = false;
}

/* Runs in the progress thread: the client sends the file, has disconnected, or ends the capture. */
static void handle_client_message(void *arg)
{
	struct uroce_abi_capture message;
	ssize_t bytes;
	int file;

	pthread_mutex_lock(&capture_client.lock);
	if (!capture_client.watched)
		goto unlock;
	bytes = link_receive_with_fd(capture_client.fd, &message, sizeof(message), MSG_DONTWAIT,
				     &file);
	if (bytes == -EAGAIN)
		goto unlock;
	if (is_start(&message, bytes) && file >= 0 && !capture_client.capturing) {
		start_capture(message.text, file);
		goto unlock;
	}
	if (file >= 0)
		close(file);
	progress_unwatch(arg, capture_client.fd);
	capture_client.watched = false;
	/* Stopping a capture waits for the file, so a thread of its own does it. */
	if (capture_client.capturing)
		work_schedule(&capture_client.end_work);
	else
		end_capture_locked();
unlock:
	pthread_mutex_unlock(&capture_client.lock);
}

static void end_capture(void)
{
	pthread_mutex_lock(&capture_client.lock);
	end_capture_locked();
	pthread_mutex_unlock(&capture_client.lock);
}

void stats_capture_request(struct progress *progress, int client)
{
	/* A thread that waits for a file has the lock: the capture of that client has not ended. */
	bool busy = pthread_mutex_trylock(&capture_client.lock) != 0;

	if (busy || capture_client.fd >= 0) {
		send_reply(client, UROCE_ABI_CAPTURE_READY, -EBUSY,
			   "another uroce-stat is already capturing this process", NULL);
		close(client);
	} else {
		if (progress_watch(progress, client, handle_client_message, progress)) {
			close(client);
		} else {
			capture_client.fd = client;
			capture_client.watched = true;
			send_reply(client, UROCE_ABI_CAPTURE_READY, 0, NULL, NULL);
		}
	}
	if (!busy)
		pthread_mutex_unlock(&capture_client.lock);
}

void stats_capture_end(struct progress *progress)
{
	int fd;

	pthread_mutex_lock(&capture_client.lock);
	fd = capture_client.watched ? capture_client.fd : -1;
	capture_client.watched = false;
	pthread_mutex_unlock(&capture_client.lock);
	/* A callback that is running sees that watched is false. */
	if (fd >= 0)
		progress_unwatch(progress, fd);
	work_flush(&capture_client.end_work);
	end_capture();
}

void stats_capture_fork_child(void)
{
	pthread_mutex_init(&capture_client.lock, NULL);
	work_reset_in_child(&capture_client.end_work);
	if (capture_client.fd >= 0)
		close(capture_client.fd);
	capture_client.fd = -1;
	capture_client.watched = false;
	capture_client.capturing = false;
}
