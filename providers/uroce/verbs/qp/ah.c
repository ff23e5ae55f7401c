/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "ah.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/fork.h"
#include "verbs/abi/ops.h"

enum {
	/* Replaces hop limits 0 and 1, which programs leave set and no router forwards. */
	DEFAULT_HOP_LIMIT = 64,
};

/* Stack of address handles without references, waiting to be freed; any thread may push. */
static _Atomic(struct uroce_ah *) deferred;

void uroce_ah_strerror(struct uroce_device *device, const struct ibv_ah_attr *attr,
		       char text[PROGRESS_ERROR_TEXT])
{
	static const uint8_t zero_gid[16];
	const struct ibv_global_route *grh = &attr->grh;
	const char *name = device->base.device.name;
	char src[INET6_ADDRSTRLEN], dst[INET6_ADDRSTRLEN];
	union ibv_gid sgid;

	if (attr->port_num != UROCE_PORT)
		snprintf(text, PROGRESS_ERROR_TEXT, "%s has no port %u, only port 1", name,
			 attr->port_num);
	else if (!attr->is_global)
		snprintf(text, PROGRESS_ERROR_TEXT,
			 "no GID is named, and RoCE has no other address: start the program with a "
			 "GID index (often -g 0) at both ends");
	else if (!uroce_gid(device, grh->sgid_index, &sgid))
		/* Programs use -1 for "no index", and the field has eight bits. */
		snprintf(text, PROGRESS_ERROR_TEXT,
			 "%s has nothing at GID index %u%s: start the program with one that it has "
			 "(often -g 0; ibv_devinfo -v shows them)",
			 name, grh->sgid_index,
			 grh->sgid_index == UINT8_MAX ? ", which stands for none given" : "");
	else if (!memcmp(grh->dgid.raw, zero_gid, sizeof(zero_gid)))
		snprintf(text, PROGRESS_ERROR_TEXT,
			 "the peer's GID is zero: start the program with a GID index (often -g 0) "
			 "there, too");
	else if (gid_is_ipv4(sgid.raw) != gid_is_ipv4(grh->dgid.raw))
		snprintf(text, PROGRESS_ERROR_TEXT,
			 "GID index %u of %s is %s, the peer's GID is %s: both must be IPv4 "
			 "(::ffff:...) or both IPv6, so choose another GID index at one end",
			 grh->sgid_index, name, inet_ntop(AF_INET6, sgid.raw, src, sizeof(src)),
			 inet_ntop(AF_INET6, grh->dgid.raw, dst, sizeof(dst)));
	else
		text[0] = 0;
}

static bool gids_are_valid(struct uroce_device *device, const struct ibv_global_route *grh,
			   union ibv_gid *sgid)
{
	static const uint8_t zero_gid[16];

	return uroce_gid(device, grh->sgid_index, sgid) &&
	       memcmp(grh->dgid.raw, zero_gid, sizeof(zero_gid)) &&
	       gid_is_ipv4(sgid->raw) == gid_is_ipv4(grh->dgid.raw);
}

/* Sets the interface index for link-local addresses, and for a multicast destination. */
static void set_scopes(struct uroce_device *device, struct progress_route *route)
{
	bool sgid_local = gid_is_link_local(route->sgid);
	bool dgid_local = gid_is_link_local(route->dgid) || gid_is_multicast(route->dgid);
	uint32_t index;

	pthread_mutex_lock(&device->port_lock);
	index = device->netdev.index;
	pthread_mutex_unlock(&device->port_lock);
	route->scope_id = sgid_local ? index : 0;
	route->dst_scope_id = dgid_local ? index : 0;
}

int uroce_ah_check(struct uroce_device *device, const struct ibv_ah_attr *attr,
		   struct progress_route *route)
{
	const struct ibv_global_route *grh = &attr->grh;
	union ibv_gid sgid;

	if (!attr->is_global || attr->port_num != 1 || !gids_are_valid(device, grh, &sgid))
		return EINVAL;
	if (!route)
		return 0;
	memset(route, 0, sizeof(*route));
	memcpy(route->sgid, sgid.raw, sizeof(route->sgid));
	memcpy(route->dgid, grh->dgid.raw, sizeof(route->dgid));
	set_scopes(device, route);
	route->traffic_class = grh->traffic_class;
	route->hop_limit = grh->hop_limit > 1 ? grh->hop_limit : DEFAULT_HOP_LIMIT;
	route->flow_label = grh->flow_label & 0xfffff;
	return 0;
}

void uroce_ah_hold(struct uroce_ah *ah)
{
	atomic_fetch_add_explicit(&ah->users, 1, memory_order_relaxed);
}

