/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "thread.h"

#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "progress/gsi/gsi_progress.h"
#include "progress_priv.h"
#include "progress/tx/tx.h"
#include "loop.h"
#include "link/thread.h"

/* Deadlines may be as short as 10 us (RNR timers); the default timer slack is 50 us. */
#define TIMER_SLACK_NS 1000
/* Time after which sending is retried if a socket buffer was full. */
#define RETRY_NS 50000
/*
 * How long the thread checks for the next datagram before it sleeps, since sleeping and being woken
 * takes about 30 us.
 */
#define SPIN_NS 50000
/* Maximum time between two checks of the other descriptors. */
#define SPIN_MAX_NS PROGRESS_TICK_NS
/*
 * A sched_yield() that takes longer than YIELD_SLOW_NS has run another thread on this CPU.  That
 * thread may spin on memory until the datagram arrives, which the progress thread cannot read for a
 * time slice of milliseconds.  So the progress thread does not spin for a while, longer each time.
 * Finding out which thread runs costs seven system calls and did not help.
 */
#define YIELD_SLOW_NS 300000 /* a thread that was woken for an event computes for less */
/* Bounds of the pauses without spinning; the exact values matter little. */
#define SPIN_PAUSE_MIN_NS UINT64_C(10000000)
#define SPIN_PAUSE_MAX_NS UINT64_C(1600000000)
/* Each check that finds a packet shortens the next pause by 1/SPIN_REWARD. */
#define SPIN_REWARD 64

/*
 * Bounds progress_thread.tick_ns.  If polls have stopped and a datagram has waited for the end of
 * the tick, the application spins on memory between its polls: then the tick is halved.  Each tick
 * in which polls have continued extends it by 1/TICK_GROWTH.
 */
#define TICK_MIN_NS (PROGRESS_TICK_NS / 16)
#define TICK_GROWTH 16

/*
 * Runs the watch callback of queue pair 1 if it has work (gsi_has_work()) or its deadline has
 * passed.
 */
static void serve_gsi(struct progress *progress)
{
	int fd = atomic_load_explicit(&progress->gsi_wakeup.fd, memory_order_acquire);

	if (fd < 0)
		return;
	if (gsi_has_work(progress) || gsi_next_deadline(progress) <= progress_now())
		wakeup_call_watch(&progress->wakeup, fd);
}

static void run_deliveries(struct progress *progress)
{
	progress_lock(progress);
	progress_run_deliveries(progress);
	progress_unlock(progress);
}

/* Runs a cycle unless another thread holds cycle_lock. */
static enum progress_result try_cycle(struct progress *progress)
{
	enum progress_result result = PROGRESS_IDLE;

	if (pthread_mutex_trylock(&progress->cycle_lock))
		return result;
	result = progress_run_once(progress, PROGRESS_CALLER_THREAD);
	progress_unlock(progress);
	return result;
}

static void run_cycle_if_free(void *progress)
{
	try_cycle(progress);
}

/* Handles events of the epoll set.  Returns true if a local address has something to receive. */
static bool handle_events(struct progress *progress, const struct epoll_event *events, int count)
{
	bool readable = false;
	uint64_t value;

	for (int i = 0; i < count; i++) {
		int fd = (int)(uint32_t)events[i].data.u64;

		switch ((enum wakeup_source)(events[i].data.u64 >> 32)) {
		case SOURCE_WAKE:
			if (read(fd, &value, sizeof(value)) < 0)
				continue;
			break;
		case SOURCE_BROKER:
			run_deliveries(progress);
			link_maintain_broker(progress->link, run_cycle_if_free, progress);
			link_open_wanted_slot_fds(progress->link, run_cycle_if_free, progress);
			if (link_broker_changes(progress->link) != progress->broker_changes) {
				progress->broker_changes = link_broker_changes(progress->link);
				atomic_store(&progress->gsi_wakeup.pending, true);
			}
			break;
		case SOURCE_WRITER:
			readable |= link_serve_writers(progress->link);
			break;
		case SOURCE_ADDRESS:
			readable = true;
			break;
		case SOURCE_WATCH:
			wakeup_call_watch(&progress->wakeup, fd);
			break;
		}
	}
	return readable;
}

