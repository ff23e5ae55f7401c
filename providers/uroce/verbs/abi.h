/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * libibverbs' private provider interface, declared by ourselves because no header of it is
 * packaged.  Everything that libibverbs and a provider share in memory is here; what differs
 * between releases is a number in struct abi_layout, chosen at run time by what the loaded library
 * has.  The library's private functions are found by dlsym(), never by the linker: their version
 * nodes are named after the release.
 *
 * Structures that are the same from v36 to v65: verbs_device, verbs_device_ops, verbs_mr, verbs_cq,
 * verbs_srq, verbs_xrcd.  Not the same: verbs_context (grows at the front), verbs_context_ops
 * (slots move), verbs_qp (comp_mask moves).
 */
#ifndef UROCE_VERBS_ABI_H
#define UROCE_VERBS_ABI_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "abi_ops.h"

struct verbs_sysfs_dev; /* a device that the kernel shows; ours have none */

/* Pairs of an intrusive list in libibverbs; ours are never linked into one. */
struct abi_list_node {
	struct abi_list_node *next, *prev;
};

/* What a provider tells libibverbs about devices in the kernel: for us, that none is ours. */
struct verbs_match_ent {
	void *driver_data;
	union {
		const char *modalias;
		uint64_t driver_id;
	} u;
	uint16_t vendor;
	uint16_t device;
	uint8_t kind; /* 0 ends a table */
};

struct verbs_device;

struct verbs_device_ops {
	const char *name;
	uint32_t match_min_abi_version;
	uint32_t match_max_abi_version;
	const struct verbs_match_ent *match_table;
	const struct verbs_device_ops **static_providers;
	bool (*match_device)(struct verbs_sysfs_dev *sysfs_dev);
	/* Both return a struct verbs_context as libibverbs lays it out. */
	void *(*alloc_context)(struct ibv_device *device, int cmd_fd, void *private_data);
	void *(*import_context)(struct ibv_device *device, int cmd_fd);
	struct verbs_device *(*alloc_device)(struct verbs_sysfs_dev *sysfs_dev);
	void (*uninit_device)(struct verbs_device *device);
};

struct verbs_device {
	struct ibv_device device; /* must be first */
	const struct verbs_device_ops *ops;
	atomic_int refcount; /* lists and contexts that hold it; ours own one for ever */
	struct abi_list_node entry;
	struct verbs_sysfs_dev *sysfs; /* NULL: not from the kernel */
	uint64_t core_support;
};

/* What ibv_reg_mr_ex() takes, since v59; younger than the oldest public header. */
enum abi_mr_init_mask {
	ABI_MR_INIT_IOVA = 1 << 0,
	ABI_MR_INIT_ADDR = 1 << 1,
};

struct abi_mr_init_attr {
	size_t length;
	int access;
	uint64_t comp_mask; /* enum abi_mr_init_mask */
	uint64_t iova;
	void *addr;
	/* What follows is for masks that we do not know. */
};

/*
 * libibverbs' verbs_context ends in the public ibv_context and grows at the front; its functions
 * find it by counting back from the ibv_context.  So one front that is larger than any release's
 * serves all.  Only libibverbs reads and writes the front.
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

/* libibverbs sets both fields after the provider's reg_mr, and reads them before dereg_mr. */
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
 * The public ibv_qp_ex gained functions in v44 and v45, and libibverbs' private flags follow it; so
 * room for the largest is reserved and abi_qp_set_ex() knows where the flags lie.  A program built
 * for an older header sees the same beginning.
 */
#define ABI_QP_ROOM 384
/*
 * A queue pair has a lock and a condition in it, whose size is the processor's matter: bytes more
 * than on amd64, for which the layouts are written down (8 on arm64).
 */
#define ABI_LOCK_GROWTH (sizeof(pthread_mutex_t) + sizeof(pthread_cond_t) - 88)
struct verbs_qp {
	union {
		struct ibv_qp qp;
		struct ibv_qp_ex qp_ex;
		unsigned char room[ABI_QP_ROOM];
	};
	bool has_ex; /* our own mark: ibv_qp_to_qp_ex() may return qp_ex */
};

/* What differs between releases of libibverbs.  Sizes and offsets in bytes. */
struct abi_layout {
	unsigned int first_release, last_release; /* of rdma-core, for messages */
	unsigned int private_node;    /* NN of IBVERBS_PRIVATE_NN and verbs_register_driver_NN */
	unsigned int ops_release;     /* slots: the rows of ABI_OPS not younger than this */
	unsigned int slots;	      /* their number, as a cross-check */
	unsigned int context_offset;  /* of ibv_context in verbs_context */
	unsigned int qp_comp_mask;    /* offset in verbs_qp on amd64; 0: not known for sure */
	unsigned int port_attr_bytes; /* sizeof(struct ibv_port_attr) of a caller */
	/* Found by probing: these must be there, and absent, unless NULL, must not. */
	const char *probe, *probe_node, *absent, *absent_node;
};

/* The library's private functions and layout; valid after abi_load() has returned true. */
struct uroce_abi {
	const struct abi_layout *layout;
	unsigned int release;	   /* of rdma-core, read from the library's file name; 0: unknown */
	unsigned int qp_comp_mask; /* layout->qp_comp_mask, or as release tells; 0: unknown */
	void *(*init_and_alloc_context)(struct ibv_device *device, int cmd_fd, size_t bytes,
					void *context_offset, uint32_t driver_id);
	void (*uninit_context)(void *verbs_context);
	void (*set_ops)(void *verbs_context, const void *ops);
	struct ibv_context *(*open_device)(struct ibv_device *device, void *private_data);
	/* create_cq and create_cq_ex need not call it: libibverbs does after they return. */
	void (*verbs_init_cq)(struct ibv_cq *cq, struct ibv_context *context,
			      struct ibv_comp_channel *channel, void *cq_context);
	void (*register_driver)(const struct verbs_device_ops *ops);
};
extern struct uroce_abi uroce_abi;

/* How a symbol of the library is found: dlvsym() on its handle, or a test's table. */
typedef void *(*abi_lookup)(void *library, const char *symbol, const char *node);

/*
 * Find the library's layout and fill *abi.  file_name is the library's, with its links resolved, or
 * NULL.  false: not a layout that is known; error then says why in one line.
 */
bool abi_probe(struct uroce_abi *abi, abi_lookup lookup, void *library, const char *file_name,
	       char *error, size_t error_bytes);

/*
 * Once per process: probe the libibverbs that library (a dlopen() handle; NULL: the one that is
 * loaded) names and set uroce_abi.  On failure says why on stderr, the first time only.
 */
bool abi_load(void *library);

/* The slots of ops for a layout; returns how many were written (at most ABI_OP_COUNT). */
unsigned int abi_fill_slots(const struct abi_layout *layout, const struct abi_ops *ops,
			    void (*slots[ABI_OP_COUNT])(void));

/* libibverbs' verbs_context of one of our contexts. */
void *abi_verbs_context(struct verbs_context_max *context);
/* Give libibverbs the operations; NULL ones keep their "not supported" stand-ins. */
void abi_set_ops(struct verbs_context_max *context, const struct abi_ops *ops);
/* Mark that qp_ex may be used, for both kinds of ibv_qp_to_qp_ex(). */
void abi_qp_set_ex(struct verbs_qp *qp);

#endif
