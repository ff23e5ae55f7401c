/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * every_opcode FILE: writes a capture of packets of every opcode with random fields, built by our
 * own code, to be checked by other decoders.  Prints a line for each packet: NAME=VALUE for each of
 * its fields, in decimal, with the field names of tshark.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pcap/pcap.h>

#include "wire/bytes.h"
#include "wire/icrc.h"
#include "wire/packet.h"

#define EACH 6
#define ETHERNET_BYTES 14
#define IPV4_BYTES 20
#define IPV6_BYTES 40
#define UDP_BYTES 8

static uint64_t random_bits(void)
{
	return (uint64_t)random() << 42 ^ (uint64_t)random() << 21 ^ (uint64_t)random();
}

static uint32_t random_24(void)
{
	return (uint32_t)random_bits() & WIRE_24BIT_MASK;
}

static void field(const char *name, uint64_t value)
{
	printf(" %s=%" PRIu64, name, value);
}

static struct wire_packet random_bth(uint8_t opcode)
{
	struct wire_packet p = { .opcode = opcode };

	p.solicited = random() & 1;
	p.migrated = random() & 1;
	p.pkey = (uint16_t)random();
	/* Neither 1 (MADs) nor all ones (multicast), whose payload would be decoded further. */
	p.dest_qpn = 2 + random_24() % (WIRE_24BIT_MASK - 2);
	p.ack_request = random() & 1;
	p.psn = random_24();
	if (wire_op_headers(opcode) & WIRE_HAS_PAYLOAD)
		p.payload_length = (uint32_t)random() % 100;
	p.pad_count = -p.payload_length & 3;
	field("infiniband.bth.opcode", opcode);
	field("infiniband.bth.se", p.solicited);
	field("infiniband.bth.m", p.migrated);
	field("infiniband.bth.padcnt", p.pad_count);
	field("infiniband.bth.tver", 0);
	field("infiniband.bth.p_key", p.pkey);
	field("infiniband.bth.destqp", p.dest_qpn);
	field("infiniband.bth.a", p.ack_request);
	field("infiniband.bth.psn", p.psn);
	return p;
}

static void add_request_headers(struct wire_packet *p, uint16_t headers)
{
	if (headers & WIRE_HAS_XRCETH)
		p->xrc_srqn = random_24();
	if (headers & WIRE_HAS_DETH) {
		p->qkey = (uint32_t)random_bits();
		p->src_qpn = random_24();
		field("infiniband.deth.q_key", p->qkey);
		field("infiniband.deth.srcqp", p->src_qpn);
	}
	if (headers & (WIRE_HAS_RETH | WIRE_HAS_ATOMICETH)) {
		p->va = random_bits();
		p->rkey = (uint32_t)random_bits();
		field("infiniband.reth.va", p->va);
		field("infiniband.reth.r_key", p->rkey);
	}
	if (headers & WIRE_HAS_RETH) {
		p->dma_length = (uint32_t)random_bits();
		field("infiniband.reth.dmalen", p->dma_length);
	}
	if (headers & WIRE_HAS_ATOMICETH) {
		p->swap_add = random_bits();
		p->compare = random_bits();
		field("infiniband.atomiceth.swapdt", p->swap_add);
		field("infiniband.atomiceth.cmpdt", p->compare);
	}
	if (headers & WIRE_HAS_IMMDT) {
		p->immediate = (uint32_t)random_bits();
		field("infiniband.immdt", p->immediate);
	}
	if (headers & WIRE_HAS_IETH) {
		p->invalidate_rkey = (uint32_t)random_bits();
		field("infiniband.ieth", p->invalidate_rkey);
	}
	if (headers & WIRE_HAS_FETH)
		p->flush = (uint32_t)random() & 0x3f;
}

static void add_response_headers(struct wire_packet *p, uint16_t headers)
{
	if (headers & WIRE_HAS_AETH) {
		p->syndrome = (uint8_t)random() & 0x1f;
		p->msn = random_24();
		field("infiniband.aeth.syndrome", p->syndrome);
		field("infiniband.aeth.msn", p->msn);
	}
	if (headers & WIRE_HAS_ATOMICACKETH) {
		p->original = random_bits();
		field("infiniband.atomicacketh.origremdt", p->original);
	}
}

