/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Connections of clients and the messages received on them */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "broker/names.h"
#include "brokerd.h"

enum {
	/* Maximum number of messages of one client before the next event is served. */
	MESSAGES_MAX = 64,
	ACCEPTS_MAX = 64,
	HELLO_MS = 1000,
	/* Maximum number of connections without a HELLO; beyond it the oldest is closed. */
	NEW_CLIENTS_MAX = 64,
	DELIVERY_BUFFER = 4 << 20,
};

/* ---- start and end of a connection ---- */

static pid_t peer_pid(int fd)
{
	struct ucred peer;
	socklen_t bytes = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) ? 0 : peer.pid;
}

static void add_client(struct brokerd *brokerd, int fd)
{
	struct client *client = calloc(1, sizeof(*client));

	if (!client || names_allow_descriptors(fd) ||
	    brokerd_watch(brokerd, fd, EVENT_CONTROL, client)) {
		free(client);
		close(fd);
		return;
	}
	do {
		client->number = ++brokerd->last_client_number;
	} while (client->number == SLOTS_NO_CLIENT || client_find(brokerd, client->number));
	client->control_fd = fd;
	client->delivery_fd = -1;
	client->last_messages_fd = -1;
	client->pid = peer_pid(fd);
	client->connected_at = brokerd_now();
	client->next = brokerd->clients;
	brokerd->clients = client;
	/* The HELLO has usually arrived: read it before others fill the list of new clients. */
	connection_receive(brokerd, client);
}

static void reject_foreign(struct brokerd *brokerd, int fd)
{
	brokerd->counts.foreign_connections++;
	closer_close(&fd);
}

/*
 * Accepts and closes the next connection when no descriptor is left, using the spare one.
 * Otherwise the client would wait for a reply that cannot come, and start another broker.
 */
static void reject_connection(struct brokerd *brokerd)
{
	int fd, foreign = -1;

	link_close_fd(&brokerd->spare_fd);
	/* Needs a descriptor, too. */
	closer_prepare();
	fd = names_accept(brokerd->listener, brokerd->user, &foreign);
	if (fd == -EPERM)
		reject_foreign(brokerd, foreign);
	else
		link_close_fd(&fd);
}

void connection_accept(struct brokerd *brokerd)
{
	for (unsigned int i = 0; i < ACCEPTS_MAX; i++) {
		int foreign = -1;
		int fd;

		/* reject_connection() has used it. */
		if (brokerd->spare_fd < 0)
			brokerd->spare_fd = eventfd(0, EFD_CLOEXEC);
		fd = names_accept(brokerd->listener, brokerd->user, &foreign);
		if (fd == -EPERM) {
			reject_foreign(brokerd, foreign);
			continue;
		}
		if (fd == -EMFILE || fd == -ENFILE)
			reject_connection(brokerd);
		if (fd < 0)
			return;
		add_client(brokerd, fd);
	}
}

static void end_connection(struct brokerd *brokerd, struct client *client)
{
	bool was_worker = client->state == CLIENT_WORKER;

	if (client->state == CLIENT_GONE)
		return;
	client_set_state(client, CLIENT_GONE);
	link_close_fd(&client->control_fd);
	link_close_fd(&client->delivery_fd);
	if (!was_worker)
		return;
	ports_remove_client(&brokerd->ports, client->number);
	gsi_remove_client(brokerd, client);
	last_mads_start(brokerd, &client->last_messages_fd, brokerd_now());
	client_free_slots(brokerd, client);
	member_release_all(brokerd, client);
	address_update_all_programs(brokerd);
}

/* Returns true if the client has not sent its HELLO within HELLO_MS. */
static bool is_hello_overdue(const struct client *client, uint64_t now)
{
	return client->state == CLIENT_NEW &&
	       now > client->connected_at + (uint64_t)HELLO_MS * NS_PER_MS;
}

