/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Support for fork().  libibverbs excludes the pages of registered memory from child processes
 * (MADV_DONTFORK), including other data on the same pages, and each region then splits a mapping.
 * uroce does not pin memory, so this is done only if there are kernel devices.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "dropin.h"
#include "redirect.h"

/* Replaces madvise() in the real library, which uses it only for fork support. */
static int hook_madvise(void *address, size_t length, int advice)
{
	return dropin_has_kernel_devices() ? madvise(address, length, advice) : 0;
}

static uintptr_t find_madvise_hook(const char *name)
{
	return strcmp(name, "madvise") ? 0 : (uintptr_t)hook_madvise;
}

void fork_redirect_madvise(void)
{
	const void *address = dropin_real("ibv_fork_init", "IBVERBS_1.1");

	if (address)
		redirect_calls(address, find_madvise_hook);
}

/*
 * The real function fails if memory was registered before, because those pages are not excluded
 * from children.  Without kernel devices no page needs to be excluded: reports success.
 */
DROPIN_EXPORT int ibv_fork_init(void)
{
	__typeof__(&ibv_fork_init) real = DROPIN_REAL(ibv_fork_init, "IBVERBS_1.1");
	int error = real ? real() : ENOSYS;

	return dropin_has_kernel_devices() ? error : 0;
}

DROPIN_EXPORT enum ibv_fork_status ibv_is_fork_initialized(void)
{
	__typeof__(&ibv_is_fork_initialized) real;

	if (!dropin_has_kernel_devices())
		return IBV_FORK_UNNEEDED;
	real = DROPIN_REAL(ibv_is_fork_initialized, "IBVERBS_1.13");
	return real ? real() : IBV_FORK_DISABLED;
}
