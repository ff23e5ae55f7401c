/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "gsi_target.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/bytes.h"

/* Offsets in a MAD, behind its header. */
enum offset {
	LOCAL_ID = 24, /* of the sender; the request id of SIDR messages */
	REMOTE_ID = 28,
	SERVICE_ID = 32,
	REQ_GUID = 40,
	REJ_REASON = 34,
	REJ_GUID = 36, /* additional information */
	SIDR_REQ_PRIVATE = 40,
	REQ_PRIVATE = 164,
};

/* And in the header of addresses that the private data of a request begins with. */
enum ip_header_offset {
	IP_VERSION = 0, /* of the header: 0 */
	IP_FAMILY = 1,	/* in the upper four bits */
	IP_DESTINATION = 32,
};

#define REASON_TIMEOUT 4

struct gsi_service {
	struct link_service service;
	unsigned int slot;
};

static const uint8_t any_ipv4[16] = { [10] = 0xff, [11] = 0xff };
static const uint8_t any_ipv6[16];

static struct gsi_target by_id(uint32_t id)
{
	return (struct gsi_target){
		.kind = id ? GSI_TARGET_SLOT : GSI_TARGET_NOBODY,
		.slot = id >> GSI_ID_SHIFT,
	};
}

static struct gsi_target by_id_of_reply(uint32_t id)
{
	struct gsi_target target = by_id(id);

	target.is_reply = true;
	return target;
}

static struct gsi_target by_rejected(const uint8_t *mad)
{
	return (struct gsi_target){
		.kind = GSI_TARGET_SENDER,
		/* Only a REJ that tells of a time-out has a GUID. */
		.guid = wire_get_be16(mad + REJ_REASON) == REASON_TIMEOUT
				? wire_get_be64(mad + REJ_GUID)
				: 0,
		.id = wire_get_be32(mad + LOCAL_ID),
	};
}

bool gsi_is_loopback(const uint8_t gid[16])
{
	return !memcmp(gid, any_ipv4, 12) && gid[12] == 127;
}

static void read_loopback(const uint8_t *header, uint8_t gid[16])
{
	if (header[IP_VERSION] || header[IP_FAMILY] >> 4 != 4 || header[IP_DESTINATION] != 127)
		return;
	memcpy(gid, any_ipv4, 12);
	memcpy(gid + 12, header + IP_DESTINATION, 4);
}

const uint8_t *gsi_target_address(const struct gsi_target *target, const uint8_t gid[16])
{
	return gsi_is_loopback(gid) && gsi_is_loopback(target->loopback) ? target->loopback : gid;
}

static struct gsi_target by_service(const uint8_t *mad, enum gsi_target_kind kind)
{
	struct gsi_target target = {
		.kind = kind,
		.service_id = wire_get_be64(mad + SERVICE_ID),
	};

	read_loopback(mad + (kind == GSI_TARGET_REQUEST ? REQ_PRIVATE : SIDR_REQ_PRIVATE),
		      target.loopback);
	if (kind == GSI_TARGET_REQUEST) {
		target.guid = wire_get_be64(mad + REQ_GUID);
		target.id = wire_get_be32(mad + LOCAL_ID);
	}
	return target;
}

struct gsi_target gsi_target_of(const uint8_t mad[MAD_BYTES])
{
	uint32_t remote = wire_get_be32(mad + REMOTE_ID);

	switch (wire_get_be16(mad + MAD_AT_ATTRIBUTE)) {
	case MAD_REQ:
		return by_service(mad, GSI_TARGET_REQUEST);
	case MAD_SIDR_REQ:
		return by_service(mad, GSI_TARGET_SERVICE);
	case MAD_SIDR_REP:
		return by_id(wire_get_be32(mad + LOCAL_ID));
	case MAD_REJ:
		return remote ? by_id(remote) : by_rejected(mad);
	case MAD_REP:
	case MAD_RTU:
		return by_id_of_reply(remote);
	case MAD_MRA:
	case MAD_DREQ:
	case MAD_DREP:
	case MAD_LAP:
	case MAD_APR:
		return by_id(remote);
	default:
		return by_id(0);
	}
}

