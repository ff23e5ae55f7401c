/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "ah.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "ops.h"

enum {
	/* Programs that know only subnets leave 1 in place; a routed peer would never hear them. */
	DEFAULT_HOP_LIMIT = 64,
};

static bool is_ipv4(const uint8_t gid[16])
{
	return IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)(const void *)gid);
}

static bool is_link_local(const uint8_t gid[16])
{
	return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

int uroce_ah_check(struct uroce_device *device, const struct ibv_ah_attr *attr,
		   struct progress_route *route)
{
	static const uint8_t nowhere[16];
	const struct ibv_global_route *grh = &attr->grh;
	union ibv_gid sgid;

	if (!attr->is_global || attr->port_num != 1)
		return EINVAL;
	if (!uroce_gid(device, grh->sgid_index, &sgid))
		return EINVAL;
	if (!memcmp(grh->dgid.raw, nowhere, sizeof(nowhere)) ||
	    is_ipv4(sgid.raw) != is_ipv4(grh->dgid.raw))
		return EINVAL;
	if (!route)
		return 0;
	memset(route, 0, sizeof(*route));
	memcpy(route->sgid, sgid.raw, sizeof(route->sgid));
	memcpy(route->dgid, grh->dgid.raw, sizeof(route->dgid));
	if (is_link_local(sgid.raw) || is_link_local(grh->dgid.raw)) {
		pthread_mutex_lock(&device->port_lock);
		route->scope_id = device->netdev.index;
		pthread_mutex_unlock(&device->port_lock);
	}
	route->traffic_class = grh->traffic_class;
	route->hop_limit = grh->hop_limit > 1 ? grh->hop_limit : DEFAULT_HOP_LIMIT;
	route->flow_label = grh->flow_label & 0xfffff;
	return 0;
}

struct ibv_ah *uroce_create_ah(struct ibv_pd *ibv_pd, struct ibv_ah_attr *attr)
{
	struct uroce_context *context = to_uroce_context(ibv_pd->context);
	int error = uroce_ah_check(context->device, attr, NULL);
	struct uroce_ah *ah = NULL;

	if (!error) {
		ah = calloc(1, sizeof(*ah));
		error = ENOMEM;
	}
	if (!ah) {
		errno = error;
		return NULL;
	}
	ah->attr = *attr;
	ah->pd = to_uroce_pd(ibv_pd);
	atomic_fetch_add(&ah->pd->users, 1);
	return &ah->base;
}

int uroce_destroy_ah(struct ibv_ah *ibv_ah)
{
	struct uroce_ah *ah = to_uroce_ah(ibv_ah);

	atomic_fetch_sub(&ah->pd->users, 1);
	free(ah);
	return 0;
}
