/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "loop.h"

#include <errno.h>
#include <sched.h>

#include "progress/rx/demux.h"
#include "progress/base/poll_yield.h"
#include "progress/tx/tx.h"

/*
 * A poller reads the socket of an address only in every QUIET_POLL_INTERVAL-th cycle if other
 * addresses have received QUIET_BATCHES times since that address did: a system call that finds
 * nothing takes 0.5 us.  Helps applications that open several addresses, such as UCX with 127.0.0.1
 * and ::1.
 */
enum { QUIET_BATCHES = 64, QUIET_POLL_INTERVAL = 16 };

enum {
	/*
	 * Maximum number of batches per address in a cycle, since other addresses and responses
	 * must wait.
	 */
	RECEIVE_BATCHES = 8,
	/*
	 * More than a socket buffer of the default size holds.  A limit, since peers may keep
	 * sending.
	 */
	ALL_BATCHES = 2048,
	DELIVERY_BATCHES = 64,
	/*
	 * A poller that has received at most this many packets returns to its completions without
	 * checking the socket again (0.2 us); more packets are a stream.
	 */
	STREAM_PACKETS = 2,
	/* The clock is read with every second poll without result. */
	CLOCK_READ_POLLS = 2,
	/*
	 * Number of polls (about 50 us) in which a poller leaves cycle_lock to a thread that waits
	 * for it.  The limit is needed on a busy host, where the waiting thread may itself wait for
	 * a CPU for tens of milliseconds.
	 */
	YIELD_LOCK_POLLS = 1024,
	/*
	 * Number of consecutive polls after which a thread is regarded as spinning.  A thread that
	 * computes between its polls must not be relied on: its peers would wait for their ACKs.
	 */
	STREAK_POLLS = 64,
	/*
	 * Maximum number of QPs waiting for the in-flight budget that are served in a cycle; also
	 * the number of idle cycles between two attempts to serve them.
	 */
	BUDGET_QUEUE_SERVED = 16,
	/*
	 * Maximum duration of a streak of polls.  On a busy host a poller has long pauses, but
	 * unlike a thread that sleeps between its polls, it does not block itself; so up to
	 * STREAK_MAX_NS is allowed if the thread has not slept.
	 */
	STREAK_NS = PROGRESS_TICK_NS,
	STREAK_MAX_NS = 8 * PROGRESS_TICK_NS,
};

static __thread int cycle_worker = -1;

int progress_cycle_worker(void)
{
	return cycle_worker;
}

/*
 * Called when packets have been received.  Unless the caller is a poller, an application thread may
 * find their completions before this cycle sends its responses, so progress_wait_responses() must
 * wait.
 */
static inline void begin_sending_responses(const struct progress_cycle *cycle)
{
	if (cycle->caller != PROGRESS_CALLER_POLLER)
		atomic_store_explicit(&cycle->progress->sending_responses, true,
				      memory_order_relaxed);
}

static inline void end_sending_responses(const struct progress_cycle *cycle)
{
	if (cycle->caller != PROGRESS_CALLER_POLLER)
		atomic_store_explicit(&cycle->progress->sending_responses, false,
				      memory_order_relaxed);
}

void progress_wait_responses(struct progress *progress)
{
	if (__builtin_expect(
		    atomic_load_explicit(&progress->sending_responses, memory_order_relaxed), 0))
		progress_sync(progress);
}

void progress_sync(struct progress *progress)
{
	if (progress->forked)
		return;
	progress_lock(progress);
	progress_unlock(progress);
}

void progress_lock(struct progress *progress)
{
	atomic_fetch_add_explicit(&progress->cycle_lock_waiters, 1, memory_order_relaxed);
	pthread_mutex_lock(&progress->cycle_lock);
	atomic_fetch_sub_explicit(&progress->cycle_lock_waiters, 1, memory_order_relaxed);
}

void progress_unlock(struct progress *progress)
{
	pthread_mutex_unlock(&progress->cycle_lock);
}

static inline void receive_from(struct progress_cycle *cycle, struct link_addr *addr,
				const struct progress_group *group) __attribute__((always_inline));
