/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The parser and the ICRC check with any bytes as a packet from the network: both read nothing
 * beyond the bytes; a packet that parses is built again to the same bytes, except for reserved
 * bits; and an ICRC that we write is found right.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/icrc.h"
#include "wire/packet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CNP 0x81

static void require(int holds)
{
	if (!holds)
		abort();
}

/* Clear the bits that are never read and that we send as zeros. */
static void clear_reserved(uint8_t *packet)
{
	uint16_t headers = wire_op_headers(packet[0]);

	packet[4] &= 0xc0;
	packet[8] &= 0x80;
	if (headers & WIRE_HAS_XRCETH)
		packet[12] = 0;
	if (headers & WIRE_HAS_DETH)
		packet[16] = 0;
	if (packet[0] == CNP)
		memset(packet + WIRE_BTH_BYTES, 0, 16);
}

/* wire_parse() does not set fields that the opcode lacks, so both structures start as zeros. */
static void check_parsed(const uint8_t *data, size_t size, const struct wire_packet *p)
{
	uint8_t expected[WIRE_MAX_PACKET_BYTES], built[WIRE_MAX_HEADER_BYTES];
	unsigned int length = wire_op_header_length(p->opcode);
	struct wire_packet again;

	require(length >= WIRE_BTH_BYTES && length <= WIRE_MAX_HEADER_BYTES);
	require(size <= WIRE_MAX_PACKET_BYTES);
	require(p->payload == data + length);
	require(length + p->payload_length + p->pad_count + WIRE_ICRC_BYTES == size);
	require(p->version == 0 && p->payload_length <= WIRE_MAX_MTU);
	require(wire_op_is_request(p->opcode) + wire_op_is_response(p->opcode) ==
		(p->opcode != CNP));

	memset(built, 0xee, sizeof(built));
	require(wire_build_headers(p, built) == length);
	memcpy(expected, data, size);
	clear_reserved(expected);
	require(memcmp(built, expected, length) == 0);

	memcpy(expected, built, length);
	memset(&again, 0, sizeof(again));
	require(wire_parse(expected, size, &again) == WIRE_OK);
	again.payload = p->payload;
	require(memcmp(&again, p, sizeof(again)) == 0);
}

/* Any bytes may be checked; an ICRC of our own must be found right. */
static void check_icrc(const uint8_t *data, size_t size, struct wire_path *path, uint16_t ip_id)
{
	uint16_t found = ip_id;
	enum wire_icrc_verdict verdict = wire_icrc_check(path, &found, data, size);
	uint8_t *packet;

	require((verdict == WIRE_ICRC_SOLVED) == (found != ip_id));
	if (size < WIRE_BTH_BYTES + WIRE_ICRC_BYTES) {
		require(verdict == WIRE_ICRC_BAD);
		return;
	}
	packet = malloc(size);
	require(packet != NULL);
	memcpy(packet, data, size);
	wire_icrc_put(path, ip_id, packet, size);
	found = ip_id;
	require(wire_icrc_check(path, &found, packet, size) == WIRE_ICRC_OK);
	found = ip_id ^ 0x8001;
	require(wire_icrc_check(path, &found, packet, size) ==
		(path->ipv6 ? WIRE_ICRC_OK : WIRE_ICRC_SOLVED));
	require(path->ipv6 || found == ip_id);
	free(packet);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wire_path path = { .src_port = 0xc000 };
	struct wire_packet p;
	uint16_t ip_id = 0;

	memset(&p, 0, sizeof(p));
	if (wire_parse(data, size, &p) == WIRE_OK)
		check_parsed(data, size, &p);

	/* Addresses and identification are from the input too, so that they take many values. */
	if (size >= 2)
		memcpy(&ip_id, data + size - 2, 2);
	memcpy(path.src, data, size < 16 ? size : 16);
	check_icrc(data, size, &path, ip_id);
	path.ipv6 = true;
	check_icrc(data, size, &path, ip_id);
	return 0;
}
