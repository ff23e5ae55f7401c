/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "turn.h"

#include <errno.h>
#include <sched.h>

#include "demux.h"
#include "poller.h"
#include "transmit.h"

/*
 * A poller reads the socket of an address only in every QUIET_POLL_INTERVAL-th cycle if other
 * addresses have received QUIET_BATCHES batches since it did: a system call that finds nothing
 * takes 0.5 us.  Helps applications that open several addresses, such as UCX with 127.0.0.1 and
 * ::1.
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
	 * At most this many packets are not a stream: a poller returns to its completions without
	 * checking the socket again (0.2 us), and the ACK is delayed for a reply.
	 */
	STREAM_PACKETS = 2,
	/* The clock is read with every second poll without result. */
	CLOCK_READ_POLLS = 2,
	/*
	 * Number of polls (about 50 us) in which a poller leaves turn_lock to a thread that waits
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
	SHARE_QUEUE_SERVED = 16,
	/*
	 * Maximum duration of a streak of polls.  On a busy host a poller has long pauses, but
	 * unlike a thread that sleeps between its polls, it does not block itself; so up to
	 * STREAK_MAX_NS is allowed if the thread has not slept.
	 */
	STREAK_NS = PROGRESS_TICK_NS,
	STREAK_MAX_NS = 8 * PROGRESS_TICK_NS,
};

static __thread int turn_worker = -1;

int progress_turn_worker(void)
{
	return turn_worker;
}

/*
 * Called when a cycle other than a poller's has received packets: their completions may be found
 * before the responses to the peers have been sent.
 */
static inline void begin_responses(const struct turn *turn)
{
	if (turn->caller != TURN_POLLER)
		atomic_store_explicit(&turn->progress->answering, true, memory_order_relaxed);
}

static inline void end_responses(const struct turn *turn)
{
	if (turn->caller != TURN_POLLER)
		atomic_store_explicit(&turn->progress->answering, false, memory_order_relaxed);
}

void progress_await_answers(struct progress *progress)
{
	if (__builtin_expect(atomic_load_explicit(&progress->answering, memory_order_relaxed), 0))
		progress_await_turn(progress);
}

void progress_await_turn(struct progress *progress)
{
	if (progress->forked)
		return;
	turn_lock(progress);
	turn_unlock(progress);
}

void turn_lock(struct progress *progress)
{
	atomic_fetch_add_explicit(&progress->turn_wanted, 1, memory_order_relaxed);
	pthread_mutex_lock(&progress->turn_lock);
	atomic_fetch_sub_explicit(&progress->turn_wanted, 1, memory_order_relaxed);
}

void turn_unlock(struct progress *progress)
{
	pthread_mutex_unlock(&progress->turn_lock);
}

static inline void receive_from(struct turn *turn, struct link_addr *addr,
				const struct progress_group *group) __attribute__((always_inline));
static inline void receive_from(struct turn *turn, struct link_addr *addr,
				const struct progress_group *group)
{
	struct progress *progress = turn->progress;
	int batches = turn->drain ? ALL_BATCHES : RECEIVE_BATCHES;

	while (batches-- > 0) {
		struct link_batch batch;
		unsigned int packets;

		/* The link sets the other fields. */
		batch.buffer = progress->receive_buffer;
		batch.buffer_bytes = LINK_MAX_BYTES + 1;
		/* Threads that post should not wait for a system call. */
		turn_leave(turn);
		count_in_cycle(progress, PROGRESS_COUNT_RECEIVE_CALLS);
		if (group ? link_group_receive(group->link, &batch) : link_receive(addr, &batch))
			return;
		begin_responses(turn);
		packets =
			group ? demux_group(turn, &batch, group) : demux_batch(turn, &batch, false);
		link_release(&batch);
		turn->packets += packets;
		turn->had_work = true;
		if (turn->caller == TURN_POLLER && !turn->drain && packets <= STREAM_PACKETS)
			break;
	}
	turn->more_to_receive = true;
}

/* Not inlined, since few processes join groups. */
static __attribute__((noinline, nonnull)) void
receive_from_group(struct turn *turn, const struct progress_group *group)
{
	receive_from(turn, NULL, group);
}

