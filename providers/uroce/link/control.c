/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The slot's datagram socket: forwarded datagrams, requests for the descriptors of a pool, and what
 * makes and wakes the lanes of shared memory (lane.h).
 *
 * Every message carries its sender's effective user (SCM_CREDENTIALS, which the kernel checks), for
 * that is the user whose sockets may share a port; what comes from another user is dropped.
 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"
#include "lane.h"
#include "message.h"

/* One call of link_control_receive() reads so many messages at most: others may flood the queue. */
#define CONTROL_BURST 64

/* Credentials, then the descriptors of a pool. */
#define CONTROL_BYTES (CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(LINK_SLOTS * sizeof(int)))

_Static_assert(sizeof(((struct link_control_input *)0)->head) == LINK_MESSAGE_HEAD_MAX, "head");

/* An abstract name: no file, gone with its socket, scoped to the network namespace. */
static socklen_t make_name(const char *format, unsigned int slot, struct sockaddr_un *name)
{
	int length;

	memset(name, 0, sizeof(*name));
	name->sun_family = AF_UNIX;
	length = snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, format, UROCE_ABI_VERSION,
			  slot);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

socklen_t link_control_name(unsigned int slot, struct sockaddr_un *name)
{
	return make_name(UROCE_ABI_SLOT_NAME, slot, name);
}

socklen_t link_control_reply_name(unsigned int slot, struct sockaddr_un *name)
{
	return make_name(UROCE_ABI_REPLY_NAME, slot, name);
}

int link_control_socket(void)
{
	int on = 1, bytes = LINK_SOCKET_BUFFER;
	int fd = link_socket(AF_UNIX, SOCK_DGRAM);

	if (fd < 0)
		return fd;
	/* Before it has a name, so that nothing can arrive without credentials. */
	if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on))) {
		int error = -errno;

		link_close_fd(&fd);
		return error;
	}
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	return fd;
}

int link_control_bind(int fd, unsigned int slot)
{
	struct sockaddr_un name;
	socklen_t bytes = link_control_name(slot, &name);

	return bind(fd, (struct sockaddr *)&name, bytes) ? -errno : 0;
}

int link_control_send(int fd, const struct sockaddr_un *to, socklen_t to_bytes,
		      const struct iovec *pieces, size_t count, const int *fds, size_t fd_count)
{
	_Alignas(struct cmsghdr) uint8_t control[CONTROL_BYTES];
	struct ucred self = { .pid = getpid(), .uid = geteuid(), .gid = getegid() };
	struct msghdr message = {
		.msg_name = (void *)(uintptr_t)to,
		.msg_namelen = to_bytes,
		.msg_iov = (struct iovec *)(uintptr_t)pieces,
		.msg_iovlen = count,
		.msg_control = control,
		.msg_controllen = CMSG_SPACE(sizeof(self)),
	};
	struct cmsghdr *cmsg;

	memset(control, 0, sizeof(control));
	if (fd_count)
		message.msg_controllen += CMSG_SPACE(fd_count * sizeof(int));
	cmsg = (struct cmsghdr *)(void *)control;
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_CREDENTIALS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(self));
	memcpy(CMSG_DATA(cmsg), &self, sizeof(self));
	if (fd_count) {
		cmsg = (struct cmsghdr *)(void *)(control + CMSG_SPACE(sizeof(self)));
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(cmsg), fds, fd_count * sizeof(int));
	}
	return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int link_control_send_to_slot(const struct link *link, unsigned int slot,
			      const struct iovec *pieces, size_t count)
{
	return link_control_send(link->control_fd, &link->names[slot], link->name_bytes[slot],
				 pieces, count, NULL, 0);
}

int link_control_ring_bell(const struct link *link, unsigned int slot)
{
	struct uroce_abi_header bell = { .message = UROCE_ABI_LANE_BELL,
					 .version = UROCE_ABI_VERSION };
	struct iovec piece = { .iov_base = &bell, .iov_len = sizeof(bell) };

	return link_control_send_to_slot(link, slot, &piece, 1);
}