static inline void receive_from(struct progress_cycle *cycle, struct link_addr *addr,
				const struct progress_group *group)
{
	struct progress *progress = cycle->progress;
	int batches = cycle->drain ? ALL_BATCHES : RECEIVE_BATCHES;

	while (batches-- > 0) {
		struct link_batch batch;
		unsigned int packets;

		/* The link sets the other fields. */
		batch.buffer = progress->receive_buffer;
		batch.buffer_bytes = LINK_MAX_BYTES + 1;
		/* Unlock the QP, so that threads that post do not wait for a system call. */
		cycle_unlock_qp(cycle);
		count_in_cycle(progress, PROGRESS_COUNT_RECEIVE_CALLS);
		if (group ? link_group_receive(group->link, &batch) : link_receive(addr, &batch))
			return;
		begin_sending_responses(cycle);
		packets = group ? demux_group(cycle, &batch, group)
				: demux_batch(cycle, &batch, false);
		link_release(&batch);
		cycle->packets += packets;
		cycle->had_work = true;
		if (cycle->caller == PROGRESS_CALLER_POLLER && !cycle->drain &&
		    packets <= STREAM_PACKETS)
			break;
	}
	cycle->more_to_receive = true;
}

/* Not inlined, since few processes join groups. */
static __attribute__((noinline, nonnull)) void
receive_from_group(struct progress_cycle *cycle, const struct progress_group *group)
{
	receive_from(cycle, NULL, group);
}

/* Not inlined, since few processes have so many addresses. */
static __attribute__((noinline)) void receive_from_readable(struct progress_cycle *cycle)
{
	struct progress *progress = cycle->progress;
	struct link_addr *readable[WAKEUP_EVENTS];
	int count = wakeup_readable(&progress->wakeup, readable);

	cycle->more_to_receive = count == WAKEUP_EVENTS;
	for (int i = 0; i < count; i++)
		receive_from(cycle, readable[i], NULL);
	/* Shared memory has no descriptor, and is checked without a system call. */
	for (unsigned int i = 0; i < progress->address_count; i++)
		if (link_addr_has_shm(progress->address[i].addr))
			receive_from(cycle, progress->address[i].addr, NULL);
}

/* Returns true if this cycle skips the socket of a quiet address while other addresses are busy. */
static bool skips_address(const struct progress_cycle *cycle, struct progress_address *address)
{
	if (cycle->caller != PROGRESS_CALLER_POLLER || cycle->drain ||
	    address->foreign_batches < QUIET_BATCHES ||
	    ++address->cycles_skipped == QUIET_POLL_INTERVAL) {
		address->cycles_skipped = 0;
		return false;
	}
	return true;
}

static __attribute__((noinline)) void receive_from_several(struct progress_cycle *cycle)
{
	struct progress *progress = cycle->progress;

	for (unsigned int i = 0; i < progress->address_count; i++) {
		unsigned int before = cycle->packets;

		if (skips_address(cycle, &progress->address[i]))
			continue;
		receive_from(cycle, progress->address[i].addr, NULL);
		if (cycle->packets == before)
			continue;
		for (unsigned int j = 0; j < progress->address_count; j++)
			progress->address[j].foreign_batches =
				i == j ? 0 : progress->address[j].foreign_batches + 1;
	}
}

static void receive_deliveries(struct progress_cycle *cycle)
{
	struct progress *progress = cycle->progress;

	for (int batches = 0; batches < DELIVERY_BATCHES; batches++) {
		struct link_batch batch = {
			.buffer = progress->receive_buffer,
			.buffer_bytes = LINK_MAX_BYTES + 1,
		};

		cycle_unlock_qp(cycle);
		if (link_delivery_receive(progress->link, &batch))
			return;
		/*
		 * The link may report an address that this worker has removed and not yet closed.
		 */
		if (!progress_address_find(progress, batch.addr))
			continue;
		begin_sending_responses(cycle);
		cycle->packets += demux_batch(cycle, &batch, true);
		cycle->had_work = true;
	}
}

static inline void receive_all(struct progress_cycle *cycle) __attribute__((always_inline));
static inline void receive_all(struct progress_cycle *cycle)
{
	struct progress *progress = cycle->progress;

	if (__builtin_expect(progress->wakeup.address_epoll_fd >= 0, 0))
		receive_from_readable(cycle);
	else if (__builtin_expect(progress->address_count == 1, 1))
		receive_from(cycle, progress->address[0].addr, NULL);
	else
		receive_from_several(cycle);
	for (unsigned int i = 0; i < progress->group_count; i++)
		receive_from_group(cycle, progress->group[i]);
	if (cycle->drain)
		receive_deliveries(cycle);
}

