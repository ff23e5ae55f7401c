/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <string.h>

#include "cm_priv.h"

#define LISTENER_OF(node) ((node) ? container_of(node, struct cm_listener, by_service) : NULL)

/* Fields of a request that select its listener. */
struct listen_key {
	uint64_t service_id;
	enum cm_service service;
	uint32_t device;
	enum cm_family family;
	uint8_t address[MAD_GID_BYTES]; /* local address */
};

size_t cm_listener_bytes(void)
{
	return sizeof(struct cm_listener);
}

void *cm_listener_user(const struct cm_listener *listener)
{
	return listener->user;
}

static struct cm_listener *first_listener(const struct cm *cm, uint64_t service_id)
{
	return LISTENER_OF(table_find(&cm->listeners, service_id, 0));
}

static struct cm_listener *next_listener(const struct cm_listener *listener)
{
	return LISTENER_OF(table_next(&listener->by_service));
}

static bool has_same_address(const struct cm_listen_param *a, const struct cm_listen_param *b)
{
	if (a->any_address || b->any_address)
		return a->any_address == b->any_address;
	return memcmp(a->address, b->address, sizeof(a->address)) == 0;
}

enum cm_result cm_listen(struct cm *cm, void *memory, const struct cm_listen_param *param,
			 void *user, struct cm_listener **listener)
{
	struct cm_listener *other, *new = memory;

	if ((unsigned int)param->service >= CM_SERVICES || param->families == 0)
		return CM_BAD_ARGUMENT;
	for (other = first_listener(cm, param->service_id); other; other = next_listener(other))
		if (other->param.device == param->device &&
		    (other->param.families & param->families) &&
		    has_same_address(&other->param, param))
			return CM_IN_USE;
	memset(new, 0, sizeof(*new));
	new->param = *param;
	new->user = user;
	table_insert(&cm->listeners, &new->by_service, param->service_id, 0);
	*listener = new;
	return CM_OK;
}

void cm_unlisten(struct cm *cm, struct cm_listener *listener)
{
	table_remove(&cm->listeners, &listener->by_service);
}

/* Returns the service that a request asks for, CM_SERVICES if its transport is unknown. */
static enum cm_service requested_service(const struct mad *mad)
{
	if (mad->attr == MAD_SIDR_REQ)
		return CM_UD;
	if (mad->req.transport == MAD_TRANSPORT_RC)
		return CM_RC;
	if (mad->req.transport == MAD_TRANSPORT_UC)
		return CM_UC;
	return mad->req.transport == MAD_TRANSPORT_XRC && mad->req.extended_transport == 1
		       ? CM_XRC
		       : CM_SERVICES;
}

/* Returns false if the request has an IP CM header of an unknown version. */
static bool get_listen_key(const struct mad *mad, const struct cm_path *from,
			   struct listen_key *key)
{
	bool datagram = mad->attr == MAD_SIDR_REQ;
	const uint8_t *data = datagram ? mad->sidr_req.private_data : mad->req.private_data;
	struct cm_ip_header header;

	key->service_id = datagram ? mad->sidr_req.service_id : mad->req.service_id;
	key->service = requested_service(mad);
	key->device = from->device;
	if (cm_ip_header_get(data, &header)) {
		key->family = header.family == 4 ? CM_FAMILY_IPV4 : CM_FAMILY_IPV6;
		memcpy(key->address, header.destination, sizeof(key->address));
		return true;
	}
	key->family = CM_FAMILY_NONE;
	memcpy(key->address, from->sgid, sizeof(key->address));
	return header.version == 0 || (header.family != 4 && header.family != 6);
}

/* Returns 0 if the listener does not match, otherwise a higher score the more it specifies. */
static unsigned int match_score(const struct cm_listen_param *param, const struct listen_key *key)
{
	if (param->service != key->service || !(param->families & key->family))
		return 0;
	if (param->device != CM_ANY_DEVICE && param->device != key->device)
		return 0;
	if (!param->any_address && memcmp(param->address, key->address, sizeof(key->address)) != 0)
		return 0;
	return 1u + (param->device != CM_ANY_DEVICE) + 2u * !param->any_address;
}

/* Returns NULL if no listener matches. */
static struct cm_listener *best_listener(const struct cm *cm, const struct listen_key *key)
{
	struct cm_listener *best = NULL;
	unsigned int best_score = 0, score;

	for (struct cm_listener *l = first_listener(cm, key->service_id); l; l = next_listener(l)) {
		score = match_score(&l->param, key);
		if (score > best_score) {
			best_score = score;
			best = l;
		}
	}
	return best;
}

enum cm_verdict cm_find_listener(const struct cm *cm, const struct mad *request,
				 const struct cm_path *from, struct cm_listener **listener)
{
	struct cm_listener *best = NULL;
	struct listen_key key;

	if (get_listen_key(request, from, &key))
		best = best_listener(cm, &key);
	/*
	 * The header may not be one: rsockets over AF_IB leaves that part of the private data
	 * uninitialised.  So look up again by the GID of the path.
	 */
	if (!best && first_listener(cm, key.service_id)) {
		key.family = CM_FAMILY_NONE;
		memcpy(key.address, from->sgid, sizeof(key.address));
		best = best_listener(cm, &key);
	}
	if (best)
		*listener = best;
	else if (!first_listener(cm, key.service_id))
		return CM_REFUSED_SERVICE;
	return best ? CM_HANDLED : CM_REFUSED_MISMATCH;
}
