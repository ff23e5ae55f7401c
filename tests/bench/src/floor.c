/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Lower limit of the cost of any transport over UDP sockets: the kernel's UDP alone, without
 * protocol, checksum or copy into place.
 *
 *   pingpong   half round trip of a message, both sides spinning on recv(); --blocking: sleeping
 *   stages     the same with the times of its stages (stages.h)
 *   stream     bursts of packets by UDP_SEGMENT, received whole by UDP_GRO and thrown away; --work:
 *              gathered, with a CRC on either side and a copy into place (floor_work.h)
 *
 * The sockets are used as a transport must use them: an unconnected one for each direction, with
 * large buffers.  A counter in shared memory limits a stream, so that nothing is lost and no
 * acknowledgment costs anything.
 */
#include "floor_work.h"
#include "pair.h"
#include "stages.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define SOCKET_BUFFER (4 << 20)
/* The largest packet of a ping-pong, and the most bytes of one system call. */
#define SEGMENT 4128
#define RUN_BYTES (15 * SEGMENT)
#define MAX_DATAGRAM 65507
/* Outstanding super-packets of a stream: enough to keep both sides busy, few enough for any buffer.
 */
#define WINDOW 8

struct sockets {
	int rx, tx;
	struct sockaddr_in peer;
	char *buffer; /* of RUN_BYTES at least */
};

static void open_sockets(struct pair *pair, struct sockets *sockets, int side)
{
	int on = 1;

	sockets->rx = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	sockets->tx = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sockets->rx < 0 || sockets->tx < 0)
		pair_die("socket");
	pair_socket_buffers(sockets->rx, SOCKET_BUFFER);
	pair_socket_buffers(sockets->tx, SOCKET_BUFFER);
	if (setsockopt(sockets->rx, IPPROTO_UDP, UDP_GRO, &on, sizeof(on)) != 0)
		pair_die("UDP_GRO");
	if (pair->blocking) {
		struct timeval patience = { .tv_sec = PAIR_PATIENCE_NS / 1000000000ULL };

		setsockopt(sockets->rx, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	}
	pair_bind(pair, sockets->rx, side);
	sockets->peer = pair_address(pair, 1 - side);
	sockets->buffer = aligned_alloc(4096, 1 << 16);
	if (!sockets->buffer)
		pair_die("aligned_alloc");
	memset(sockets->buffer, 0x5a, 1 << 16);
}

/* Sends several packets of segment bytes, the last perhaps shorter, in one system call. */
static void send_pieces(struct sockets *sockets, struct iovec *pieces, unsigned int count,
			size_t segment)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(uint16_t))] = { 0 };
	struct cmsghdr *cmsg = (struct cmsghdr *)control;
	struct msghdr msg = { .msg_name = &sockets->peer,
			      .msg_namelen = sizeof(sockets->peer),
			      .msg_iov = pieces,
			      .msg_iovlen = count,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	uint16_t value = (uint16_t)segment;

	cmsg->cmsg_level = IPPROTO_UDP;
	cmsg->cmsg_type = UDP_SEGMENT;
	cmsg->cmsg_len = CMSG_LEN(sizeof(value));
	memcpy(CMSG_DATA(cmsg), &value, sizeof(value));
	if (sendmsg(sockets->tx, &msg, 0) < 0)
		pair_die("sendmsg");
}

static void send_run(struct sockets *sockets, void *bytes, size_t length, size_t segment)
{
	struct iovec piece = { .iov_base = bytes, .iov_len = length };

	send_pieces(sockets, &piece, 1, segment);
}

static void send_packet(struct sockets *sockets, size_t length)
{
	if (sendto(sockets->tx, sockets->buffer, length, 0, (struct sockaddr *)&sockets->peer,
		   sizeof(sockets->peer)) != (ssize_t)length)
		pair_die("sendto");
}

static void send_message(struct sockets *sockets, size_t size)
{
	while (size > 0) {
		size_t now = size < RUN_BYTES ? size : RUN_BYTES;

		if (now > SEGMENT)
			send_run(sockets, sockets->buffer, now, SEGMENT);
		else
			send_packet(sockets, now);
		size -= now;
	}
}

/* Returns false if the message does not arrive. */
static bool receive_message(struct pair *pair, struct sockets *sockets, size_t size)
{
	uint64_t give_up = 0;
	unsigned int empty = 0;

	while (size > 0) {
		ssize_t n = recv(sockets->rx, sockets->buffer, 1 << 16,
				 pair->blocking ? 0 : MSG_DONTWAIT);

		if (n > 0) {
			size -= (size_t)n < size ? (size_t)n : size;
			continue;
		}
		if (pair->blocking || (errno != EAGAIN && errno != EINTR))
			return false;
		/* The clock is read so rarely that it does not slow down the loop. */
		if (++empty % 4096 == 0) {
			if (!give_up)
				give_up = pair_now_ns() + PAIR_PATIENCE_NS;
			if (pair->shared->stop || pair_now_ns() > give_up)
				return false;
		}
	}
	return true;
}