/* ---- services ---- */

static bool is_same(const struct gsi_service *entry, uint64_t id, const uint8_t gid[16],
		    uint32_t scope_id)
{
	return entry->service.id == id && entry->service.scope_id == scope_id &&
	       !memcmp(entry->service.gid, gid, sizeof(entry->service.gid));
}

int gsi_services_add(struct gsi_services *services, const struct link_service *service,
		     unsigned int slot)
{
	unsigned int room = services->room ? 2 * services->room : 16;
	struct gsi_service *grown;

	/* Again, as from a process that begins anew. */
	gsi_services_remove(services, service, slot);
	if (services->count == GSI_SERVICES_MAX)
		return -ENOSPC;
	if (services->count == services->room) {
		grown = realloc(services->entry, room * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		services->entry = grown;
		services->room = room;
	}
	services->entry[services->count++] = (struct gsi_service){ *service, slot };
	return 0;
}

void gsi_services_remove(struct gsi_services *services, const struct link_service *service,
			 unsigned int slot)
{
	for (unsigned int i = 0; i < services->count; i++) {
		struct gsi_service *entry = &services->entry[i];

		if (entry->slot == slot &&
		    is_same(entry, service->id, service->gid, service->scope_id)) {
			*entry = services->entry[--services->count];
			return;
		}
	}
}

void gsi_services_forget(struct gsi_services *services, unsigned int slot)
{
	unsigned int left = 0;

	for (unsigned int i = 0; i < services->count && slot < LINK_SLOTS; i++)
		if (services->entry[i].slot != slot)
			services->entry[left++] = services->entry[i];
	services->count = left;
}

static unsigned int find_exactly(const struct gsi_services *services, uint64_t id,
				 const uint8_t gid[16], uint32_t scope_id)
{
	for (unsigned int i = 0; i < services->count; i++)
		if (is_same(&services->entry[i], id, gid, scope_id))
			return services->entry[i].slot;
	return LINK_SLOTS;
}

unsigned int gsi_services_find(const struct gsi_services *services, uint64_t id,
			       const uint8_t gid[16], uint32_t scope_id)
{
	unsigned int slot = find_exactly(services, id, gid, scope_id);

	if (slot < LINK_SLOTS)
		return slot;
	return find_exactly(services, id, memcmp(gid, any_ipv4, 12) ? any_ipv6 : any_ipv4, 0);
}

void gsi_services_free(struct gsi_services *services)
{
	free(services->entry);
	*services = (struct gsi_services){ 0 };
}

/* ---- requests ---- */

static size_t place_of(const struct gsi_target *target)
{
	uint64_t hash = (target->guid ^ target->id) * UINT64_C(0x9e3779b97f4a7c15);

	return (hash >> 40) % GSI_REQUESTS;
}

void gsi_requests_add(struct gsi_requests *requests, const struct gsi_target *target,
		      unsigned int slot, uint64_t now)
{
	requests->entry[place_of(target)] = (struct gsi_request){
		.guid = target->guid,
		.id = target->id,
		.slot = slot,
		.until = now + GSI_REQUEST_NS,
	};
}

unsigned int gsi_requests_find(const struct gsi_requests *requests, const struct gsi_target *target,
			       uint64_t now)
{
	const struct gsi_request *entry = &requests->entry[place_of(target)];

	if (entry->until <= now || entry->guid != target->guid || entry->id != target->id)
		return LINK_SLOTS;
	return entry->slot;
}

void gsi_requests_forget(struct gsi_requests *requests, unsigned int slot)
{
	for (size_t i = 0; i < GSI_REQUESTS; i++)
		if (requests->entry[i].slot == slot)
			requests->entry[i].until = 0;
}
