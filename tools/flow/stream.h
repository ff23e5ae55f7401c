/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The stream of bytes between two ends: a socket, or a socket of librdmacm (rsocket(7)), which the
 * connection manager of RDMA connects and whose bytes go over a queue pair of its own.
 */
#ifndef UROCE_FLOW_STREAM_H
#define UROCE_FLOW_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct stream {
	int fd; /* of the kernel, or a number of librdmacm's */
	bool rdma_cm;
};

/* 0, or -1 with errno.  A connection from a listener, which is closed. */
int stream_listen(struct stream *listener, bool rdma_cm, int port);
int stream_accept(struct stream *stream, struct stream *listener);
int stream_connect(struct stream *stream, bool rdma_cm, const char *host, int port);
/* What was sent arrives, also when this process ends then. */
void stream_close(struct stream stream);

/* All of it: 0, or -1 when the peer has gone. */
int stream_send(struct stream stream, const void *bytes, size_t count);
int stream_receive(struct stream stream, void *bytes, size_t count);
/* What is there already, and stays there; as recv(2). */
ssize_t stream_peek(struct stream stream, void *bytes, size_t count);

#endif
