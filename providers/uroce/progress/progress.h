/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Drives queue pairs: owns the clock and the threads.  A struct progress runs progress cycles: each
 * one receives a batch of packets, expires deadlines and transmits what may be sent.  Application
 * threads run cycles when they poll a CQ; a progress thread covers the times when no application
 * thread polls (one-sided peers, timeouts, completion channels).  While the application polls, the
 * progress thread sleeps with the sockets disarmed and checks every PROGRESS_TICK_NS, or more often
 * (thread.h), whether the application still polls; if not, it arms the sockets and blocks until a
 * datagram, a deadline or a call wakes it.  After a datagram it spins for about 50 us, yielding the
 * CPU in between; an idle process uses no CPU.
 *
 * Lock order: cycle_lock -> progress_qp.lock -> hooks->enter (memory key table, read side) ->
 * locks that the functions in eng_ops take (SRQ, CQ).  One thread at a time runs a cycle: pollers
 * try cycle_lock and continue without it if another thread holds it.  Sets of QPs (number table,
 * deadlines) change under small locks that are inside all of these; the list of scheduled QPs needs
 * no lock.
 *
 * Functions return 0 or a negative errno unless noted otherwise.
 */
#ifndef UROCE_PROGRESS_PROGRESS_H
#define UROCE_PROGRESS_PROGRESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "engine/engine.h"
#include "progress/rx/ip_id.h"
#include "link/link.h"
#include "util/heap.h"

#define PROGRESS_TICK_NS 1000000
#define PROGRESS_ERROR_TEXT LINK_ERROR_TEXT

struct progress;
struct progress_qp;

/*
 * Callbacks of the layer above.  enter and leave are called around calls of the engine that may
 * access registered memory, with the QP's lock held (see the lock order).
 */
struct progress_hooks {
	/* worker: number of the QP's worker */
	void (*enter)(unsigned int worker);
	void (*leave)(unsigned int worker);
	/*
	 * Called at the end of a cycle, when all responses have been sent: generates the completion
	 * events that were held back until then.  Called with cycle_lock held and no other lock.
	 */
	void (*cycle_done)(unsigned int worker);
	/*
	 * The peer of qp has not answered within its Local ACK Timeout.  Called during a cycle,
	 * with the QP's lock held.  May be NULL.
	 */
	void (*timed_out)(struct progress_qp *qp);
};

/* Part of a QP that belongs to this layer; embedded in the verbs QP, zeroed by its owner. */
struct progress_qp {
	pthread_mutex_t lock; /* serialises the engine: must be held for every eng_* call */
	struct eng_qp *engine;
	struct progress *worker; /* set by progress_qp_add(), as is qpn; constant afterwards */
	uint32_t qpn;
	struct link_addr *addr; /* set by progress_qp_connect(); NULL before */
	struct link_peer *peer;
	/*
	 * Path of CNPs to the peer, if ECT is set in its traffic class; otherwise its link is NULL.
	 */
	struct eng_path cnp_path;
	/*
	 * Datagram QPs: local addresses to receive from, set under lock (ud_path.h); otherwise
	 * NULL.
	 */
	struct progress_ud_addrs *ud_addrs;
	bool unreliable; /* UC or UD: lost packets are not retransmitted */
	/* Private to this layer. */
	uint64_t queued_deadline;
	struct heap_node deadline;
	bool scheduled; /* in the list of QPs that the next cycle serves */
	bool in_cycle;	/* served at the end of the running cycle */
	bool collected; /* the running cycle has removed it from the list of scheduled QPs */
	struct ip_id_history ip_ids;   /* history of the IPv4 IDs of the peer's packets */
	struct wire_path rx_path;      /* path of received packets (demux.c), if addr is set */
	enum link_transport transport; /* to the peer; set by progress_qp_connect() */
	uint64_t timeouts_reported;    /* number of timeouts reported to hooks.timed_out */
	/* Shared memory: the last burst was long, or did not fit into the ring. */
	bool may_fill_ring;
	bool in_budget_queue; /* waits for the in-flight budget (budget_queue.h); under cycle_lock
			       */
	TAILQ_ENTRY(progress_qp) budget_entry;
	struct progress_qp *next_scheduled;
	struct progress_qp *next_in_cycle;
};

/* Returns CLOCK_MONOTONIC in nanoseconds, the only clock of queue pairs. */
uint64_t progress_now(void);

/*
 * Gets a reference to the process's instance.  The first call claims a QPN slot, starts the
 * progress thread (all signals blocked, named "uroce") and reads UROCE_FAULT.  On failure error
 * contains one line for the user.
 */
