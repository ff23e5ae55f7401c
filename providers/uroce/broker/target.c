/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "target.h"

#include "util/gid.h"
#include "wire/bytes.h"

/* Offsets in a MAD. */
enum offset {
	LOCAL_ID = 24, /* communication id of the sender; the request id in SIDR messages */
	REMOTE_ID = 28,
	SERVICE_ID = 32,
	REQ_GUID = 40,
	REJ_REASON = 34,
	REJ_GUID = 36, /* the first bytes of the additional information */
	SIDR_REQ_PRIVATE = 40,
	REQ_PRIVATE = 164,
};

/* Offsets in the IP addressing header at the start of a request's private data. */
enum ip_header_offset {
	IP_VERSION = 0, /* must be 0 */
	IP_FAMILY = 1,	/* in the upper four bits */
	IP_DESTINATION = 32,
};

#define REJ_REASON_TIMEOUT 4

static struct target target_by_id(uint32_t id)
{
	return (struct target){
		.kind = id ? TARGET_SLOT : TARGET_UNKNOWN,
		.slot = id >> TARGET_ID_SHIFT,
	};
}

static struct target target_by_reply_id(uint32_t id)
{
	struct target target = target_by_id(id);

	target.is_reply = true;
	return target;
}

static struct target target_by_rejected_request(const uint8_t *mad)
{
	return (struct target){
		.kind = TARGET_REJECTED_REQUEST,
		/* Only a REJ with reason Timeout contains the GUID of the REQ's sender. */
		.guid = wire_get_be16(mad + REJ_REASON) == REJ_REASON_TIMEOUT
				? wire_get_be64(mad + REJ_GUID)
				: 0,
		.id = wire_get_be32(mad + LOCAL_ID),
	};
}

static void read_loopback_address(const uint8_t *header, uint8_t gid[16])
{
	if (header[IP_VERSION] || header[IP_FAMILY] >> 4 != 4 || header[IP_DESTINATION] != 127)
		return;
	gid_from_ipv4(gid, header + IP_DESTINATION);
}

const uint8_t *target_effective_address(const struct target *target, const uint8_t gid[16])
{
	return gid_is_loopback(gid) && gid_is_loopback(target->loopback) ? target->loopback : gid;
}

static struct target target_by_service(const uint8_t *mad, enum target_kind kind)
{
	struct target target = {
		.kind = kind,
		.service_id = wire_get_be64(mad + SERVICE_ID),
	};

	read_loopback_address(mad + (kind == TARGET_REQUEST ? REQ_PRIVATE : SIDR_REQ_PRIVATE),
			      target.loopback);
	if (kind == TARGET_REQUEST) {
		target.guid = wire_get_be64(mad + REQ_GUID);
		target.id = wire_get_be32(mad + LOCAL_ID);
	}
	return target;
}

struct target target_from_mad(const uint8_t mad[MAD_BYTES])
{
	uint32_t remote = wire_get_be32(mad + REMOTE_ID);

	switch (wire_get_be16(mad + MAD_AT_ATTRIBUTE)) {
	case MAD_REQ:
		return target_by_service(mad, TARGET_REQUEST);
	case MAD_SIDR_REQ:
		return target_by_service(mad, TARGET_SERVICE);
	case MAD_SIDR_REP:
		return target_by_id(wire_get_be32(mad + LOCAL_ID));
	case MAD_REJ:
		return remote ? target_by_id(remote) : target_by_rejected_request(mad);
	case MAD_REP:
	case MAD_RTU:
		return target_by_reply_id(remote);
	case MAD_MRA:
	case MAD_DREQ:
	case MAD_DREP:
	case MAD_LAP:
	case MAD_APR:
		return target_by_id(remote);
	default:
		return target_by_id(0);
	}
}

/* ---- requests ---- */

static size_t request_index(const struct target *target)
{
	uint64_t hash = (target->guid ^ target->id) * UINT64_C(0x9e3779b97f4a7c15);

	return (hash >> 40) % TARGET_REQUESTS;
}

void target_requests_add(struct target_requests *requests, const struct target *target,
			 uint32_t client, uint64_t now)
{
	requests->entry[request_index(target)] = (struct target_request){
		.guid = target->guid,
		.id = target->id,
		.client = client,
		.until = now + TARGET_REQUEST_NS,
	};
}

uint32_t target_requests_find(const struct target_requests *requests, const struct target *target,
			      uint64_t now)
{
	const struct target_request *entry = &requests->entry[request_index(target)];

	if (entry->until <= now || entry->guid != target->guid || entry->id != target->id)
		return 0;
	return entry->client;
}
