/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The provider's objects.  Each has the libibverbs object as its first member, so that a to_*()
 * cast leads back.  Access: devices and contexts are constant after creation except for the state
 * of the port (port_lock); the engine of a QP is used under progress.lock of the QP; the ring of a
 * CQ under cq->lock; the key table has its own lock (mkey_table.h).
 */
#ifndef UROCE_VERBS_UROCE_H
#define UROCE_VERBS_UROCE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include <infiniband/verbs.h>

#include "verbs/abi/abi.h"
#include "context_objects.h"
#include "log.h"
#include "engine/engine.h"
#include "engine/qp_state.h"
#include "link/netlink/netdev.h"
#include "progress/progress.h"
#include "settings.h"
#include "util/container_of.h"
#include "verbs/mr/import.h"

/* Limits that a device reports and guarantees for any combination of attributes (rule U1). */
enum uroce_limit {
	UROCE_MAX_QP = 65536,
	UROCE_MAX_QP_WR = 16384,
	UROCE_MAX_SGE = ENG_MAX_SGE,
	UROCE_MAX_INLINE = ENG_MAX_INLINE,
	UROCE_MAX_CQ = 65536,
	UROCE_MAX_CQE = 1 << 20,
	UROCE_MAX_MR = 1 << 20,
	UROCE_MAX_MW = 1 << 20,
	UROCE_MAX_PD = 65536,
	UROCE_MAX_AH = 1 << 20,
	UROCE_MAX_SRQ = 65536,
	UROCE_MAX_SRQ_WR = 16384,
	UROCE_MAX_MCAST_GROUPS = 256, /* each needs a socket */
	UROCE_MAX_MCAST_QP = 64,      /* in a group */
	UROCE_MAX_RD_ATOMIC = ENG_MAX_RD_ATOMIC,
	UROCE_MAX_DM = 1 << 20, /* bytes of device memory */
	UROCE_GID_TABLE = NETDEV_MAX_ADDRESSES,
};
/* Any mapping can be registered; this is the size of a process's address space. */
#define UROCE_MAX_MR_BYTES (UINT64_C(1) << 47)
/* Clients take 0, 0xFFFFFF and registered vendors for rxe or for hardware with quirks. */
#define UROCE_VENDOR_ID 0x75726f    /* "uro" */
#define UROCE_VENDOR_PART_ID 0x6365 /* "ce" */

#define UROCE_PORT 1 /* the one port of a device */

/* The GID table of a device; unused entries are zero. */
struct uroce_gid_table {
	unsigned int entries; /* number of entries up to the last one in use */
	union ibv_gid gid[UROCE_GID_TABLE];
};

/* On the heap and never freed: clients compare the pointers of different device lists. */
struct uroce_device {
	struct verbs_device base;
	uint64_t node_guid;		    /* host order; constant */
	int index;			    /* ibv_get_device_index(); constant */
	atomic_size_t dm_used;		    /* bytes of device memory that are allocated */
	atomic_uint objects[UROCE_OBJECTS]; /* context_objects.h */
	/* The next two under the devices lock (device.h). */
	bool is_listed; /* the interface is up and has an address */
	struct uroce_device *next;
	pthread_mutex_t port_lock;
	/* Written with the devices lock and port_lock held, read with either. */
	struct netdev netdev; /* as last read */
	bool exists;	      /* false: the interface no longer exists */
	struct uroce_gid_table gids;
	bool left_out_reported; /* addresses without a GID; under the devices lock */
	uint64_t destroyed_qp_counters[ENG_COUNTER_COUNT]; /* under port_lock */
};

struct uroce_cq;
struct uroce_td;

/* Constant after creation except users and importable (pd.h). */
struct uroce_pd {
	struct ibv_pd base;
	struct uroce_pd *real;	       /* itself, or the PD that is imported: to_uroce_pd() */
	const struct uroce_pd *domain; /* PD against which keys are checked */
	atomic_uint users;	       /* number of MRs, QPs, AHs ...: uroce_pd_get() */
	struct uroce_importable importable;
	/* The fields below are for parent domains. */
	struct uroce_pd *extended; /* the PD that is extended; NULL: not a parent domain */
	struct uroce_td *td;	   /* may be NULL */
	void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t bytes, size_t alignment,
		       uint64_t resource);
	void (*free)(struct ibv_pd *pd, void *pd_context, void *memory, uint64_t resource);
	void *pd_context;
};

/*
 * Take and drop a reference for an object created in pd: pd is kept, and dealloc_pd returns EBUSY,
 * until all are dropped.
 */
void uroce_pd_get(struct uroce_pd *pd);
void uroce_pd_put(struct uroce_pd *pd);