int progress_get(struct progress **progress, const struct progress_hooks *hooks,
		 char error[PROGRESS_ERROR_TEXT]);
void progress_put(struct progress *progress);
/*
 * Handlers for pthread_atfork(3), which the layer above registers because it has locks that are
 * taken before those of this layer.  Without them a forked child would use its parent's instance.
 */
void progress_fork_prepare(void);
void progress_fork_parent(void);
void progress_fork_child(void);
/*
 * Receives what has arrived at process exit, and sends the pending ACKs of all QPs.  May be called
 * by exit() in a signal handler, which may have interrupted a thread that holds any lock: waits at
 * most 100 ms.
 */
void progress_exit_flush(void);
struct link *progress_link(struct progress *progress);

/*
 * Workers.  A process has one struct progress or several, its workers.  Each has its own slot,
 * sockets, progress cycle, deadlines, buffers, counters and progress thread; on the data path no
 * worker writes to data of another worker, so that threads that use different workers do not wait
 * for each other.  A QP stays in the worker to which it was added.  Worker 0 is the instance, which
 * also has queue pair 1 and the watches; the others are created on first use and last until the
 * instance ends.
 */
#define PROGRESS_WORKERS 16

/*
 * Returns worker number (below PROGRESS_WORKERS), which is created if necessary.  The caller must
 * have a reference to the instance.  On failure error contains one line for the user; -ENOSPC if
 * the host has no free slot.
 */
int progress_worker_get(unsigned int number, struct progress **worker,
			char error[PROGRESS_ERROR_TEXT]);
/* Returns a worker by number, or NULL if it has not been created. */
struct progress *progress_worker(unsigned int number);
unsigned int progress_worker_number(const struct progress *worker);

/*
 * Registers qp and assigns a free QPN (qp->qpn); -ENOMEM if none is left.  qp->lock and everything
 * that the engine needs must be initialized before packets may arrive, that is, before the engine
 * leaves RESET.
 */
int progress_qp_add(struct progress *progress, struct progress_qp *qp);
/* After return no cycle uses or finds qp.  Must not be called with qp->lock held. */
void progress_qp_remove(struct progress *progress, struct progress_qp *qp);

/*
 * progress_qp_connect() opens the local address sgid and a path to dgid; fills in path (wire
 * addresses, source port, link handle) for the engine's attributes.  The source port is derived
 * from flow_label, or if that is 0, from both QPNs as rxe does it
 * (tests/golden/captures/README.md).  Replaces an earlier connection.  Control call: must not be
 * called with qp->lock held.
 */
struct progress_route {
	uint8_t sgid[16], dgid[16];
	uint32_t scope_id; /* interface index, used for link-local addresses */
	/* interface index if dgid is a multicast or link-local address, else 0 */
	uint32_t dst_scope_id;
	uint8_t traffic_class, hop_limit;
	uint32_t flow_label;
	uint32_t dest_qpn;
};
int progress_qp_connect(struct progress *progress, struct progress_qp *qp,
			const struct progress_route *route, struct eng_path *path,
			char error[PROGRESS_ERROR_TEXT]);
/* Returns the interface index of the peer if its address needs one, else 0. */
static inline uint32_t progress_route_scope(const struct progress_route *route)
{
	return route->dst_scope_id ? route->dst_scope_id : route->scope_id;
}

/*
 * To be called after send requests have been posted, with qp->lock held and outside the hooks.  If
 * nothing is in flight, the requests and then a pending ACK are sent at once; otherwise, and while
 * a stream of requests is polled, they are collected and sent by the next cycle, at the latest
 * after PROGRESS_TICK_NS, when a full burst is available, or with the first request that generates
 * a completion.  Preserves errno.
 */
void progress_posted_send(struct progress *progress, struct progress_qp *qp);
/*
 * To be called after receive requests have been posted: an ACK with new credits may be due (rule
 * C10).  Locks and errno as in progress_posted_send().
 */
void progress_posted_receive(struct progress *progress, struct progress_qp *qp);
/*
 * To be called when the QP's state has changed, or its deadlines must be read again.  Locks and
 * errno as in progress_posted_send().
 */
void progress_qp_changed(struct progress *progress, struct progress_qp *qp);

/* Returns the number of the worker whose cycle the calling thread runs, or -1. */
int progress_cycle_worker(void);
/* Returns true if the calling thread runs a cycle. */
static inline bool progress_in_cycle(void)
{
	return progress_cycle_worker() >= 0;
}
/*
 * Waits until the cycle that is running has ended.  Must be called without locks and outside a
 * cycle.
 */
