/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Minimum cost of a round trip of 2-byte SENDs: the packets of ib_send_lat by the shortest program
 * that makes and receives them, for instructions.py to count.
 *
 * bench_least COUNT: number of round trips, both sides in one thread
 *
 * In each round trip a side posts a SEND, which is sent with the ACK of the previous SEND in one
 * system call, and receives the peer's SEND and ACK in one: headers and ICRC of two packets made,
 * two parsed and checked, the payload copied, two completions polled.  Nothing else: one
 * connection, PSNs that must be the next, no locks, keys, timers, credits or losses.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "wire/icrc.h"
#include "wire/packet.h"

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

enum {
	PAYLOAD = 2,
	PAD = 2,
	AETH = 4,
	/* SEND and ACK are of the same length, so that both leave in one call. */
	PACKET = WIRE_BTH_BYTES + PAYLOAD + PAD + WIRE_ICRC_BYTES,
	PACKETS = 2,
	BUFFER = 65536,
	PSN_MASK = 0xffffff,
	COMPLETIONS = 16, /* a power of two */
};

struct completion {
	uint64_t wr_id;
	uint32_t length, qpn;
	uint8_t opcode, status;
};

struct side {
	int fd;
	uint32_t qpn, dest_qpn;
	uint32_t psn, acked_psn; /* of the next SEND, of the next ACK */
	uint32_t expected_psn, msn;
	struct wire_path out, in;
	uint8_t payload[PAYLOAD], place[PAYLOAD];
	struct completion ring[COMPLETIONS];
	unsigned int head, tail;
	uint8_t packets[PACKETS * PACKET];
	uint8_t received[BUFFER];
};

static _Noreturn void die(const char *what)
{
	perror(what);
	exit(1);
}

static void post(struct side *side)
{
	_Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(uint16_t))] = { 0 };
	struct iovec piece = { .iov_base = side->packets, .iov_len = sizeof(side->packets) };
	struct msghdr message = {
		.msg_iov = &piece,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = (struct cmsghdr *)(void *)control;
	uint8_t *send = side->packets, *ack = send + PACKET;
	uint16_t segment = PACKET;

	wire_put_bth(send, WIRE_RC | WIRE_SEND_ONLY, WIRE_BTH_MIGREQ | PAD << WIRE_BTH_PAD_SHIFT,
		     WIRE_DEFAULT_PKEY, side->dest_qpn, side->psn | WIRE_BTH_ACKREQ);
	memcpy(send + WIRE_BTH_BYTES, side->payload, PAYLOAD);
	memset(send + WIRE_BTH_BYTES + PAYLOAD, 0, PAD);
	wire_icrc_put(&side->out, 0, send, PACKET);
	side->psn = (side->psn + 1) & PSN_MASK;

	wire_put_bth(ack, WIRE_RC | WIRE_ACKNOWLEDGE, WIRE_BTH_MIGREQ, WIRE_DEFAULT_PKEY,
		     side->dest_qpn, (side->expected_psn - 1) & PSN_MASK);
	wire_put_be32(ack + WIRE_BTH_BYTES, side->msn);
	wire_icrc_put(&side->out, 1, ack, PACKET);

	cmsg->cmsg_level = IPPROTO_UDP;
	cmsg->cmsg_type = UDP_SEGMENT;
	cmsg->cmsg_len = CMSG_LEN(sizeof(segment));
	memcpy(CMSG_DATA(cmsg), &segment, sizeof(segment));
	if (syscall(SYS_sendmsg, side->fd, &message, MSG_DONTWAIT) < 0)
		die("sendmsg");
}

static void complete(struct side *side, uint8_t opcode, uint32_t length)
{
	side->ring[side->head++ % COMPLETIONS] = (struct completion){
		.wr_id = side->head,
		.length = length,
		.qpn = side->qpn,
		.opcode = opcode,
	};
}

