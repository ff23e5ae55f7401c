/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* A listener and a client that connects to it, both in this process (world.h). */
#ifndef UROCE_TESTS_UNIT_UCM_FIXTURE_H
#define UROCE_TESTS_UNIT_UCM_FIXTURE_H

#include <stdint.h>

#include "caller.h"
#include "world.h"

#define PORT 7471
#define SECOND UINT64_C(1000000000)

enum {
	ADDR_RESOLVED = 0,
	ROUTE_RESOLVED = 2,
	CONNECT_REQUEST = 4,
	CONNECT_RESPONSE = 5,
	UNREACHABLE = 7,
	REJECTED = 8,
	ESTABLISHED = 9,
	DISCONNECTED = 10,
	MULTICAST_JOIN = 12,
	TIMEWAIT_EXIT = 15,
	USER = 18,
};

enum {
	LISTENER_UID = 100,
	CLIENT_UID = 200,
	SERVER_UID = 300,
};

struct ucm_fixture {
	int server, client; /* channels */
	uint32_t listener;
	uint32_t active, passive;
};

/* Opens both channels, and a listener at PORT of any address. */
void ucm_fixture_open(struct ucm_fixture *fixture, uint16_t space, uint32_t backlog);
/* Creates an id of the client, and resolves its address and route, so that it can connect. */
uint32_t prepare_client(struct ucm_fixture *fixture, uint16_t space, const char *address,
			uint16_t port);
/* Connects such an id (active) to PORT; the server has then read the request (passive). */
void request_connection(struct ucm_fixture *fixture, const char *address);
void establish_connection(struct ucm_fixture *fixture);
/* Closes both channels; no port and no last message may be left. */
void ucm_fixture_close(struct ucm_fixture *fixture);

#endif