void progress_sync(struct progress *progress);
/* Waits for the cycles of all workers. */
void progress_sync_all(void);
/*
 * Waits until a cycle of the progress thread has sent its responses.  For a thread that has found
 * completions and may then end the process while the progress thread is still sending: an adapter
 * would send these packets even if the process ended.  Packets that did not fit, and an ACK that is
 * delayed for a reply, may still be pending.  Must be called without locks, except the lock of an
 * extended CQ that is being polled, and outside a cycle.
 */
void progress_wait_responses(struct progress *progress);

/*
 * Receives and answers all packets that have arrived.  For a thread that is about to stop a QP: an
 * adapter would already have received these packets.  Must be called without locks and outside a
 * cycle.
 */
void progress_receive_all(struct progress *progress);

/*
 * Runs one cycle; for an application thread that found its CQ empty.  Must be called without locks.
 */
void progress_poll(struct progress *progress);
/*
 * Records a poll of an application thread that found completions.  Without this call the progress
 * thread would keep the sockets armed in a process where it always handles the packets before the
 * application polls.
 */
void progress_note_poll(struct progress *progress);
/*
 * To be called when a CQ has been armed for an event, as the application is about to sleep: arms
 * the sockets and sends what was left for the next poll.
 */
void progress_notify_armed(struct progress *progress);

/* Makes the progress thread watch a descriptor: it calls callback(arg) without locks. */
int progress_watch(struct progress *progress, int fd, void (*callback)(void *arg), void *arg);
/*
 * Removes the watch of fd and waits until its callback has returned, unless called by the callback.
 */
void progress_unwatch(struct progress *progress, int fd);

/*
 * Calls visit for every QP of all workers, with the QP's lock held.  Must be called outside a
 * cycle.
 */
void progress_for_each_qp(void (*visit)(struct progress_qp *qp, void *arg), void *arg);

/*
 * Counters of the receive demultiplexer and of the progress cycle.  X(identifier, "displayed
 * name").
 */
#define PROGRESS_COUNTERS(X)                    \
	X(ICRC_ERRORS, "icrc_err")              \
	X(ICRC_SOLVED, "icrc_solved")           \
	X(MALFORMED, "malformed_pkts")          \
	X(UNKNOWN_QP, "unknown_qp")             \
	X(WRONG_SOURCE, "wrong_source")         \
	X(WRONG_PKEY, "bad_pkey")               \
	X(SEND_ERRORS, "send_err")              \
	X(SOCKET_FULL, "socket_full")           \
	X(PATH_TOO_SMALL, "path_too_small")     \
	X(RECEIVE_CALLS, "receive_calls")       \
	X(SEND_CALLS, "send_calls")             \
	X(RECEIVE_OVERFLOW, "rx_overflow")      \
	X(FORWARDED, "forwarded")               \
	X(FORWARD_RECEIVED, "forward_rcvd")     \
	X(FORWARD_LOST, "forward_lost")         \
	X(MEMORY_SENT, "shm_sent")              \
	X(MEMORY_RECEIVED, "shm_rcvd")          \
	X(FAULT_DROPPED, "fault_dropped")       \
	X(FAULT_DUPLICATED, "fault_duplicated") \
	X(FAULT_REORDERED, "fault_reordered")   \
	X(FAULT_CORRUPTED, "fault_corrupted")   \
	X(FAULT_DELAYED, "fault_delayed")       \
	X(MAD_SENT, "mad_sent")                 \
	X(MAD_RECEIVED, "mad_rcvd")             \
	X(MAD_NO_OWNER, "mad_no_owner")         \
	X(MAD_OVERFLOW, "mad_overflow")         \
	X(MAD_NO_LISTENER, "mad_no_listener")   \
	X(MAD_MALFORMED, "mad_malformed")       \
	X(MAD_WRONG_QKEY, "mad_bad_qkey")       \
	X(CREDITS_MISSED, "credits_missed")     \
	X(THREAD_CYCLES, "thread_cycles")       \
	X(POLL_CYCLES, "poll_cycles")

enum progress_counter {
#define PROGRESS_COUNTER_ENUM(id, name) PROGRESS_COUNT_##id,
	PROGRESS_COUNTERS(PROGRESS_COUNTER_ENUM)
#undef PROGRESS_COUNTER_ENUM
		PROGRESS_COUNTER_COUNT,
};
const char *progress_counter_name(enum progress_counter counter);
/* Increments a counter of an event that the layer above has found. */
void progress_count_event(struct progress *progress, enum progress_counter counter);
/* Reads the counters of one worker, or the sums over all workers. */
void progress_worker_counters(struct progress *worker, uint64_t counters[PROGRESS_COUNTER_COUNT]);
void progress_counters(uint64_t counters[PROGRESS_COUNTER_COUNT]);

#endif