/* Returns false if this is not the packet that must come next. */
static bool admit(struct side *side, const struct wire_packet *packet)
{
	if (packet->dest_qpn != side->qpn || packet->pkey != WIRE_DEFAULT_PKEY)
		return false;
	if (packet->opcode == (WIRE_RC | WIRE_SEND_ONLY)) {
		if (packet->psn != side->expected_psn || packet->payload_length > PAYLOAD)
			return false;
		memcpy(side->place, packet->payload, packet->payload_length);
		side->expected_psn = (side->expected_psn + 1) & PSN_MASK;
		side->msn++;
		complete(side, packet->opcode, packet->payload_length);
		return true;
	}
	/* The first ACK has nothing to acknowledge. */
	if (packet->opcode != (WIRE_RC | WIRE_ACKNOWLEDGE))
		return false;
	if (packet->psn == side->acked_psn) {
		side->acked_psn = (side->acked_psn + 1) & PSN_MASK;
		complete(side, packet->opcode, 0);
	}
	return true;
}

static void receive(struct side *side)
{
	_Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(int))];
	struct iovec piece = { .iov_base = side->received, .iov_len = sizeof(side->received) };
	struct sockaddr_in from;
	struct msghdr message = {
		.msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_iov = &piece,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	long bytes = syscall(SYS_recvmsg, side->fd, &message, 0);
	uint16_t place = 0;

	if (bytes != (long)sizeof(side->packets))
		die("recvmsg");
	for (long offset = 0; offset < bytes; offset += PACKET, place++) {
		const uint8_t *at = side->received + offset;
		struct wire_packet packet;
		uint16_t ip_id = place;

		if (wire_parse(at, PACKET, &packet) != WIRE_OK ||
		    wire_icrc_check(&side->in, &ip_id, at, PACKET) != WIRE_ICRC_OK ||
		    !admit(side, &packet))
			die("wrong packet");
	}
}

static unsigned int poll_all(struct side *side)
{
	volatile struct completion seen;
	unsigned int count = 0;

	for (; side->tail != side->head; count++)
		seen = side->ring[side->tail++ % COMPLETIONS];
	(void)seen;
	return count;
}

static void open_side(struct side *side, uint32_t qpn, uint32_t dest_qpn)
{
	struct sockaddr_in self = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int on = 1;

	side->qpn = qpn;
	side->dest_qpn = dest_qpn;
	side->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (side->fd < 0 || bind(side->fd, (struct sockaddr *)&self, sizeof(self)) != 0)
		die("socket");
	if (setsockopt(side->fd, IPPROTO_UDP, UDP_GRO, &on, sizeof(on)) != 0)
		die("UDP_GRO");
}

/* Both ends of the paths are 127.0.0.1; the ICRC uses the port of the side that sends. */
static void connect_side(struct side *side, const struct side *peer)
{
	struct sockaddr_in own, other;
	socklen_t bytes = sizeof(own);

	if (getsockname(side->fd, (struct sockaddr *)&own, &bytes) != 0 ||
	    getsockname(peer->fd, (struct sockaddr *)&other, &bytes) != 0 ||
	    connect(side->fd, (struct sockaddr *)&other, sizeof(other)) != 0)
		die("connect");
	memcpy(side->out.src + 12, &own.sin_addr, 4);
	memcpy(side->out.dst + 12, &other.sin_addr, 4);
	memset(side->out.src + 10, 0xff, 2);
	memset(side->out.dst + 10, 0xff, 2);
	side->in = side->out;
	side->out.src_port = ntohs(own.sin_port);
	side->in.src_port = ntohs(other.sin_port);
}

int main(int argc, char **argv)
{
	static struct side sides[2];
	unsigned long count = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;

	if (count == 0) {
		fprintf(stderr, "usage: %s COUNT\n", argv[0]);
		return 2;
	}
	open_side(&sides[0], 0x11, 0x22);
	open_side(&sides[1], 0x22, 0x11);
	connect_side(&sides[0], &sides[1]);
	connect_side(&sides[1], &sides[0]);
	for (unsigned long i = 0; i < count; i++) {
		for (int n = 0; n < 2; n++) {
			post(&sides[n]);
			receive(&sides[1 - n]);
			/* The first SEND comes with an ACK that completes nothing. */
			if (poll_all(&sides[1 - n]) != 2 && i > 0) {
				fprintf(stderr, "a completion is missing\n");
				return 1;
			}
		}
	}
	return 0;
}