/* Not inlined, since few processes have so many addresses. */
static __attribute__((noinline)) void receive_from_readable(struct turn *turn)
{
	struct progress *progress = turn->progress;
	struct link_addr *readable[WAKEUP_EVENTS];
	int count = wakeup_readable(&progress->wakeup, readable);

	turn->more_to_receive = count == WAKEUP_EVENTS;
	for (int i = 0; i < count; i++)
		receive_from(turn, readable[i], NULL);
	/* Shared memory has no descriptor, and is checked without a system call. */
	for (unsigned int i = 0; i < progress->address_count; i++)
		if (link_addr_has_shm(progress->address[i].addr))
			receive_from(turn, progress->address[i].addr, NULL);
}

/* Returns true if this cycle skips the socket of a quiet address while other addresses are busy. */
static bool skips_address(const struct turn *turn, struct progress_address *address)
{
	if (turn->caller != TURN_POLLER || turn->drain ||
	    address->foreign_batches < QUIET_BATCHES ||
	    ++address->cycles_skipped == QUIET_POLL_INTERVAL) {
		address->cycles_skipped = 0;
		return false;
	}
	return true;
}

static __attribute__((noinline)) void receive_from_several(struct turn *turn)
{
	struct progress *progress = turn->progress;

	for (unsigned int i = 0; i < progress->address_count; i++) {
		unsigned int before = turn->packets;

		if (skips_address(turn, &progress->address[i]))
			continue;
		receive_from(turn, progress->address[i].addr, NULL);
		if (turn->packets == before)
			continue;
		for (unsigned int j = 0; j < progress->address_count; j++)
			progress->address[j].foreign_batches =
				i == j ? 0 : progress->address[j].foreign_batches + 1;
	}
}

static void receive_deliveries(struct turn *turn)
{
	struct progress *progress = turn->progress;

	for (int batches = 0; batches < DELIVERY_BATCHES; batches++) {
		struct link_batch batch = {
			.buffer = progress->receive_buffer,
			.buffer_bytes = LINK_MAX_BYTES + 1,
		};

		turn_leave(turn);
		if (link_delivery_receive(progress->link, &batch))
			return;
		/*
		 * The link knows an address until it is closed, so it may no longer be in use here.
		 */
		if (!progress_address_find(progress, batch.addr))
			continue;
		begin_responses(turn);
		turn->packets += demux_batch(turn, &batch, true);
		turn->had_work = true;
	}
}

static inline void receive_all(struct turn *turn) __attribute__((always_inline));
static inline void receive_all(struct turn *turn)
{
	struct progress *progress = turn->progress;

	if (__builtin_expect(progress->wakeup.address_epoll_fd >= 0, 0))
		receive_from_readable(turn);
	else if (__builtin_expect(progress->address_count == 1, 1))
		receive_from(turn, progress->address[0].addr, NULL);
	else
		receive_from_several(turn);
	for (unsigned int i = 0; i < progress->group_count; i++)
		receive_from_group(turn, progress->group[i]);
	if (turn->drain)
		receive_deliveries(turn);
}

/*
 * The process had no CPU for longer than a Local ACK Timeout.  The ACK may have arrived in the
 * meantime, behind more packets than a cycle receives.
 */
static __attribute__((noinline)) void receive_all_pending(struct turn *turn)
{
	turn->drain = true;
	receive_all(turn);
}

static void report_timeout(const struct progress *progress, struct progress_qp *qp)
{
	uint64_t timeouts = eng_timeouts(qp->engine);

	if (__builtin_expect(timeouts == qp->timeouts_reported, 1))
		return;
	qp->timeouts_reported = timeouts;
	if (eng_few_retries(qp->engine))
		link_check_broker(progress->link);
	if (progress->hooks.timed_out)
		progress->hooks.timed_out(qp);
}

static void expire_deadlines(struct turn *turn)
{
	struct progress *progress = turn->progress;
	struct progress_qp *qp;

	if (progress->fault && fault_release(progress->fault, turn->now))
		turn->had_work = true;
	/* Serving the QP queues it again; a post in between may have queued it already. */
	while ((qp = deadline_pop(&progress->deadlines, turn->now))) {
		turn_visit(turn, qp);
		if (turn->more_to_receive && !turn->drain && eng_times_out(qp->engine, turn->now)) {
			receive_all_pending(turn);
			turn_visit(turn, qp);
		}
		if (link_is_unsettled(progress->link))
			eng_restore_retries(qp->engine);
		eng_expire(qp->engine, turn->now);
		report_timeout(progress, qp);
		turn_schedule(turn, qp);
		turn->had_work = true;
	}
}

static void move_scheduled(struct turn *turn)
{
	struct progress_qp *qp = transmit_take_scheduled(turn->progress);

	while (qp) {
		struct progress_qp *next = qp->next_scheduled;

		qp->collected = true;
		turn_schedule(turn, qp);
		qp = next;
	}
}

