/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Private part of struct progress, for this directory only.
 *
 * Locks, in nesting order:
 *   route_lock   control calls that open and close addresses and peers
 *   cycle_lock    one cycle at a time; also the list of addresses and the removal of a QP
 *   progress_qp.lock, then hooks->enter
 *   wakeup.lock, deadlines.lock, table.lock, the lock of the fault injector: innermost
 * The list of scheduled QPs is a stack of atomic pointers: any thread pushes, the cycle takes the
 * whole list.
 */
#ifndef UROCE_PROGRESS_PROGRESS_PRIV_H
#define UROCE_PROGRESS_PROGRESS_PRIV_H

#include "progress/base/budget_queue.h"
#include "progress/base/deadline.h"
#include "progress/fault/fault_inject.h"
#include "thread.h"
#include "progress.h"
#include "progress/base/qpn_table.h"
#include "wakeup.h"

#define PROGRESS_CACHE_LINE 64
/* ECN bits of a traffic class; 0: not ECN-capable */
#define ECN_MASK 3
#define PROGRESS_TX_BUFFERS 64

struct progress_group;
struct tx_buffer;
struct gsi;

/* A local address in use. */
struct progress_address {
	struct link_addr *addr;
	unsigned int users;
	/* Under cycle_lock. */
	unsigned int
		/*
		 * number of times that other addresses have received since this one has
		 */
		foreign_batches;
	unsigned int cycles_skipped; /* number of consecutive cycles that did not read its socket */
};

/* Work for queue pair 1 that the progress thread must do (serve_gsi()). */
struct gsi_wakeup {
	atomic_int fd; /* descriptor whose watch must be called; -1: none */
	atomic_bool pending;
	atomic_uint_fast64_t deadline;
};

/* One worker: see progress.h. */
struct progress {
	/* Constant while the instance has references. */
	unsigned int number;
	struct link *link;
	struct progress_hooks hooks;
	struct fault_injector *fault; /* NULL without UROCE_FAULT */
	uint32_t slot;
	uint32_t max_segments;
	/*
	 * True in a forked child: calls return -EOWNERDEAD or have no effect, and wait for nothing.
	 */
	bool forked;
	unsigned int users; /* number of references to the instance, under the lock in progress.c */

	struct qpn_table table;
	struct deadline_heap deadlines;
	pthread_mutex_t route_lock;
	/* Changed under cycle_lock and wakeup.lock, read under either. */
	struct progress_address *address;
	unsigned int address_count;
	unsigned int address_capacity;
	struct progress_group **group;
	unsigned int group_count;
	unsigned int group_capacity;
	struct wakeup wakeup;
	struct progress_thread thread;
	/*
	 * NULL if queue pair 1 is not in use.  Changed under cycle_lock and gsi_lock, read under
	 * either: cycles of other workers, which report events of queue pairs, hold gsi_lock.
	 */
	struct gsi *gsi;
	pthread_mutex_t gsi_lock;
	struct gsi_wakeup gsi_wakeup;
	unsigned int broker_changes; /* link_broker_changes() at the progress thread's last check */

	_Alignas(PROGRESS_CACHE_LINE) _Atomic(struct progress_qp *) scheduled;
	/*
	 * Pool of free transmit buffers, in the first tx_count elements; NULL: in use (tx.c).
	 */
	_Atomic(struct tx_buffer *) tx[PROGRESS_TX_BUFFERS];
	unsigned int tx_count; /* constant */

	_Alignas(PROGRESS_CACHE_LINE) pthread_mutex_t cycle_lock;
	/*
	 * Number of threads that wait for cycle_lock; pollers then do not take it, since the
	 * waiting threads would starve.
	 */
	atomic_uint cycle_lock_waiters;
	/*
	 * True while a cycle, except that of a poller, has received packets and not yet sent its
	 * responses (progress_wait_responses()).
	 */
	atomic_bool sending_responses;
	/* Under cycle_lock. */
	struct tx_buffer *cycle_tx;
	uint8_t *receive_buffer;
	struct budget_queue budget_queue;
	unsigned int idle_cycles;
	/*
	 * Number of consecutive polls while the sockets are armed, modulo STREAK_POLLS (loop.c);
	 * reset when a CQ is armed.
	 */
	atomic_uint poll_streak;
	uint64_t poll_streak_start;
	uint64_t poll_streak_switches; /* thread_voluntary_switches() at the start of the streak */
	/*
	 * Both arrays are indexed by enum progress_counter; the value of a counter is the sum of
	 * its two elements.  cycle_counter is incremented only in cycles, without atomic
	 * read-modify-write.
	 */
	_Alignas(PROGRESS_CACHE_LINE) atomic_uint_fast64_t cycle_counter[PROGRESS_COUNTER_COUNT];
	_Alignas(PROGRESS_CACHE_LINE) atomic_uint_fast64_t counter[PROGRESS_COUNTER_COUNT];
};

/* Returns the entry of an address, or NULL; the caller holds cycle_lock or wakeup.lock. */
static inline struct progress_address *progress_address_find(struct progress *progress,
							     const struct link_addr *addr)
{
	for (unsigned int i = 0; i < progress->address_count; i++)
		if (progress->address[i].addr == addr)
			return &progress->address[i];
	return NULL;
}

/* Increments a counter.  Caller runs the cycle. */
static inline void count_in_cycle(struct progress *progress, enum progress_counter id)
{
	atomic_uint_fast64_t *counter = &progress->cycle_counter[id];

	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

/* Returns the number of cycles that pollers have started.  Any thread. */
static inline uint64_t poll_cycles(const struct progress *progress)
{
	return atomic_load_explicit(&progress->cycle_counter[PROGRESS_COUNT_POLL_CYCLES],
				    memory_order_relaxed);
}

/* Increments a counter.  Any thread may call. */
static inline void count_anywhere(struct progress *progress, enum progress_counter id)
{
	atomic_fetch_add_explicit(&progress->counter[id], 1, memory_order_relaxed);
}

/* ---- mcast.c ---- */

/* A multicast group and its member QPs.  Changed under cycle_lock. */
struct progress_group {
	struct link_group *link;
	uint32_t interface;
	unsigned int count, capacity;
	struct progress_qp **member;
};

/* ---- ud_path.c ---- */

/* Local addresses from which datagram QPs receive.  Changed under cycle_lock. */
struct progress_ud_addrs {
	struct link_addr **addr;
	unsigned int count;
};

/* Returns true if addr is in the set.  Caller runs the cycle. */
static inline bool ud_addrs_contain(const struct progress_ud_addrs *set,
				    const struct link_addr *addr)
{
	for (unsigned int i = 0; i < set->count; i++)
		if (set->addr[i] == addr)
			return true;
	return false;
}

/* ---- worker.c ---- */

/*
 * Claims a slot and starts the progress thread.  Returns 0 or a negative errno, with one line for
 * the user in error.
 */
int worker_open(struct progress **opened, unsigned int number, const struct progress_hooks *hooks,
		char error[PROGRESS_ERROR_TEXT]);
/* Stops the progress thread and frees the worker, which must have no QPs. */
void worker_close(struct progress *progress);

#endif
