/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "frame.h"

#include <pcap/dlt.h>
#include <stdbool.h>
#include <string.h>

#include "wire/bytes.h"
#include "wire/packet.h"

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd
#define ETHERTYPE_VLAN 0x8100
#define ETHERTYPE_QINQ 0x88a8
#define VLAN_BYTES 4

#define IPV4_FRAGMENT 0x3fff /* offset and "more fragments" */
#define IPV6_HOP_BY_HOP 0
#define IPV6_ROUTING 43
#define IPV6_FRAGMENT 44
#define IPV6_OPTIONS 60
#define IPV6_MAX_EXTENSIONS 8
#define PROTOCOL_UDP 17
#define COOKED_OUTGOING 4 /* packet type in a cooked header: sent by this host */

/* Offset of the EtherType, and size, of each link header; size 0: raw IP. */
static const struct link_header {
	int type;
	uint8_t ethertype_at, bytes;
} link_headers[] = {
	{ DLT_EN10MB, 12, 14 }, { DLT_LINUX_SLL, 14, 16 }, { DLT_LINUX_SLL2, 0, 20 },
	{ DLT_RAW, 0, 0 },	{ DLT_IPV4, 0, 0 },	   { DLT_IPV6, 0, 0 },
	{ DLT_NULL, 0, 4 },	{ DLT_LOOP, 0, 4 },
};

static const struct link_header *find_link_header(int type)
{
	for (size_t i = 0; i < sizeof(link_headers) / sizeof(link_headers[0]); i++)
		if (link_headers[i].type == type)
			return &link_headers[i];
	return NULL;
}

int frame_link_known(int link_type)
{
	return find_link_header(link_type) != NULL;
}

static enum trace_way cooked_way(int type, const uint8_t *bytes)
{
	unsigned int kind;

	if (type == DLT_LINUX_SLL)
		kind = wire_get_be16(bytes);
	else if (type == DLT_LINUX_SLL2)
		kind = bytes[10];
	else
		return TRACE_WAY_UNKNOWN;
	return kind == COOKED_OUTGOING ? TRACE_WAY_OUT : TRACE_WAY_IN;
}

/* The part of a frame that has not been parsed. */
struct unparsed {
	const uint8_t *at;
	size_t captured, length;
};

static bool skip_bytes(struct unparsed *rest, size_t bytes)
{
	if (rest->captured < bytes || rest->length < bytes)
		return false;
	rest->at += bytes;
	rest->captured -= bytes;
	rest->length -= bytes;
	return true;
}

/*
 * Limits the rest to the length in an IP or UDP header, as padding may follow; returns false if the
 * frame is shorter.
 */
static bool limit_length(struct unparsed *rest, size_t bytes)
{
	if (rest->length < bytes)
		return false;
	rest->length = bytes;
	if (rest->captured > bytes)
		rest->captured = bytes;
	return true;
}

static enum frame_verdict read_ipv4(struct unparsed *rest, struct frame *frame)
{
	const uint8_t *ip = rest->at;
	size_t header = (size_t)(ip[0] & 15) * 4;

	if (header < WIRE_IPV4_BYTES || !limit_length(rest, wire_get_be16(ip + 2)))
		return FRAME_BROKEN;
	if (ip[9] != PROTOCOL_UDP)
		return FRAME_OTHER;
	frame->path.ipv6 = false;
	frame->path.icrc_state = 0;
	frame->ip_id = wire_get_be16(ip + 4);
	memset(frame->path.src, 0, 10);
	memset(frame->path.src + 10, 0xff, 2);
	memcpy(frame->path.dst, frame->path.src, 12);
	memcpy(frame->path.src + 12, ip + 12, 4);
	memcpy(frame->path.dst + 12, ip + 16, 4);
	if (wire_get_be16(ip + 6) & IPV4_FRAGMENT)
		return FRAME_FRAGMENT;
	return skip_bytes(rest, header) ? FRAME_ROCE : FRAME_CUT;
}

static enum frame_verdict read_ipv6(struct unparsed *rest, struct frame *frame)
{
	const uint8_t *ip = rest->at;
	uint8_t next = ip[6];

