/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Entry points of the plug-in: for libibverbs as an ordinary driver, for the drop-in, and for
 * programs that use urocedv.h.
 */
#include <dlfcn.h>
#include <endian.h>
#include <errno.h>

#include <infiniband/urocedv.h>

#include "link/netlink/neighbour.h"
#include "device.h"
#include "verbs/abi/api_call.h"
#include "context.h"
#include "verbs/abi/dropin_ops.h"
#include "verbs/abi/ops.h"

#define EXPORT __attribute__((visibility("default")))

static bool never_match(struct verbs_sysfs_dev *sysfs_dev)
{
	(void)sysfs_dev;
	return false;
}

/*
 * libibverbs offers each kernel device to each driver.  uroce takes none; but libibverbs requires a
 * table, and would take an earlier driver's match for uroce's if match_device did not return false.
 */
static const struct verbs_match_ent no_kernel_devices[] = { { .kind = 0 } };

static void *alloc_context(struct ibv_device *device, int cmd_fd, void *private_data)
{
	(void)cmd_fd;
	return UROCE_NO_CANCEL(uroce_alloc_context(device, &uroce_ops, private_data));
}

static const struct verbs_device_ops device_ops = {
	.name = "uroce",
	.match_max_abi_version = UINT32_MAX,
	.match_table = no_kernel_devices,
	.match_device = never_match,
	.alloc_context = alloc_context,
};

static bool owns_device(const struct ibv_device *device)
{
	return ((const struct verbs_device *)device)->ops == &device_ops;
}

static int list_devices(struct ibv_device ***list, unsigned int *count)
{
	return UROCE_NO_CANCEL(uroce_list_devices(list, count));
}

static uint64_t device_guid(struct ibv_device *device)
{
	return to_uroce_device(device)->node_guid;
}

static int device_index(struct ibv_device *device)
{
	return to_uroce_device(device)->index;
}

static struct ibv_comp_channel *create_comp_channel(struct ibv_context *context)
{
	return UROCE_NO_CANCEL(uroce_create_comp_channel(context));
}

static int destroy_comp_channel(struct ibv_comp_channel *channel)
{
	return UROCE_SET_ERRNO(UROCE_NO_CANCEL(uroce_destroy_comp_channel(channel)));
}

static struct ibv_qp_ex *qp_to_qp_ex(struct ibv_qp *qp)
{
	struct verbs_qp *ours = (struct verbs_qp *)qp;

	return ours->has_ex ? &ours->qp_ex : NULL;
}

static const struct uroce_cm_dev_ops *registered_cm_dev_ops;

void uroce_register_cm_dev(const struct uroce_cm_dev_ops *cm_dev_ops)
{
	registered_cm_dev_ops = cm_dev_ops;
}

static const struct uroce_cm_dev_ops *get_cm_dev_ops(void)
{
	return registered_cm_dev_ops;
}

static const struct uroce_dropin_ops this_copy = {
	.version = UROCE_DROPIN_OPS_VERSION,
	.load = abi_load,
	.list_devices = list_devices,
	.owns_device = owns_device,
	.device_guid = device_guid,
	.device_index = device_index,
	.describe_device = uroce_describe_device,
	.query_gid_entry = uroce_query_gid_entry,
	.query_pkey = uroce_query_pkey,
	.resolve_mac = neighbour_resolve_mac,
	.create_comp_channel = create_comp_channel,
	.destroy_comp_channel = destroy_comp_channel,
	.qp_to_qp_ex = qp_to_qp_ex,
	.import_device = uroce_import_device,
	.cm_dev_ops = get_cm_dev_ops,
};

/*
 * The table of the first copy.  A symbol of type gnu_unique_object is a single object in the
 * process, no matter how many libraries define it and how they were opened.  C cannot declare one.
 */
__asm__(".pushsection .bss.uroce_first_copy, \"aw\", @nobits\n"
	".globl uroce_first_copy\n"
	".type uroce_first_copy, @gnu_unique_object\n"
	".size uroce_first_copy, 8\n"
	".balign 8\n"
	"uroce_first_copy:\n"
	".zero 8\n"
	".popsection\n");
extern const struct uroce_dropin_ops *uroce_first_copy EXPORT;

EXPORT const struct uroce_dropin_ops *uroce_dropin_ops(void)
{
	return uroce_first_copy;
}

/* Runs under the loader's lock, so exactly one copy is the first. */
__attribute__((constructor)) static void register_copy(void)
{
	void *library;

	uroce_devices_set_ops(&device_ops);
	if (uroce_first_copy)
		return;
	uroce_first_copy = &this_copy;
	library = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);
	if (!library)
		return;
	/*
	 * Under the drop-in there is no use in registering as a driver; and the list of drivers is
	 * modified without a lock, which is safe only while libibverbs itself loads drivers.
	 */
	abi_has_dropin = dlsym(library, UROCE_DROPIN_SYMBOL);
	if (!abi_has_dropin && abi_load(library))
		uroce_abi.register_driver(&device_ops);
	dlclose(library);
}

/* The first copy may be of another release; then this copy does nothing. */
static bool is_first_copy_compatible(void)
{
	return uroce_first_copy->version == UROCE_DROPIN_OPS_VERSION;
}

EXPORT struct ibv_device **urocedv_get_device_list(int *num_devices)
{
	struct ibv_device **list;
	unsigned int count;
	int error;

	if (num_devices)
		*num_devices = 0;
	if (!is_first_copy_compatible() || !uroce_first_copy->load(NULL)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	error = uroce_first_copy->list_devices(&list, &count);
	if (error) {
		errno = error;
		return NULL;
	}
	if (num_devices)
		*num_devices = (int)count;
	return list;
}

EXPORT bool urocedv_is_supported(struct ibv_device *device)
{
	return is_first_copy_compatible() && uroce_first_copy->owns_device(device);
}

EXPORT __be64 urocedv_get_device_guid(struct ibv_device *device)
{
	return htobe64(uroce_first_copy->device_guid(device));
}

EXPORT int urocedv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
				struct ibv_gid_entry *entry)
{
	return UROCE_SET_ERRNO(
		uroce_first_copy->query_gid_entry(context, port_num, gid_index, entry));
}

EXPORT struct ibv_comp_channel *urocedv_create_comp_channel(struct ibv_context *context)
{
	return uroce_first_copy->create_comp_channel(context);
}

EXPORT int urocedv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	return uroce_first_copy->destroy_comp_channel(channel);
}
