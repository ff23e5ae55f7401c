/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A libibverbs.so.1 that programs find before the real one.  It defines the few calls that
 * libibverbs answers from the kernel, for uroce's devices; the same calls for other devices go on
 * to the real library, and every other call is found there by the loader in the first place.
 */
#ifndef UROCE_LIBIBVERBS_DROPIN_H
#define UROCE_LIBIBVERBS_DROPIN_H

#include <infiniband/verbs.h>

#include "verbs/way_in.h"

#define DROPIN_EXPORT __attribute__((visibility("default")))

/* The real library's function of a version node, or NULL with errno when it has none such. */
#define DROPIN_REAL(name, node) ((__typeof__(&name))dropin_real(#name, node))
void *dropin_real(const char *symbol, const char *node);

/*
 * The provider, loaded by the first call; NULL when it cannot serve here, which a line on stderr
 * has said once.
 */
const struct uroce_way_in *dropin_provider(void);

/* The provider if the device is its own, else NULL.  Loads nothing. */
const struct uroce_way_in *dropin_owner(const struct ibv_device *device);

/* Returns true once the real library has listed or imported a device of the kernel. */
bool dropin_kernel_devices(void);

/* Once, before memory is registered: keeps the real library from changing mappings (fork.c). */
void fork_redirect(void);

/* Declared in no installed header. */
enum dropin_gid_type {
	DROPIN_GID_ROCE_V1,
	DROPIN_GID_ROCE_V2,
};
int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index,
		       enum dropin_gid_type *type);

/* The index of gid in the table of an uroce device, or -1 with errno. */
int dropin_find_gid(const struct uroce_way_in *provider, struct ibv_context *context, uint8_t port,
		    const union ibv_gid *gid);

#endif
