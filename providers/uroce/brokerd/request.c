/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Requests of clients after their HELLO */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "brokerd.h"
#include "link/shm/memfd.h"
#include <rdma/uroce-abi.h>

/* Used if net.ipv4.ip_local_port_range cannot be read. */
#define RANGE_FIRST 32768
#define RANGE_LAST 60999
#define MESSAGES_BYTES (UROCE_ABI_LAST_MESSAGES * sizeof(struct uroce_abi_last_message))

/* Adds a duplicate of fd to a reply.  Descriptors of a reply are closed after it has been sent. */
static int attach_duplicate(struct link_fds *fds, int fd)
{
	fds->fd[0] = dup(fd);
	if (fds->fd[0] < 0)
		return -errno;
	fds->count = 1;
	return 0;
}

static int serve_slot(struct brokerd *brokerd, struct client *client,
		      struct uroce_broker_slot *request, struct link_fds *fds)
{
	uint32_t slot;
	int lock = client_find_lost_slot(brokerd, client, &slot);

	if (lock == -ENOENT) {
		lock = -ENOSPC;
		if (slots_count_held(&brokerd->slots, client->number) < UROCE_BROKER_CLIENT_SLOTS)
			lock = client_assign_slot(brokerd, client, &slot);
	}
	if (lock < 0)
		return lock;
	fds->fd[fds->count++] = lock;
	request->slot = slot;
	address_update_all_programs(brokerd);
	return 0;
}

static int serve_gsi(struct brokerd *brokerd, struct client *client,
		     const struct uroce_broker_switch *request, struct link_fds *fds)
{
	link_close_fd(&client->last_messages_fd);
	client->is_claiming = false;
	client->uses_gsi = request->flags & UROCE_BROKER_ON;
	client->watched_at = 0;
	if (!client->uses_gsi)
		gsi_remove_client(brokerd, client);
	if (fds->count && memfd_verify(fds->fd[0], MESSAGES_BYTES)) {
		client->last_messages_fd = fds->fd[0];
		fds->count = 0;
	}
	link_close_fds(fds);
	gsi_route_kept(brokerd);
	return 0;
}

static struct port_range read_port_range(void)
{
	unsigned int first = 0, last = 0;
	struct port_range range;
	FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");

	if (file) {
		if (fscanf(file, "%u %u", &first, &last) != 2)
			last = 0;
		fclose(file);
	}
	if (first == 0 || last < first || last > UINT16_MAX) {
		first = RANGE_FIRST;
		last = RANGE_LAST;
	}
	range.first = (uint16_t)first;
	range.count = last - first + 1;
	if (getrandom(&range.random, sizeof(range.random), GRND_NONBLOCK) < 0)
		range.random = (uint32_t)brokerd_now();
	return range;
}

static int bind_port(struct brokerd *brokerd, const struct client *client,
		     struct uroce_broker_port *port)
{
	struct port_range range = { 0 };

	if (!port->port)
		range = read_port_range();
	return ports_bind(&brokerd->ports, client->number, port, &range);
}

static int serve_ports(struct brokerd *brokerd, const struct client *client,
		       struct uroce_broker_ports *request)
{
	int error = 0;

	if (!(request->port[0].flags & UROCE_BROKER_PORT_RETURNING))
		return bind_port(brokerd, client, &request->port[0]);
	for (uint32_t i = 0; i < request->ports && !error; i++) {
		error = ports_restore(&brokerd->ports, client->number, &request->port[i]);
		if (error == -EEXIST)
			error = 0;
		/* A reply does not contain these flags. */
		request->port[i].flags &=
			~(uint32_t)(UROCE_BROKER_PORT_RETURNING | UROCE_BROKER_PORT_LISTENING |
				    UROCE_BROKER_PORT_CHOSEN);
	}
	return error;
}

static int serve_lookup(struct brokerd *brokerd, const struct uroce_broker_lookup *request,
			struct link_fds *fds)
{
	struct address *address = address_find(brokerd, &request->endpoint);
	const struct client *owner = client_of_slot(brokerd, request->slot);
	int fd = address && owner ? member_look_up(brokerd, address, owner) : -ENOENT;

	return fd < 0 ? fd : attach_duplicate(fds, fd);
}

