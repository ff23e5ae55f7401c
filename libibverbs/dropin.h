/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The drop-in: a libibverbs.so.1 that the loader finds before the real one.  It defines the few
 * functions that libibverbs implements with the kernel, for uroce devices, and forwards them to the
 * real library for other devices.  All other symbols are resolved to the real library by the
 * loader.
 */
#ifndef UROCE_LIBIBVERBS_DROPIN_H
#define UROCE_LIBIBVERBS_DROPIN_H

#include <infiniband/verbs.h>

#include "verbs/abi/dropin_ops.h"

#define DROPIN_EXPORT __attribute__((visibility("default")))

/* Returns the real library's symbol of a version node, or NULL with errno ENOSYS. */
#define DROPIN_REAL(name, node) ((__typeof__(&name))dropin_real(#name, node))
void *dropin_real(const char *symbol, const char *node);

/*
 * Returns the provider; the first call loads it.  Returns NULL if that failed, which is reported
 * once on stderr.
 */
const struct uroce_dropin_ops *dropin_provider(void);

/* Returns the provider if it owns the device, otherwise NULL.  Does not load the provider. */
const struct uroce_dropin_ops *dropin_provider_of(const struct ibv_device *device);

/* Returns true if the real library has listed or imported a kernel device. */
bool dropin_has_kernel_devices(void);

/*
 * Redirects madvise() in the real library, see fork.c.  Must be called once, before memory is
 * registered.
 */
void fork_redirect_madvise(void);

/* Private API of libibverbs, not declared in any installed header. */
enum dropin_gid_type {
	DROPIN_GID_ROCE_V1,
	DROPIN_GID_ROCE_V2,
};
int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index,
		       enum dropin_gid_type *type);

/* Returns the index of gid in the GID table of a uroce device, or -1 with errno. */
int dropin_find_gid(const struct uroce_dropin_ops *provider, struct ibv_context *context,
		    uint8_t port, const union ibv_gid *gid);

#endif
