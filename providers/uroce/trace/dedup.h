/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Detects duplicate records of a packet in a capture made in several places: at both ends, on all
 * interfaces, or by sender and receiver in one process.  They must be distinguished from
 * retransmissions, whose bytes may be the same.
 */
#ifndef UROCE_TRACE_DEDUP_H
#define UROCE_TRACE_DEDUP_H

#include "packet.h"

/*
 * Marks all records of a packet but one with TRACE_DUPLICATE and returns how many it has marked.
 * Records with the same hash are duplicates in these cases:
 *
 * - The direction is known: inbound records duplicate outbound ones.  The requester's
 *   records are kept: outbound requests and inbound responses.
 * - The IPv4 ID is from a counter: all records close in time are duplicates.
 * - Otherwise, if nearly all such packets occur n = 2, 3 or 4 times: all but every n-th record.
 */
uint64_t dedup_mark(struct trace_packets *packets);

#endif
