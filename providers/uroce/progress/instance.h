/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The insides of struct progress.  Only this folder includes it.
 *
 * Locks, in the order in which they may be nested:
 *   route_lock   control calls that open and close addresses and peers
 *   turn_lock    one turn at a time; also the list of addresses and the end of a QP
 *   progress_qp.lock, then hooks->enter
 *   wakeup.lock, deadlines.lock, table.lock, the fault injector's: innermost
 * The list of scheduled QPs is a stack of atomic pointers: any thread pushes, the turn takes all.
 */
#ifndef UROCE_PROGRESS_INSTANCE_H
#define UROCE_PROGRESS_INSTANCE_H

#include "share_queue.h"
#include "deadline.h"
#include "fault_inject.h"
#include "helper.h"
#include "progress.h"
#include "table.h"
#include "wakeup.h"

#define PROGRESS_CACHE_LINE 64
/* ECN in a traffic class: 0 is not to be marked. */
#define ECN_MASK 3
#define PROGRESS_TX_BUFFERS 64

struct progress_group;
struct tx_buffer;
struct gsi;

/* A local address in use. */
struct progress_address {
	struct link_addr *addr;
	unsigned int users;
	/* Under turn_lock. */
	unsigned int others;   /* number of batches of other addresses since its last one */
	unsigned int left_out; /* number of turns in a row that did not read its socket */
};

/* What the helper has to do for queue pair 1 (gsi.c). */
struct gsi_wakeup {
	atomic_int fd; /* whose watch to call; -1: none */
	atomic_bool work;
	atomic_uint_fast64_t deadline;
};

/* A worker: see progress.h. */
struct progress {
	/* Constant while the instance has users. */
	unsigned int number;
	struct link *link;
	struct progress_hooks hooks;
	struct fault_injector *fault; /* NULL without UROCE_FAULT */
	uint32_t slot;
	uint32_t max_segments;
	/* A forked child's copy: nothing works and nothing is waited for. */
	bool dead;
	unsigned int users; /* of the instance, under the lock in progress.c */

	struct qpn_table table;
	struct deadline_heap deadlines;
	pthread_mutex_t route_lock;
	/* Changed under turn_lock and wakeup.lock, read under either. */
	struct progress_address *address;
	unsigned int address_count;
	unsigned int address_room;
	struct progress_group **group;
	unsigned int group_count;
	unsigned int group_room;
	struct wakeup wakeup;
	struct helper helper;
	/* NULL where queue pair 1 is not in use; changed under turn_lock. */
	struct gsi *gsi;
	struct gsi_wakeup gsi_wakeup;
	unsigned int broker_changes; /* link_broker_changes() when the helper last looked */

	_Alignas(PROGRESS_CACHE_LINE) _Atomic(struct progress_qp *) scheduled;
	/* The stock of buffers: tx_count places, with those that are free (transmit.c). */
	_Atomic(struct tx_buffer *) tx[PROGRESS_TX_BUFFERS];
	unsigned int tx_count; /* constant */

	_Alignas(PROGRESS_CACHE_LINE) pthread_mutex_t turn_lock;
	/* Threads that wait for turn_lock: pollers then leave it alone, or they would starve. */
	atomic_uint turn_wanted;
	/* The helper's turn has taken packets, and owes answers (progress_await_answers()). */
	atomic_bool answering;
	/* Under turn_lock. */
	struct tx_buffer *turn_tx;
	uint8_t *receive_buffer;
	struct share_queue share_queue;
	unsigned int idle_turns;
	atomic_uint streak; /* polls in a row since a CQ was armed, while the helper is */
	uint64_t streak_began;
	uint64_t streak_sleeps; /* poller_sleeps() then */
	/* Counted in turns only, so without read-modify-write; [id] as the others. */
	_Alignas(PROGRESS_CACHE_LINE) atomic_uint_fast64_t turn_counter[PROGRESS_COUNTER_COUNT];
	_Alignas(PROGRESS_CACHE_LINE) atomic_uint_fast64_t counter[PROGRESS_COUNTER_COUNT];
};

/* What progress knows of an address, or NULL; caller holds turn_lock or wakeup.lock. */
static inline struct progress_address *progress_find_address(struct progress *progress,
							     const struct link_addr *addr)
{
	for (unsigned int i = 0; i < progress->address_count; i++)
		if (progress->address[i].addr == addr)
			return &progress->address[i];
	return NULL;
}

/* Caller makes the turn. */
static inline void count_in_turn(struct progress *progress, enum progress_counter id)
{
	atomic_uint_fast64_t *counter = &progress->turn_counter[id];

	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

/* Any thread: turns that pollers have begun. */
static inline uint64_t poll_turns(const struct progress *progress)
{
	return atomic_load_explicit(&progress->turn_counter[PROGRESS_COUNT_POLL_TURNS],
				    memory_order_relaxed);
}

/* Any thread. */
static inline void count_anywhere(struct progress *progress, enum progress_counter id)
{
	atomic_fetch_add_explicit(&progress->counter[id], 1, memory_order_relaxed);
}

#endif
