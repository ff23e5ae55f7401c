/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Connections with other clients of the broker, which makes a socket pair and gives each of the two
 * an end.  A visit is one that the other client has asked for.
 */
#ifndef UROCE_LINK_VISITS_H
#define UROCE_LINK_VISITS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rdma/uroce-broker.h>

struct link;

struct link_visit {
	_Atomic(struct link_visit *) next;
	int fd;
	uint32_t slot; /* of the other client, or UROCE_BROKER_NO_SLOT */
};

/* Visits of one purpose.  Another thread adds to them while one serves them. */
struct link_visits {
	int epoll_fd; /* readable when a visitor has sent something, or has gone */
	_Atomic(struct link_visit *) first;
};

int link_visits_open(struct link_visits *visits);
/* Async-signal-safe if the link is abandoned: then only descriptors are closed. */
void link_visits_close(struct link_visits *visits, bool abandoned);
/* A visit from the slot (UROCE_BROKER_NO_SLOT: a tool) begins; fd is taken over. */
void link_visits_add(struct link *link, uint32_t purpose, uint32_t slot, int fd);

#endif
