/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* The device list, and queries of devices that are not open. */
#include <endian.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "dropin.h"
#include "redirect.h"

/* Set while the real library lists devices for itself: it cannot handle devices of the drop-in. */
static _Thread_local bool only_real_devices;

static atomic_bool has_kernel_devices;

bool dropin_has_kernel_devices(void)
{
	return atomic_load_explicit(&has_kernel_devices, memory_order_relaxed);
}

static struct ibv_device **list_real_devices(int *count)
{
	__typeof__(&ibv_get_device_list) real = DROPIN_REAL(ibv_get_device_list, "IBVERBS_1.1");
	struct ibv_device **list;

	*count = 0;
	list = real ? real(count) : NULL;
	if (*count)
		atomic_store(&has_kernel_devices, true);
	return list;
}

/*
 * Returns the concatenation of both lists, which it frees, or NULL if out of memory (then both are
 * unchanged).  left may be NULL.
 */
static struct ibv_device **concat_lists(struct ibv_device **left, unsigned int left_count,
					struct ibv_device **right, unsigned int right_count)
{
	size_t bytes = sizeof(*left) * ((size_t)left_count + right_count + 1);
	/* ibv_free_device_list() calls free(). */
	struct ibv_device **joined = realloc(left, bytes);

	if (!joined)
		return NULL;
	memcpy(joined + left_count, right, sizeof(*right) * right_count);
	joined[left_count + right_count] = NULL;
	free(right);
	return joined;
}

DROPIN_EXPORT struct ibv_device **ibv_get_device_list(int *num_devices)
{
	const struct uroce_dropin_ops *provider;
	__typeof__(&ibv_free_device_list) free_list;
	struct ibv_device **list, **ours, **joined;
	unsigned int our_count;
	int count, saved;

	redirect_if_librdmacm(__builtin_return_address(0));
	list = list_real_devices(&count);
	saved = errno;
	provider = only_real_devices ? NULL : dropin_provider();
	if (provider && provider->list_devices(&ours, &our_count) == 0) {
		joined = concat_lists(list, (unsigned int)count, ours, our_count);
		if (joined) {
			/* The real library fails without kernel RDMA support: ignore that. */
			list = joined;
			count += (int)our_count;
			saved = 0;
		} else if ((free_list = DROPIN_REAL(ibv_free_device_list, "IBVERBS_1.1"))) {
			/* Drops the references to the devices, too. */
			free_list(ours);
		}
	}
	if (num_devices)
		*num_devices = count;
	if (saved)
		errno = saved;
	return list;
}

DROPIN_EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
	const struct uroce_dropin_ops *provider = dropin_provider_of(device);
	__typeof__(&ibv_get_device_guid) real;

	if (provider)
		return htobe64(provider->device_guid(device));
	real = DROPIN_REAL(ibv_get_device_guid, "IBVERBS_1.1");
	return real ? real(device) : 0;
}

/*
 * The index identifies a device in the kernel's netlink API, which UCX uses, so uroce devices have
 * none.  Only librdmacm gets an index, which it compares with those that uroce's connection manager
 * returns.
 */
DROPIN_EXPORT int ibv_get_device_index(struct ibv_device *device)
{
	const struct uroce_dropin_ops *provider = dropin_provider_of(device);
	__typeof__(&ibv_get_device_index) real;

	if (provider)
		return redirect_is_librdmacm(__builtin_return_address(0))
			       ? provider->device_index(device)
			       : -1;
	real = DROPIN_REAL(ibv_get_device_index, "IBVERBS_1.9");
	return real ? real(device) : -1;
}

/*
 * The real function searches the whole device list for the device of the descriptor, and
 * dereferences sysfs data that uroce devices do not have; so the list must not contain them.
 */
DROPIN_EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
	const struct uroce_dropin_ops *provider;
	__typeof__(&ibv_import_device) real;
	struct ibv_context *context;
	struct stat status;

	/*
	 * Kernel devices have character devices; the command fds of uroce devices refer to other
	 * files.
	 */
	if (fstat(cmd_fd, &status) == 0 && !S_ISCHR(status.st_mode)) {
		provider = dropin_provider();
		if (provider)
			return provider->import_device(cmd_fd);
		errno = EOPNOTSUPP;
		return NULL;
	}
	real = DROPIN_REAL(ibv_import_device, "IBVERBS_1.10");
	if (!real)
		return NULL;
	only_real_devices = true;
	context = real(cmd_fd);
	only_real_devices = false;
	if (context)
		atomic_store(&has_kernel_devices, true);
	return context;
}