/*
 * Called before a QP times out if not all packets have been received, as when the process had no
 * CPU for longer than a Local ACK Timeout: receives all of them, since the ACK may be among them.
 */
static __attribute__((noinline)) void receive_all_pending(struct progress_cycle *cycle)
{
	cycle->drain = true;
	receive_all(cycle);
}

static void report_timeout(const struct progress *progress, struct progress_qp *qp)
{
	uint64_t timeouts = eng_timeouts(qp->engine);

	if (__builtin_expect(timeouts == qp->timeouts_reported, 1))
		return;
	qp->timeouts_reported = timeouts;
	if (eng_retries_nearly_spent(qp->engine))
		link_check_broker(progress->link);
	if (progress->hooks.timed_out)
		progress->hooks.timed_out(qp);
}

static void expire_deadlines(struct progress_cycle *cycle)
{
	struct progress *progress = cycle->progress;
	struct progress_qp *qp;

	if (progress->fault && fault_release(progress->fault, cycle->now))
		cycle->had_work = true;
	/* The QP is queued again when it is served, or before that by a thread that posts. */
	while ((qp = deadline_pop(&progress->deadlines, cycle->now))) {
		cycle_lock_qp(cycle, qp);
		if (cycle->more_to_receive && !cycle->drain &&
		    eng_times_out(qp->engine, cycle->now)) {
			receive_all_pending(cycle);
			cycle_lock_qp(cycle, qp);
		}
		if (link_is_unsettled(progress->link))
			eng_restore_retries(qp->engine, cycle->now);
		eng_expire(qp->engine, cycle->now);
		report_timeout(progress, qp);
		cycle_schedule_qp(cycle, qp);
		cycle->had_work = true;
	}
}

static void collect_scheduled(struct progress_cycle *cycle)
{
	struct progress_qp *qp = tx_take_scheduled(cycle->progress);

	while (qp) {
		struct progress_qp *next = qp->next_scheduled;

		qp->collected = true;
		cycle_schedule_qp(cycle, qp);
		qp = next;
	}
}

static inline struct eng_tx_ctx ctx_of(const struct progress_cycle *cycle,
				       const struct progress_qp *qp)
{
	struct progress *progress = cycle->progress;
	bool polled = !wakeup_is_armed(progress);

	/*
	 * A delayed ACK is sent without a wake-up only if an application polls or the progress
	 * thread is awake.
	 */
	return tx_ctx(progress, qp, ENG_TX_TRIGGER_POLL, cycle->now, polled,
		      polled || cycle->caller == PROGRESS_CALLER_THREAD);
}

static void serve_qp(struct progress_cycle *cycle, struct progress_qp *qp)
{
	struct progress *progress = cycle->progress;
	struct eng_tx_ctx ctx = ctx_of(cycle, qp);
	enum tx_result end;
	unsigned int bursts;

	cycle_lock_qp(cycle, qp);
	qp->in_cycle = false;
	if (qp->collected) {
		qp->collected = false;
		qp->scheduled = false;
	}
	end = tx_run(progress, qp, &ctx, TX_BURSTS_MAX, progress->cycle_tx, &bursts);
	tx_update_deadline(progress, qp);
	cycle->had_work |= bursts > 0;
	if (end == TX_NO_BUDGET)
		budget_queue_push(&progress->budget_queue, qp);
	if (end == TX_BLOCKED)
		cycle->blocked = true;
	if (end == TX_BLOCKED || end == TX_MORE)
		tx_schedule(progress, qp, cycle->caller != PROGRESS_CALLER_THREAD);
}

/*
 * Serves the first QP that waits for the in-flight budget.  Returns true if there may be room for
 * another QP.
 */
