/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * libibverbs' private provider interface.  No package has its headers, so it is declared here:
 * everything that libibverbs and a provider share in memory.  The differences between releases are
 * numbers in struct abi_layout, which is chosen at run time by the symbols of the loaded library.
 * The library's private functions are found by dlsym(), never by the linker, because their version
 * nodes are named after the release.
 *
 * The same from v36 to v65: verbs_device, verbs_device_ops, verbs_mr, verbs_cq, verbs_srq,
 * verbs_xrcd.  Different: verbs_context (grows at the front), verbs_context_ops (slots move),
 * verbs_qp (comp_mask moves).
 */
#ifndef UROCE_VERBS_ABI_ABI_H
#define UROCE_VERBS_ABI_ABI_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "abi_ops.h"

struct verbs_sysfs_dev; /* device that the kernel shows in /sys; uroce devices have none */

/* List node of libibverbs; those of uroce devices are never linked into a list. */
struct abi_list_node {
	struct abi_list_node *next, *prev;
};

/* Row of the table by which a provider claims kernel devices; uroce's table is empty. */
struct verbs_match_ent {
	void *driver_data;
	union {
		const char *modalias;
		uint64_t driver_id;
	} u;
	uint16_t vendor;
	uint16_t device;
	uint8_t kind; /* 0 ends the table */
};

struct verbs_device;

struct verbs_device_ops {
	const char *name;
	uint32_t match_min_abi_version;
	uint32_t match_max_abi_version;
	const struct verbs_match_ent *match_table;
	const struct verbs_device_ops **static_providers;
	bool (*match_device)(struct verbs_sysfs_dev *sysfs_dev);
	/* Both return a struct verbs_context in the layout of the loaded libibverbs. */
	void *(*alloc_context)(struct ibv_device *device, int cmd_fd, void *private_data);
	void *(*import_context)(struct ibv_device *device, int cmd_fd);
	struct verbs_device *(*alloc_device)(struct verbs_sysfs_dev *sysfs_dev);
	void (*uninit_device)(struct verbs_device *device);
};

struct verbs_device {
	struct ibv_device device; /* must be first */
	const struct verbs_device_ops *ops;
	/* References of lists and contexts; a uroce device keeps one of its own. */
	atomic_int refcount;
	struct abi_list_node entry;
	struct verbs_sysfs_dev *sysfs; /* NULL: no kernel device */
	uint64_t core_support;
};

/* Parameter of the operation reg_mr_ex, since v59; older public headers lack it. */
enum abi_mr_init_mask {
	ABI_MR_INIT_IOVA = 1 << 0,
	ABI_MR_INIT_ADDR = 1 << 1,
	ABI_MR_INIT_FD = 1 << 2, /* with FD_OFFSET and IOVA, without ADDR */
	ABI_MR_INIT_FD_OFFSET = 1 << 3,
	/* the bits that are supported */
	ABI_MR_INIT_ALL = (1 << 4) - 1,
};

struct abi_mr_init_attr {
	size_t length;
	int access;
	uint64_t comp_mask; /* enum abi_mr_init_mask */
	uint64_t iova;
	void *addr;
	int fd; /* descriptor of a dma-buf */
	uint64_t fd_offset;
	/* Fields that follow belong to bits of comp_mask that are not supported. */
};

/*
 * libibverbs' verbs_context ends with the public ibv_context and grows at the front; libibverbs
 * finds it by subtracting an offset from the ibv_context.  A front that is larger than that of any
 * release therefore serves all releases.  Only libibverbs accesses the front.
 */
#define ABI_CONTEXT_FRONT 512
struct verbs_context_max {
	_Alignas(16) unsigned char front[ABI_CONTEXT_FRONT];
	struct ibv_context context;
};

enum abi_mr_type {
	ABI_MR_TYPE_MR,
	ABI_MR_TYPE_NULL_MR,
	ABI_MR_TYPE_IMPORTED_MR,
	ABI_MR_TYPE_DMABUF_MR,
};

/* libibverbs sets both fields after reg_mr of the provider, and reads them before dereg_mr. */
struct verbs_mr {
	struct ibv_mr ibv_mr;
	uint32_t mr_type; /* enum abi_mr_type */
	int access;
};

struct verbs_cq {
	union {
		struct ibv_cq cq;
		struct ibv_cq_ex cq_ex;
	};
};

struct verbs_xrcd {
	struct ibv_xrcd xrcd;
	uint32_t comp_mask;
	uint32_t handle;
};

struct verbs_srq {
	struct ibv_srq srq;
	uint32_t srq_type; /* enum ibv_srq_type */
	struct verbs_xrcd *xrcd;
	struct ibv_cq *cq;
	uint32_t srq_num;
};

/*
 * The public ibv_qp_ex gained functions in v44 and v45, and libibverbs' private flags follow it.
 * Space for the largest one is reserved, and abi_qp_set_ex() finds the flags.  The functions that a
 * program built with an older header uses are in the same place in all releases.
 */
#define ABI_QP_BYTES 384