/*
 * Waits for cycle_lock and runs a cycle.  Unlike progress_lock(), does not make pollers leave the
 * lock to this thread: a poller that holds the lock does everything that the progress thread would.
 * On a CPU that both share with a program that computes, nobody would do the work while the
 * progress thread waits for the CPU.
 */
static enum progress_result run_cycle(struct progress *progress)
{
	enum progress_result result;

	pthread_mutex_lock(&progress->cycle_lock);
	result = progress_run_once(progress, PROGRESS_CALLER_THREAD);
	progress_unlock(progress);
	return result;
}

/* Starts a pause without spinning after a yield longer than YIELD_SLOW_NS. */
static void note_slow_yield(struct progress_thread *thread, uint64_t now)
{
	thread->spin_pause = thread->spin_pause ? 2 * thread->spin_pause : SPIN_PAUSE_MIN_NS;
	if (thread->spin_pause > SPIN_PAUSE_MAX_NS)
		thread->spin_pause = SPIN_PAUSE_MAX_NS;
	thread->spin_not_before = now + thread->spin_pause;
}

/*
 * Checks for further packets after a cycle that had work.  Returns the result of the last cycle, or
 * PROGRESS_WORKED if another one should follow at once.
 */
static enum progress_result spin_for_packets(struct progress *progress)
{
	struct progress_thread *thread = &progress->thread;
	uint64_t before = poll_cycles(progress), begin = progress_now(), now = begin,
		 found_at = begin;
	enum progress_result last = PROGRESS_IDLE;

	while (now < found_at + SPIN_NS && now >= thread->spin_not_before &&
	       wakeup_armed_flag(&progress->wakeup) && poll_cycles(progress) == before &&
	       !gsi_has_work(progress)) {
		uint64_t yield_start = progress_now();

		sched_yield();
		now = progress_now();
		if (now - yield_start > YIELD_SLOW_NS)
			note_slow_yield(thread, now);
		last = try_cycle(progress);
		if (last == PROGRESS_WORKED) {
			found_at = now;
			thread->spin_pause -= thread->spin_pause / SPIN_REWARD;
		}
		if (now > begin + SPIN_MAX_NS)
			return PROGRESS_WORKED;
	}
	return last;
}

static uint64_t next_deadline(struct progress *progress)
{
	uint64_t deadline = deadline_earliest(&progress->deadlines);

	if (progress->fault && fault_deadline(progress->fault) < deadline)
		deadline = fault_deadline(progress->fault);
	if (gsi_next_deadline(progress) < deadline)
		deadline = gsi_next_deadline(progress);
	return deadline;
}

/* Requests wake-ups from shared memory; returns true if it already contains something. */
static bool request_memory_wakeups(struct progress *progress)
{
	bool readable = false;

	pthread_mutex_lock(&progress->wakeup.lock);
	for (unsigned int i = 0; i < progress->address_count; i++)
		readable |= link_addr_begin_sleep(progress->address[i].addr);
	pthread_mutex_unlock(&progress->wakeup.lock);
	return readable;
}

static void cancel_memory_wakeups(struct progress *progress)
{
	pthread_mutex_lock(&progress->wakeup.lock);
	for (unsigned int i = 0; i < progress->address_count; i++)
		link_addr_end_sleep(progress->address[i].addr);
	pthread_mutex_unlock(&progress->wakeup.lock);
}

