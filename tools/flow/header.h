/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Header of SENDs, of WRITEs with immediate and of updates by WRITE, in network byte order.  Other
 * WRITEs have it as well, but nobody reads it; a READ has none.
 */
#ifndef UROCE_FLOW_HEADER_H
#define UROCE_FLOW_HEADER_H

#include "station.h"

#define HEADER_MAGIC UINT32_C(0x75666c77)

struct flow_header {
	uint32_t magic;
	uint8_t kind, flags;
	uint16_t count;
	uint32_t number, limit;
	uint64_t ready_ns;
	uint64_t update; /* number of an update by WRITE, from 1; written last, so it is last */
};

enum { HEADER_BYTES = sizeof(struct flow_header) };

void header_put(struct flow_header *header, const struct flow_message *message, uint64_t update);
/* Returns false if the magic or the kind is wrong. */
bool header_get(const struct flow_header *header, struct flow_message *message);

#endif
