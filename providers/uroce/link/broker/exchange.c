/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Exchange of one message and its reply with the broker */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "link/link_priv.h"

/* A broker that does not reply within this time is regarded as stopped and is replaced. */
enum { REPLY_MS = 1000 };

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

/* Waits for the reply.  Returns 0, -ETIMEDOUT, or an error of receive_message(). */
static int await_reply(const struct link_broker *broker, int fd, union broker_message *reply,
		       struct link_fds *fds)
{
	int64_t until = link_now_ms() + REPLY_MS;
	int error;

	while (link_now_ms() < until) {
		link_broker_wait(broker, fd, POLLIN, until);
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
 * no room within REPLY_MS, or -ECONNRESET.
 */
static int send_message(const struct link_broker *broker, int fd,
			const union broker_message *message, int passed_fd)
{
	int64_t until = link_now_ms() + REPLY_MS;
	int error;

	while ((error = link_send_with_fds(fd, message, broker_message_bytes(message), &passed_fd,
					   passed_fd >= 0)) == -EAGAIN &&
	       link_now_ms() < until)
		link_broker_wait(broker, fd, POLLOUT, until);
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
