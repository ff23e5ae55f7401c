/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What every message of the lab begins with, in network byte order.  A READ carries none, and of a
 * WRITE only an update does.
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
	uint64_t update; /* of a WRITE: which one it is, from 1; last, so it comes last */
};

enum { HEADER_BYTES = sizeof(struct flow_header) };

void header_put(struct flow_header *header, const struct flow_message *message, uint64_t update);
/* False: no header of ours. */
bool header_get(const struct flow_header *header, struct flow_message *message);

#endif
