/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "turn.h"

#include <errno.h>
#include <sched.h>

#include "demux.h"
#include "group.h"
#include "poller.h"
#include "transmit.h"

/*
 * A poller reads the socket of an address only in every LOOK_INTERVAL-th cycle if other addresses
 * have received QUIET_TURNS batches since it did: a system call that finds nothing takes 0.5 us.
 * Helps applications that open several addresses, such as UCX with 127.0.0.1 and ::1.
 */
enum { QUIET_TURNS = 64, LOOK_INTERVAL = 16 };

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
	FEW_PACKETS = 2,
	/* The clock is read with every second poll without result. */
	YIELD_LOOK_POLLS = 2,
	/*
	 * Number of polls (about 50 us) in which a poller leaves turn_lock to a thread that waits
	 * for it.  The limit is needed on a busy host, where the waiting thread may itself wait for
	 * a CPU for tens of milliseconds.
	 */
	GIVE_WAY_POLLS = 1024,
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
static inline void begin_answering(const struct turn *turn)
{
	if (turn->maker != TURN_POLLER)
		atomic_store_explicit(&turn->progress->answering, true, memory_order_relaxed);
}

static inline void end_answering(const struct turn *turn)
{
	if (turn->maker != TURN_POLLER)
		atomic_store_explicit(&turn->progress->answering, false, memory_order_relaxed);
}

void progress_await_answers(struct progress *progress)
{
	if (__builtin_expect(atomic_load_explicit(&progress->answering, memory_order_relaxed), 0))
		progress_await_turn(progress);
}

void progress_await_turn(struct progress *progress)
{
	if (progress->dead)
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
	int batches = turn->reads_all ? ALL_BATCHES : RECEIVE_BATCHES;

	while (batches-- > 0) {
		struct link_batch batch;
		unsigned int packets;

		/* The link sets the other fields. */
		batch.buffer = progress->receive_buffer;
		batch.buffer_bytes = LINK_MAX_BYTES + 1;
		/* Threads that post should not wait for a system call. */
		turn_leave(turn);
		count_in_turn(progress, PROGRESS_COUNT_RECEIVE_CALLS);
		if (group ? link_group_receive(group->link, &batch) : link_receive(addr, &batch))
			return;
		begin_answering(turn);
		packets =
			group ? demux_group(turn, &batch, group) : demux_batch(turn, &batch, false);
		link_release(&batch);
		turn->packets += packets;
		turn->worked = true;
		if (turn->maker == TURN_POLLER && !turn->reads_all && packets <= FEW_PACKETS)
			break;
	}
	turn->unread = true;
}

/* Not inlined, since few processes join groups. */
static __attribute__((noinline, nonnull)) void
receive_from_group(struct turn *turn, const struct progress_group *group)
{
	receive_from(turn, NULL, group);
}

/* Not inlined, since few processes have so many addresses. */
static __attribute__((noinline)) void receive_from_many(struct turn *turn)
{
	struct progress *progress = turn->progress;
	struct link_addr *readable[WAKEUP_EVENTS];
	int count = wakeup_readable(&progress->wakeup, readable);

	turn->unread = count == WAKEUP_EVENTS;
	for (int i = 0; i < count; i++)
		receive_from(turn, readable[i], NULL);
	/* Shared memory has no descriptor, and is checked without a system call. */
	for (unsigned int i = 0; i < progress->address_count; i++)
		if (link_addr_has_memory(progress->address[i].addr))
			receive_from(turn, progress->address[i].addr, NULL);
}

/* Returns true if this cycle skips the socket of a quiet address while other addresses are busy. */
static bool is_left_out(const struct turn *turn, struct progress_address *address)
{
	if (turn->maker != TURN_POLLER || turn->reads_all || address->others < QUIET_TURNS ||
	    ++address->left_out == LOOK_INTERVAL) {
		address->left_out = 0;
		return false;
	}
	return true;
}

static __attribute__((noinline)) void receive_from_several(struct turn *turn)
{
	struct progress *progress = turn->progress;

	for (unsigned int i = 0; i < progress->address_count; i++) {
		unsigned int before = turn->packets;

		if (is_left_out(turn, &progress->address[i]))
			continue;
		receive_from(turn, progress->address[i].addr, NULL);
		if (turn->packets == before)
			continue;
		for (unsigned int j = 0; j < progress->address_count; j++)
			progress->address[j].others = i == j ? 0 : progress->address[j].others + 1;
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
		if (!progress_find_address(progress, batch.addr))
			continue;
		begin_answering(turn);
		turn->packets += demux_batch(turn, &batch, true);
		turn->worked = true;
	}
}