/* Writes Ethernet, IP and UDP headers like those of uroce's sockets; returns their length. */
static size_t put_outer(const struct wire_path *path, size_t length, uint8_t *frame)
{
	uint8_t *ip = frame + ETHERNET_BYTES;
	size_t ip_bytes = path->ipv6 ? IPV6_BYTES : IPV4_BYTES;
	uint8_t *udp = ip + ip_bytes;

	memset(frame, 0, ETHERNET_BYTES + ip_bytes + UDP_BYTES);
	wire_put_be16(frame + 12, path->ipv6 ? 0x86dd : 0x0800);
	if (path->ipv6) {
		ip[0] = 0x60;
		wire_put_be16(ip + 4, (uint16_t)(UDP_BYTES + length));
		ip[6] = 17;
		ip[7] = 64;
		memcpy(ip + 8, path->src, 16);
		memcpy(ip + 24, path->dst, 16);
	} else {
		ip[0] = 0x45;
		wire_put_be16(ip + 2, (uint16_t)(IPV4_BYTES + UDP_BYTES + length));
		wire_put_be16(ip + 6, 0x4000);
		ip[8] = 64;
		ip[9] = 17;
		memcpy(ip + 12, path->src + 12, 4);
		memcpy(ip + 16, path->dst + 12, 4);
	}
	wire_put_be16(udp, path->src_port);
	wire_put_be16(udp + 2, WIRE_UDP_PORT);
	wire_put_be16(udp + 4, (uint16_t)(UDP_BYTES + length));
	return ETHERNET_BYTES + ip_bytes + UDP_BYTES;
}

static void write_packet(pcap_dumper_t *dumper, uint8_t opcode, bool ipv6)
{
	static const uint8_t mapped[16] = { [10] = 0xff, [11] = 0xff, 10, 0, 0, 1 };
	static const uint8_t real[16] = { 0xfd, [15] = 1 };
	struct wire_path path = { .src_port = (uint16_t)(0xc000 | random()), .ipv6 = ipv6 };
	uint8_t frame[1000], *packet;
	struct pcap_pkthdr header = { .ts = { 0 } };
	uint16_t headers = wire_op_headers(opcode);
	const char *name;
	struct wire_packet p;
	size_t length, outer;

	p = random_bth(opcode);
	add_request_headers(&p, headers);
	add_response_headers(&p, headers);
	memcpy(path.src, ipv6 ? real : mapped, 16);
	memcpy(path.dst, path.src, 16);
	path.dst[15]++;

	length = wire_op_header_length(opcode) + p.payload_length + p.pad_count + WIRE_ICRC_BYTES;
	outer = put_outer(&path, length, frame);
	packet = frame + outer;
	memset(packet, 0, length);
	/* Zeros: other bytes might be taken for an upper-layer protocol. */
	wire_build_headers(&p, packet);
	wire_icrc_put(&path, 0, packet, length);
	field("infiniband.invariant.crc", wire_get_be32(packet + length - WIRE_ICRC_BYTES));
	field("udp.length", UDP_BYTES + length);
	field("payload", p.payload_length + p.pad_count);
	/* Name of the opcode without the transport service (the CNP has none). */
	name = strchr(wire_op_name(opcode), ' ');
	printf(" name=%s\n", name ? name + 1 : wire_op_name(opcode));
	header.caplen = header.len = (bpf_u_int32)(outer + length);
	pcap_dump((u_char *)dumper, &header, frame);
}

int main(int argc, char **argv)
{
	pcap_t *pcap = pcap_open_dead(DLT_EN10MB, 65535);
	pcap_dumper_t *dumper;
	unsigned int opcode, i;

	if (argc != 2 || !pcap)
		return 2;
	dumper = pcap_dump_open(pcap, argv[1]);
	if (!dumper) {
		fprintf(stderr, "%s\n", pcap_geterr(pcap));
		return 2;
	}
	srandom(23);
	for (opcode = 0; opcode < 256; opcode++)
		for (i = 0; i < EACH && wire_op_header_length((uint8_t)opcode); i++)
			write_packet(dumper, (uint8_t)opcode, i & 1);
	pcap_dump_close(dumper);
	pcap_close(pcap);
	return 0;
}
