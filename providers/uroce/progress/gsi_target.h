/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Which process a MAD is for: read from the MAD, and looked up in what the holder of queue pair 1
 * knows.  Pure.
 */
#ifndef UROCE_PROGRESS_GSI_TARGET_H
#define UROCE_PROGRESS_GSI_TARGET_H

#include "gsi.h"
#include "link/exchange.h"

enum gsi_target_kind {
	GSI_TARGET_SLOT,    /* slot */
	GSI_TARGET_REQUEST, /* a REQ: the process that had it, else the listener */
	GSI_TARGET_SERVICE, /* a SIDR_REQ: the listener at service_id */
	GSI_TARGET_SENDER,  /* a REJ without receiver's id: that had the REQ, or all */
	GSI_TARGET_NOBODY,  /* it does not say */
};

struct gsi_target {
	enum gsi_target_kind kind;
	unsigned int slot;
	bool is_reply; /* GSI_TARGET_SLOT: a REP or RTU, which a REJ may answer */
	uint64_t service_id;
	/* Of a request, in its IP header: an address of 127.0.0.0/8 that it is for; else zeros. */
	uint8_t loopback[16];
	/* What names a REQ: its sender's channel adapter and communication id. */
	uint64_t guid;
	uint32_t id;
};

/* An IPv4 address of 127.0.0.0/8.  All of these are one host, and most have the GID of another. */
bool gsi_is_loopback(const uint8_t gid[16]);

struct gsi_target gsi_target_of(const uint8_t mad[MAD_BYTES]);
/* The address that a request is for which has come to gid: that one, or one that shares the GID. */
const uint8_t *gsi_target_address(const struct gsi_target *target, const uint8_t gid[16]);

/* What processes listen at, on one address.  Zeroed at first. */
#define GSI_SERVICES_MAX 16384
struct gsi_services {
	struct gsi_service *entry;
	unsigned int count, room;
};
/* 0, -ENOMEM, or -ENOSPC when there are GSI_SERVICES_MAX. */
int gsi_services_add(struct gsi_services *services, const struct link_service *service,
		     unsigned int slot);
void gsi_services_remove(struct gsi_services *services, const struct link_service *service,
			 unsigned int slot);
/* All of a slot; of every slot: LINK_SLOTS. */
void gsi_services_forget(struct gsi_services *services, unsigned int slot);
/* The slot that listens at the id on the address: exactly there, or at any; else LINK_SLOTS. */
unsigned int gsi_services_find(const struct gsi_services *services, uint64_t id,
			       const uint8_t gid[16], uint32_t scope_id);
void gsi_services_free(struct gsi_services *services);

/*
 * Which process had a REQ, for as long as it may be sent again.  What is remembered gives way to
 * newer: the listener is then asked once more.  Zeroed at first.
 */
#define GSI_REQUESTS 2048
#define GSI_REQUEST_NS UINT64_C(100000000000)
struct gsi_requests {
	struct gsi_request {
		uint64_t guid;
		uint64_t until; /* 0: empty */
		uint32_t id;
		unsigned int slot;
	} entry[GSI_REQUESTS];
};
void gsi_requests_add(struct gsi_requests *requests, const struct gsi_target *target,
		      unsigned int slot, uint64_t now);
/* The slot, or LINK_SLOTS. */
unsigned int gsi_requests_find(const struct gsi_requests *requests, const struct gsi_target *target,
			       uint64_t now);
/* The process of the slot has gone. */
void gsi_requests_forget(struct gsi_requests *requests, unsigned int slot);

#endif