void uroce_ah_release(struct uroce_ah *ah)
{
	if (atomic_fetch_sub(&ah->users, 1) > 1)
		return;
	ah->next_deferred = atomic_load(&deferred);
	while (!atomic_compare_exchange_weak(&deferred, &ah->next_deferred, ah))
		;
}

void uroce_ah_free_deferred(void)
{
	struct uroce_ah *ah = atomic_exchange(&deferred, NULL);

	while (ah) {
		struct uroce_ah *next = ah->next_deferred;

		if (!uroce_is_stale(ah->generation))
			progress_path_close(ah->progress, &ah->path);
		free(ah);
		ah = next;
	}
}

/*
 * Number used instead of a QPN to choose the UDP source port, since any QP may use the handle.
 * Source ports then differ between processes and destinations, but not between handles, which would
 * use too many sockets.
 */
static uint32_t source_port_seed(struct progress *progress, const struct progress_route *route)
{
	uint32_t tail;

	memcpy(&tail, route->dgid + 12, sizeof(tail));
	return link_slot(progress_link(progress)) << LINK_SLOT_SHIFT ^ tail;
}

/* Returns 0 or a positive errno. */
static int open_path(struct uroce_ah *ah, const struct progress_route *route)
{
	char text[PROGRESS_ERROR_TEXT] = "";
	int error = -progress_path_open(ah->progress, route, source_port_seed(ah->progress, route),
					&ah->path, text);

	if (error && text[0])
		uroce_err("%s", text);
	return error;
}

/* All QPs that could use the handle have been stopped before. */
static void stop_ah(struct uroce_ctx_obj *ctx_obj)
{
	struct uroce_ah *ah = container_of(ctx_obj, struct uroce_ah, ctx_obj);

	progress_path_close(ah->progress, &ah->path);
	ah->generation = UROCE_GEN_STOPPED;
}

/* Returns 0 or a positive errno. */
static int create_ah(struct ibv_pd *pd, const struct ibv_ah_attr *attr,
		     struct progress_route *route, struct uroce_ah **created)
{
	struct uroce_context *context = to_uroce_context(pd->context);
	int error = uroce_object_add(pd->context, UROCE_OBJECT_AH);
	struct uroce_ah *ah = NULL;

	if (error)
		return error;
	ah = calloc(1, sizeof(*ah));
	error = ENOMEM;
	if (!ah)
		goto err;
	ah->attr = *attr;
	ah->pd = to_uroce_pd(pd);
	ah->progress = context->progress;
	ah->generation = uroce_generation;
	atomic_init(&ah->users, 1);
	if (!route->traffic_class)
		route->traffic_class = context->settings.traffic_class;
	error = open_path(ah, route);
	if (error)
		goto err;
	*created = ah;
	return 0;

err:
	free(ah);
	uroce_object_remove(pd->context, UROCE_OBJECT_AH);
	return error;
}

struct ibv_ah *uroce_create_ah(struct ibv_pd *ibv_pd, struct ibv_ah_attr *attr)
{
	struct uroce_context *context = to_uroce_context(ibv_pd->context);
	char text[PROGRESS_ERROR_TEXT];
	struct progress_route route;
	int error = uroce_ah_check(context->device, attr, &route);
	__typeof__(&uroce_debug) report;
	struct uroce_ah *ah;

	uroce_ah_free_deferred();
	if (!error)
		error = create_ah(ibv_pd, attr, &route, &ah);
	if (error) {
		uroce_ah_strerror(context->device, attr, text);
		/*
		 * Programs try which GIDs are usable, so a failure may be expected: no error
		 * message, unless there is no GID at all.
		 */
		report = attr->is_global ? uroce_debug : uroce_err;
		report("no address handle: %s", text[0] ? text : strerror(error));
		errno = error;
		return NULL;
	}
	uroce_pd_get(ah->pd);
	ah->base.context = ibv_pd->context;
	uroce_ctx_obj_add(&ah->ctx_obj, UROCE_CTX_OBJ_AH, context, stop_ah);
	return &ah->base;
}

int uroce_destroy_ah(struct ibv_ah *ibv_ah)
{
	struct uroce_ah *ah = to_uroce_ah(ibv_ah);
	struct ibv_context *context = ibv_ah->context;

	uroce_ctx_obj_del(&ah->ctx_obj);
	uroce_pd_put(ah->pd);
	uroce_ah_release(ah);
	uroce_ah_free_deferred();
	uroce_object_remove(context, UROCE_OBJECT_AH);
	return 0;
}
