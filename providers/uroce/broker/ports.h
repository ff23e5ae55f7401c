/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Ports of librdmacm's port spaces: which clients have bound and which listen.  The rules are those
 * between the ids of the kernel's rdma_cm.
 *
 * Functions that return int return 0 or a negative errno.
 */
#ifndef UROCE_BROKER_PORTS_H
#define UROCE_BROKER_PORTS_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/uroce-broker.h>

#define PORTS_BUCKETS 4096

struct port_entry;

/* Must be zeroed before the first use. */
struct broker_ports {
	struct port_entry *bucket[PORTS_BUCKETS]; /* lists of entries, by port number */
	/* Number of ports that were bound with port number 0. */
	uint32_t chosen;
};

/* Numbers to choose from: net.ipv4.ip_local_port_range. */
struct port_range {
	uint16_t first;
	uint32_t count;
	uint32_t random; /* offset at which the search starts, modulo count */
};

/*
 * Binds the port for the client.  If its number is 0, a number of range is chosen and stored in
 * *port; if all are in use, the number may be shared with chosen ports that do not listen.
 *
 * Errors: -EADDRINUSE: the number is bound on the same address; -EADDRNOTAVAIL: it is bound on
 * another address and one of the two is a wildcard, or no number is left; -EEXIST: the client has a
 * port with this id; -ENOMEM.
 */
int ports_bind(struct broker_ports *ports, uint32_t client, struct uroce_broker_port *port,
	       const struct port_range *range);
/*
 * Adds a port that the client had bound at an earlier broker, which has checked it for conflicts.
 * Returns -EEXIST or -ENOMEM on error.
 */
int ports_restore(struct broker_ports *ports, uint32_t client,
		  const struct uroce_broker_port *port);
/*
 * Makes the client listen at a port that it has bound with the same id.  Returns -ENOENT if there
 * is none, or an error of ports_bind() if another port shares the number on an overlapping address.
 */
int ports_listen(struct broker_ports *ports, uint32_t client, const struct uroce_broker_port *port);
void ports_release(struct broker_ports *ports, uint32_t client,
		   const struct uroce_broker_port *port);
/* Removes all ports of a client whose connection has ended. */
void ports_remove_client(struct broker_ports *ports, uint32_t client);

/*
 * Returns the client that listens at the service id (port space << 16 | port) on exactly this
 * address, or else on a wildcard address that includes it; 0 if there is none.
 */
uint32_t ports_find_listener(const struct broker_ports *ports, uint64_t service_id,
			     const struct uroce_broker_endpoint *endpoint);

#endif
