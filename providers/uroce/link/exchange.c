/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "exchange.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "internal.h"
#include "message.h"
#include "question.h"
#include "visitor.h"

/* How long a name is waited for that may be another process's for a moment only: 1 ms. */
#define NAME_TRIES 10
#define NAME_PAUSE_NS 100000
/* So many MADs may wait at a connection, if the kernel grants it. */
#define CONNECTION_BUFFER (4 << 20)

static socklen_t gsi_name(const struct link_endpoint *endpoint, unsigned int level,
			  struct sockaddr_un *name)
{
	char hex[LINK_ADDRESS_HEX];

	link_endpoint_hex(endpoint, hex);
	return link_abstract_name(name, UROCE_ABI_GSI_NAME, UROCE_ABI_VERSION, hex,
				  endpoint->scope_id, level);
}

static socklen_t port_name(uint32_t space, uint16_t port, const uint8_t gid[16], uint32_t scope_id,
			   struct sockaddr_un *name)
{
	const struct link_endpoint endpoint = link_endpoint_of(gid, scope_id);
	char hex[LINK_ADDRESS_HEX];

	link_endpoint_hex(&endpoint, hex);
	return link_abstract_name(name, UROCE_ABI_PORT_NAME, UROCE_ABI_VERSION, space, port, hex,
				  scope_id);
}

/* ---- the levels of the holder's name ---- */

/* A new connection to the process that has a level, or a negative errno. */
static int connect_to(const struct link_addr *addr, unsigned int level)
{
	struct sockaddr_un name;
	socklen_t bytes = gsi_name(&addr->endpoint, level, &name);
	int fd = link_socket(AF_UNIX, SOCK_SEQPACKET), error;

	if (fd < 0)
		return fd;
	error = link_connect(fd, &name, bytes);
	if (!error)
		return fd;
	link_close_fd(&fd);
	return error;
}

/* A socket that may be connected to any process, or a negative errno. */
static int prepared_socket(void)
{
	int fd = link_socket(AF_UNIX, SOCK_SEQPACKET), error;

	if (fd < 0)
		return fd;
	error = link_connect_prepare(fd);
	if (!error)
		return fd;
	link_close_fd(&fd);
	return error;
}

/* The process with the highest level above that one; -ENOENT when there is none. */
static int connect_above(const struct link_addr *addr, unsigned int above, bool patient,
			 unsigned int *level)
{
	struct sockaddr_un name;
	int fd = -1, error = -ENOENT;

	for (unsigned int at = UROCE_ABI_GSI_LEVELS - 1; at > above; at--) {
		socklen_t bytes = gsi_name(&addr->endpoint, at, &name);

		if (fd < 0)
			fd = prepared_socket();
		if (fd < 0)
			return fd;
		*level = at;
		error = link_connect_prepared(fd, &name, bytes);
		if (!error)
			return fd;
		/* A stranger has a name that it can do nothing with. */
		if (error == -EPERM)
			link_close_fd(&fd);
		else if (error != -ECONNREFUSED && patient)
			break;
		error = -ENOENT;
	}
	link_close_fd(&fd);
	return error;
}

int link_exchange_look_up(struct link_addr *addr, unsigned int level)
{
	unsigned int found;
	int fd = connect_above(addr, level, true, &found);

	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return -EAGAIN;
	link_close_fd(&fd);
	return 1;
}

/* ---- the holder ---- */

/*
 * Whichever process has a lower name by now did not see this one's when it looked up: it looks
 * again when a process comes.  One that stands still is not waited for.
 */
static void call_lower(const struct link_addr *addr, unsigned int own)
{
	for (unsigned int level = 0; level < own; level++) {
		int fd = connect_to(addr, level);

		if (fd >= 0)
			link_close_fd(&fd);
	}
}

/* First the own name, then the look: of two processes at the same time at least one sees the
 * other. */
static int claim(struct link_addr *addr, unsigned int level, bool patient)
{
	struct sockaddr_un name;
	socklen_t bytes = gsi_name(&addr->endpoint, level, &name);
	int fd = link_listen_at(&name, bytes), higher;

	if (fd < 0)
		return fd;
	addr->gsi_fd = fd;
	higher = link_exchange_look_up(addr, level);
	if (higher == 1 || (higher < 0 && patient)) {
		link_stop_listening(&addr->gsi_fd);
		return higher < 0 ? higher : -EADDRINUSE;
	}
	call_lower(addr, level);
	return 0;
}

int link_exchange_claim(struct link_addr *addr, unsigned int level, bool patient)
{
	struct link *link = addr->link;
	int error = 0;

	if (atomic_load_explicit(&link->abandoned, memory_order_relaxed))
		return -EOWNERDEAD;
	link_mutex_lock(link, &link->lock);
	if (addr->gsi_fd < 0)
		error = claim(addr, level, patient);
	link_mutex_unlock(link, &link->lock);
	return error;
}

int link_exchange_steer(struct link_addr *addr)
{
	return link_pool_steer(addr->fd, addr->link->slot);
}

