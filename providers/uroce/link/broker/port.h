/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Broker requests of the connection manager: queue pair 1, and ports of librdmacm's port spaces.
 * All functions are control functions (link.h), and wait for the broker.
 */
#ifndef UROCE_LINK_BROKER_PORT_H
#define UROCE_LINK_BROKER_PORT_H

#include "link/link.h"

/*
 * Starts the delivery of MADs for this process by link_delivery_receive(). messages_fd is the
 * memory file of its last messages, or -1; the caller owns it and must keep it open until
 * link_gsi_end().
 */
int link_gsi_begin(struct link *link, int messages_fd);
void link_gsi_end(struct link *link);

/* ::ffff:0.0.0.0 is any IPv4 address; :: is any IPv6 address, and IPv4 unless af_only is set. */
struct link_port_name {
	uint8_t gid[16];
	uint32_t scope_id; /* interface index of a link-local address, else 0 */
	uint16_t space;	   /* RDMA_PS_* */
	uint16_t port;	   /* host order; 0: the broker chooses a free one */
	/* Others may bind the port if they set reuse too; the port cannot begin to listen then. */
	bool reuse;
	bool af_only;
};

/* A bound port; link_port_end() frees it. */
struct link_port;

/*
 * Binds a port, and stores its number in name->port.  Errors are those of ports_bind()
 * (broker/ports.h), or of the request to the broker.
 */
int link_port_bind(struct link *link, struct link_port_name *name, struct link_port **port);
int link_port_listen(struct link_port *port);
void link_port_end(struct link_port *port);

#endif
