/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Out-of-band negotiation of two endpoints over a stream, in network byte order.  The active side
 * sends the plan with a proposed depth, the passive side replies with this depth or a smaller one,
 * which both use; then they exchange the addresses of their QPs.
 */
#ifndef UROCE_FLOW_OOB_H
#define UROCE_FLOW_OOB_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "device.h"

/*
 * Byte stream between two endpoints: a socket, or an rsocket(7) of librdmacm, which uses the RDMA
 * connection manager and a QP of its own.
 */
struct oob_sock {
	int fd; /* fd, or rsocket number */
	bool rdma_cm;
};

/* Return 0, or -1 with errno.  oob_sock_accept() closes the listener. */
int oob_sock_listen(struct oob_sock *listener, bool rdma_cm, int port);
int oob_sock_accept(struct oob_sock *sock, struct oob_sock *listener);
int oob_sock_connect(struct oob_sock *sock, bool rdma_cm, const char *host, int port);
/* Closes the stream; sent data is still delivered, even if this process exits afterwards. */
void oob_sock_close(struct oob_sock sock);

/* Transfer exactly count bytes.  Return 0, or -1 on error or end of stream. */
int oob_sock_send(struct oob_sock sock, const void *bytes, size_t count);
int oob_sock_receive(struct oob_sock sock, void *bytes, size_t count);
/* Reads available bytes without removing them and without blocking; returns like recv(2). */
ssize_t oob_sock_peek(struct oob_sock sock, void *bytes, size_t count);

enum { MIN_DEPTH = 4, MAX_DEPTH = 8192, MAX_COUNT = 100000000 };

struct run_plan {
	char scheme[32], scenario[32];
	uint64_t seed;
	uint32_t depth, bytes, links, count[FLOW_SIDES], requests;
	uint64_t service_ns[FLOW_SIDES];
	uint32_t two_hosts; /* the endpoints are on two hosts; not sent */
};

/*
 * Negotiates the plan; side 0 is the active one.  Stores the result in *plan.  This and the next
 * function return 0, or -1 with a message in device->error.
 */
int oob_negotiate(struct oob_sock sock, uint32_t side, struct device *device,
		  struct run_plan *plan);
int oob_connect(struct oob_sock sock, struct device *device, bool rnr_retry);
/* Waits until both endpoints have called it.  Returns 0 or -1. */
int oob_barrier(struct oob_sock sock);
/*
 * Measures the offset to add to the peer's timestamps, by the fastest of several round trips.
 * Returns 0 or -1.
 */
int oob_measure_clock(struct oob_sock sock, uint32_t side, int64_t *offset_ns);

/* Stores the plan's scenario with the plan's numbers in *sc.  Returns false if out of limits. */
bool plan_scenario(const struct run_plan *plan, struct scenario *sc);
void plan_from_scenario(struct run_plan *plan, const struct scenario *sc);

uint64_t clock_ns(void);

#endif
