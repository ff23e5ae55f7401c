/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The provider's objects: each embeds the libibverbs object as its first member, so that a to_*()
 * cast leads back.  Access: device and context are constant after creation but for the port state
 * (port_lock); a QP's engine is used under progress.lock of the QP; a CQ's ring under cq->lock;
 * the key table has its own lock (mr.h).
 */
#ifndef UROCE_VERBS_UROCE_H
#define UROCE_VERBS_UROCE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <infiniband/verbs.h>

#include "abi.h" /* own declarations of libibverbs' private provider structures, by release */
#include "belongings.h"
#include "complain.h"
#include "engine/engine.h"
#include "engine/qp_state.h"
#include "link/netdev.h"
#include "progress/progress.h"
#include "settings.h"
#include "import.h"
#include "object_count.h"

/* What the device reports, and keeps for any combination of attributes (rule U1). */
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
	UROCE_MAX_MCAST_GROUPS = 256, /* each is a socket */
	UROCE_MAX_MCAST_QP = 64,      /* in one group */
	UROCE_MAX_RD_ATOMIC = ENG_MAX_RD_ATOMIC,
	UROCE_MAX_DM = 1 << 20, /* bytes of device memory */
	UROCE_GID_TABLE = NETDEV_MAX_ADDRESSES,
};
/* Registration takes any mapping: no more than the address space of a process. */
#define UROCE_MAX_MR_BYTES (UINT64_C(1) << 47)
/* Not 0, 0xFFFFFF nor a registered maker's: clients treat those as rxe or as a quirk. */
#define UROCE_VENDOR_ID 0x75726f    /* "uro" */
#define UROCE_VENDOR_PART_ID 0x6365 /* "ce" */

#define UROCE_PORT 1 /* the one port of a device */

/* The GID table of a device; empty places are zero. */
struct uroce_gid_table {
	unsigned int places; /* Number of places up to the last one that has a GID. */
	union ibv_gid gid[UROCE_GID_TABLE];
};

/* On the heap and never freed: clients compare the pointers of one list with those of another. */
struct uroce_device {
	struct verbs_device base;
	uint64_t node_guid;		    /* host order; constant */
	int index;			    /* ibv_get_device_index(); constant */
	atomic_size_t dm_used;		    /* bytes of device memory that are allocated */
	atomic_uint objects[UROCE_OBJECTS]; /* object_count.h */
	/* Under the devices' lock (device.h). */
	bool present; /* is up and has an address: goes into lists */
	struct uroce_device *next;
	pthread_mutex_t port_lock;
	/* Written under the devices' lock and port_lock, read under either. */
	struct netdev netdev; /* as last read */
	bool exists;	      /* false: the interface has gone, for good */
	struct uroce_gid_table gids;
	bool says_left_out; /* that some addresses have no place; under the devices' lock */
	uint64_t retired[ENG_COUNTER_COUNT]; /* of queue pairs that are gone; under port_lock */
};

struct uroce_cq;
struct uroce_td;

/* Constant after creation but for users and shared (pd.h). */
struct uroce_pd {
	struct ibv_pd base;
	struct uroce_pd *real;	       /* itself, or what an import stands for: to_uroce_pd() */
	const struct uroce_pd *domain; /* what keys are checked against */
	atomic_uint users;	       /* MRs, QPs, AHs ...: uroce_pd_use() */
	struct uroce_importable importable;
	/* Parent domains only. */
	struct uroce_pd *extended; /* the PD below; NULL: this is none */
	struct uroce_td *td;	   /* may be NULL */
	void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t bytes, size_t alignment,
		       uint64_t resource);
	void (*free)(struct ibv_pd *pd, void *pd_context, void *memory, uint64_t resource);
	void *pd_context;
};

/* Something is made in pd, or goes: until then pd is there, and dealloc answers EBUSY. */
void uroce_pd_use(struct uroce_pd *pd);
void uroce_pd_leave(struct uroce_pd *pd);

struct uroce_comp_channel {
	struct ibv_comp_channel base; /* fd is the read end */
	int write_fd;
	pthread_mutex_t lock; /* events are written and purged under it */
	/* Events that the pipe has no room for, by CQ; under lock but for the look at whether. */
	struct uroce_unwritten *first_unwritten, **last_unwritten;
	atomic_bool behind;
};