static void pingpong_server(struct pair *pair)
{
	struct sockets sockets;

	open_sockets(pair, &sockets, PAIR_SERVER);
	while (receive_message(pair, &sockets, pair->size))
		send_message(&sockets, pair->size);
	/* The client has got all responses, or reports a missing one itself. */
}

static bool exchange(struct pair *pair, void *arg)
{
	struct sockets *sockets = arg;

	send_message(sockets, pair->size);
	return receive_message(pair, sockets, pair->size);
}

static void pingpong_client(struct pair *pair)
{
	struct sockets sockets;

	open_sockets(pair, &sockets, PAIR_CLIENT);
	pair_measure_latency(pair, exchange, &sockets);
}

static struct stages *stages;

/* Receives one packet; returns the time after the successful recv(), *look: the time before it. */
static uint64_t take_packet(struct sockets *sockets, uint64_t *look)
{
	ssize_t n;

	do {
		*look = pair_now_ns();
		n = recv(sockets->rx, sockets->buffer, 1 << 16, MSG_DONTWAIT);
	} while (n < 0 && errno == EAGAIN);
	if (n < 0)
		pair_die("recv");
	return pair_now_ns();
}

static void look_in_vain(void *arg)
{
	struct sockets *sockets = arg;

	recv(sockets->rx, sockets->buffer, 1 << 16, MSG_DONTWAIT);
}

static void stages_server(struct pair *pair)
{
	struct sockets sockets;
	uint64_t look;

	open_sockets(pair, &sockets, PAIR_SERVER);
	for (int i = 0; i < STAGES_MESSAGES; i++) {
		stages->at[i][STAGE_FOUND] = take_packet(&sockets, &look);
		stages->at[i][STAGE_LOOK] = look;
		if (i == STAGES_MESSAGES - 1)
			stages->empty_ns = stages_time_ns(look_in_vain, &sockets);
		send_message(&sockets, pair->size);
	}
}

static void stages_client(struct pair *pair)
{
	struct sockets sockets;
	uint64_t look;

	open_sockets(pair, &sockets, PAIR_CLIENT);
	for (int i = 0; i < STAGES_MESSAGES; i++) {
		stages->at[i][STAGE_POST] = pair_now_ns();
		send_message(&sockets, pair->size);
		stages->at[i][STAGE_POSTED] = pair_now_ns();
		take_packet(&sockets, &look);
	}
	stages_report(stages);
}

static void stream_server(struct pair *pair)
{
	uint8_t *place = aligned_alloc(4096, 1 << 16);
	struct sockets sockets;

	if (!place)
		pair_die("aligned_alloc");
	memset(place, 0, 1 << 16);
	open_sockets(pair, &sockets, PAIR_SERVER);
	while (!pair->shared->stop) {
		ssize_t n = recv(sockets.rx, sockets.buffer, 1 << 16, MSG_DONTWAIT);

		if (n < 0 && errno != EAGAIN)
			pair_die("recv");
		if (n <= 0)
			continue;
		if (pair->work)
			work_receive((uint8_t *)sockets.buffer, (size_t)n, pair->size, place);
		pair->shared->bytes += (uint64_t)n;
	}
}

static void stream_client(struct pair *pair)
{
	size_t super = pair->size * pair->run;
	size_t region = pair->region > super ? pair->region : super;
	char *bytes = aligned_alloc(4096, (region + 4095) & ~(size_t)4095);
	struct work *work = calloc(1, sizeof(*work));
	struct sockets sockets;
	uint64_t sent = 0;
	size_t at = 0;

	if (!bytes || !work)
		pair_die("aligned_alloc");
	memset(bytes, 0x5a, region);
	open_sockets(pair, &sockets, PAIR_CLIENT);
	while (!pair->shared->stop) {
		if (sent - pair->shared->bytes >= WINDOW * super)
			continue;
		if (pair->work)
			send_pieces(&sockets, work->pieces,
				    work_send(work, (uint8_t *)bytes + at, pair->size, pair->run),
				    pair->size);
		else
			send_run(&sockets, bytes + at, super, pair->size);
		sent += super;
		at += super;
		if (at + super > region)
			at = 0;
	}
}

int main(int argc, char **argv)
{
	struct pair pair;

	pair_options(&pair, argc, argv, "pingpong, stages, stream");
	if (strcmp(pair.mode, "stream") == 0 && pair.size * pair.run > MAX_DATAGRAM) {
		fprintf(stderr, "size times run is more than a datagram holds\n");
		return 2;
	}
	if (pair.work && (pair.size <= WORK_HEADER + WORK_CRC || pair.run > WORK_MAX_PACKETS)) {
		fprintf(stderr, "too small, or too many packets, for --work\n");
		return 2;
	}
	if (strcmp(pair.mode, "pingpong") == 0) {
		pair_run(&pair, pingpong_server, pingpong_client);
	} else if (strcmp(pair.mode, "stages") == 0) {
		stages = stages_open();
		pair_run(&pair, stages_server, stages_client);
	} else if (strcmp(pair.mode, "stream") == 0) {
		pair_run_stream(&pair, stream_server, stream_client);
	} else {
		fprintf(stderr, "no such mode: %s\n", pair.mode);
		return 2;
	}
	return 0;
}
