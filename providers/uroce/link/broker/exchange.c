/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Exchange of one message and its reply with the broker */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link/link_priv.h"

enum {
	/* A broker that does not reply within this time is replaced unless it is ready to run. */
	REPLY_MS = 1000,
	/* Time limit for a broker that is ready to run but gets no processor */
	STARVED_MS = 10000,
};

_Static_assert((int)LINK_FDS_MAX == BROKER_DESCRIPTORS_MAX, "room for all of a message");

/*
 * Receives the next message.  Returns -EAGAIN if there is none, -EMFILE if this process has no
 * descriptor left for one that came with it, -ECONNRESET if the broker has ended or violates the
 * protocol.
 */
static int receive_message(int fd, union broker_message *message, struct link_fds *fds)
{
	uint8_t bytes[sizeof(union broker_message)];
	struct iovec piece = { .iov_base = bytes, .iov_len = sizeof(bytes) };
	ssize_t length = link_receive_with_fds(fd, &piece, 1, MSG_DONTWAIT, fds);

	if (length == -EMFILE)
		return -EMFILE;
	if (length < 0)
		return length == -EAGAIN || length == -EINTR ? -EAGAIN : -ECONNRESET;
	if (broker_message_parse(bytes, (size_t)length, message) == BROKER_MESSAGE_OK &&
	    broker_message_descriptor_count(message) == fds->count)
		return 0;
	link_close_fds(fds);
	return -ECONNRESET;
}

void link_broker_wait(const struct link_broker *broker, int fd, short events, int64_t until)
{
	struct pollfd wait = { .fd = fd, .events = events };
	int64_t left = until - link_now_ms();
	int ready = 0;

	while (left > 0 && !ready) {
		ready = poll(&wait, 1, broker->wait_callback ? 1 : (int)left);
		if (broker->wait_callback)
			broker->wait_callback(broker->wait_arg);
		left = until - link_now_ms();
	}
}

/* ---- time limit ---- */

/*
 * Returns true if the broker at the other end waits for a processor or uses one, by the state in
 * /proc/PID/stat.  A stopped broker is not in state R.  The name is compared, because the peer's
 * process id is the starter's if this process connected before the child that becomes the broker
 * called listen().
 */
static bool broker_is_ready_to_run(int fd)
{
	char path[32], text[64] = "", state = 0;
	struct ucred peer = { 0 };
	socklen_t bytes = sizeof(peer);
	int file;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)peer.pid);
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return false;
	if (read(file, text, sizeof(text) - 1) < 0)
		text[0] = 0;
	close(file);
	return sscanf(text, "%*d (uroce-broker) %c", &state) == 1 && state == 'R';
}

/* Times of link_now_ms() */
struct deadline {
	int64_t until;
	int64_t last; /* until is not extended after this time */
};

static struct deadline start_deadline(void)
{
	int64_t now = link_now_ms();

	return (struct deadline){ .until = now + REPLY_MS, .last = now + STARVED_MS };
}

/* Returns true if the broker has time left; extends the time of one that is ready to run. */
static bool has_time_left(struct deadline *deadline, int fd)
{
	int64_t now = link_now_ms();

	if (now < deadline->until)
		return true;
	if (now >= deadline->last || !broker_is_ready_to_run(fd))
		return false;
	deadline->until = now + REPLY_MS;
	return true;
}

/* ---- messages ---- */

/* Waits for the reply.  Returns 0, -ETIMEDOUT, or an error of receive_message(). */
static int await_reply(const struct link_broker *broker, int fd, union broker_message *reply,
		       struct link_fds *fds)
{
	struct deadline deadline = start_deadline();
	bool late = false;
	int error;

	while (!late) {
		link_broker_wait(broker, fd, POLLIN, deadline.until);
		/* Before the last attempt: a broker that has just replied is not ready to run. */
		late = !has_time_left(&deadline, fd);
		error = receive_message(fd, reply, fds);
		if (error == -EAGAIN)
			continue;
		if (error)
			return error;
		if (reply->header.number == broker->number)
			return 0;
		/* A late reply to an earlier request, which was abandoned */
		link_close_fds(fds);
	}
	return -ETIMEDOUT;
}

/*
 * Sends a message; waits while a busy broker has no room for it.  Returns 0, -ETIMEDOUT if there is
 * no room in time, or -ECONNRESET.
 */
static int send_message(const struct link_broker *broker, int fd,
			const union broker_message *message, int passed_fd)
{
	struct deadline deadline = start_deadline();
	bool late = false;
	int error;

	for (;;) {
		error = link_send_with_fds(fd, message, broker_message_bytes(message), &passed_fd,
					   passed_fd >= 0);
		if (error != -EAGAIN || late)
			break;
		link_broker_wait(broker, fd, POLLOUT, deadline.until);
		late = !has_time_left(&deadline, fd);
	}
	if (error == -EAGAIN)
		return -ETIMEDOUT;
	return error ? -ECONNRESET : 0;
}

void link_broker_send(const struct link_broker *broker, const union broker_message *message)
{
	if (send_message(broker, broker->control, message, -1) == -ETIMEDOUT)
		shutdown(broker->control, SHUT_RDWR);
}

int link_broker_exchange(struct link_broker *broker, int fd, union broker_message *message,
			 int passed_fd, struct link_fds *fds)
{
	enum uroce_broker_type wanted = broker_message_reply_type(message->header.type);
	int error;

	message->header.number = ++broker->number;
	fds->count = 0;
	error = send_message(broker, fd, message, passed_fd);
	if (!error)
		error = await_reply(broker, fd, message, fds);
	if (error)
		return error;
	if (message->header.type == wanted)
		return message->header.error;
	link_close_fds(fds);
	return -ECONNRESET;
}

bool link_broker_is_lost(int error)
{
	return error == -ECONNRESET || error == -ETIMEDOUT;
}

/* ---- contents of messages ---- */

struct uroce_broker_endpoint link_broker_endpoint(const struct link_endpoint *endpoint)
{
	struct uroce_broker_endpoint result = { .scope_id = endpoint->scope_id };

	memcpy(result.gid, endpoint->gid, sizeof(result.gid));
	return result;
}

int link_broker_init_gsi_message(const struct link_broker *broker, bool on,
				 union broker_message *message)
{
	bool with_file = on && broker->messages_fd >= 0;

	broker_message_init(message, UROCE_BROKER_GSI, 0);
	message->on_off.flags =
		(on ? UROCE_BROKER_ON : 0) | (with_file ? UROCE_BROKER_MESSAGES : 0);
	return with_file ? broker->messages_fd : -1;
}
