/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Packets that are in a capture more than once because it was made in more than one place: at both
 * ends, on all interfaces, or by sender and receiver in one process.  They have to be told from
 * packets that were sent again, whose bytes may be the same.
 */
#ifndef UROCE_TRACE_COPIES_H
#define UROCE_TRACE_COPIES_H

#include "packet.h"

/*
 * Marks all but one of each with TRACE_COPY, and returns how many there were.  By what
 * is there:
 * - where it is known which way packets went, one that came in is the same as one that went out;
 *   of requests the latter is kept, of responses the former, so that the requester's view is left;
 * - identifications that are counted up are the same in copies only;
 * - else, when nearly all packets are there twice (or three or four times), every second one is.
 */
uint64_t copies_mark(struct trace_packets *packets);

#endif
