/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Checks the IPv4 IDs of a peer's packets.  The ICRC covers the ID, but a UDP socket does not
 * report it, so wire_icrc_check() finds the ID that makes the ICRC right, if any.  For one damaged
 * packet in 2^16 such an ID exists by chance.
 *
 * Senders may use any ID, and stacks do (per-flow counters, per-host counters, increments after a
 * pause, random numbers): an unexpected ID is far more likely to belong to an intact packet, and is
 * accepted.  Only if all earlier IDs of a peer were the index of the packet in its burst, as those
 * of uroce are, an unexpected ID means damage, and the packet is dropped
 * (Documentation/decisions/icrc.md, with the numbers).
 */
#ifndef UROCE_PROGRESS_RX_IP_ID_H
#define UROCE_PROGRESS_RX_IP_ID_H

#include <stdbool.h>
#include <stdint.h>

enum {
	IP_ID_INDEX_MAX = 128, /* maximum number of packets in a burst */
	/* After this many IDs of 0 and none beyond the maximum index, the IDs are indexes. */
	IP_ID_ZEROS_NEEDED = 16,
};

enum ip_id_kind {
	IP_ID_UNKNOWN, /* not yet known */
	IP_ID_INDEX,   /* index of the packet in its burst */
	IP_ID_ANY,
};

/* One direction: adapters may generate requests and responses by different means. */
struct ip_id_dir {
	uint8_t kind; /* enum ip_id_kind */
	uint8_t zeros;
	uint16_t last;
	uint32_t odd; /* number of packets dropped because the ID was no index */
};

/* History of a peer since it was connected; zeroed initially. */
struct ip_id_history {
	uint16_t next;	  /* probable ID of the first packet of the next batch */
	uint32_t damaged; /* number of packets whose ICRC was wrong with any ID */
	struct ip_id_dir side[2];
};

/* Returns the expected ID of the first packet of a batch. */
static inline uint16_t ip_id_expected(const struct ip_id_history *peer)
{
	return peer->next;
}

/*
 * Records the first ID of a batch.  If it is an index, the next batch begins with 0; if it is a
 * counter, with the next value, as the counter advances once per call if the peer is uroce on this
 * host.
 */
static inline void ip_id_batch_start(struct ip_id_history *peer, uint16_t id)
{
	peer->next = id < IP_ID_INDEX_MAX ? 0 : (uint16_t)(id + 1);
}

/* Records a packet with a wrong ICRC. */
static inline void ip_id_bad_icrc(struct ip_id_history *peer)
{
	peer->damaged++;
}

/* Returns true if nothing can be concluded from the peer's IDs any more. */
static inline bool ip_id_is_any(const struct ip_id_history *peer)
{
	return peer->side[0].kind == IP_ID_ANY && peer->side[1].kind == IP_ID_ANY;
}

/* Returns true if a packet with this ID may be from the peer, and records it. */
bool ip_id_check(struct ip_id_history *peer, bool request, uint16_t id);

#endif
