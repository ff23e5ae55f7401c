/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Questions between processes of one user: a connection for each, on which one message asks and
 * one answers.  A thread that waits for an answer answers others meanwhile: two processes that ask
 * each other, both without another thread to answer, must not wait for ever.
 */
#include "question.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "shm.h"

enum {
	/* So many questions are answered before others have their turn. */
	ANSWERS_MAX = 16,
};

/* ---- answering ---- */

/* A process asks for the descriptors of a pool. */
static void answer_pool(struct link *link, int fd, const struct uroce_abi_pool *request)
{
	struct uroce_abi_pool reply = *request;
	const struct link_endpoint endpoint = link_endpoint_of(request->address, request->scope_id);
	struct link_addr *addr;

	link_mutex_lock(link, &link->lock);
	addr = link_addr_find(link, &endpoint);
	if (addr) {
		reply.header.message = UROCE_ABI_POOL_REPLY;
		reply.key = addr->key;
		if (reply.slots > addr->pool_count)
			reply.slots = addr->pool_count;
		link_send_with_fds(fd, &reply, sizeof(reply), addr->pool, reply.slots);
	} else {
		reply.header.message = UROCE_ABI_POOL_UNKNOWN;
		link_send_with_fds(fd, &reply, sizeof(reply), NULL, 0);
	}
	link_mutex_unlock(link, &link->lock);
}

/* Is the asker the owner of the slot that it says? */
static bool is_owner(const struct link *link, const struct link_visitor *asker, unsigned int slot)
{
	struct sockaddr_un name;

	return slot < LINK_SLOTS && slot != link->slot &&
	       asker->from_bytes == link_slot_name(UROCE_ABI_ASKER_NAME, slot, &name) &&
	       memcmp(&asker->from, &name, asker->from_bytes) == 0;
}

static void answer(struct link *link, const struct link_visitor *asker, const uint8_t *question,
		   size_t bytes)
{
	struct link_message message;

	if (link_message_parse(question, bytes, &message) != LINK_MESSAGE_OK)
		return;
	if (message.kind == UROCE_ABI_POOL_REQUEST)
		answer_pool(link, asker->fd, &message.pool);
	else if (message.kind == UROCE_ABI_SHM_REQUEST &&
		 is_owner(link, asker, message.channel.slot))
		link_region_answer(link, asker->fd, &message.channel);
}

void link_answer_questions(struct link *link)
{
	uint8_t question[LINK_MESSAGE_HEAD_MAX];
	struct link_visitor asker;

	link_mutex_lock(link, &link->answer_lock);
	for (unsigned int i = 0; i < ANSWERS_MAX; i++) {
		int bytes = link_reception_next(link, &link->questions, question, sizeof(question),
						&asker);

		if (bytes < 0)
			break;
		answer(link, &asker, question, (size_t)bytes);
		link_close_fd(&asker.fd);
		link_keep_reserve(link);
	}
	link_mutex_unlock(link, &link->answer_lock);
}

/* ---- asking ---- */

int link_ask(const struct link *link, unsigned int slot, const void *question, size_t bytes)
{
	struct sockaddr_un name, self;
	socklen_t name_bytes = link_slot_name(UROCE_ABI_ANSWER_NAME, slot, &name);
	socklen_t self_bytes = link_slot_name(UROCE_ABI_ASKER_NAME, link->slot, &self);
	int fd = link_socket(AF_UNIX, SOCK_SEQPACKET), error;

	if (fd < 0)
		return fd;
	/* If the name is taken, some questions are not answered. */
	if (bind(fd, (struct sockaddr *)&self, self_bytes) && errno != EADDRINUSE)
		error = -errno;
	else
		error = link_connect(fd, &name, name_bytes);
	if (!error && send(fd, question, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		error = -errno;
	if (!error)
		return fd;
	link_close_fd(&fd);
	return error;
}

static void take_descriptors(struct msghdr *message, struct link_answer *answer)
{
	struct cmsghdr *cmsg;

	for (cmsg = CMSG_FIRSTHDR(message); cmsg; cmsg = CMSG_NXTHDR(message, cmsg)) {
		size_t bytes = cmsg->cmsg_len - CMSG_LEN(0);

		if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS ||
		    bytes > sizeof(answer->fds))
			continue;
		memcpy(answer->fds, CMSG_DATA(cmsg), bytes);
		answer->fd_count = (unsigned int)(bytes / sizeof(int));
	}
}

static int read_answer(int fd, struct link_answer *answer)
{
	_Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(LINK_SLOTS * sizeof(int))];
	uint8_t bytes[LINK_MESSAGE_HEAD_MAX];
	struct iovec piece = { .iov_base = bytes, .iov_len = sizeof(bytes) };
	struct msghdr message = {
		.msg_iov = &piece,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	ssize_t count = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (count < 0)
		return -errno;
	take_descriptors(&message, answer);
	answer->cut = message.msg_flags & MSG_CTRUNC;
	/* The end of the connection has no bytes. */
	return link_message_parse(bytes, (size_t)count, &answer->message) == LINK_MESSAGE_OK
		       ? 0
		       : -EPROTO;
}

int link_await_answer(struct link *link, int fd, int64_t until_ms, struct link_answer *answer)
{
	struct pollfd fds[2] = {
		{ .fd = fd, .events = POLLIN },
		{ .fd = link->questions.epoll_fd, .events = POLLIN },
	};
	int64_t left;
	int error;

	answer->fd_count = 0;
	for (;;) {
		left = until_ms - link_now_ms();
		if (poll(fds, 2, left > 0 ? (int)left : 0) < 0 && errno != EINTR)
			return -errno;
		if (fds[1].revents)
			link_answer_questions(link);
		error = read_answer(fd, answer);
		if (error != -EAGAIN)
			break;
		if (left <= 0)
			return -ETIMEDOUT;
	}
	if (error)
		link_drop_answer(answer);
	return error;
}

void link_drop_answer(struct link_answer *answer)
{
	while (answer->fd_count > 0)
		link_close_fd(&answer->fds[--answer->fd_count]);
}
