/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Requests of a link to the broker. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "link/link_priv.h"
#include "link/scm_rights.h"
#include "port.h"

enum {
	/*
	 * An address whose port seems to belong to another program is requested again every
	 * ADDRESS_PAUSE_MS, for ADDRESS_MS in all.
	 */
	ADDRESS_MS = 200,
	ADDRESS_PAUSE_MS = 20,
};

/* ---- slots ---- */

int link_add_slot(struct link *link, unsigned int *slot)
{
	struct link_broker *broker = &link->broker;
	union broker_message message;
	struct link_fds fds;
	int error = -ENOSPC;

	link_mutex_lock(link, &link->open_lock);
	if (broker->slots < LINK_SLOTS_MAX) {
		broker_message_init(&message, UROCE_BROKER_SLOT, 0);
		message.slot.slot = UROCE_BROKER_NO_SLOT;
		error = link_broker_request(link, &message, -1, &fds);
	}
	if (!error) {
		*slot = message.slot.slot;
		broker->slot[broker->slots] = *slot;
		broker->slot_lock[broker->slots++] = fds.fd[0];
	}
	link_mutex_unlock(link, &link->open_lock);
	return error;
}

/* ---- addresses ---- */

static void init_address_message(union broker_message *message, enum uroce_broker_type type,
				 const struct link_endpoint *endpoint)
{
	broker_message_init(message, type, 0);
	message->address.endpoint = link_broker_endpoint(endpoint);
}

/*
 * After a broker is killed, its sockets occupy the port until the kernel has closed them all, and
 * the next broker cannot distinguish them from those of another program.  So -EADDRINUSE is final
 * only after ADDRESS_MS.
 */
int link_broker_address(struct link *link, const struct link_endpoint *endpoint, bool *unsteered)
{
	const struct timespec pause = { .tv_nsec = ADDRESS_PAUSE_MS * 1000000 };
	int64_t until = link_now_ms() + ADDRESS_MS;
	union broker_message message;
	struct link_fds fds;
	int error;

	for (;;) {
		init_address_message(&message, UROCE_BROKER_ADDRESS, endpoint);
		error = link_broker_request(link, &message, -1, &fds);
		*unsteered = message.address.flags & UROCE_BROKER_UNSTEERED;
		if (error != -EADDRINUSE || link_now_ms() >= until)
			break;
		nanosleep(&pause, NULL);
	}
	/* The kernel has dropped the member that the broker has given. */
	if (error == -EMFILE)
		link_broker_address_end(link, endpoint);
	return error ? error : fds.fd[0];
}

void link_broker_address_end(struct link *link, const struct link_endpoint *endpoint)
{
	union broker_message message;

	init_address_message(&message, UROCE_BROKER_ADDRESS_END, endpoint);
	link_broker_send(&link->broker, &message);
}

/* Returns the one descriptor of the reply, or a negative errno. */
static int request_fd(struct link *link, union broker_message *message)
{
	struct link_fds fds;
	int error = link_broker_request(link, message, -1, &fds);

	return error ? error : fds.fd[0];
}

int link_broker_slot_fd(struct link *link, const struct link_endpoint *endpoint, unsigned int slot)
{
	union broker_message message;

	broker_message_init(&message, UROCE_BROKER_LOOKUP, 0);
	message.lookup.endpoint = link_broker_endpoint(endpoint);
	message.lookup.slot = slot;
	return request_fd(link, &message);
}

int link_broker_connect(struct link *link, unsigned int slot, enum uroce_broker_purpose purpose)
{
	union broker_message message;

	broker_message_init(&message, UROCE_BROKER_CONNECT, 0);
	message.connect.slot = slot;
	message.connect.purpose = purpose;
	return request_fd(link, &message);
}

/* ---- queue pair 1 ---- */

static int switch_gsi(struct link *link, bool on)
{
	union broker_message message;
	struct link_fds fds;
	int fd = link_broker_init_gsi_message(&link->broker, on, &message);

	return link_broker_request(link, &message, fd, &fds);
}

int link_gsi_begin(struct link *link, int messages_fd)
{
	int error;

	link_mutex_lock(link, &link->open_lock);
	link->broker.messages_fd = messages_fd;
	error = switch_gsi(link, true);
	link->broker.uses_gsi = !error;
	link_mutex_unlock(link, &link->open_lock);
	return error;
}

void link_gsi_end(struct link *link)
{
	link_mutex_lock(link, &link->open_lock);
	link->broker.uses_gsi = false;
	switch_gsi(link, false);
	link->broker.messages_fd = -1;
	link_mutex_unlock(link, &link->open_lock);
}

/* ---- ports ---- */

static void init_port_message(union broker_message *message, enum uroce_broker_type type,
			      const struct link_port *port)
{
	broker_message_init(message, type, 0);
	message->ports.ports = 1;
	message->ports.port[0] = port->port;
}

static void copy_port_name(struct link_port *port, const struct link_port_name *name)
{
	memcpy(port->port.endpoint.gid, name->gid, sizeof(name->gid));
	port->port.endpoint.scope_id = name->scope_id;
	port->port.space = name->space;
	port->port.port = name->port;
	port->port.flags = (name->reuse ? UROCE_BROKER_PORT_REUSE : 0) |
			   (name->af_only ? UROCE_BROKER_PORT_AF_ONLY : 0);
	port->chosen = name->port == 0;
}

int link_port_bind(struct link *link, struct link_port_name *name, struct link_port **result)
{
	struct link_port *port = calloc(1, sizeof(*port));
	union broker_message message;
	struct link_fds fds;
	int error;

	if (!port)
		return -ENOMEM;
	port->link = link;
	copy_port_name(port, name);
	link_mutex_lock(link, &link->open_lock);
	port->port.id = ++link->broker.last_port_id;
	init_port_message(&message, UROCE_BROKER_PORT, port);
	error = link_broker_request(link, &message, -1, &fds);
	if (!error) {
		port->port.port = message.ports.port[0].port;
		name->port = port->port.port;
		LIST_INSERT_HEAD(&link->broker.ports, port, entry);
		*result = port;
	}
	link_mutex_unlock(link, &link->open_lock);
	if (error)
		free(port);
	return error;
}

int link_port_listen(struct link_port *port)
{
	struct link *link = port->link;
	union broker_message message;
	struct link_fds fds;
	int error = 0;

	if (atomic_load_explicit(&link->abandoned, memory_order_relaxed))
		return -EOWNERDEAD;
	link_mutex_lock(link, &link->open_lock);
	if (!port->listens) {
		init_port_message(&message, UROCE_BROKER_PORT_LISTEN, port);
		error = link_broker_request(link, &message, -1, &fds);
		port->listens = !error;
	}
	link_mutex_unlock(link, &link->open_lock);
	return error;
}

void link_port_end(struct link_port *port)
{
	struct link *link = port->link;
	union broker_message message;

	link_mutex_lock(link, &link->open_lock);
	LIST_REMOVE(port, entry);
	init_port_message(&message, UROCE_BROKER_PORT_END, port);
	link_broker_send(&link->broker, &message);
	link_mutex_unlock(link, &link->open_lock);
	free(port);
}