static inline void receive_all(struct turn *turn) __attribute__((always_inline));
static inline void receive_all(struct turn *turn)
{
	struct progress *progress = turn->progress;

	if (__builtin_expect(progress->wakeup.many_fd >= 0, 0))
		receive_from_many(turn);
	else if (__builtin_expect(progress->address_count == 1, 1))
		receive_from(turn, progress->address[0].addr, NULL);
	else
		receive_from_several(turn);
	for (unsigned int i = 0; i < progress->group_count; i++)
		receive_from_group(turn, progress->group[i]);
	if (turn->reads_all)
		receive_deliveries(turn);
}

/*
 * The process had no CPU for longer than a Local ACK Timeout.  The ACK may have arrived in the
 * meantime, behind more packets than a cycle receives.
 */
static __attribute__((noinline)) void receive_rest(struct turn *turn)
{
	turn->reads_all = true;
	receive_all(turn);
}

static void tell_of_timeout(const struct progress *progress, struct progress_qp *qp)
{
	uint64_t timeouts = eng_timeouts(qp->engine);

	if (__builtin_expect(timeouts == qp->timeouts, 1))
		return;
	qp->timeouts = timeouts;
	if (eng_few_retries(qp->engine))
		link_check_broker(progress->link);
	if (progress->hooks.timed_out)
		progress->hooks.timed_out(qp);
}

static void expire(struct turn *turn)
{
	struct progress *progress = turn->progress;
	struct progress_qp *qp;

	if (progress->fault && fault_release(progress->fault, turn->now))
		turn->worked = true;
	/* Serving the QP queues it again; a post in between may have queued it already. */
	while ((qp = deadline_pop(&progress->deadlines, turn->now))) {
		turn_visit(turn, qp);
		if (turn->unread && !turn->reads_all && eng_times_out(qp->engine, turn->now)) {
			receive_rest(turn);
			turn_visit(turn, qp);
		}
		if (link_is_unsettled(progress->link))
			eng_restore_retries(qp->engine);
		eng_expire(qp->engine, turn->now);
		tell_of_timeout(progress, qp);
		turn_schedule(turn, qp);
		turn->worked = true;
	}
}

static void move_scheduled(struct turn *turn)
{
	struct progress_qp *qp = transmit_take_scheduled(turn->progress);

	while (qp) {
		struct progress_qp *next = qp->next_scheduled;

		qp->moved = true;
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
			    polled || turn->maker == TURN_HELPER);
}

static void serve(struct turn *turn, struct progress_qp *qp)
{
	struct progress *progress = turn->progress;
	struct eng_tx_ctx ctx = ctx_of(turn, qp);
	enum transmit_end end;
	unsigned int bursts;

	turn_visit(turn, qp);
	qp->in_turn = false;
	if (qp->moved) {
		qp->moved = false;
		qp->scheduled = false;
	}
	end = transmit(progress, qp, &ctx, TRANSMIT_BURSTS, progress->turn_tx, &bursts);
	transmit_deadline(progress, qp);
	turn->worked |= bursts > 0;
	if (end == TRANSMIT_NO_SHARE)
		share_queue_add(&progress->share_queue, qp);
	if (end == TRANSMIT_BLOCKED)
		turn->blocked = true;
	if (end == TRANSMIT_BLOCKED || end == TRANSMIT_MORE)
		transmit_schedule(progress, qp, turn->maker != TURN_HELPER);
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
	end = transmit(progress, qp, &ctx, TRANSMIT_BURSTS_SHARE_QUEUE, progress->turn_tx, &bursts);
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
	if (!turn->worked && turn->maker == TURN_POLLER && ++turn->progress->idle_turns % most)
		return;
	for (unsigned int served = 0; served < most && serve_share_waiter(turn); served++)
		turn->worked = true;
}

/*
 * Returns true if nothing was received and nothing is due or scheduled.  Most cycles of a poller
 * end so, and then there is nothing to report.
 */
static inline bool is_idle(const struct turn *turn)
{
	struct progress *progress = turn->progress;

	return !turn->worked && deadline_earliest(&progress->deadlines) > turn->now &&
	       !transmit_is_scheduled(progress) && !share_queue_waits(&progress->share_queue) &&
	       !progress->fault;
}

static __attribute__((noinline)) enum turn_result finish(struct turn *turn)
{
	struct progress_qp *qp;

	expire(turn);
	move_scheduled(turn);
	/* Only the running cycle uses next_in_turn. */
	for (qp = turn->scheduled; qp; qp = qp->next_in_turn)
		serve(turn, qp);
	if (share_queue_waits(&turn->progress->share_queue))
		serve_share_queue(turn);
	turn_leave(turn);
	end_answering(turn);
	turn_worker = -1;
	turn->progress->hooks.turn_over(turn->progress->number);
	if (turn->blocked)
		return TURN_BLOCKED;
	return turn->worked ? TURN_WORKED : TURN_IDLE;
}