void connection_free_ended(struct brokerd *brokerd, uint64_t now)
{
	struct client **from = &brokerd->clients, *client;
	unsigned int new_clients = 0;

	/* The newest clients are first in the list, so the oldest ones exceed NEW_CLIENTS_MAX. */
	while ((client = *from)) {
		new_clients += client->state == CLIENT_NEW;
		if (is_hello_overdue(client, now) ||
		    (client->state == CLIENT_NEW && new_clients > NEW_CLIENTS_MAX))
			end_connection(brokerd, client);
		if (client->state != CLIENT_GONE) {
			from = &client->next;
			continue;
		}
		*from = client->next;
		link_close_fd(&client->last_messages_fd);
		free(client);
	}
}

/* ---- HELLO ---- */

/*
 * Processes what all other clients have sent.  Otherwise a message on which the client's request
 * depends, such as the release of a port, could be processed after the request although it was sent
 * before it.
 */
static void receive_from_others(struct brokerd *brokerd, const struct client *client)
{
	if (brokerd->receiving_from_others)
		return;
	brokerd->receiving_from_others = true;
	for (struct client *other = brokerd->clients; other; other = other->next)
		if (other != client && other->state != CLIENT_GONE)
			connection_receive(brokerd, other);
	brokerd->receiving_from_others = false;
}

/* Assigns the slots of a returning client.  Returns false if another client holds one of them. */
static bool assign_slots(struct brokerd *brokerd, const struct client *client,
			 const struct uroce_broker_hello *hello)
{
	for (uint32_t i = 0; i < hello->slots; i++)
		if (!slots_hold(&brokerd->slots, hello->slot[i], client->number, hello->slot[0]))
			return false;
	return true;
}

/*
 * Assigns the slots of a returning client, or none.  If another client holds one of them, that may
 * be an earlier connection of the same worker whose end has not been processed yet.
 */
static bool assign_returning_slots(struct brokerd *brokerd, const struct client *client,
				   const struct uroce_broker_hello *hello)
{
	if (assign_slots(brokerd, client, hello))
		return true;
	receive_from_others(brokerd, client);
	if (assign_slots(brokerd, client, hello))
		return true;
	client_free_slots(brokerd, client);
	return false;
}

static int make_delivery_socket(struct brokerd *brokerd, struct client *client, int *end)
{
	const int bytes = DELIVERY_BUFFER;
	int pair[2], error;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
		return -errno;
	setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	error = brokerd_watch(brokerd, pair[0], EVENT_DELIVERY, client);
	if (error) {
		close(pair[0]);
		close(pair[1]);
		return error;
	}
	client->delivery_fd = pair[0];
	*end = pair[1];
	return 0;
}

static int make_worker(struct brokerd *brokerd, struct client *client,
		       const struct uroce_broker_hello *hello, struct link_fds *fds)
{
	int error, lock;

	error = make_delivery_socket(brokerd, client, &fds->fd[0]);
	if (error)
		return error;
	fds->count = 1;
	client->returned = hello->role == UROCE_BROKER_RETURNING;
	client->is_claiming = client->returned;
	if (client->returned) {
		client->slot = hello->slot[0];
		if (!assign_returning_slots(brokerd, client, hello))
			return -EEXIST;
	} else {
		lock = client_assign_slot(brokerd, client, &client->slot);
		if (lock < 0)
			return lock;
		fds->fd[fds->count++] = lock;
	}
	client_set_state(client, CLIENT_WORKER);
	return 0;
}

/* Processes a HELLO.  *message becomes the WELCOME. */
static void process_hello(struct brokerd *brokerd, struct client *client,
			  union broker_message *message, struct link_fds *fds)
{
	const struct uroce_broker_hello hello = message->hello;
	int error = 0;

	fds->count = 0;
	if (hello.role == UROCE_BROKER_GUEST)
		client_set_state(client, CLIENT_GUEST);
	else
		error = make_worker(brokerd, client, &hello, fds);
	broker_message_init(message, UROCE_BROKER_WELCOME, hello.header.number);
	message->header.error = brokerd_reply_error(error);
	message->welcome.role = hello.role;
	message->welcome.slot =
		client->state == CLIENT_WORKER ? client->slot : UROCE_BROKER_NO_SLOT;
	message->welcome.secret = brokerd->probe_secret;
	if (error)
		link_close_fds(fds);
}

/* ---- messages ---- */

/*
 * Returns true if the message is valid and came with the right number of descriptors; closes the
 * descriptors otherwise.
 */