static int serve_connect(const struct brokerd *brokerd, const struct client *client,
			 const struct uroce_broker_connect *request, struct link_fds *fds)
{
	struct client *other = client_of_slot(brokerd, request->slot);
	union broker_message connection;
	struct link_fds end;
	int pair[2];

	if (request->purpose == UROCE_BROKER_SHARED_MEMORY && client->state != CLIENT_WORKER)
		return -EPERM;
	if (!other || other->state != CLIENT_WORKER)
		return -ENOENT;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
		return -errno;
	broker_message_init(&connection, UROCE_BROKER_CONNECTION, 0);
	connection.connect.slot =
		client->state == CLIENT_WORKER ? client->slot : UROCE_BROKER_NO_SLOT;
	connection.connect.purpose = request->purpose;
	end = (struct link_fds){ .fd = { pair[1] }, .count = 1 };
	fds->fd[0] = pair[0];
	fds->count = 1;
	if (client_send(other->delivery_fd, &connection, &end)) {
		close(pair[1]);
		return 0;
	}
	close(pair[1]);
	link_close_fds(fds);
	return -EAGAIN;
}

static int serve_list(const struct brokerd *brokerd, struct uroce_broker_list *list)
{
	for (uint32_t slot = list->first;
	     slot < UROCE_BROKER_SLOTS && list->clients < UROCE_BROKER_LISTED; slot++) {
		const struct client *client = client_of_slot(brokerd, slot);

		if (client && client->slot == slot)
			list->client[list->clients++] = (struct uroce_broker_listed){
				.slot = slot,
				.pid = (uint32_t)client->pid,
			};
	}
	return 0;
}

/* Returns true if only workers may send this request. */
static bool is_for_worker_only(uint32_t type)
{
	return type != UROCE_BROKER_LIST && type != UROCE_BROKER_CONNECT &&
	       type != UROCE_BROKER_PING;
}

static int serve_worker(struct brokerd *brokerd, struct client *client,
			union broker_message *message, struct link_fds *fds)
{
	switch (message->header.type) {
	case UROCE_BROKER_SLOT:
		return serve_slot(brokerd, client, &message->slot, fds);
	case UROCE_BROKER_ADDRESS:
		return member_request(brokerd, client, &message->address, fds);
	case UROCE_BROKER_GSI:
		return serve_gsi(brokerd, client, &message->on_off, fds);
	case UROCE_BROKER_PORT:
		return serve_ports(brokerd, client, &message->ports);
	case UROCE_BROKER_PORT_LISTEN:
		return ports_listen(&brokerd->ports, client->number, &message->ports.port[0]);
	case UROCE_BROKER_LOOKUP:
		return serve_lookup(brokerd, &message->lookup, fds);
	default:
		assert(false);
		return -EINVAL;
	}
}

bool request_is_known_type(uint32_t type)
{
	switch (type) {
	case UROCE_BROKER_SLOT:
	case UROCE_BROKER_ADDRESS:
	case UROCE_BROKER_GSI:
	case UROCE_BROKER_PORT:
	case UROCE_BROKER_PORT_LISTEN:
	case UROCE_BROKER_LOOKUP:
	case UROCE_BROKER_CONNECT:
	case UROCE_BROKER_LIST:
	case UROCE_BROKER_PING:
	case UROCE_BROKER_ADDRESS_END:
	case UROCE_BROKER_PORT_END:
		return true;
	default:
		return false;
	}
}

/* Processes the message if its type has no reply.  Returns false otherwise. */
static bool serve_without_reply(struct brokerd *brokerd, const struct client *client,
				const union broker_message *message)
{
	switch (message->header.type) {
	case UROCE_BROKER_ADDRESS_END:
		member_release(brokerd, client, &message->address.endpoint);
		return true;
	case UROCE_BROKER_PORT_END:
		ports_release(&brokerd->ports, client->number, &message->ports.port[0]);
		return true;
	default:
		return false;
	}
}

bool request_serve(struct brokerd *brokerd, struct client *client, union broker_message *message,
		   struct link_fds *fds)
{
	uint32_t type = message->header.type;
	int error;

	if (client->state == CLIENT_WORKER && serve_without_reply(brokerd, client, message))
		return false;
	if (is_for_worker_only(type) && client->state != CLIENT_WORKER) {
		error = -EPERM;
	} else if (type == UROCE_BROKER_LIST) {
		error = serve_list(brokerd, &message->list);
	} else if (type == UROCE_BROKER_CONNECT) {
		error = serve_connect(brokerd, client, &message->connect, fds);
	} else if (type == UROCE_BROKER_PING) {
		client->watched_at = brokerd_now();
		error = 0;
	} else {
		error = serve_worker(brokerd, client, message, fds);
	}
	if (error)
		link_close_fds(fds);
	message->header.type = broker_message_reply_type(type);
	message->header.error = brokerd_reply_error(error);
	if (!error && (type == UROCE_BROKER_PORT || type == UROCE_BROKER_PORT_LISTEN))
		gsi_route_kept(brokerd);
	return true;
}
