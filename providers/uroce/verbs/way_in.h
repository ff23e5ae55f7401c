/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What the drop-in libibverbs asks of the provider plug-in, which it loads from beside itself.
 *
 * A process may come to load the plug-in twice, from two files: by the drop-in, and by libibverbs
 * as an installed driver.  There has to be one set of devices, one key table, one link; so the
 * first copy that is loaded serves, and the others pass on to it.
 */
#ifndef UROCE_VERBS_WAY_IN_H
#define UROCE_VERBS_WAY_IN_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <infiniband/verbs.h>

/* Raised whenever struct uroce_way_in changes; copies of different versions do not mix. */
#define UROCE_WAY_IN_VERSION 5

/*
 * The kernel's rdma_cm character device as librdmacm uses it, answered in this process.  What is
 * not a channel's descriptor is none of its business.  Errors are -1 with errno, as those of the
 * system calls.
 */
struct uroce_channels {
	int (*open)(void); /* a new channel's descriptor */
	bool (*owns)(int fd);
	/* One command (<rdma/rdma_user_cm.h>); false: fd is not a channel. */
	bool (*write)(int fd, const void *bytes, size_t length, ssize_t *result);
	bool (*close)(int fd); /* false: fd is not a channel */
};

#define UROCE_FACTS_GIDS 256

/* What /sys shows of a device, which need not be open. */
struct uroce_device_facts {
	char netdev[IF_NAMESIZE];
	uint32_t netdev_index;
	struct ibv_device_attr device;
	struct ibv_port_attr port;
	union ibv_gid gid[UROCE_FACTS_GIDS]; /* zero: an empty place of the table */
	uint16_t pkey;			     /* host order */
};

struct uroce_way_in {
	uint32_t version; /* UROCE_WAY_IN_VERSION; always first */

	/* Once, before all else: the dlopen() handle of the real libibverbs.  false: it is of a
	 * release that is not known; a line on stderr has said so. */
	bool (*load)(void *libibverbs);
	/* As uroce_list_devices(): a malloc'ed list, each device held once.  0 or an errno. */
	int (*list_devices)(struct ibv_device ***list, unsigned int *count);

	bool (*owns_device)(const struct ibv_device *device);
	uint64_t (*device_guid)(struct ibv_device *device); /* host order */
	int (*device_index)(struct ibv_device *device);

	/* As uroce_describe_device() in query.h. */
	int (*describe_device)(struct ibv_device *device, struct uroce_device_facts *facts);

	/* 0 or an errno, as in query.h. */
	int (*query_gid_entry)(struct ibv_context *context, uint32_t port, uint32_t index,
			       struct ibv_gid_entry *entry);
	int (*query_pkey)(struct ibv_context *context, uint32_t port, int index, __be16 *pkey);

	struct ibv_comp_channel *(*create_comp_channel)(struct ibv_context *context);
	int (*destroy_comp_channel)(struct ibv_comp_channel *channel);
	struct ibv_qp_ex *(*qp_to_qp_ex)(struct ibv_qp *qp);

	/* NULL with errno; EOPNOTSUPP: not a descriptor of ours. */
	struct ibv_context *(*import_device)(int cmd_fd);

	/* NULL: connections are left to the kernel's connection manager. */
	const struct uroce_channels *(*channels)(void);
};

/* The connection manager, which is above this layer, makes itself known before all else. */
void uroce_serve_channels(const struct uroce_channels *channels);

/* The table of the copy that serves this process.  Exported. */
#define UROCE_WAY_IN_SYMBOL "uroce_way_in"
const struct uroce_way_in *uroce_way_in(void);

/* The drop-in exports this name; a plug-in that finds it does not register as a driver. */
#define UROCE_DROPIN_SYMBOL "uroce_dropin"

#endif
