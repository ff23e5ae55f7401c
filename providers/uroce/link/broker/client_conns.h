/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Connections from other clients of the broker, for shared memory or from tools.  For each, the
 * broker creates a socket pair and passes one end to each of the two clients.
 */
#ifndef UROCE_LINK_BROKER_CLIENT_CONNS_H
#define UROCE_LINK_BROKER_CLIENT_CONNS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rdma/uroce-broker.h>

struct link;

struct link_client_conn {
	_Atomic(struct link_client_conn *) next;
	int fd;
	uint32_t slot; /* slot of the other client, or UROCE_BROKER_NO_SLOT */
};

/* Connections of one purpose.  One thread adds to them while another one serves them. */
struct link_client_conns {
	int epoll_fd; /* readable when another client has sent something or closed its end */
	_Atomic(struct link_client_conn *) first;
};

int link_client_conns_open(struct link_client_conns *conns);
/* If abandoned, only closes descriptors and is async-signal-safe. */
void link_client_conns_close(struct link_client_conns *conns, bool abandoned);
/* Adds a connection from the slot (UROCE_BROKER_NO_SLOT: a tool); takes over fd. */
void link_client_conns_add(struct link *link, uint32_t purpose, uint32_t slot, int fd);

#endif