/* Constants of RDMA FLUSH, which <infiniband/verbs.h> of rdma-core has from v45 on. */
enum {
	ABI_ACCESS_FLUSH_GLOBAL = 1 << 8,
	ABI_ACCESS_FLUSH_PERSISTENT = 1 << 9,
	ABI_QP_EX_WITH_FLUSH = 1 << 11,
	ABI_WC_FLUSH = 8,
	ABI_FLUSH_MR = 1,
};
/* ibv_qp_ex.wr_flush, which follows wr_atomic_write. */
typedef void (*abi_wr_flush)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t len,
			     uint8_t type, uint8_t level);

/*
 * Bytes by which the mutex and the condition variable of an ibv_qp are larger than on amd64, for
 * which the layouts are recorded (8 on arm64).
 */
#define ABI_LOCK_GROWTH (sizeof(pthread_mutex_t) + sizeof(pthread_cond_t) - 88)
struct verbs_qp {
	union {
		struct ibv_qp qp;
		struct ibv_qp_ex qp_ex;
		unsigned char bytes[ABI_QP_BYTES];
	};
	bool has_ex; /* uroce's own flag: ibv_qp_to_qp_ex() may return qp_ex */
};

/* Differences between releases of libibverbs.  Sizes and offsets in bytes. */
struct abi_layout {
	unsigned int first_release, last_release; /* releases of rdma-core, for messages */
	unsigned int private_node; /* NN of IBVERBS_PRIVATE_NN and verbs_register_driver_NN */
	/* The table has the rows of ABI_OPS of this release and older ones. */
	unsigned int ops_release;
	unsigned int slots;	      /* number of slots, as a cross-check */
	unsigned int context_offset;  /* offset of ibv_context in verbs_context */
	unsigned int qp_comp_mask;    /* offset in verbs_qp on amd64; 0: depends on the release */
	unsigned int port_attr_bytes; /* sizeof(struct ibv_port_attr) in the library */
	/* The library has the symbol probe and, unless NULL, lacks the symbol absent. */
	const char *probe, *probe_node, *absent, *absent_node;
};

/* The library's private functions and layout; valid after abi_load() has returned true. */
struct uroce_abi {
	const struct abi_layout *layout;
	/* Release of rdma-core, from the library's file name; 0: unknown. */
	unsigned int release;
	/* Offset of comp_mask in verbs_qp on this processor; 0: unknown. */
	unsigned int qp_comp_mask;
	void *(*init_and_alloc_context)(struct ibv_device *device, int cmd_fd, size_t bytes,
					void *context_offset, uint32_t driver_id);
	void (*uninit_context)(void *verbs_context);
	void (*set_ops)(void *verbs_context, const void *ops);
	struct ibv_context *(*open_device)(struct ibv_device *device, void *private_data);
	/* Not needed in create_cq and create_cq_ex: libibverbs calls it after they return. */
	void (*verbs_init_cq)(struct ibv_cq *cq, struct ibv_context *context,
			      struct ibv_comp_channel *channel, void *cq_context);
	void (*register_driver)(const struct verbs_device_ops *ops);
};
extern struct uroce_abi uroce_abi;

/* Programs call the drop-in libibverbs, which does not use comp_mask.  Set by provider.c. */
extern bool abi_has_dropin;

/* Looks up a symbol of the library: dlvsym() on its handle, or a test's table. */
typedef void *(*abi_lookup)(void *library, const char *symbol, const char *node);

/*
 * Identifies the layout of the library and fills *abi.  file_name is the library's path with links
 * resolved, or NULL.  Returns false, with one line in error, if the library is not supported.
 */
bool abi_probe(struct uroce_abi *abi, abi_lookup lookup, void *library, const char *file_name,
	       char *error, size_t error_bytes);

/*
 * Identifies the libibverbs given by the dlopen() handle library (NULL: the one that is loaded) and
 * fills uroce_abi.  Only the first call that finds a library does this; later ones return its
 * result.  Reports a failure on stderr once.
 */
bool abi_load(void *library);

/* Fills slots with the operations in the order of layout; returns their number. */
unsigned int abi_fill_slots(const struct abi_layout *layout, const struct abi_ops *ops,
			    void (*slots[ABI_OP_COUNT])(void));

/* Returns libibverbs' verbs_context of a uroce context. */
void *abi_verbs_context(struct verbs_context_max *context);
/* Sets the operations of context; NULL ones keep libibverbs' stubs, which return EOPNOTSUPP. */
void abi_set_ops(struct verbs_context_max *context, const struct abi_ops *ops);
/* Allows the use of qp_ex, for both implementations of ibv_qp_to_qp_ex(). */
void abi_qp_set_ex(struct verbs_qp *qp);
/*
 * Returns true if a queue pair may have wr_flush.  Without the drop-in, libibverbs before v45 keeps
 * its comp_mask there.  abi_qp_set_flush() sets it, after abi_qp_set_ex().
 */
bool abi_qp_has_flush(void);
void abi_qp_set_flush(struct verbs_qp *qp, abi_wr_flush flush);

#endif
