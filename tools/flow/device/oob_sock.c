// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <rdma/rsocket.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "oob.h"

/* Socket calls of the kernel and of librdmacm. */
static const struct oob_sock_ops {
	int (*socket)(int domain, int type, int protocol);
	int (*bind)(int fd, const struct sockaddr *address, socklen_t length);
	int (*listen)(int fd, int backlog);
	int (*accept)(int fd, struct sockaddr *address, socklen_t *length);
	int (*connect)(int fd, const struct sockaddr *address, socklen_t length);
	int (*setsockopt)(int fd, int level, int name, const void *value, socklen_t length);
	ssize_t (*send)(int fd, const void *bytes, size_t count, int flags);
	ssize_t (*recv)(int fd, void *bytes, size_t count, int flags);
	int (*shutdown)(int fd, int how);
	int (*close)(int fd);
} calls[] = {
	{ socket, bind, listen, accept, connect, setsockopt, send, recv, shutdown, close },
	{ rsocket, rbind, rlisten, raccept, rconnect, rsetsockopt, rsend, rrecv, rshutdown,
	  rclose },
};

static const struct oob_sock_ops *ops_of(struct oob_sock sock)
{
	return &calls[sock.rdma_cm];
}

static int close_failed(struct oob_sock *sock)
{
	int error = errno;

	if (sock->fd >= 0)
		ops_of(*sock)->close(sock->fd);
	sock->fd = -1;
	errno = error;
	return -1;
}

static bool create_socket(struct oob_sock *sock, bool rdma_cm, int family)
{
	sock->rdma_cm = rdma_cm;
	sock->fd = ops_of(*sock)->socket(family, SOCK_STREAM, 0);
	return sock->fd >= 0;
}

int oob_sock_listen(struct oob_sock *listener, bool rdma_cm, int port)
{
	const struct sockaddr_in6 any = { .sin6_family = AF_INET6,
					  .sin6_port = htons((uint16_t)port) };
	const struct oob_sock_ops *ops = &calls[rdma_cm];
	const int on = 1, off = 0;

	if (!create_socket(listener, rdma_cm, AF_INET6))
		return -1;
	ops->setsockopt(listener->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	ops->setsockopt(listener->fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (ops->bind(listener->fd, (const struct sockaddr *)&any, sizeof(any)) ||
	    ops->listen(listener->fd, 1))
		return close_failed(listener);
	return 0;
}

static int set_nodelay(struct oob_sock *sock)
{
	const int on = 1;

	if (sock->fd < 0)
		return -1;
	if (!sock->rdma_cm)
		fcntl(sock->fd, F_SETFD, FD_CLOEXEC);
	ops_of(*sock)->setsockopt(sock->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return 0;
}

int oob_sock_accept(struct oob_sock *sock, struct oob_sock *listener)
{
	sock->rdma_cm = listener->rdma_cm;
	sock->fd = ops_of(*listener)->accept(listener->fd, NULL, NULL);
	close_failed(listener);
	return set_nodelay(sock);
}

int oob_sock_connect(struct oob_sock *sock, bool rdma_cm, const char *host, int port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found, *a;
	char service[12];

	*sock = (struct oob_sock){ .fd = -1 };
	snprintf(service, sizeof(service), "%d", port);
	if (getaddrinfo(host, service, &hints, &found)) {
		errno = EHOSTUNREACH;
		return -1;
	}
	for (a = found; a && sock->fd < 0; a = a->ai_next)
		if (create_socket(sock, rdma_cm, a->ai_family) &&
		    ops_of(*sock)->connect(sock->fd, a->ai_addr, a->ai_addrlen))
			close_failed(sock);
	freeaddrinfo(found);
	return set_nodelay(sock);
}

void oob_sock_close(struct oob_sock sock)
{
	/*
	 * An rsocket needs rshutdown(), which waits until the peer has received all data; a socket
	 * delivers the data after close(2).
	 */
	if (sock.rdma_cm)
		ops_of(sock)->shutdown(sock.fd, SHUT_RDWR);
	ops_of(sock)->close(sock.fd);
}

/* Sends or receives all count bytes.  Returns 0 or -1. */
static int transfer_all(struct oob_sock sock, char *bytes, size_t count, bool send)
{
	for (size_t done = 0; done < count;) {
		ssize_t n =
			send ? ops_of(sock)->send(sock.fd, bytes + done, count - done, MSG_NOSIGNAL)
			     : ops_of(sock)->recv(sock.fd, bytes + done, count - done, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		done += (size_t)n;
	}
	return 0;
}

int oob_sock_send(struct oob_sock sock, const void *bytes, size_t count)
{
	return transfer_all(sock, (char *)bytes, count, true);
}

int oob_sock_receive(struct oob_sock sock, void *bytes, size_t count)
{
	return transfer_all(sock, bytes, count, false);
}

ssize_t oob_sock_peek(struct oob_sock sock, void *bytes, size_t count)
{
	return ops_of(sock)->recv(sock.fd, bytes, count, MSG_PEEK | MSG_DONTWAIT);
}