static bool serve_budget_waiter(struct progress_cycle *cycle)
{
	struct progress *progress = cycle->progress;
	struct progress_qp *qp = budget_queue_pop(&progress->budget_queue);
	struct eng_tx_ctx ctx;
	enum tx_result end;
	unsigned int bursts;

	if (!qp)
		return false;
	cycle_lock_qp(cycle, qp);
	/* The first in the queue need not wait for others. */
	ctx = ctx_of(cycle, qp);
	ctx.budget_waits = false;
	end = tx_run(progress, qp, &ctx, TX_BURSTS_BUDGET_QUEUE, progress->cycle_tx, &bursts);
	tx_update_deadline(progress, qp);
	/* A full socket buffer blocks all QPs, a full ring only those with the same peer. */
	if (end == TX_MORE || (end == TX_BLOCKED && qp->transport == LINK_SHARED_MEMORY))
		budget_queue_push(&progress->budget_queue, qp);
	else if (end != TX_DONE)
		budget_queue_push_front(&progress->budget_queue, qp);
	if (end == TX_BLOCKED)
		cycle->blocked = true;
	return end != TX_NO_BUDGET && (end != TX_BLOCKED || qp->transport == LINK_SHARED_MEMORY);
}

static void serve_budget_queue(struct progress_cycle *cycle)
{
	static const unsigned int most = BUDGET_QUEUE_SERVED;

	/*
	 * Room comes from ACKs and timeouts, so pollers rarely check in idle cycles; other causes,
	 * such as the removal of a QP, are rare.
	 */
	if (!cycle->had_work && cycle->caller == PROGRESS_CALLER_POLLER &&
	    ++cycle->progress->idle_cycles % most)
		return;
	for (unsigned int served = 0; served < most && serve_budget_waiter(cycle); served++)
		cycle->had_work = true;
}

/*
 * Returns true if nothing was received and nothing is due or scheduled, so that finish_cycle() need
 * not be called.  This is true of most cycles of a poller.
 */
static inline bool is_idle(const struct progress_cycle *cycle)
{
	struct progress *progress = cycle->progress;

	return !cycle->had_work && deadline_earliest(&progress->deadlines) > cycle->now &&
	       !tx_is_scheduled(progress) && !budget_queue_is_waiting(&progress->budget_queue) &&
	       !progress->fault;
}

static __attribute__((noinline)) enum progress_result finish_cycle(struct progress_cycle *cycle)
{
	struct progress_qp *qp;

	expire_deadlines(cycle);
	collect_scheduled(cycle);
	/*
	 * QPs that serve_qp() schedules again go to another list (next_scheduled), for the next
	 * cycle.
	 */
	for (qp = cycle->scheduled; qp; qp = qp->next_in_cycle)
		serve_qp(cycle, qp);
	if (budget_queue_is_waiting(&cycle->progress->budget_queue))
		serve_budget_queue(cycle);
	cycle_unlock_qp(cycle);
	end_sending_responses(cycle);
	cycle_worker = -1;
	cycle->progress->hooks.cycle_done(cycle->progress->number);
	if (cycle->blocked)
		return PROGRESS_BLOCKED;
	return cycle->had_work ? PROGRESS_WORKED : PROGRESS_IDLE;
}

static void begin_cycle(struct progress_cycle *cycle, struct progress *progress,
			enum progress_caller caller)
{
	*cycle = (struct progress_cycle){
		.progress = progress,
		.caller = caller,
		.now = progress_now(),
		.drain = caller == PROGRESS_CALLER_STOPPER,
	};
	cycle->scheduled_end = &cycle->scheduled;
	cycle_worker = (int)progress->number;
	count_in_cycle(progress, caller == PROGRESS_CALLER_POLLER ? PROGRESS_COUNT_POLL_CYCLES
								  : PROGRESS_COUNT_THREAD_CYCLES);
}

enum progress_result progress_run_once(struct progress *progress, enum progress_caller caller)
{
	struct progress_cycle cycle;

	begin_cycle(&cycle, progress, caller);
	receive_all(&cycle);
	if (is_idle(&cycle)) {
		cycle_worker = -1;
		return PROGRESS_IDLE;
	}
	return finish_cycle(&cycle);
}

enum progress_result progress_run_deliveries(struct progress *progress)
{
	struct progress_cycle cycle;

	begin_cycle(&cycle, progress, PROGRESS_CALLER_THREAD);
	cycle.more_to_receive = true;
	receive_deliveries(&cycle);
	return finish_cycle(&cycle);
}

/*
 * Counts a poll.  Returns true once in STREAK_POLLS consecutive polls, if they were so close
 * together that the thread must be spinning.  Caller runs the cycle.
 */
