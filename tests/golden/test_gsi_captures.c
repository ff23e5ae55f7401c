/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Packets of the kernel's queue pair 1 are those that uroce would send: every such packet of the
 * captures is built again from its MAD, byte for byte, and classified correctly.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <pcap/pcap.h>

#include "broker/gsi_packet.h"
#include "broker/target.h"
#include "wire/bytes.h"

#define ETHERNET_BYTES 14
#define ETHERTYPE_IPV6 0x86dd
#define IPV4_BYTES 20
#define IPV4_ID 4
#define IPV4_SOURCE 12
#define IPV6_BYTES 40
#define IPV6_SOURCE 8
#define UDP_BYTES 8
/* MigReq: the kernel's soft RoCE leaves it out, we set it (rule S15). */
#define BTH_FLAGS 1
#define BTH_MIGREQ 0x40
#define MAD_ATTRIBUTE 16
#define MAD_LOCAL_ID 24
#define MAD_REMOTE_ID 28

static const struct {
	const char *name;
	unsigned int packets;
} captures[] = {
	{ "cm_rping", 5 },     { "cm_ucmatose", 5 }, { "cm_udaddy", 2 }, { "cm_rdma_client", 5 },
	{ "cm_write_bw", 12 }, { "cm_rstream", 7 },  { "cm_ipv6", 5 },	 { "cm_reject", 2 },
};

/* Reads addresses, port and IPv4 identification of a frame; returns its UDP header. */
static const uint8_t *read_path(const uint8_t *frame, struct wire_path *path, uint16_t *ip_id)
{
	const uint8_t *ip = frame + ETHERNET_BYTES;
	bool ipv6 = wire_get_be16(ip - 2) == ETHERTYPE_IPV6;
	const uint8_t *udp = ip + (ipv6 ? IPV6_BYTES : IPV4_BYTES);

	memset(path, 0, sizeof(*path));
	path->ipv6 = ipv6;
	path->src_port = wire_get_be16(udp);
	*ip_id = wire_get_be16(ip + IPV4_ID);
	if (ipv6) {
		memcpy(path->src, ip + IPV6_SOURCE, 16);
		memcpy(path->dst, ip + IPV6_SOURCE + 16, 16);
		return udp;
	}
	memset(path->src + 10, 0xff, 2);
	memset(path->dst + 10, 0xff, 2);
	memcpy(path->src + 12, ip + IPV4_SOURCE, 4);
	memcpy(path->dst + 12, ip + IPV4_SOURCE + 4, 4);
	return udp;
}

static void check_target(const uint8_t *mad)
{
	const struct target target = target_from_mad(mad);
	uint32_t id = wire_get_be32(mad + MAD_REMOTE_ID);

	switch (wire_get_be16(mad + MAD_ATTRIBUTE)) {
	case 0x10:
		assert_int_equal(target.kind, TARGET_REQUEST);
		assert_int_equal(target.service_id >> 16, 0x0106);
		assert_int_equal(target.id, wire_get_be32(mad + MAD_LOCAL_ID));
		/* GUIDs of the two guests that were captured. */
		assert_int_equal(target.guid >> 8, UINT64_C(0x505400fffe7700));
		return;
	case 0x17:
		assert_int_equal(target.kind, TARGET_SERVICE);
		assert_int_equal(target.service_id >> 16, 0x0111);
		return;
	case 0x18:
		id = wire_get_be32(mad + MAD_LOCAL_ID);
		break;
	default:
		break;
	}
	assert_int_equal(target.kind, TARGET_SLOT);
	assert_int_equal(target.slot, id >> 20);
}

static bool check_frame(const uint8_t *frame)
{
	uint8_t built[GSI_PACKET_BYTES];
	struct wire_packet packet;
	struct wire_path path;
	uint16_t ip_id;
	const uint8_t *udp = read_path(frame, &path, &ip_id), *bytes = udp + UDP_BYTES;
	size_t length = wire_get_be16(udp + 4) - (size_t)UDP_BYTES;

	assert_int_equal(wire_parse(bytes, length, &packet), WIRE_OK);
	if (packet.dest_qpn != MAD_QPN)
		return false;
	assert_int_equal(length, GSI_PACKET_BYTES);
	assert_int_equal(gsi_packet_check(&packet), GSI_OK);
	gsi_packet_build(&path, packet.psn, packet.payload, built);
	built[BTH_FLAGS] &= (uint8_t)~BTH_MIGREQ;
	/* The IPv4 identification of the captured packet; our own packets have 0. */
	wire_icrc_put(&path, ip_id, built, sizeof(built));
	assert_memory_equal(built, bytes, sizeof(built));
	check_target(packet.payload);
	return true;
}

static void test_captures(void **state)
{
	char file[512], error[PCAP_ERRBUF_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(captures) / sizeof(captures[0]); i++) {
		struct pcap_pkthdr *header;
		const uint8_t *frame;
		unsigned int packets = 0;
		pcap_t *capture;

		snprintf(file, sizeof(file), "%s/%s.pcap", UROCE_CAPTURES, captures[i].name);
		capture = pcap_open_offline(file, error);
		if (!capture)
			fail_msg("%s", error);
		while (pcap_next_ex(capture, &header, &frame) == 1)
			packets += check_frame(frame);
		pcap_close(capture);
		if (packets != captures[i].packets)
			fail_msg("%s: %u packets", captures[i].name, packets);
	}
}

/* The packet that we send has MigReq, and an ICRC for IPv4 identification 0. */
static void test_own(void **state)
{
	static const uint8_t mad[MAD_BYTES] = { 1, 7, 2, 3 };
	struct wire_path path = { .src_port = 55410,
				  .src = { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 },
				  .dst = { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 2 } };
	uint8_t bytes[GSI_PACKET_BYTES];
	struct wire_packet packet;
	uint16_t ip_id = 0;

	(void)state;
	gsi_packet_build(&path, 0x1abcdef, mad, bytes);
	assert_int_equal(wire_icrc_check(&path, &ip_id, bytes, sizeof(bytes)), WIRE_ICRC_OK);
	assert_int_equal(wire_parse(bytes, sizeof(bytes), &packet), WIRE_OK);
	assert_int_equal(gsi_packet_check(&packet), GSI_OK);
	assert_true(packet.migrated);
	assert_int_equal(packet.psn, 0xabcdef);
	assert_int_equal(packet.src_qpn, MAD_QPN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_captures),
		cmocka_unit_test(test_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
