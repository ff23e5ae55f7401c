/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Byte stream between two endpoints: a socket, or an rsocket(7) of librdmacm, which uses the RDMA
 * connection manager and a QP of its own.
 */
#ifndef UROCE_FLOW_OOB_SOCK_H
#define UROCE_FLOW_OOB_SOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

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

#endif
