/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Fields of the RDMA IP CM service (IBA volume 1, annex A11) in REQ and SIDR_REQ: the port as part
 * of the service id, and the addresses of both ends in a header at the start of the private data.
 */
#ifndef UROCE_CM_MSG_IP_HEADER_H
#define UROCE_CM_MSG_IP_HEADER_H

#include <stdbool.h>
#include <stdint.h>

/* Length of the header.  The user's data follows it: 56 bytes in a REQ, 180 in a SIDR_REQ. */
#define CM_IP_HEADER_BYTES 36

/* Port spaces, with the values of enum rdma_port_space.  Service id = port space << 16 | port. */
enum cm_port_space {
	CM_PS_IPOIB = 0x0002,
	CM_PS_TCP = 0x0106,
	CM_PS_UDP = 0x0111,
	CM_PS_IB = 0x013f,
};
/* Returns a name such as "TCP", or "?" for an unknown port space. */
const char *cm_port_space_name(uint32_t space);

static inline uint64_t cm_service_id(enum cm_port_space space, uint16_t port)
{
	return (uint64_t)space << 16 | port;
}

/*
 * The IP CM header.  Addresses are GIDs: IPv4 as ::ffff:a.b.c.d, although the wire format has zeros
 * instead of ffff.
 */
struct cm_ip_header {
	uint8_t version; /* must be 0 */
	uint8_t family;	 /* 4 or 6; with any other value there is no IP CM header (AF_IB) */
	uint16_t source_port;
	uint8_t source[16];
	uint8_t destination[16];
};

/*
 * Parses CM_IP_HEADER_BYTES at bytes.  Returns false if that is no IP CM header: version not 0, or
 * unknown family.  All fields of header are set in any case.
 */
bool cm_ip_header_get(const uint8_t *bytes, struct cm_ip_header *header);
void cm_ip_header_put(const struct cm_ip_header *header, uint8_t *bytes);

#endif
