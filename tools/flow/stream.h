/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Byte stream between two endpoints: a socket, or an rsocket(7) of librdmacm, which uses the RDMA
 * connection manager and a QP of its own.
 */
#ifndef UROCE_FLOW_STREAM_H
#define UROCE_FLOW_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct stream {
	int fd; /* fd, or rsocket number */
	bool rdma_cm;
};

/* Return 0, or -1 with errno.  stream_accept() closes the listener. */
int stream_listen(struct stream *listener, bool rdma_cm, int port);
int stream_accept(struct stream *stream, struct stream *listener);
int stream_connect(struct stream *stream, bool rdma_cm, const char *host, int port);
/* Closes the stream; sent data is still delivered, even if this process exits afterwards. */
void stream_close(struct stream stream);

/* Transfer exactly count bytes.  Return 0, or -1 on error or end of stream. */
int stream_send(struct stream stream, const void *bytes, size_t count);
int stream_receive(struct stream stream, void *bytes, size_t count);
/* Reads available bytes without removing them and without blocking; returns like recv(2). */
ssize_t stream_peek(struct stream stream, void *bytes, size_t count);

#endif