/* Returns how long the thread may sleep while armed. */
static uint64_t armed_sleep_ns(struct progress *progress, enum progress_result last)
{
	uint64_t until = next_deadline(progress), now;

	/*
	 * Store the wake-up time, then check again: a thread that queues an earlier deadline, or
	 * schedules a QP, does so in the opposite order, so that at least one of the two notices
	 * the other.  (Arming and stopping use the eventfd.)
	 */
	atomic_store_explicit(&progress->wakeup.sleeps_until, until, memory_order_seq_cst);
	if (last == PROGRESS_WORKED || !wakeup_armed_flag(&progress->wakeup) ||
	    next_deadline(progress) < until || gsi_has_work(progress) ||
	    request_memory_wakeups(progress))
		return 0;
	if (tx_is_scheduled(progress))
		return last == PROGRESS_BLOCKED ? RETRY_NS : 0;
	now = progress_now();
	/* Room in the in-flight budget may also come without a packet, when a QP is removed. */
	if (budget_queue_is_waiting(&progress->budget_queue) && until > now + PROGRESS_TICK_NS)
		until = now + PROGRESS_TICK_NS;
	if (until == ENG_NEVER)
		return ENG_NEVER;
	return until > now ? until - now : 0;
}

static void run_armed(struct progress *progress)
{
	struct epoll_event events[WAKEUP_EVENTS];
	enum progress_result last = run_cycle(progress);
	int count;

	serve_gsi(progress);
	if (last == PROGRESS_WORKED)
		last = spin_for_packets(progress);
	count = wakeup_wait(&progress->wakeup, events, armed_sleep_ns(progress, last));
	atomic_store_explicit(&progress->wakeup.sleeps_until, 0, memory_order_seq_cst);
	cancel_memory_wakeups(progress);
	handle_events(progress, events, count);
}

/*
 * Called when polls have stopped: arms the sockets and runs a cycle.  Halves the tick if that cycle
 * had work.
 */
static void arm_after_idle(struct progress *progress)
{
	struct progress_thread *thread = &progress->thread;

	wakeup_arm(progress);
	if (run_cycle(progress) == PROGRESS_WORKED && thread->tick_ns > TICK_MIN_NS)
		thread->tick_ns /= 2;
}

static void run_disarmed(struct progress *progress)
{
	struct progress_thread *thread = &progress->thread;
	struct epoll_event events[WAKEUP_EVENTS];
	uint64_t before = poll_cycles(progress), until = progress_now() + thread->tick_ns, now;

	do {
		now = progress_now();
		if (now >= until)
			break;
		/* An error of a socket is reported even without events; reading clears it. */
		if (handle_events(progress, events,
				  wakeup_wait(&progress->wakeup, events, until - now)))
			run_cycle(progress);
		serve_gsi(progress);
	} while (!atomic_load(&thread->stop) && !atomic_load(&thread->exit_requested) &&
		 !wakeup_is_armed(progress));
	if (wakeup_is_armed(progress) || atomic_load(&thread->exit_requested))
		return;
	if (poll_cycles(progress) == before) {
		arm_after_idle(progress);
		return;
	}
	thread->tick_ns += thread->tick_ns / TICK_GROWTH;
	if (thread->tick_ns > PROGRESS_TICK_NS)
		thread->tick_ns = PROGRESS_TICK_NS;
	if (tx_is_scheduled(progress))
		run_cycle(progress);
}

static void *progress_thread_main(void *arg)
{
	struct progress *progress = arg;

	prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
	while (!atomic_load(&progress->thread.stop)) {
		if (atomic_load(&progress->thread.exit_requested))
			exit_flush_run(progress);
		if (wakeup_is_armed(progress))
			run_armed(progress);
		else
			run_disarmed(progress);
	}
	return NULL;
}

int progress_thread_start(struct progress *progress)
{
	int error = wakeup_open(progress);

	if (error)
		return error;
	progress->thread.tick_ns = PROGRESS_TICK_NS;
	error = thread_start(&progress->wakeup.thread, "uroce", progress_thread_main, progress);
	if (error)
		wakeup_close(&progress->wakeup);
	return error;
}

void progress_thread_stop(struct progress *progress)
{
	atomic_store(&progress->thread.stop, true);
	wakeup_thread(progress);
	pthread_join(progress->wakeup.thread, NULL);
	wakeup_close(&progress->wakeup);
}
