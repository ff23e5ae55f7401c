/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Claims the addresses, ports and queue pair 1 of a link from a new broker */
#include <errno.h>

#include "link/link_priv.h"

/* Claims all addresses.  An error of one address does not end the claims of the others. */
static int claim_addresses(struct link *link, int fd)
{
	const struct link_addr *addr;
	union broker_message message;
	struct link_fds fds;
	int error = 0;

	for (addr = link->addrs; addr && !link_broker_is_lost(error); addr = addr->next) {
		broker_message_init(&message, UROCE_BROKER_ADDRESS, 0);
		message.address.endpoint = link_broker_endpoint(&addr->endpoint);
		message.address.flags =
			UROCE_BROKER_CLAIM | (addr->unsteered ? UROCE_BROKER_UNSTEERED : 0);
		error = link_broker_exchange(&link->broker, fd, &message, addr->fd, &fds);
	}
	return link_broker_is_lost(error) ? error : 0;
}

static int claim_ports(struct link *link, int fd)
{
	const struct link_port *port = LIST_FIRST(&link->broker.ports);
	union broker_message message;
	struct link_fds fds;
	int error = 0;

	while (port && !error) {
		broker_message_init(&message, UROCE_BROKER_PORT, 0);
		for (; port && message.ports.ports < UROCE_BROKER_PORTS;
		     port = LIST_NEXT(port, entry)) {
			struct uroce_broker_port *entry =
				&message.ports.port[message.ports.ports++];

			*entry = port->port;
			entry->flags |= UROCE_BROKER_PORT_RETURNING |
					(port->listens ? UROCE_BROKER_PORT_LISTENING : 0) |
					(port->chosen ? UROCE_BROKER_PORT_CHOSEN : 0);
		}
		error = link_broker_exchange(&link->broker, fd, &message, -1, &fds);
	}
	return link_broker_is_lost(error) ? error : 0;
}

static int claim_gsi(struct link *link, int fd)
{
	union broker_message message;
	struct link_fds fds;
	int messages_fd =
		link_broker_init_gsi_message(&link->broker, link->broker.uses_gsi, &message);

	return link_broker_exchange(&link->broker, fd, &message, messages_fd, &fds);
}

int link_broker_claim_all(struct link *link, int fd)
{
	int error = claim_addresses(link, fd);

	if (!error)
		error = claim_ports(link, fd);
	/*
	 * Last, because the broker cannot route a MAD before the ports are claimed; and without
	 * queue pair 1 too, because the broker waits for the last claim.
	 */
	if (!error)
		error = claim_gsi(link, fd);
	return link_broker_is_lost(error) ? error : 0;
}
