/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Ports of librdmacm's port spaces: which client has bound which, and which client listens.  The
 * rules are those of the kernel's rdma_cm among its ids.
 */
#ifndef UROCE_BROKER_PORTS_H
#define UROCE_BROKER_PORTS_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/uroce-broker.h>

#define PORTS_BUCKETS 4096

struct port_entry;

/* Zeroed at first. */
struct broker_ports {
	struct port_entry *bucket[PORTS_BUCKETS]; /* by port number */
	uint32_t chosen;			  /* number of ports for which port 0 was asked */
};

/* Numbers to choose from: net.ipv4.ip_local_port_range. */
struct port_range {
	uint16_t first;
	uint32_t count;
	uint32_t random; /* where the search begins */
};

/*
 * The client binds the port.  Its number may be 0, and is then chosen from range and stored; if all
 * are in use it may be one that was chosen for another port that does not listen.
 * -EADDRINUSE: the port is bound on this address.  -EADDRNOTAVAIL: it is bound on another one and
 * one of the two is any; or no number is left.  -EEXIST: the client has a port of this id.
 * -ENOMEM.
 */
int ports_bind(struct broker_ports *ports, uint32_t client, struct uroce_broker_port *port,
	       const struct port_range *range);
/*
 * The client had bound the port at an earlier broker, which has checked it.  -EEXIST or -ENOMEM.
 */
int ports_return(struct broker_ports *ports, uint32_t client, const struct uroce_broker_port *port);
/*
 * The client listens at the port, which it has bound with this id.  Errors as above, since others
 * may share the port, and -ENOENT.
 */
int ports_listen(struct broker_ports *ports, uint32_t client, const struct uroce_broker_port *port);
void ports_end(struct broker_ports *ports, uint32_t client, const struct uroce_broker_port *port);
/* The client has gone. */
void ports_forget(struct broker_ports *ports, uint32_t client);
void ports_free(struct broker_ports *ports);

/*
 * The client that listens at a service id (port space << 16 | port) on the address: exactly there,
 * or else at any address of its kind.  0 if none does.
 */
uint32_t ports_listener(const struct broker_ports *ports, uint64_t service_id,
			const struct uroce_broker_endpoint *endpoint);

#endif
