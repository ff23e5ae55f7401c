/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "demux_peer.h"

#include <arpa/inet.h>
#include <netinet/udp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "progress_end.h"
#include "wire/packet.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

void demux_peer_open(struct demux_peer *peer, const char *address)
{
	struct sockaddr_in self = { .sin_family = AF_INET };
	socklen_t bytes = sizeof(self);
	int discover = IP_PMTUDISC_DO;

	peer->sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_true(peer->sock >= 0);
	inet_pton(AF_INET, address, &self.sin_addr);
	assert_int_equal(bind(peer->sock, (struct sockaddr *)&self, sizeof(self)), 0);
	assert_int_equal(getsockname(peer->sock, (struct sockaddr *)&self, &bytes), 0);
	setsockopt(peer->sock, IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof(discover));
	memcpy(peer->path.src, end_loopback, 16);
	memcpy(peer->path.src + 12, &self.sin_addr, 4);
	memcpy(peer->path.dst, end_loopback, 16);
	peer->path.src_port = ntohs(self.sin_port);
	peer->path.ipv6 = false;
}

void demux_peer_close(struct demux_peer *peer)
{
	close(peer->sock);
}

void demux_peer_make(const struct demux_peer *peer, uint8_t bytes[DEMUX_PACKET_BYTES],
		     uint8_t service, uint32_t qpn, uint32_t psn, uint16_t identification)
{
	struct wire_packet packet = {
		.opcode = (uint8_t)(service | WIRE_SEND_ONLY),
		.migrated = true,
		.pkey = WIRE_DEFAULT_PKEY,
		.dest_qpn = qpn,
		.psn = psn & 0xffffff,
	};

	memset(bytes, 0x5a, DEMUX_PACKET_BYTES);
	assert_int_equal(wire_build_headers(&packet, bytes), WIRE_BTH_BYTES);
	wire_icrc_put(&peer->path, identification, bytes, DEMUX_PACKET_BYTES);
}

void demux_peer_send(const struct demux_peer *peer, const uint8_t *bytes, size_t length,
		     uint16_t segment)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(WIRE_UDP_PORT) };
	int option = segment;

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(setsockopt(peer->sock, IPPROTO_UDP, UDP_SEGMENT, &option, sizeof(option)),
			 0);
	assert_int_equal(sendto(peer->sock, bytes, length, 0, (struct sockaddr *)&to, sizeof(to)),
			 length);
}