/* Of one CQ, under the lock of its channel; zeroed by its owner. */
struct uroce_unwritten {
	struct uroce_unwritten *next;
	unsigned int count; /* not 0: in the channel's list */
};

enum uroce_notify {
	UROCE_NOTIFY_NONE,
	UROCE_NOTIFY_SOLICITED,
	UROCE_NOTIFY_ANY,
};

struct uroce_context {
	struct progress *progress; /* NULL when closed, with all others of its file */
	struct uroce_device *device;
	struct uroce_settings settings; /* as read when it was opened */
	int async_write_fd; /* the read end is ibv_context.async_fd; both -1 when closed */
	pthread_mutex_t async_lock;
	unsigned int generation;    /* forked.h */
	uint64_t file;		    /* what cmd_fd is; the same in imports of this context */
	dev_t file_system;	    /* in which it has that number */
	struct uroce_context *next; /* all contexts of the process, under the devices' lock */
	/* Addresses that its datagram QPs listen to, by worker; NULL while it has none there: ud.c.
	 */
	struct progress_listen *listen[PROGRESS_WORKERS];
	struct uroce_context *next_listener;
	/* What needs the memory: itself while it is open, and what points to it (belongings.h). */
	atomic_uint holders;
	atomic_uint objects[UROCE_OBJECTS]; /* those that count (object_count.h) */
	bool closed;
	struct uroce_context *next_closed;
	struct verbs_context_max base; /* abi.h: last, libibverbs' layout differs by release */
};

/* abi.h gives verbs_get_ctx(): ibv_context -> verbs_context; this leads on to ours. */
static inline struct uroce_context *to_uroce_context(struct ibv_context *context)
{
	return (struct uroce_context *)((char *)context -
					offsetof(struct uroce_context, base.context));
}

/*
 * May objects of both be used together?  Of one context and its imports they may; the kernel knows
 * an object by a number that means nothing, or something else, in a context that was opened apart.
 */
bool uroce_together(struct ibv_context *one, struct ibv_context *other);

/* The PD that objects belong to, whatever the application has in its hands. */
static inline struct uroce_pd *to_uroce_pd(struct ibv_pd *pd)
{
	return ((struct uroce_pd *)pd)->real;
}

/* The GID table of a device: entry index, zero and false for an empty one. */
bool uroce_gid(struct uroce_device *device, unsigned int index, union ibv_gid *gid);
/* The active path MTU as enum ibv_mtu for an interface MTU (IP bytes). */
enum ibv_mtu uroce_active_mtu(uint32_t netdev_mtu);
/* In host order, never 0. */
uint64_t uroce_node_guid(const struct netdev *netdev);

/* For ibv_create_comp_channel() and ibv_destroy_comp_channel(); NULL with errno, 0 or an errno. */
struct ibv_comp_channel *uroce_create_comp_channel(struct ibv_context *context);
int uroce_destroy_comp_channel(struct ibv_comp_channel *channel);
/* Tell the readers of channel that cq has completions; safe inside engine callbacks. */
void uroce_channel_event(struct uroce_comp_channel *channel, struct uroce_cq *cq);
/* The application has read an event: there may be room for one that had none. */
void uroce_channel_read(struct uroce_comp_channel *channel);
/*
 * Take back events about cq that have not been read: part of destroying it, when no turn keeps one
 * back any more (progress_await_turn()).
 */
void uroce_channel_purge(struct uroce_comp_channel *channel, struct uroce_cq *cq);
/* Write the events that a turn of the worker has kept back: struct progress_hooks. */
void uroce_channel_turn_over(unsigned int worker);
void uroce_channel_forked(void);

/* Queue an asynchronous event for the application; safe inside engine callbacks. */
void uroce_async_event(struct uroce_context *context, enum ibv_event_type type, void *element);
/* Take back events about element that have not been read: part of destroying it. */
void uroce_async_purge(struct uroce_context *context, void *element);
/*
 * Wait until the application has acknowledged all asynchronous events of an object that it has been
 * told of: taken so many.  The first three are libibverbs' own, in the public structure.
 */
void uroce_async_await(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *completed,
		       atomic_uint *taken);

#endif
