/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Where time and threads live.  A struct progress drives queue pairs: a turn receives a batch,
 * expires deadlines, transmits what may go.  The thread that polls a CQ makes the turns; a helper
 * thread covers the times when no application thread polls (one-sided peers, timeouts, completion
 * channels).  While the application polls, the helper sleeps with the sockets disarmed and looks
 * every PROGRESS_TICK_NS, or more often (helper.h), whether polls still come; when they do not, it
 * arms the sockets and blocks until a datagram, a deadline or a call wakes it. When a datagram has
 * come it spins for 50 us or so, yielding meanwhile; an idle process uses no CPU.
 *
 * Locks, in this order: turn -> progress_qp.lock -> hooks->enter (memory region table, read side)
 * -> what the functions in eng_ops take (SRQ, CQ).  A turn is made by one thread at a time:
 * pollers try the turn lock and go on without it when another thread is making the turn.  Sets of
 * QPs (number table, deadlines) change under small locks that are inside all of these; the list of
 * scheduled QPs has none.
 *
 * Functions return 0 or a negative errno unless they say otherwise.
 */
#ifndef UROCE_PROGRESS_PROGRESS_H
#define UROCE_PROGRESS_PROGRESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "engine/engine.h"
#include "identification.h"
#include "link/link.h"

#define PROGRESS_TICK_NS 1000000
#define PROGRESS_ERROR_TEXT LINK_ERROR_TEXT

struct progress;
struct progress_qp;

/* Calls around each visit to a QP's engine, with the QP's lock held (see the lock order). */
struct progress_hooks {
	/* worker: the number of the QP's worker. */
	void (*enter)(unsigned int worker);
	void (*leave)(unsigned int worker);
	/*
	 * A turn has sent all answers: tell the application what was kept back until then.  The
	 * turn's lock is held, no other.
	 */
	void (*turn_over)(unsigned int worker);
	/*
	 * Nothing has been heard from the peer of qp for its Local ACK Timeout.  In a turn, with
	 * the QP's lock held.  May be NULL.
	 */
	void (*timed_out)(struct progress_qp *qp);
};

/* The part of a QP that progress works with; embedded in the verbs QP, zeroed by its owner. */
struct progress_qp {
	pthread_mutex_t lock; /* serialises the engine: hold it for every eng_* call */
	struct eng_qp *engine;
	struct progress *worker; /* set by progress_qp_add(), as is qpn; constant then */
	uint32_t qpn;
	struct link_addr *addr; /* set by progress_qp_connect(); NULL before */
	struct link_peer *peer;
	/* By which CNPs go to peer, if ECT was asked for its traffic class; else link is NULL. */
	struct eng_path cnp_path;
	/* Datagram QPs: which addresses to hear, set under lock (datagram.h); NULL for others. */
	struct progress_listen *listen;
	bool unreliable; /* UC, UD: nothing that is lost will be sent again */
	/* Private to progress. */
	uint64_t queued_deadline;
	uint32_t heap_index;
	bool scheduled; /* in the list of QPs that the next turn has to visit */
	bool in_turn;	/* this turn has to visit it at its end */
	bool moved;	/* this turn has taken it from the list of scheduled QPs */
	struct identification identification; /* what the peer's packets have shown */
	struct wire_path heard;	       /* by which they come: demux.c, where qp->addr is set */
	enum link_transport transport; /* to the peer; set by progress_qp_connect() */
	uint64_t timeouts;	       /* that hooks.timed_out was told of */
	bool may_fill;		       /* its ring: the last burst was long, or did not fit */
	bool in_share_queue; /* waits for share (share_queue.h); changed under the turn lock */
	struct progress_qp *next_in_share_queue;
	struct progress_qp *next_scheduled;
	struct progress_qp *next_in_turn;
};

/*
 * The process's instance, counted; the first call claims the slot, starts the helper thread (all
 * signals blocked, name "uroce") and reads UROCE_FAULT.  error gets one line for the user.
 */
int progress_get(struct progress **progress, const struct progress_hooks *hooks,
		 char error[PROGRESS_ERROR_TEXT]);
void progress_put(struct progress *progress);
/*
 * Around fork(2), as handlers of pthread_atfork(3), to be registered by the layer above, which
 * knows the locks of its own that are taken outside of those here.  Without them a child goes on
 * with the instance of its parent.
 */
void progress_fork_prepare(void);
void progress_fork_parent(void);
void progress_fork_child(void);
/*
 * The process ends: the ACKs that queue pairs still owe leave now.  It may be called in a signal
 * handler's exit(), which has interrupted whatever there is: it waits 100 ms at most.
 */
void progress_leave(void);
/* The instance if there is one, without counting. */
struct progress *progress_current(void);
struct link *progress_link(struct progress *progress);

/*
 * Workers.  A process has one struct progress or several, its workers.  Each has a slot, sockets, a
 * turn, deadlines, buffers, counters and a helper thread of its own; on the data path none of them
 * writes to what is another's, so that threads with workers of their own do not wait for each
 * other.  A queue pair stays in the worker that it was added to.  Worker 0 is the instance, which
 * also has queue pair 1 and the watches; the others are made when they are first asked for, and
 * last until the instance ends.
 */
#define PROGRESS_WORKERS 16

/*
 * The worker of a number below PROGRESS_WORKERS, made if need be, for a caller that has the
 * instance.  0 or a negative errno, with one line in error: -ENOSPC where the host has no free
 * slot, for instance.
 */
int progress_worker_get(unsigned int number, struct progress **worker,
			char error[PROGRESS_ERROR_TEXT]);
