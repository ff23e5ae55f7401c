/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Determines which client a MAD is for, as far as the MAD identifies it, and remembers which client
 * received a REQ.  Pure.
 */
#ifndef UROCE_BROKER_TARGET_H
#define UROCE_BROKER_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/mad_header.h"
#include <rdma/uroce-broker.h>

/* The upper 12 bits of a communication id are the slot of its client. */
#define TARGET_ID_SHIFT (8 + UROCE_BROKER_SLOT_SHIFT)

enum target_kind {
	TARGET_SLOT, /* the client that holds slot */
	/* A REQ: the client that received the same REQ before, or else the listener. */
	TARGET_REQUEST,
	TARGET_SERVICE, /* a SIDR_REQ: the client that listens at service_id */
	/* A REJ without Remote Communication ID: the client that received the REQ, or else all. */
	TARGET_REJECTED_REQUEST,
	TARGET_UNKNOWN, /* the MAD does not identify a client */
};

struct target {
	enum target_kind kind;
	uint32_t slot;
	bool is_reply; /* TARGET_SLOT: a REP or RTU, which can be answered by a REJ */
	uint64_t service_id;
	/* Destination in a request's IP addressing header if in 127.0.0.0/8; otherwise 0. */
	uint8_t loopback[16];
	/* Identify a REQ: CA GUID and communication id of its sender. */
	uint64_t guid;
	uint32_t id;
};

struct target target_from_mad(const uint8_t mad[MAD_BYTES]);
/*
 * Returns the destination address of a request that was received at gid.  All of 127.0.0.0/8 is one
 * host and a device usually has a GID for one of these addresses only, so the address in the
 * request takes precedence if both are loopback addresses.
 */
const uint8_t *target_effective_address(const struct target *target, const uint8_t gid[16]);

/*
 * Remembers the client that received a REQ, for as long as the REQ may be retransmitted.  A newer
 * REQ with the same hash replaces an entry; the listener is then looked up again.  Must be zeroed
 * before the first use.
 */
#define TARGET_REQUESTS 2048
#define TARGET_REQUEST_NS UINT64_C(100000000000)
struct target_requests {
	struct target_request {
		uint64_t guid;
		uint64_t until; /* time at which the entry expires, ns; 0: no entry */
		uint32_t id;
		uint32_t client;
	} entry[TARGET_REQUESTS];
};
void target_requests_add(struct target_requests *requests, const struct target *target,
			 uint32_t client, uint64_t now);
/* Returns the client that received the REQ, or 0. */
uint32_t target_requests_find(const struct target_requests *requests, const struct target *target,
			      uint64_t now);

#endif