static inline struct eng_tx_ctx ctx_of(const struct turn *turn, const struct progress_qp *qp)
{
	struct progress *progress = turn->progress;
	bool polled = !wakeup_is_armed(progress);

	/* Without an awake progress thread, delaying an ACK would require a wake-up to send it. */
	return transmit_ctx(progress, qp, ENG_TX_TRIGGER_POLL, turn->now, polled,
			    polled || turn->caller == TURN_HELPER);
}

static void serve_qp(struct turn *turn, struct progress_qp *qp)
{
	struct progress *progress = turn->progress;
	struct eng_tx_ctx ctx = ctx_of(turn, qp);
	enum transmit_end end;
	unsigned int bursts;

	turn_visit(turn, qp);
	qp->in_turn = false;
	if (qp->collected) {
		qp->collected = false;
		qp->scheduled = false;
	}
	end = transmit(progress, qp, &ctx, TRANSMIT_BURSTS, progress->cycle_tx, &bursts);
	transmit_deadline(progress, qp);
	turn->had_work |= bursts > 0;
	if (end == TRANSMIT_NO_SHARE)
		share_queue_add(&progress->share_queue, qp);
	if (end == TRANSMIT_BLOCKED)
		turn->blocked = true;
	if (end == TRANSMIT_BLOCKED || end == TRANSMIT_MORE)
		transmit_schedule(progress, qp, turn->caller != TURN_HELPER);
}

/*
 * Serves the first QP that waits for the in-flight budget.  Returns true if there may be room for
 * another one.
 */
static bool serve_share_waiter(struct turn *turn)
{
	struct progress *progress = turn->progress;
	struct progress_qp *qp = share_queue_take(&progress->share_queue);
	struct eng_tx_ctx ctx;
	enum transmit_end end;
	unsigned int bursts;

	if (!qp)
		return false;
	turn_visit(turn, qp);
	/* The first in the queue need not wait for others. */
	ctx = ctx_of(turn, qp);
	ctx.budget_waits = false;
	end = transmit(progress, qp, &ctx, TRANSMIT_BURSTS_SHARE_QUEUE, progress->cycle_tx,
		       &bursts);
	transmit_deadline(progress, qp);
	/* A full socket buffer blocks all QPs, a full ring only those with the same peer. */
	if (end == TRANSMIT_MORE ||
	    (end == TRANSMIT_BLOCKED && qp->transport == LINK_SHARED_MEMORY))
		share_queue_add(&progress->share_queue, qp);
	else if (end != TRANSMIT_DONE)
		share_queue_put_back(&progress->share_queue, qp);
	if (end == TRANSMIT_BLOCKED)
		turn->blocked = true;
	return end != TRANSMIT_NO_SHARE &&
	       (end != TRANSMIT_BLOCKED || qp->transport == LINK_SHARED_MEMORY);
}

static void serve_share_queue(struct turn *turn)
{
	static const unsigned int most = SHARE_QUEUE_SERVED;

	/*
	 * ACKs and timeouts make room; other events that do, such as the removal of a QP, are rare.
	 */
	if (!turn->had_work && turn->caller == TURN_POLLER && ++turn->progress->idle_cycles % most)
		return;
	for (unsigned int served = 0; served < most && serve_share_waiter(turn); served++)
		turn->had_work = true;
}

/*
 * Returns true if nothing was received and nothing is due or scheduled.  Most cycles of a poller
 * end so, and then there is nothing to report.
 */
static inline bool is_idle(const struct turn *turn)
{
	struct progress *progress = turn->progress;

	return !turn->had_work && deadline_earliest(&progress->deadlines) > turn->now &&
	       !transmit_is_scheduled(progress) && !share_queue_waits(&progress->share_queue) &&
	       !progress->fault;
}

static __attribute__((noinline)) enum turn_result finish_cycle(struct turn *turn)
{
	struct progress_qp *qp;

	expire_deadlines(turn);
	move_scheduled(turn);
	/* Only the running cycle uses next_in_cycle. */
	for (qp = turn->scheduled; qp; qp = qp->next_in_cycle)
		serve_qp(turn, qp);
	if (share_queue_waits(&turn->progress->share_queue))
		serve_share_queue(turn);
	turn_leave(turn);
	end_responses(turn);
	turn_worker = -1;
	turn->progress->hooks.turn_over(turn->progress->number);
	if (turn->blocked)
		return TURN_BLOCKED;
	return turn->had_work ? TURN_WORKED : TURN_IDLE;
}

