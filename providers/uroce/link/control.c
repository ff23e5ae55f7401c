/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The slot's datagram socket: forwarded datagrams, and what wakes a reader of shared memory.
 *
 * The kernel runs the socket's filter in the process that sends: what does not carry the key of one
 * of our addresses never gets here, nor do descriptors that are with it.  So strangers can neither
 * fill the queue nor make this process do anything.
 */
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <linux/filter.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "message.h"
#include "visitor.h"

enum {
	/* One call of link_control_receive() reads so many messages at most. */
	CONTROL_BURST = 64,
	/* The owner of a slot is known for so long. */
	OWNER_KNOWN_MS = 100,
	FILTER_STEPS = 5,
	FILTER_MAX = BPF_MAXINSNS,
};

/* Accept what has the key.  Filters read numbers from big-endian bytes; ours are the host's. */
static unsigned int put_key(struct sock_filter *code, uint64_t key)
{
	const unsigned int at = offsetof(struct uroce_abi_header, key);
	uint32_t half[2];

	memcpy(half, &key, sizeof(half));
	/* clang-format off */
	const struct sock_filter steps[FILTER_STEPS] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, be32toh(half[0]), 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at + 4),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, be32toh(half[1]), 0, 1),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
	};
	/* clang-format on */
	memcpy(code, steps, sizeof(steps));
	return FILTER_STEPS;
}

int link_control_admit(const struct link *link)
{
	const struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_filter *code = calloc(FILTER_MAX, sizeof(*code));
	struct sock_fprog program;
	const struct link_addr *addr;
	int error;

	if (!code)
		return -ENOMEM;
	/* Memory checkers want the padding written, too. */
	memset(&program, 0, sizeof(program));
	program.filter = code;
	for (addr = link->addrs; addr && program.len + FILTER_STEPS < FILTER_MAX; addr = addr->next)
		program.len += (unsigned short)put_key(code + program.len, addr->key);
	code[program.len++] = drop;
	error = setsockopt(link->control_fd, SOL_SOCKET, SO_ATTACH_FILTER, &program,
			   sizeof(program))
			? -errno
			: 0;
	free(code);
	return error;
}

int link_control_socket(void)
{
	int bytes = LINK_SOCKET_BUFFER;
	int fd = link_socket(AF_UNIX, SOCK_DGRAM);

	if (fd >= 0) {
		link_refuse_rights(fd);
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	}
	return fd;
}

int link_control_bind(int fd, unsigned int slot)
{
	struct sockaddr_un name;
	socklen_t bytes = link_slot_name(UROCE_ABI_SLOT_NAME, slot, &name);

	return bind(fd, (struct sockaddr *)&name, bytes) ? -errno : 0;
}

/* The user of the process that listens for questions at the slot, or a negative errno. */
static int64_t listener_user(unsigned int slot)
{
	struct sockaddr_un name;
	socklen_t name_bytes = link_slot_name(UROCE_ABI_ANSWER_NAME, slot, &name);
	struct ucred owner;
	socklen_t bytes = sizeof(owner);
	int64_t result = link_socket(AF_UNIX, SOCK_SEQPACKET);
	int fd = (int)result;

	if (fd < 0)
		return result;
	if (link_connect_prepare(fd) || connect(fd, (struct sockaddr *)&name, name_bytes) ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &owner, &bytes))
		result = -errno;
	else
		result = owner.uid;
	link_close_fd(&fd);
	return result;
}

/* Rare: not before each datagram.  No call of verbs is a cancellation point. */
static bool look_at_owner(struct link *link, unsigned int slot, int64_t now)
{
	int64_t known = atomic_load_explicit(&link->owner_known[slot], memory_order_relaxed);
	int64_t user;
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	user = listener_user(slot);
	pthread_setcancelstate(cancel_state, NULL);
	/* Without a free descriptor there is no look, and what was known before has to do. */
	if (user == -EMFILE || user == -ENFILE)
		return known > 0;
	now += OWNER_KNOWN_MS;
	known = user == (int64_t)link->user ? now : -now;
	atomic_store_explicit(&link->owner_known[slot], known, memory_order_relaxed);
	return known > 0;
}

bool link_control_is_ours(struct link *link, unsigned int slot)
{
	int64_t known = atomic_load_explicit(&link->owner_known[slot], memory_order_relaxed);
	int64_t now = link_now_ms();

	if (now < known)
		return true;
	return now >= -known && look_at_owner(link, slot, now);
}

int link_control_send(const struct link *link, unsigned int slot, const struct iovec *pieces,
		      size_t count)
{
	struct msghdr message = {
		.msg_name = (void *)(uintptr_t)&link->names[slot],
		.msg_namelen = link->name_bytes[slot],
		.msg_iov = (struct iovec *)(uintptr_t)pieces,
		.msg_iovlen = count,
	};

	return sendmsg(link->control_fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int link_control_ring_doorbell(const struct link *link, unsigned int slot, uint64_t key)
{
	struct uroce_abi_header doorbell = {
		.message = UROCE_ABI_SHM_DOORBELL,
		.version = UROCE_ABI_VERSION,
		.key = key,
	};
	struct iovec piece = { .iov_base = &doorbell, .iov_len = sizeof(doorbell) };

	return link_control_send(link, slot, &piece, 1);
}

/* Receive a message.  Its kind, 0 for one that is none of ours, or a negative errno. */
static int read_one(const struct link *link, uint8_t *payload, struct link_message *message)
{
	uint8_t head[sizeof(struct uroce_abi_forward)];
	struct iovec pieces[2] = {
		{ .iov_base = head, .iov_len = sizeof(head) },
		{ .iov_base = payload, .iov_len = LINK_MAX_BYTES + 1 },
	};
	struct msghdr input = { .msg_iov = pieces, .msg_iovlen = 2 };
	ssize_t bytes = recvmsg(link->control_fd, &input, MSG_DONTWAIT);

	if (bytes < 0)
		return -errno;
	if ((input.msg_flags & MSG_TRUNC) ||
	    link_message_parse(head, (size_t)bytes, message) != LINK_MESSAGE_OK)
		return 0;
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
	struct link_message message;
	unsigned int i;
	int kind;

	if (atomic_load_explicit(&link->abandoned, memory_order_relaxed))
		return -EOWNERDEAD;
	assert(batch->buffer_bytes > LINK_MAX_BYTES);
	for (i = 0; i < CONTROL_BURST; i++) {
		kind = read_one(link, batch->buffer, &message);
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