int link_addr_claim_gsi(struct link_addr *addr)
{
	bool had = addr->gsi_fd >= 0;
	int error = link_exchange_claim(addr, 0, true);

	if (error || had)
		return error;
	error = link_exchange_steer(addr);
	if (error)
		link_addr_release_gsi(addr);
	return error;
}

void link_addr_release_gsi(struct link_addr *addr)
{
	struct link *link = addr->link;

	link_mutex_lock(link, &link->lock);
	link_stop_listening(&addr->gsi_fd);
	link_mutex_unlock(link, &link->lock);
}

/* ---- connections ---- */

static void set_buffer(int fd)
{
	const int bytes = CONNECTION_BUFFER;

	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

int link_exchange_listener(const struct link_addr *addr)
{
	return addr->gsi_fd;
}

int link_exchange_accept(struct link_addr *addr)
{
	struct sockaddr_un from;
	socklen_t bytes = sizeof(from);
	int fd;

	if (addr->gsi_fd < 0)
		return -EAGAIN;
	fd = link_accept(addr->link, addr->gsi_fd, &from, &bytes);
	if (fd >= 0) {
		set_buffer(fd);
		link_take_rights(fd);
	}
	return fd;
}

int link_exchange_connect(struct link_addr *addr, bool patient, unsigned int *level)
{
	int fd = connect_above(addr, 0, patient, level);

	if (fd == -ENOENT) {
		*level = 0;
		fd = connect_to(addr, 0);
	}
	if (fd >= 0)
		set_buffer(fd);
	return fd;
}

pid_t link_exchange_pid(int fd)
{
	struct ucred peer;
	socklen_t bytes = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) ? 0 : peer.pid;
}

int link_exchange_socket_of(const struct link_addr *addr, unsigned int slot)
{
	return slot < LINK_SLOTS ? __atomic_load_n(&addr->pool[slot], __ATOMIC_ACQUIRE) : -1;
}

/* ---- messages ---- */