struct uroce_comp_channel {
	struct ibv_comp_channel base; /* fd is the read end */
	int write_fd;
	pthread_mutex_t lock; /* serialises writing and purging events */
	/* CQs with events that do not fit in the pipe; under lock, but the flag is atomic. */
	TAILQ_HEAD(, uroce_pending_events) pending;
	atomic_bool has_pending;
};

/* Events of a CQ that could not be written; under the lock of its channel, zeroed by its owner. */
struct uroce_pending_events {
	TAILQ_ENTRY(uroce_pending_events) link;
	unsigned int count; /* not 0: the CQ is in the channel's list */
};

enum uroce_notify {
	UROCE_NOTIFY_NONE,
	UROCE_NOTIFY_SOLICITED,
	UROCE_NOTIFY_ANY,
};

struct uroce_context {
	struct progress *progress; /* NULL after all contexts of the file have been closed */
	struct uroce_device *device;
	struct uroce_settings settings; /* as read when the context was opened */
	int async_write_fd; /* the read end is ibv_context.async_fd; both are -1 after close */
	pthread_mutex_t async_lock;
	unsigned int generation; /* fork.h */
	/* inode number of cmd_fd, the same in imports of this context; 0: shared with none */
	uint64_t file;
	dev_t file_system;	    /* device number of cmd_fd */
	struct uroce_context *next; /* open contexts of the process, under the devices lock */
	/* Addresses on which its UD QPs listen, by worker, or NULL (ud.c). */
	struct progress_ud_addrs *listen[PROGRESS_WORKERS];
	struct uroce_context *next_listener;
	atomic_uint refs; /* number: one while open, one for each object (context_objects.h) */
	atomic_uint objects[UROCE_OBJECTS]; /* numbers of objects by kind (context_objects.h) */
	bool closed;
	struct uroce_context *next_closed;
	/* last, because libibverbs' layout differs by release (abi.h) */
	struct verbs_context_max base;
};

/* Inverse of context->base.context. */
static inline struct uroce_context *to_uroce_context(struct ibv_context *context)
{
	return container_of(context, struct uroce_context, base.context);
}

/*
 * Returns true if objects of both contexts may be used together: those of one context and its
 * imports.  The kernel identifies an object by a handle that is only valid in contexts of one file.
 */
bool uroce_contexts_share_file(struct ibv_context *one, struct ibv_context *other);

/* Returns the PD of an application's pointer, which may be an import. */
static inline struct uroce_pd *to_uroce_pd(struct ibv_pd *pd)
{
	return ((struct uroce_pd *)pd)->real;
}

/* Copies entry index of the GID table; zero, and returns false, if it is unused. */
bool uroce_gid(struct uroce_device *device, unsigned int index, union ibv_gid *gid);
/* Returns the active path MTU for an interface MTU (bytes of an IP packet). */
enum ibv_mtu uroce_active_mtu(uint32_t netdev_mtu);
/* Returns the node GUID in host order, never 0. */
uint64_t uroce_node_guid(const struct netdev *netdev);

/*
 * Implement ibv_create_comp_channel() and ibv_destroy_comp_channel(); return NULL with errno, and 0
 * or a positive errno.
 */
struct ibv_comp_channel *uroce_create_comp_channel(struct ibv_context *context);
int uroce_destroy_comp_channel(struct ibv_comp_channel *channel);
/* Writes an event for cq to channel.  Allowed inside engine callbacks. */
void uroce_channel_event(struct uroce_comp_channel *channel, struct uroce_cq *cq);
/* The application has read an event, so a pending one may fit in the pipe. */
void uroce_channel_event_read(struct uroce_comp_channel *channel);
/*
 * Removes unread events for cq when it is destroyed.  No progress cycle defers one any more
 * (progress_sync()).
 */
void uroce_channel_purge(struct uroce_comp_channel *channel, struct uroce_cq *cq);
/* Writes the events that a progress cycle of the worker has deferred: struct progress_hooks. */
void uroce_channel_flush_deferred(unsigned int worker);

/* Queues an asynchronous event for the application.  Allowed inside engine callbacks. */
void uroce_async_event(struct uroce_context *context, enum ibv_event_type type, void *element);
/* Removes unread events for element when it is destroyed. */
void uroce_async_purge(struct uroce_context *context, void *element);
/*
 * Waits until the application has acknowledged (*completed) all asynchronous events of an object
 * that it has read (*taken).  mutex, cond and completed are libibverbs' fields in the public
 * structure.
 */
void uroce_async_wait_acked(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *completed,
			    atomic_uint *taken);

#endif