	if (!limit_length(rest, WIRE_IPV6_BYTES + (size_t)wire_get_be16(ip + 4)))
		return FRAME_BROKEN;
	frame->path.ipv6 = true;
	frame->path.icrc_state = 0;
	frame->ip_id = 0;
	memcpy(frame->path.src, ip + 8, 16);
	memcpy(frame->path.dst, ip + 24, 16);
	skip_bytes(rest, WIRE_IPV6_BYTES);
	for (int i = 0; i < IPV6_MAX_EXTENSIONS; i++) {
		if (next == IPV6_FRAGMENT)
			return FRAME_FRAGMENT;
		if (next != IPV6_HOP_BY_HOP && next != IPV6_ROUTING && next != IPV6_OPTIONS)
			break;
		if (rest->captured < 8)
			return FRAME_CUT;
		next = rest->at[0];
		if (!skip_bytes(rest, ((size_t)rest->at[1] + 1) * 8))
			return FRAME_CUT;
	}
	return next == PROTOCOL_UDP ? FRAME_ROCE : FRAME_OTHER;
}

static enum frame_verdict read_udp(struct unparsed *rest, struct frame *frame)
{
	const uint8_t *udp = rest->at;
	size_t length;

	/* Without the ports, its first four bytes, a datagram counts as another protocol. */
	if (rest->captured < 4)
		return FRAME_OTHER;
	if (wire_get_be16(udp + 2) != WIRE_UDP_PORT)
		return FRAME_OTHER;
	if (rest->captured < WIRE_UDP_BYTES)
		return FRAME_CUT;
	length = wire_get_be16(udp + 4);
	if (length < WIRE_UDP_BYTES || !limit_length(rest, length))
		return FRAME_BROKEN;
	frame->path.src_port = wire_get_be16(udp);
	skip_bytes(rest, WIRE_UDP_BYTES);
	if (rest->length < WIRE_BTH_BYTES + WIRE_ICRC_BYTES)
		return FRAME_BROKEN;
	if (rest->captured < WIRE_BTH_BYTES)
		return FRAME_CUT;
	frame->bytes = rest->at;
	frame->captured = (uint32_t)rest->captured;
	frame->length = (uint32_t)rest->length;
	return FRAME_ROCE;
}

/* Skips the link header and VLAN tags.  Returns the IP version, or 0 if the frame is not IP. */
static int skip_link_header(const struct link_header *link, struct unparsed *rest)
{
	const uint8_t *start = rest->at;
	unsigned int type;

	if (!skip_bytes(rest, link->bytes))
		return 0;
	if (link->type == DLT_EN10MB || link->type == DLT_LINUX_SLL ||
	    link->type == DLT_LINUX_SLL2) {
		type = wire_get_be16(start + link->ethertype_at);
		while (type == ETHERTYPE_VLAN || type == ETHERTYPE_QINQ) {
			const uint8_t *tag = rest->at;

			if (!skip_bytes(rest, VLAN_BYTES))
				return 0;
			type = wire_get_be16(tag + 2);
		}
		if (type != ETHERTYPE_IPV4 && type != ETHERTYPE_IPV6)
			return 0;
	}
	if (rest->captured == 0)
		return 0;
	return rest->at[0] >> 4;
}

enum frame_verdict frame_read(int link_type, const uint8_t *bytes, size_t captured, size_t length,
			      struct frame *frame)
{
	const struct link_header *link = find_link_header(link_type);
	struct unparsed rest = { bytes, captured, length };
	enum frame_verdict verdict = FRAME_OTHER;
	int version;

	if (!link || captured > length || captured < link->bytes)
		return FRAME_OTHER;
	frame->way = cooked_way(link_type, bytes);
	version = skip_link_header(link, &rest);
	if (version == 4 && rest.captured >= WIRE_IPV4_BYTES)
		verdict = read_ipv4(&rest, frame);
	else if (version == 6 && rest.captured >= WIRE_IPV6_BYTES)
		verdict = read_ipv6(&rest, frame);
	return verdict == FRAME_ROCE ? read_udp(&rest, frame) : verdict;
}
