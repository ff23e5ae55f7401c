/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What the RDMA IP CM service (IBA volume 1, annex A11) puts into REQ and SIDR_REQ: the port as a
 * service id, and the addresses of both ends in a header of the private data.
 */
#ifndef UROCE_CM_ADDRESS_H
#define UROCE_CM_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

/* The header's length; the user's data follows: 56 bytes of a REQ, 180 of a SIDR_REQ. */
#define CM_IP_HEADER_BYTES 36

/* Port spaces, the values of enum rdma_port_space: service id = port space << 16 | port. */
enum cm_port_space {
	CM_PS_IPOIB = 0x0002,
	CM_PS_TCP = 0x0106,
	CM_PS_UDP = 0x0111,
	CM_PS_IB = 0x013f,
};
/* "TCP" ...; "?" for others. */
const char *cm_port_space_name(uint32_t space);

static inline uint64_t cm_service_id(enum cm_port_space space, uint16_t port)
{
	return (uint64_t)space << 16 | port;
}

static inline uint32_t cm_service_space(uint64_t service_id)
{
	return (uint32_t)(service_id >> 16);
}

static inline uint16_t cm_service_port(uint64_t service_id)
{
	return (uint16_t)service_id;
}

/* Addresses as GIDs: IPv4 as ::ffff:a.b.c.d, though the header on the wire has zeros there. */
struct cm_ip_header {
	uint8_t version; /* 0 is the only one defined */
	uint8_t family;	 /* 4 or 6; anything else: this is no such header (AF_IB) */
	uint16_t source_port;
	uint8_t source[16];
	uint8_t destination[16];
};

/* bytes has CM_IP_HEADER_BYTES.  False when it is not one: version not 0, or family unknown; all of
 * header is set nevertheless. */
bool cm_ip_header_get(const uint8_t *bytes, struct cm_ip_header *header);
void cm_ip_header_put(const struct cm_ip_header *header, uint8_t *bytes);

/* ::ffff:a.b.c.d */
bool cm_gid_is_ipv4(const uint8_t *gid);

#endif