/* The worker of a number, or NULL where it has not been made. */
struct progress *progress_worker(unsigned int number);
unsigned int progress_worker_number(const struct progress *worker);

/*
 * Register qp and give it a free queue pair number (stored in qp->qpn); -ENOMEM when none is left.
 * qp->lock and all that the engine needs must be ready before packets may come, that is before the
 * engine leaves RESET.
 */
int progress_qp_add(struct progress *progress, struct progress_qp *qp);
/* After return no turn holds or will find qp.  Must not be called with qp->lock held. */
void progress_qp_remove(struct progress *progress, struct progress_qp *qp);

/*
 * Open the local address sgid and a path to dgid; fills path (wire addresses, source port, link
 * handle) for the engine's attributes.  The source port is a function of both QPNs as rxe does it
 * (tests/golden/captures/README.md) unless flow_label is not 0, then of that.  Replaces an earlier
 * connection. Control call: not under qp->lock.
 */
struct progress_route {
	uint8_t sgid[16], dgid[16];
	uint32_t scope_id; /* interface index, used for link-local addresses */
	/* Interface index for a multicast dgid or a link-local one, else 0. */
	uint32_t dst_scope_id;
	uint8_t traffic_class, hop_limit;
	uint32_t flow_label;
	uint32_t dest_qpn;
};
int progress_qp_connect(struct progress *progress, struct progress_qp *qp,
			const struct progress_route *route, struct eng_path *path,
			char error[PROGRESS_ERROR_TEXT]);
/* The interface that the peer is behind, where an address needs one to mean it; else 0. */
static inline uint32_t progress_route_scope(const struct progress_route *route)
{
	return route->dst_scope_id ? route->dst_scope_id : route->scope_id;
}

/*
 * Send requests have been pushed.  Caller holds qp->lock (and is outside hooks).  On an idle wire
 * they leave at once, then the ACK that is owed; on a busy wire, and in a stream that polls, they
 * are gathered and leave with the next turn, at the latest after PROGRESS_TICK_NS, when a full
 * burst has come together, or with the first of them that will make a completion.  errno stays as
 * it is.
 */
void progress_posted_send(struct progress *progress, struct progress_qp *qp);
/* Receive requests have been pushed: credits may be owed to the peer (rule C10).  As above. */
void progress_posted_receive(struct progress *progress, struct progress_qp *qp);
/* The state was changed or time has to be looked at again.  As above. */
void progress_changed(struct progress *progress, struct progress_qp *qp);

/* Number of the worker whose turn the calling thread makes, or -1. */
int progress_turn_worker(void);
/* Returns true if the calling thread makes a turn. */
static inline bool progress_in_turn(void)
{
	return progress_turn_worker() >= 0;
}
/* Wait until the turn that is under way is over.  No lock held, and not inside a turn. */
void progress_await_turn(struct progress *progress);
/* The same for the turns of all workers. */
void progress_await_turns(void);
/*
 * The calling thread has found completions, and may end the process as soon as it has them, with
 * the helper thread in the middle of a turn: wait until that has sent what it sends to the peers.
 * An adapter would send it whatever becomes of the process.  (What found no room, and an ACK that
 * waits for a post to ride on, may still be owed.)  No lock held but an extended CQ's for its
 * polls, and not inside a turn.
 */
void progress_await_answers(struct progress *progress);

/*
 * Receive all packets that have arrived and answer them.  For a thread that is about to stop a
 * queue pair: the queue pair of an adapter would have received these packets already.  No lock
 * held, and not inside a turn.
 */
void progress_take_in(struct progress *progress);

/* One turn by an application thread that found its CQ empty.  No lock held. */
void progress_poll(struct progress *progress);
/*
 * ... and a call by one that found completions: also a sign of polling.  Without it, where the
 * helper is always a step ahead, no poll would ever be seen.
 */
void progress_polled(struct progress *progress);
/* A CQ has been armed for an event: the application is about to sleep, so the helper listens. */
void progress_notify_armed(struct progress *progress);

/* Let the helper thread watch a descriptor: callback(arg) runs in it, outside all locks. */
int progress_watch(struct progress *progress, int fd, void (*callback)(void *arg), void *arg);
void progress_unwatch(struct progress *progress, int fd);

/* Visit every QP of all workers, with its lock held.  Not from inside a turn. */
void progress_each_qp(void (*visit)(struct progress_qp *qp, void *arg), void *arg);

/* Counters of the rx demux and of the turn.  X(identifier, "name shown"). */
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
	X(MAD_UNHEARD, "mad_unheard")           \
	X(MAD_MALFORMED, "mad_malformed")       \
	X(MAD_WRONG_QKEY, "mad_bad_qkey")       \
	X(CREDITS_MISSED, "credits_missed")     \
	X(HELPER_TURNS, "helper_turns")         \
	X(POLL_TURNS, "poll_turns")

enum progress_counter {
#define PROGRESS_COUNTER_ENUM(id, name) PROGRESS_COUNT_##id,
	PROGRESS_COUNTERS(PROGRESS_COUNTER_ENUM)
#undef PROGRESS_COUNTER_ENUM
		PROGRESS_COUNTER_COUNT,
};
const char *progress_counter_name(enum progress_counter counter);
/* Of what the layer above has found. */
void progress_note(struct progress *progress, enum progress_counter counter);
/* Those of one worker; those of all workers together. */
void progress_worker_counters(struct progress *worker, uint64_t counters[PROGRESS_COUNTER_COUNT]);
void progress_counters(uint64_t counters[PROGRESS_COUNTER_COUNT]);

#endif