static bool is_spinning(struct progress *progress)
{
	unsigned int polls = atomic_load_explicit(&progress->poll_streak, memory_order_relaxed) + 1;
	uint64_t now, sleeps, took;

	atomic_store_explicit(&progress->poll_streak, polls % STREAK_POLLS, memory_order_relaxed);
	if (polls < STREAK_POLLS)
		return false;
	now = progress_now();
	took = now - progress->poll_streak_start;
	if (took > STREAK_NS) {
		sleeps = thread_voluntary_switches();
		if (took > STREAK_MAX_NS || sleeps != progress->poll_streak_switches) {
			progress->poll_streak_start = now;
			progress->poll_streak_switches = sleeps;
			return false;
		}
	}
	return true;
}

/* State of the calling thread as a poller. */
static __thread struct {
	/*
	 * Number of polls without result since there was work or the thread yielded, and the time
	 * of the first clock read since then.
	 */
	unsigned int empty_polls;
	uint64_t empty_since;
	uint64_t waited; /* time from empty_since to the last clock read; 0 after a yield */
	struct poll_backoff backoff;
} poller = { .backoff = POLL_BACKOFF_INITIALIZER };

/* Not inlined: tests/bench/instructions.py counts the calls. */
static __attribute__((noinline)) void maybe_yield(void)
{
	uint64_t now;

	if (++poller.empty_polls % CLOCK_READ_POLLS)
		return;
	now = progress_now();
	if (poller.empty_polls == CLOCK_READ_POLLS) {
		poller.backoff.wait_found_work |= poller.waited > POLL_YIELD_NS;
		poller.empty_since = now;
	}
	poller.waited = now - poller.empty_since;
	if (poller.waited < poller.backoff.ns)
		return;
	poller.waited = 0;
	sched_yield();
	poller.empty_polls = 0;
	poll_backoff_yielded(&poller.backoff, progress_now() - now, thread_involuntary_switches);
}

/* Returns true if a poller should leave cycle_lock to a thread that waits for it. */
static bool yields_lock(struct progress *progress)
{
	static __thread unsigned int polls_yielded;

	return atomic_load_explicit(&progress->cycle_lock_waiters, memory_order_relaxed) != 0 &&
	       ++polls_yielded % YIELD_LOCK_POLLS != 0;
}

void progress_poll(struct progress *progress)
{
	enum progress_result result = PROGRESS_IDLE;
	bool disarm = false;

	if (progress->forked)
		return;
	if (!yields_lock(progress) && pthread_mutex_trylock(&progress->cycle_lock) == 0) {
		result = progress_run_once(progress, PROGRESS_CALLER_POLLER);
		disarm = wakeup_is_armed(progress) && is_spinning(progress);
		progress_unlock(progress);
	}
	if (disarm)
		wakeup_disarm(progress);
	if (result == PROGRESS_IDLE)
		maybe_yield();
	else
		poller.empty_polls = 0;
}

void progress_receive_all(struct progress *progress)
{
	if (progress->forked)
		return;
	progress_lock(progress);
	progress_run_once(progress, PROGRESS_CALLER_STOPPER);
	progress_unlock(progress);
}

void progress_note_poll(struct progress *progress)
{
	bool disarm = false;

	if (progress->forked || !wakeup_is_armed(progress) ||
	    pthread_mutex_trylock(&progress->cycle_lock))
		return;
	disarm = is_spinning(progress);
	progress_unlock(progress);
	if (disarm)
		wakeup_disarm(progress);
}

void progress_notify_armed(struct progress *progress)
{
	if (progress->forked)
		return;
	/*
	 * The application may sleep now, so earlier polls do not count: they could disarm the
	 * sockets between two events, and arming them again costs a system call for each event.
	 */
	atomic_store_explicit(&progress->poll_streak, 0, memory_order_relaxed);
	if (!wakeup_is_armed(progress)) {
		wakeup_arm(progress);
		/*
		 * Datagrams on the sockets wake the progress thread, but writers to shared memory
		 * do so only after the thread has requested it, before it sleeps.
		 */
		wakeup_thread(progress);
	}
	/*
	 * Send the requests that were left for the next poll, which may be far off.  If the lock is
	 * taken, the running cycle sends them.
	 */
	if (tx_is_scheduled(progress) && pthread_mutex_trylock(&progress->cycle_lock) == 0) {
		progress_run_once(progress, PROGRESS_CALLER_THREAD);
		progress_unlock(progress);
		tx_recheck(progress);
	}
}