static void read_control(struct msghdr *message, struct link_control_input *input)
{
	struct cmsghdr *cmsg;

	for (cmsg = CMSG_FIRSTHDR(message); cmsg; cmsg = CMSG_NXTHDR(message, cmsg)) {
		size_t bytes = cmsg->cmsg_len - CMSG_LEN(0);

		if (cmsg->cmsg_level != SOL_SOCKET)
			continue;
		if (cmsg->cmsg_type == SCM_CREDENTIALS && bytes == sizeof(struct ucred)) {
			struct ucred sender;

			memcpy(&sender, CMSG_DATA(cmsg), sizeof(sender));
			input->same_user = sender.uid == geteuid();
		} else if (cmsg->cmsg_type == SCM_RIGHTS && bytes <= sizeof(input->fds)) {
			memcpy(input->fds, CMSG_DATA(cmsg), bytes);
			input->fd_count = (unsigned int)(bytes / sizeof(int));
		}
	}
}

int link_control_read(int fd, void *payload, size_t payload_bytes, struct link_control_input *input)
{
	_Alignas(struct cmsghdr) uint8_t control[CONTROL_BYTES];
	struct iovec pieces[2] = {
		{ .iov_base = input->head, .iov_len = sizeof(struct uroce_abi_forward) },
		{ .iov_base = payload, .iov_len = payload_bytes },
	};
	struct msghdr message = {
		.msg_name = &input->from,
		.msg_namelen = sizeof(input->from),
		.msg_iov = pieces,
		.msg_iovlen = 2,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	ssize_t bytes = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (bytes < 0)
		return -errno;
	input->bytes = (size_t)bytes;
	input->payload_bytes =
		input->bytes > pieces[0].iov_len ? input->bytes - pieces[0].iov_len : 0;
	input->from_bytes = message.msg_namelen;
	input->cut = message.msg_flags & (MSG_TRUNC | MSG_CTRUNC);
	input->same_user = false;
	input->fd_count = 0;
	read_control(&message, input);
	return 0;
}

bool link_control_is_from_slot(const struct link *link, const struct link_control_input *input,
			       unsigned int slot)
{
	return slot < LINK_SLOTS && slot != link->slot &&
	       input->from_bytes == link->name_bytes[slot] &&
	       memcmp(&input->from, &link->names[slot], input->from_bytes) == 0;
}

/* Somebody wants the descriptors of a pool.  Who gets no answer asks again. */
static void answer_request(struct link *link, const struct link_control_input *input,
			   const struct uroce_abi_pool *request)
{
	struct uroce_abi_pool reply = *request;
	const struct link_endpoint endpoint = link_endpoint_of(request->address, request->scope_id);
	struct iovec piece = { .iov_base = &reply, .iov_len = sizeof(reply) };
	struct link_addr *addr;

	link_mutex_lock(link, &link->lock);
	addr = link_addr_find(link, &endpoint);
	reply.header.message = addr ? UROCE_ABI_POOL_REPLY : UROCE_ABI_POOL_UNKNOWN;
	link_control_send(link->control_fd, &input->from, input->from_bytes, &piece, 1,
			  addr ? addr->pool : NULL, addr ? LINK_SLOTS : 0);
	link_mutex_unlock(link, &link->lock);
}

/* Parse and check the sender: true when the message is good.  Bad ones are counted and dropped. */
static bool accept_message(struct link *link, const struct link_control_input *input,
			   struct link_message *message)
{
	if (!input->same_user) {
		atomic_fetch_add_explicit(&link->foreign_credentials, 1, memory_order_relaxed);
		return false;
	}
	return !input->cut &&
	       link_message_parse(input->head, input->bytes, message) == LINK_MESSAGE_OK;
}

/*
 * Receive a message that is good, and handle it unless it is a forward.  Its kind, 0 for one that
 * was dropped, or a negative errno.
 */
static int handle_one(struct link *link, uint8_t *payload, struct link_control_input *input,
		      struct link_message *message)
{
	int error = link_control_read(link->control_fd, payload, LINK_MAX_BYTES + 1, input);

	if (error)
		return error;
	if (!accept_message(link, input, message))
		message->kind = 0;
	else if (message->kind == UROCE_ABI_POOL_REQUEST)
		answer_request(link, input, &message->pool);
	else if (message->kind == UROCE_ABI_LANE_REQUEST)
		link_inbox_answer(link, input, &message->lane);
	while (input->fd_count > 0)
		link_close_fd(&input->fds[--input->fd_count]);
	return (int)message->kind;
}

static bool fill_batch(struct link *link, const struct uroce_abi_forward *forward,
		       struct link_batch *batch)
{
	const struct link_endpoint dst = link_endpoint_of(forward->dst, forward->scope_id);

	link_mutex_lock(link, &link->lock);
	batch->addr = link_addr_find(link, &dst);
	link_mutex_unlock(link, &link->lock);
	if (!batch->addr)
		return false;
	batch->bytes = forward->length;
	batch->segment = forward->length;
	memcpy(batch->src, forward->src, sizeof(batch->src));
	batch->src_port = forward->src_port;
	return true;
}

int link_control_receive(struct link *link, struct link_batch *batch)
{
	struct link_control_input input;
	struct link_message message;
	unsigned int i;
	int kind;

	if (atomic_load_explicit(&link->abandoned, memory_order_relaxed))
		return -EOWNERDEAD;
	assert(batch->buffer_bytes > LINK_MAX_BYTES);
	for (i = 0; i < CONTROL_BURST; i++) {
		kind = handle_one(link, batch->buffer, &input, &message);
		if (kind < 0)
			return kind;
		if (kind != UROCE_ABI_FORWARD)
			continue;
		if (fill_batch(link, &message.forward, batch)) {
			atomic_fetch_add_explicit(&link->forward_received, 1, memory_order_relaxed);
			return 0;
		}
		atomic_fetch_add_explicit(&link->forward_lost, 1, memory_order_relaxed);
	}
	/* The descriptor is still readable; the caller comes back for the rest. */
	return -EAGAIN;
}

static void stash_forward(struct link *link, const struct link_control_input *input,
			  struct link_stash *stash)
{
	struct iovec *keep = &stash->datagram[stash->count];
	size_t head = sizeof(struct uroce_abi_forward);

	if (stash->count < LINK_STASH_MAX)
		keep->iov_base = malloc(input->bytes);
	if (stash->count == LINK_STASH_MAX || !keep->iov_base) {
		atomic_fetch_add_explicit(&link->forward_lost, 1, memory_order_relaxed);
		return;
	}
	keep->iov_len = input->bytes;
	memcpy(keep->iov_base, input->head, head);
	memcpy((uint8_t *)keep->iov_base + head, link->scratch, input->payload_bytes);
	stash->count++;
}

void link_control_serve(struct link *link, struct link_stash *stash)
{
	struct link_control_input input;
	struct link_message message;
	unsigned int i;

	for (i = 0; i < CONTROL_BURST; i++) {
		int kind = handle_one(link, link->scratch, &input, &message);

		if (kind < 0)
			return;
		if (kind == UROCE_ABI_FORWARD)
			stash_forward(link, &input, stash);
		if (kind == UROCE_ABI_LANE_BELL)
			stash->bell = true;
	}
}

void link_stash_return(struct link *link, struct link_stash *stash)
{
	unsigned int i;

	if (stash->bell)
		link_control_ring_bell(link, link->slot);
	stash->bell = false;
	/* The kernel does not count what one sends to oneself against the queue's length. */
	for (i = 0; i < stash->count; i++) {
		if (link_control_send_to_slot(link, link->slot, &stash->datagram[i], 1))
			atomic_fetch_add_explicit(&link->forward_lost, 1, memory_order_relaxed);
		free(stash->datagram[i].iov_base);
	}
	stash->count = 0;
}