static int send_pieces(int fd, const void *head, size_t head_bytes, const void *rest,
		       size_t rest_bytes)
{
	struct iovec pieces[2] = {
		{ .iov_base = (void *)(uintptr_t)head, .iov_len = head_bytes },
		{ .iov_base = (void *)(uintptr_t)rest, .iov_len = rest_bytes },
	};
	struct msghdr message = { .msg_iov = pieces, .msg_iovlen = rest_bytes ? 2 : 1 };

	return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static struct uroce_abi_header header_of(enum uroce_abi_message kind)
{
	return (struct uroce_abi_header){ .message = kind, .version = UROCE_ABI_VERSION };
}

int link_exchange_hello(int fd, const struct link *link, int will_fd)
{
	const struct uroce_abi_gsi_hello hello = {
		.header = header_of(UROCE_ABI_GSI_HELLO),
		.slot = link->slot,
	};

	return link_send_with_fds(fd, &hello, sizeof(hello), &will_fd, will_fd >= 0);
}

int link_exchange_service(int fd, const struct link_service *service, bool listen)
{
	struct uroce_abi_gsi_service message = {
		.header = header_of(listen ? UROCE_ABI_GSI_LISTEN : UROCE_ABI_GSI_UNLISTEN),
		.service_id = service->id,
		.scope_id = service->scope_id,
	};

	memcpy(message.address, service->gid, sizeof(message.address));
	return send_pieces(fd, &message, sizeof(message), NULL, 0);
}

int link_exchange_mad(int fd, const struct link_mad *mad)
{
	struct uroce_abi_gsi_mad head = {
		.header = header_of(UROCE_ABI_GSI_MAD),
		.when = mad->when,
		.reason = mad->reason,
	};

	memcpy(head.src, mad->src, sizeof(head.src));
	return send_pieces(fd, &head, sizeof(head), mad->bytes, sizeof(mad->bytes));
}

int link_exchange_bell(int fd, int bell_fd)
{
	const struct uroce_abi_header bell = header_of(UROCE_ABI_GSI_BELL);

	return link_send_with_fds(fd, &bell, sizeof(bell), &bell_fd, 1);
}

int link_exchange_say(int fd, enum link_exchange_kind kind)
{
	const struct uroce_abi_header message =
		header_of(kind == LINK_EXCHANGE_ASK ? UROCE_ABI_GSI_ASK : UROCE_ABI_GSI_HERE);

	return send_pieces(fd, &message, sizeof(message), NULL, 0);
}

static void take_service(const struct uroce_abi_gsi_service *from, struct link_service *to)
{
	to->id = from->service_id;
	to->scope_id = from->scope_id;
	memcpy(to->gid, from->address, sizeof(to->gid));
}

static void take_mad(const struct uroce_abi_gsi_mad *head, const uint8_t *bytes,
		     struct link_mad *to)
{
	memcpy(to->src, head->src, sizeof(to->src));
	to->when = head->when;
	to->reason = head->reason;
	memcpy(to->bytes, bytes, sizeof(to->bytes));
}

static void take_message(const struct link_message *message, const uint8_t *bytes,
			 struct link_exchange_message *out)
{
	switch (message->kind) {
	case UROCE_ABI_GSI_HELLO:
		out->kind = LINK_EXCHANGE_HELLO;
		out->slot = message->hello.slot;
		break;
	case UROCE_ABI_GSI_LISTEN:
	case UROCE_ABI_GSI_UNLISTEN:
		out->kind = message->kind == UROCE_ABI_GSI_LISTEN ? LINK_EXCHANGE_LISTEN
								  : LINK_EXCHANGE_UNLISTEN;
		take_service(&message->service, &out->service);
		break;
	case UROCE_ABI_GSI_MAD:
		out->kind = LINK_EXCHANGE_MAD;
		take_mad(&message->mad, bytes + sizeof(message->mad), &out->mad);
		break;
	case UROCE_ABI_GSI_BELL:
		out->kind = LINK_EXCHANGE_BELL;
		break;
	case UROCE_ABI_GSI_ASK:
		out->kind = LINK_EXCHANGE_ASK;
		break;
	case UROCE_ABI_GSI_HERE:
		out->kind = LINK_EXCHANGE_HERE;
		break;
	default:
		break;
	}
}

int link_exchange_receive(int fd, struct link_exchange_message *out)
{
	const int flags = MSG_DONTWAIT | MSG_TRUNC;
	uint8_t bytes[sizeof(struct uroce_abi_gsi_mad) + UROCE_ABI_MAD_BYTES];
	struct link_message message;
	int with;
	ssize_t length = link_receive_with_fd(fd, bytes, sizeof(bytes), flags, &with);

	/*
	 * Of a side that has ended before it had read all, that is told first, and once: what it
	 * has sent is still there.
	 */
	if (length < 0 && errno == ECONNRESET)
		length = link_receive_with_fd(fd, bytes, sizeof(bytes), flags, &with);
	if (length < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	memset(out, 0, sizeof(*out));
	out->kind = LINK_EXCHANGE_NOTHING;
	out->fd = -1;
	if ((size_t)length <= sizeof(bytes) &&
	    link_message_parse(bytes, (size_t)length, &message) == LINK_MESSAGE_OK)
		take_message(&message, bytes, out);
	if (out->kind == LINK_EXCHANGE_HELLO || out->kind == LINK_EXCHANGE_BELL)
		out->fd = with;
	else
		link_close_fd(&with);
	return length == 0 ? -ECONNRESET : 0;
}

/* ---- ports ---- */

/*
 * Which user does it belong to?  -EPERM: another user; -ECONNREFUSED: it does not say, if it
 * exists.
 */
static int ask_name(const struct sockaddr_un *name, socklen_t bytes)
{
	int fd = link_socket(AF_UNIX, SOCK_SEQPACKET), error;

	if (fd < 0)
		return fd;
	error = link_connect(fd, name, bytes);
	link_close_fd(&fd);
	/* Where many have looked, the queue is full. */
	return error == -EAGAIN ? 0 : error;
}

/*
 * Have the name.  Another process may have it for a moment only, in link_port_look(): so one that
 * does not say whose it is, is tried again.
 */
static int have_name(const struct sockaddr_un *name, socklen_t bytes)
{
	const struct timespec pause = { .tv_nsec = NAME_PAUSE_NS };
	int fd = -EADDRINUSE, owner;

	for (unsigned int tries = 0; tries < NAME_TRIES && fd == -EADDRINUSE; tries++) {
		if (tries > 0)
			nanosleep(&pause, NULL);
		fd = link_hold_name(name, bytes);
		if (fd != -EADDRINUSE)
			break;
		owner = ask_name(name, bytes);
		if (owner != -ECONNREFUSED)
			return owner ? owner : -EADDRINUSE;
	}
	return fd;
}

int link_port_look(uint32_t space, uint16_t port, const uint8_t gid[16], uint32_t scope_id)
{
	struct sockaddr_un name;
	socklen_t bytes = port_name(space, port, gid, scope_id, &name);
	int fd = have_name(&name, bytes);

	if (fd < 0)
		return fd;
	link_close_fd(&fd);
	return 0;
}

int link_port_claim(uint32_t space, uint16_t port, const uint8_t gid[16], uint32_t scope_id)
{
	struct sockaddr_un name;
	socklen_t bytes = port_name(space, port, gid, scope_id, &name);

	return have_name(&name, bytes);
}

void link_port_release(int *fd)
{
	link_close_fd(fd);
}

bool link_slot_is_taken(unsigned int slot)
{
	struct sockaddr_un name;
	socklen_t bytes = link_slot_name(UROCE_ABI_SLOT_NAME, slot, &name);
	int fd = link_socket(AF_UNIX, SOCK_DGRAM);
	bool taken;

	if (fd < 0)
		return true;
	/* The kernel frees the name with the process. */
	taken = !connect(fd, (struct sockaddr *)&name, bytes) || errno != ECONNREFUSED;
	link_close_fd(&fd);
	return taken;
}
