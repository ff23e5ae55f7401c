/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Interface of the provider plug-in for the drop-in libibverbs, which loads the plug-in from its
 * own directory.
 *
 * A process may load the plug-in twice, from two files: through the drop-in, and through libibverbs
 * as an installed driver.  As there must be one set of devices, one key table and one link, the
 * first copy that is loaded does all work, and the others forward to it.
 */
#ifndef UROCE_VERBS_ABI_DROPIN_OPS_H
#define UROCE_VERBS_ABI_DROPIN_OPS_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <infiniband/verbs.h>

/* Incremented whenever struct uroce_dropin_ops changes; copies of different versions do not mix. */
#define UROCE_DROPIN_OPS_VERSION 6

/*
 * Implementation of the kernel's rdma_cm character device for librdmacm.  Functions return -1 with
 * errno, as system calls do.
 */
struct uroce_cm_dev_ops {
	int (*open)(void); /* returns the descriptor of a new channel */
	bool (*owns)(int fd);
	/* Executes a command (<rdma/rdma_user_cm.h>); returns false if fd is not a channel. */
	bool (*write)(int fd, const void *bytes, size_t length, ssize_t *result);
	bool (*close)(int fd); /* returns false if fd is not a channel */
};

#define UROCE_DESC_GIDS 256

/* Attributes of a device in /sys; the device need not be open. */
struct uroce_device_desc {
	char netdev[IF_NAMESIZE];
	uint32_t netdev_index;
	struct ibv_device_attr device;
	struct ibv_port_attr port;
	union ibv_gid gid[UROCE_DESC_GIDS]; /* zero: unused entry */
	uint16_t pkey;			    /* host order */
};

struct uroce_dropin_ops {
	uint32_t version; /* UROCE_DROPIN_OPS_VERSION; always first */

	/*
	 * Must be the first call; libibverbs is the dlopen() handle of the real library.  Returns
	 * false, with a message on stderr, if its release is not supported.
	 */
	bool (*load)(void *libibverbs);
	/*
	 * As uroce_list_devices(): a malloc'ed list with a reference to each device.  Returns 0 or
	 * a positive errno.
	 */
	int (*list_devices)(struct ibv_device ***list, unsigned int *count);

	bool (*owns_device)(const struct ibv_device *device);
	uint64_t (*device_guid)(struct ibv_device *device); /* host order */
	int (*device_index)(struct ibv_device *device);

	/* As uroce_describe_device() in context/device.h. */
	int (*describe_device)(struct ibv_device *device, struct uroce_device_desc *desc);

	/* As in context/device.h; return 0 or a positive errno. */
	int (*query_gid_entry)(struct ibv_context *context, uint32_t port, uint32_t index,
			       struct ibv_gid_entry *entry);
	int (*query_pkey)(struct ibv_context *context, uint32_t port, int index, __be16 *pkey);

	/* As neighbour_resolve_mac(). */
	int (*resolve_mac)(uint32_t interface, const uint8_t dgid[16],
			   uint8_t mac[ETHERNET_LL_SIZE], uint16_t *vlan);

	struct ibv_comp_channel *(*create_comp_channel)(struct ibv_context *context);
	int (*destroy_comp_channel)(struct ibv_comp_channel *channel);
	struct ibv_qp_ex *(*qp_to_qp_ex)(struct ibv_qp *qp);

	/* Returns NULL with errno; EOPNOTSUPP: the descriptor is not of a uroce context. */
	struct ibv_context *(*import_device)(int cmd_fd);

	/* Returns NULL if connections are left to the kernel's connection manager. */
	const struct uroce_cm_dev_ops *(*cm_dev_ops)(void);
};

/* A device is named this and the name of its interface. */
#define UROCE_DEVICE_PREFIX "uroce_"

/* Registers the connection manager, a layer above this one, when the plug-in is loaded. */
void uroce_register_cm_dev(const struct uroce_cm_dev_ops *cm_dev_ops);

/* Returns the table of the copy that does the work.  Exported. */
#define UROCE_DROPIN_OPS_SYMBOL "uroce_dropin_ops"
const struct uroce_dropin_ops *uroce_dropin_ops(void);

/* Symbol of the drop-in; a plug-in that finds it does not register as a driver. */
#define UROCE_DROPIN_SYMBOL "uroce_dropin"

#endif