static bool is_valid_message(struct brokerd *brokerd, const void *bytes, size_t length,
			     union broker_message *message, struct link_fds *fds)
{
	if (broker_message_parse(bytes, length, message) == BROKER_MESSAGE_OK &&
	    broker_message_descriptor_count(message) == fds->count)
		return true;
	brokerd->counts.bad_messages++;
	link_close_fds(fds);
	return false;
}

/* Returns true for a refused port that another client may have released by now. */
static bool is_port_conflict(const struct uroce_broker_header *reply)
{
	return (reply->type == UROCE_BROKER_PORT_REPLY) &&
	       (reply->error == -EADDRINUSE || reply->error == -EADDRNOTAVAIL);
}

/* Executes a request.  Returns true if *message is now the reply. */
static bool serve_request(struct brokerd *brokerd, struct client *client,
			  union broker_message *message, struct link_fds *fds)
{
	const union broker_message request = *message;
	bool replies = request_serve(brokerd, client, message, fds);

	if (!replies || !is_port_conflict(&message->header))
		return replies;
	receive_from_others(brokerd, client);
	*message = request;
	return request_serve(brokerd, client, message, fds);
}

/* Processes a message.  Returns false if the connection must be closed. */
static bool serve_message(struct brokerd *brokerd, struct client *client,
			  union broker_message *message, struct link_fds *fds)
{
	bool is_new = client->state == CLIENT_NEW, replies = true, sent;

	if (is_new && message->header.type == UROCE_BROKER_SUPERSEDE) {
		brokerd->superseded = true;
		return true;
	}
	if (is_new ? message->header.type != UROCE_BROKER_HELLO
		   : !request_is_known_type(message->header.type)) {
		link_close_fds(fds);
		return false;
	}
	if (is_new)
		process_hello(brokerd, client, message, fds);
	else
		replies = serve_request(brokerd, client, message, fds);
	/*
	 * A reply does not fit only if the client has sent too many requests without reading the
	 * replies; its connection is closed then.
	 */
	sent = !replies || client_send(client->control_fd, message, fds);
	link_close_fds(fds);
	return sent && client->state != CLIENT_NEW;
}

void connection_receive(struct brokerd *brokerd, struct client *client)
{
	uint8_t bytes[sizeof(union broker_message)];
	struct iovec piece = { .iov_base = bytes, .iov_len = sizeof(bytes) };
	union broker_message message;
	struct link_fds fds;
	ssize_t length;

	for (unsigned int i = 0; i < MESSAGES_MAX && client->state != CLIENT_GONE; i++) {
		length = link_receive_with_fds(client->control_fd, &piece, 1, MSG_DONTWAIT, &fds);
		if (length == -EAGAIN || length == -EINTR)
			return;
		if (length <= 0) {
			end_connection(brokerd, client);
			return;
		}
		if (!is_valid_message(brokerd, bytes, (size_t)length, &message, &fds) ||
		    !serve_message(brokerd, client, &message, &fds))
			end_connection(brokerd, client);
	}
}

void connection_receive_delivery(struct brokerd *brokerd, struct client *client)
{
	struct datagram *datagram = &brokerd->datagram;
	struct iovec pieces[2] = {
		{ .iov_base = &datagram->head, .iov_len = sizeof(datagram->head) },
		{ .iov_base = datagram->bytes, .iov_len = sizeof(datagram->bytes) },
	};
	union broker_message message;
	struct link_fds fds;
	ssize_t length;

	for (unsigned int i = 0; i < MESSAGES_MAX && client->state != CLIENT_GONE; i++) {
		length = link_receive_with_fds(client->delivery_fd, pieces, 2, MSG_DONTWAIT, &fds);
		if (length == -EAGAIN || length == -EINTR)
			return;
		if (length <= 0) {
			end_connection(brokerd, client);
			return;
		}
		if (!is_valid_message(brokerd, &datagram->head, (size_t)length, &message, &fds))
			end_connection(brokerd, client);
		else if (message.header.type == UROCE_BROKER_PROBED)
			probe_receive_reply(brokerd, client, &message.probed);
		else if (message.header.type == UROCE_BROKER_DATAGRAM)
			gsi_receive_passed_on(brokerd);
		else
			end_connection(brokerd, client);
	}
}
