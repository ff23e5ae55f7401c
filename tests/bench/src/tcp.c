/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Performance of a program that uses TCP sockets instead.
 * - pingpong: half round trip of a message, both sides spinning on recv(); --blocking: sleeping
 * - stream: messages one way as fast as possible, one send() each
 */
#include "pair.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RECEIVE_BYTES (1 << 20)

static int listen_and_accept(struct pair *pair)
{
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd;

	if (listener < 0)
		pair_die("socket");
	/* The port is sent before listen(): the client tries again until it is accepted. */
	pair_bind(pair, listener, PAIR_SERVER);
	if (listen(listener, 1) != 0)
		pair_die("listen");
	fd = accept(listener, NULL, NULL);
	if (fd < 0)
		pair_die("accept");
	return fd;
}

static int connect_to_server(struct pair *pair)
{
	struct sockaddr_in name = pair_address(pair, PAIR_SERVER);
	uint64_t give_up = pair_now_ns() + PAIR_PATIENCE_NS;

	for (;;) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (fd < 0)
			pair_die("socket");
		if (connect(fd, (struct sockaddr *)&name, sizeof(name)) == 0)
			return fd;
		if (errno != ECONNREFUSED || pair_now_ns() > give_up)
			pair_die("connect");
		close(fd);
		usleep(1000);
	}
}

static void without_delay(int fd)
{
	int on = 1;

	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0)
		pair_die("TCP_NODELAY");
}

static char *memory(size_t size)
{
	char *bytes = aligned_alloc(4096, (size + 4095) & ~(size_t)4095);

	if (!bytes)
		pair_die("aligned_alloc");
	memset(bytes, 0x5a, size);
	return bytes;
}

/* Returns false if the other side has closed the connection, or on an error. */
static bool transfer(struct pair *pair, int fd, char *bytes, size_t size, bool out)
{
	int flags = (pair->blocking ? 0 : MSG_DONTWAIT) | MSG_NOSIGNAL;
	size_t done = 0;

	while (done < size) {
		ssize_t n = out ? send(fd, bytes + done, size - done, flags)
				: recv(fd, bytes + done, size - done, flags);

		if (n > 0)
			done += (size_t)n;
		else if (n == 0 || (errno != EAGAIN && errno != EINTR))
			return false;
	}
	return true;
}

static void pingpong_server(struct pair *pair)
{
	char *bytes = memory(pair->size);
	int fd = listen_and_accept(pair);

	without_delay(fd);
	while (transfer(pair, fd, bytes, pair->size, false) &&
	       transfer(pair, fd, bytes, pair->size, true))
		;
}

struct client {
	int fd;
	char *bytes;
};

static bool exchange(struct pair *pair, void *arg)
{
	struct client *client = arg;

	return transfer(pair, client->fd, client->bytes, pair->size, true) &&
	       transfer(pair, client->fd, client->bytes, pair->size, false);
}

static void pingpong_client(struct pair *pair)
{
	struct client client = { .bytes = memory(pair->size) };

	client.fd = connect_to_server(pair);
	without_delay(client.fd);
	pair_measure_latency(pair, exchange, &client);
}

/*
 * A spinning receiver costs the sender less than one that must be woken up (--blocking).
 */
static void stream_server(struct pair *pair)
{
	char *bytes = memory(RECEIVE_BYTES);
	int fd = listen_and_accept(pair);
	int flags = pair->blocking ? 0 : MSG_DONTWAIT;

	while (!pair->shared->stop) {
		ssize_t n = recv(fd, bytes, RECEIVE_BYTES, flags);

		if (n > 0)
			pair->shared->bytes += (uint64_t)n;
		else if (n == 0)
			return;
		else if (errno != EAGAIN && errno != EINTR)
			pair_die("recv");
	}
}

static void stream_client(struct pair *pair)
{
	char *bytes = memory(pair->size);
	int fd = connect_to_server(pair);

	while (!pair->shared->stop && transfer(pair, fd, bytes, pair->size, true))
		;
}

int main(int argc, char **argv)
{
	struct pair pair;

	pair_options(&pair, argc, argv, "pingpong, stream");
	if (strcmp(pair.mode, "pingpong") == 0) {
		pair_run(&pair, pingpong_server, pingpong_client);
	} else if (strcmp(pair.mode, "stream") == 0) {
		pair_run_stream(&pair, stream_server, stream_client);
	} else {
		fprintf(stderr, "no such mode: %s\n", pair.mode);
		return 2;
	}
	return 0;
}