static void begin(struct turn *turn, struct progress *progress, enum turn_maker maker)
{
	*turn = (struct turn){
		.progress = progress,
		.maker = maker,
		.now = progress_now(),
		.reads_all = maker == TURN_STOPPER,
	};
	turn->scheduled_end = &turn->scheduled;
	turn_worker = (int)progress->number;
	count_in_turn(progress, maker == TURN_POLLER ? PROGRESS_COUNT_POLL_TURNS
						     : PROGRESS_COUNT_HELPER_TURNS);
}

enum turn_result turn_make(struct progress *progress, enum turn_maker maker)
{
	struct turn turn;

	begin(&turn, progress, maker);
	receive_all(&turn);
	if (is_idle(&turn)) {
		turn_worker = -1;
		return TURN_IDLE;
	}
	return finish(&turn);
}

enum turn_result turn_take_deliveries(struct progress *progress)
{
	struct turn turn;

	begin(&turn, progress, TURN_HELPER);
	turn.unread = true;
	receive_deliveries(&turn);
	return finish(&turn);
}

/*
 * Returns true after so many consecutive polls that the thread must be spinning.  Caller runs the
 * cycle.
 */
static bool is_streak(struct progress *progress)
{
	unsigned int polls = atomic_load_explicit(&progress->streak, memory_order_relaxed) + 1;
	uint64_t now, sleeps, took;

	atomic_store_explicit(&progress->streak, polls % STREAK_POLLS, memory_order_relaxed);
	if (polls < STREAK_POLLS)
		return false;
	now = progress_now();
	took = now - progress->streak_began;
	if (took > STREAK_NS) {
		sleeps = poller_sleeps();
		if (took > STREAK_MAX_NS || sleeps != progress->streak_sleeps) {
			progress->streak_began = now;
			progress->streak_sleeps = sleeps;
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
	unsigned int vain_polls;
	uint64_t vain_since;
	uint64_t waited; /* time from vain_since to the last clock read; 0 after a yield */
	struct poller_patience patience;
} poller = { .patience = POLLER_PATIENCE };

/* Not inlined: tests/bench/instructions.py counts the calls. */
static __attribute__((noinline)) void yield_sometimes(void)
{
	uint64_t now;

	if (++poller.vain_polls % YIELD_LOOK_POLLS)
		return;
	now = progress_now();
	if (poller.vain_polls == YIELD_LOOK_POLLS) {
		poller.patience.paid |= poller.waited > POLLER_PATIENCE_NS;
		poller.vain_since = now;
	}
	poller.waited = now - poller.vain_since;
	if (poller.waited < poller.patience.ns)
		return;
	poller.waited = 0;
	sched_yield();
	poller.vain_polls = 0;
	poller_yielded(&poller.patience, progress_now() - now, poller_preemptions);
}

/* Returns true if a poller should leave turn_lock to a thread that waits for it. */
static bool gives_way(struct progress *progress)
{
	static __thread unsigned int given;

	return atomic_load_explicit(&progress->turn_wanted, memory_order_relaxed) != 0 &&
	       ++given % GIVE_WAY_POLLS != 0;
}

void progress_poll(struct progress *progress)
{
	enum turn_result result = TURN_IDLE;
	bool disarm = false;

	if (progress->dead)
		return;
	if (!gives_way(progress) && pthread_mutex_trylock(&progress->turn_lock) == 0) {
		result = turn_make(progress, TURN_POLLER);
		disarm = wakeup_is_armed(progress) && is_streak(progress);
		turn_unlock(progress);
	}
	if (disarm)
		wakeup_disarm(progress);
	if (result == TURN_IDLE)
		yield_sometimes();
	else
		poller.vain_polls = 0;
}

void progress_take_in(struct progress *progress)
{
	if (progress->dead)
		return;
	turn_lock(progress);
	turn_make(progress, TURN_STOPPER);
	turn_unlock(progress);
}

void progress_polled(struct progress *progress)
{
	bool disarm = false;

	if (progress->dead || !wakeup_is_armed(progress) ||
	    pthread_mutex_trylock(&progress->turn_lock))
		return;
	disarm = is_streak(progress);
	turn_unlock(progress);
	if (disarm)
		wakeup_disarm(progress);
}

void progress_notify_armed(struct progress *progress)
{
	if (progress->dead)
		return;
	/*
	 * The application may sleep now, so earlier polls do not count.  If the sockets were
	 * disarmed in between, arming them for each event would take a call to the progress thread.
	 */
	atomic_store_explicit(&progress->streak, 0, memory_order_relaxed);
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
