/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Which client a MAD is for, as far as the MAD tells, and which client had an earlier request.
 * Pure.
 */
#ifndef UROCE_BROKER_TARGET_H
#define UROCE_BROKER_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/mad_header.h"
#include <rdma/uroce-broker.h>

/* A communication id begins with the slot of its client. */
#define TARGET_ID_SHIFT (8 + UROCE_BROKER_SLOT_SHIFT)

enum target_kind {
	TARGET_SLOT,	/* slot */
	TARGET_REQUEST, /* a REQ: the client that had it, else the listener */
	TARGET_SERVICE, /* a SIDR_REQ: the listener at service_id */
	TARGET_SENDER,	/* a REJ without receiver's id: the client that had the REQ, or all */
	TARGET_NOBODY,	/* it does not say */
};

struct target {
	enum target_kind kind;
	uint32_t slot;
	bool is_reply; /* TARGET_SLOT: a REP or RTU, which a REJ may answer */
	uint64_t service_id;
	/* Address of 127.0.0.0/8 in the IP header of a request that is for it; else zeros. */
	uint8_t loopback[16];
	/* A REQ's name: its sender's channel adapter and communication id. */
	uint64_t guid;
	uint32_t id;
};

struct target target_of(const uint8_t mad[MAD_BYTES]);
/*
 * The address that a request is for which has come to gid.  All of 127.0.0.0/8 is one host, and
 * most of its addresses share the GID of another.
 */
const uint8_t *target_address(const struct target *target, const uint8_t gid[16]);

/*
 * The client that had a REQ, for as long as the REQ may be repeated.  An entry may be overwritten
 * by a newer one: the listener is then looked up once more.  Zeroed at first.
 */
#define TARGET_REQUESTS 2048
#define TARGET_REQUEST_NS UINT64_C(100000000000)
struct target_requests {
	struct target_request {
		uint64_t guid;
		uint64_t until; /* nanoseconds; 0: empty */
		uint32_t id;
		uint32_t client;
	} entry[TARGET_REQUESTS];
};
void target_requests_add(struct target_requests *requests, const struct target *target,
			 uint32_t client, uint64_t now);
/* The client, or 0. */
uint32_t target_requests_find(const struct target_requests *requests, const struct target *target,
			      uint64_t now);

#endif
