/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Every packet of the captures of kernel rxe (captures/) is supported completely: it parses, its
 * parsed form builds the same bytes again, and its ICRC is right with the IPv4 identification in
 * its IP header, which the check also finds when it is given another one.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <pcap/pcap.h>

#include "wire/bytes.h"
#include "wire/icrc.h"
#include "wire/packet.h"

#define ALL_PACKETS 2391
#define ETHERNET_BYTES 14
#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd
#define IPV4_BYTES 20
#define IPV6_BYTES 40
#define UDP_BYTES 8
#define PROTOCOL_UDP 17

/* Number of packets of each capture, according to its description. */
static const struct {
	const char *name;
	unsigned int packets;
} captures[] = {
	{ "rc_send", 100 },
	{ "rc_send_ipv6", 100 },
	{ "rc_send_event", 40 },
	{ "rc_send_pad", 56 },
	{ "rc_send_long", 410 },
	{ "rc_send_mtu4096", 40 },
	{ "srq_send", 256 },
	{ "uc_send", 80 },
	{ "uc_write", 40 },
	{ "ud_send", 20 },
	{ "rc_write", 50 },
	{ "rc_write_lat", 40 },
	{ "rc_read", 50 },
	{ "rc_read_deep", 60 },
	{ "rc_atomic_fa", 20 },
	{ "rc_atomic_cs", 20 },
	{ "rc_rnr", 180 },
	{ "rc_nak_short_recv", 5 },
	{ "rc_nak_access_write", 3 },
	{ "rc_nak_access_read", 3 },
	{ "rc_loss_request", 181 },
	{ "rc_loss_ack", 68 },
	{ "rc_loss_read", 236 },
	{ "rc_loss_atomic", 55 },
	{ "cm_rping", 41 },
	{ "cm_ucmatose", 17 },
	{ "cm_udaddy", 8 },
	{ "cm_rdma_client", 9 },
	{ "cm_write_bw", 126 },
	{ "cm_rstream", 55 },
	{ "cm_ipv6", 17 },
	{ "cm_mckey", 3 },
	{ "cm_reject", 2 },
};
#define CAPTURES (sizeof(captures) / sizeof(captures[0]))

/* Headers before a RoCEv2 packet, read from the frame. */
struct datagram {
	struct wire_path path;
	uint16_t ip_id;
	const uint8_t *packet;
	size_t length;
};

static struct datagram read_datagram(const uint8_t *frame, size_t length)
{
	const uint8_t *ip = frame + ETHERNET_BYTES, *udp;
	struct datagram d = { .ip_id = 0 };

	assert_true(length >= ETHERNET_BYTES + IPV4_BYTES + UDP_BYTES);
	if (wire_get_be16(frame + 12) == ETHERTYPE_IPV4) {
		assert_int_equal(ip[0], 0x45);
		assert_int_equal(ip[9], PROTOCOL_UDP);
		/* Our ICRC assumes that Don't Fragment is set. */
		assert_int_equal(wire_get_be16(ip + 6), 0x4000);
		d.ip_id = wire_get_be16(ip + 4);
		d.path.src[10] = d.path.src[11] = d.path.dst[10] = d.path.dst[11] = 0xff;
		memcpy(d.path.src + 12, ip + 12, 4);
		memcpy(d.path.dst + 12, ip + 16, 4);
		udp = ip + IPV4_BYTES;
	} else {
		assert_int_equal(wire_get_be16(frame + 12), ETHERTYPE_IPV6);
		assert_true(length >= ETHERNET_BYTES + IPV6_BYTES + UDP_BYTES);
		assert_int_equal(ip[6], PROTOCOL_UDP);
		d.path.ipv6 = true;
		memcpy(d.path.src, ip + 8, 16);
		memcpy(d.path.dst, ip + 24, 16);
		udp = ip + IPV6_BYTES;
	}
	assert_int_equal(wire_get_be16(udp + 2), WIRE_UDP_PORT);
	d.path.src_port = wire_get_be16(udp);
	d.packet = udp + UDP_BYTES;
	d.length = wire_get_be16(udp + 4) - UDP_BYTES;
	assert_true(d.packet + d.length <= frame + length);
	return d;
}

/* rule S14 test: the ICRC is right with the true identification, which is found from another. */
static void check_icrc(const struct datagram *d)
{
	uint16_t ip_id = d->ip_id;

	assert_int_equal(wire_icrc_check(&d->path, &ip_id, d->packet, d->length), WIRE_ICRC_OK);
	assert_int_equal(ip_id, d->ip_id);
	if (d->path.ipv6)
		return;
	/* rxe's identifications start anywhere; our own packets have 0. */
	ip_id = d->ip_id ? 0 : 1;
	assert_int_equal(wire_icrc_check(&d->path, &ip_id, d->packet, d->length), WIRE_ICRC_SOLVED);
	assert_int_equal(ip_id, d->ip_id);
}

static void check_encoding(const struct datagram *d)
{
	uint8_t again[WIRE_MAX_PACKET_BYTES];
	struct wire_packet p;
	size_t length;

	assert_int_equal(wire_parse(d->packet, d->length, &p), WIRE_OK);
	length = wire_build_headers(&p, again);
	assert_int_equal(length, wire_op_header_length(p.opcode));
	memcpy(again + length, p.payload, p.payload_length);
	length += p.payload_length;
	memset(again + length, 0, p.pad_count);
	length += p.pad_count + WIRE_ICRC_BYTES;
	assert_int_equal(length, d->length);
	wire_icrc_put(&d->path, d->ip_id, again, length);
	assert_memory_equal(again, d->packet, length);
}

static unsigned int check_capture(const char *name)
{
	char path[512], error[PCAP_ERRBUF_SIZE];
	struct pcap_pkthdr *header;
	unsigned int packets = 0;
	const uint8_t *frame;
	pcap_t *capture;
	int result;

	snprintf(path, sizeof(path), "%s/%s.pcap", UROCE_CAPTURES, name);
	capture = pcap_open_offline(path, error);
	if (!capture)
		fail_msg("%s", error);
	assert_int_equal(pcap_datalink(capture), DLT_EN10MB);
	while ((result = pcap_next_ex(capture, &header, &frame)) == 1) {
		struct datagram d;

		assert_int_equal(header->caplen, header->len);
		d = read_datagram(frame, header->caplen);
		check_encoding(&d);
		check_icrc(&d);
		packets++;
	}
	assert_int_equal(result, PCAP_ERROR_BREAK);
	pcap_close(capture);
	return packets;
}

/* Each capture has the packets that its description counts, and all are understood. */
static void test_all_captures(void **state)
{
	unsigned int all = 0, packets;
	size_t i;

	(void)state;
	for (i = 0; i < CAPTURES; i++) {
		packets = check_capture(captures[i].name);
		if (packets != captures[i].packets)
			fail_msg("%s: %u packets", captures[i].name, packets);
		all += packets;
	}
	assert_int_equal(all, ALL_PACKETS);
}

/* All files in the directory are checked. */
static void test_no_capture_left_out(void **state)
{
	DIR *folder = opendir(UROCE_CAPTURES);
	struct dirent *entry;
	size_t found = 0;

	(void)state;
	assert_non_null(folder);
	while ((entry = readdir(folder)) != NULL)
		found += strstr(entry->d_name, ".pcap") != NULL;
	closedir(folder);
	assert_int_equal(found, CAPTURES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_captures),
		cmocka_unit_test(test_no_capture_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