static void begin_cycle(struct turn *turn, struct progress *progress, enum turn_maker caller)
{
	*turn = (struct turn){
		.progress = progress,
		.caller = caller,
		.now = progress_now(),
		.drain = caller == TURN_STOPPER,
	};
	turn->scheduled_end = &turn->scheduled;
	turn_worker = (int)progress->number;
	count_in_cycle(progress, caller == TURN_POLLER ? PROGRESS_COUNT_POLL_TURNS
						       : PROGRESS_COUNT_HELPER_TURNS);
}

enum turn_result turn_make(struct progress *progress, enum turn_maker caller)
{
	struct turn turn;

	begin_cycle(&turn, progress, caller);
	receive_all(&turn);
	if (is_idle(&turn)) {
		turn_worker = -1;
		return TURN_IDLE;
	}
	return finish_cycle(&turn);
}

enum turn_result turn_take_deliveries(struct progress *progress)
{
	struct turn turn;

	begin_cycle(&turn, progress, TURN_HELPER);
	turn.more_to_receive = true;
	receive_deliveries(&turn);
	return finish_cycle(&turn);
}

/*
 * Returns true after so many consecutive polls that the thread must be spinning.  Caller runs the
 * cycle.
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
		sleeps = poller_sleeps();
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
	struct poller_patience patience;
} poller = { .patience = POLLER_PATIENCE };

/* Not inlined: tests/bench/instructions.py counts the calls. */
static __attribute__((noinline)) void yield_sometimes(void)
{
	uint64_t now;

	if (++poller.empty_polls % CLOCK_READ_POLLS)
		return;
	now = progress_now();
	if (poller.empty_polls == CLOCK_READ_POLLS) {
		poller.patience.paid |= poller.waited > POLLER_PATIENCE_NS;
		poller.empty_since = now;
	}
	poller.waited = now - poller.empty_since;
	if (poller.waited < poller.patience.ns)
		return;
	poller.waited = 0;
	sched_yield();
	poller.empty_polls = 0;
	poller_yielded(&poller.patience, progress_now() - now, poller_preemptions);
}

/* Returns true if a poller should leave turn_lock to a thread that waits for it. */
static bool yields_lock(struct progress *progress)
{
	static __thread unsigned int polls_yielded;

	return atomic_load_explicit(&progress->turn_wanted, memory_order_relaxed) != 0 &&
	       ++polls_yielded % YIELD_LOCK_POLLS != 0;
}

void progress_poll(struct progress *progress)
{
	enum turn_result result = TURN_IDLE;
	bool disarm = false;

	if (progress->forked)
		return;
	if (!yields_lock(progress) && pthread_mutex_trylock(&progress->turn_lock) == 0) {
		result = turn_make(progress, TURN_POLLER);
		disarm = wakeup_is_armed(progress) && is_spinning(progress);
		turn_unlock(progress);
	}
	if (disarm)
		wakeup_disarm(progress);
	if (result == TURN_IDLE)
		yield_sometimes();
	else
		poller.empty_polls = 0;
}

void progress_take_in(struct progress *progress)
{
	if (progress->forked)
		return;
	turn_lock(progress);
	turn_make(progress, TURN_STOPPER);
	turn_unlock(progress);
}

void progress_polled(struct progress *progress)
{
	bool disarm = false;

	if (progress->forked || !wakeup_is_armed(progress) ||
	    pthread_mutex_trylock(&progress->turn_lock))
		return;
	disarm = is_spinning(progress);
	turn_unlock(progress);
	if (disarm)
		wakeup_disarm(progress);
}

void progress_notify_armed(struct progress *progress)
{
	if (progress->forked)
		return;
	/*
	 * The application may sleep now, so earlier polls do not count.  If the sockets were
	 * disarmed in between, arming them for each event would take a call to the progress thread.
	 */
	atomic_store_explicit(&progress->poll_streak, 0, memory_order_relaxed);
	if (!wakeup_is_armed(progress)) {
		wakeup_arm(progress);
		/*
		 * Datagrams on the sockets wake the progress thread, but writers to shared memory
		 * do not know yet that they must.
		 */
		wakeup_helper(progress);
	}
	/*
	 * Requests left for the next poll would wait long.  If the lock is taken, the running cycle
	 * sends them.
	 */
	if (transmit_is_scheduled(progress) && pthread_mutex_trylock(&progress->turn_lock) == 0) {
		turn_make(progress, TURN_HELPER);
		turn_unlock(progress);
		transmit_look_again(progress);
	}
}
