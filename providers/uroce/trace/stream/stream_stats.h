/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Statistics of one direction of a connection: the requests of one QP and the responses to them.
 * One row for each counter: the name, as in JSON, the label in the table, and the unit.
 */
#ifndef UROCE_TRACE_STREAM_STREAM_STATS_H
#define UROCE_TRACE_STREAM_STREAM_STATS_H

#include <stdint.h>

#define STREAM_STATS(X)                                          \
	X(request_packets, "request packets", PLAIN)             \
	X(payload_bytes, "payload bytes, each once", PLAIN)      \
	X(messages, "messages begun", PLAIN)                     \
	X(sends, "  SEND", PLAIN)                                \
	X(writes, "  WRITE", PLAIN)                              \
	X(writes_immediate, "  WRITE with immediate", PLAIN)     \
	X(reads, "  READ", PLAIN)                                \
	X(atomics, "  Atomic", PLAIN)                            \
	X(others, "  other", PLAIN)                              \
	X(ack_requests, "packets with AckReq", PLAIN)            \
	X(resent_packets, "packets sent again", PLAIN)           \
	X(resent_acknowledged, "  although acknowledged", PLAIN) \
	X(late_packets, "packets seen late only", PLAIN)         \
	X(missing_packets, "packets never seen", PLAIN)          \
	X(limited, "limited requests", PLAIN)                    \
	X(limit_times, "times at the credit limit", PLAIN)       \
	X(limit_ns, "time at the credit limit", TIME)            \
	X(acks, "Acknowledges, positive", PLAIN)                 \
	X(unsolicited_acks, "  unsolicited", PLAIN)              \
	X(repeated_acks, "  again, without news", PLAIN)         \
	X(stale_acks, "  older than others", PLAIN)              \
	X(ghost_acks, "  of what was not seen", PLAIN)           \
	X(read_responses, "READ response packets", PLAIN)        \
	X(read_bytes, "READ bytes, each once", PLAIN)            \
	X(atomic_responses, "Atomic Acknowledges", PLAIN)        \
	X(repeated_responses, "responses given again", PLAIN)    \
	X(missing_responses, "READ responses not seen", PLAIN)   \
	X(orphan_responses, "responses to nothing seen", PLAIN)  \
	X(implied_naks, "READs passed by an ACK", PLAIN)         \
	X(rnr_naks, "RNR NAKs", PLAIN)                           \
	X(rnr_ns, "time that they cost", TIME)                   \
	X(sequence_naks, "sequence NAKs", PLAIN)                 \
	X(sequence_ns, "time until answered", TIME)              \
	X(invalid_naks, "NAKs invalid request", PLAIN)           \
	X(access_naks, "NAKs remote access", PLAIN)              \
	X(operational_naks, "NAKs remote operational", PLAIN)    \
	X(most_reads, "most READs, Atomics at once", PLAIN)      \
	X(most_unacknowledged, "most PSNs unacknowledged", PLAIN)

struct stream_stats {
#define STREAM_STAT_FIELD(name, label, unit) uint64_t name;
	STREAM_STATS(STREAM_STAT_FIELD)
#undef STREAM_STAT_FIELD
};

enum stream_stat_unit {
	STREAM_STAT_PLAIN,
	STREAM_STAT_TIME, /* ns */
};

struct stream_stat_row {
	const char *name, *label;
	uint16_t offset; /* offset in struct stream_stats */
	enum stream_stat_unit unit;
};
/* Ends with a row whose name is NULL. */
extern const struct stream_stat_row stream_stat_rows[];

static inline uint64_t stream_stat_value(const struct stream_stats *counts,
					 const struct stream_stat_row *row)
{
	return *(const uint64_t *)((const char *)counts + row->offset);
}

#endif
