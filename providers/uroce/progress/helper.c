/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "helper.h"

#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "group.h"
#include "gsi_service.h"
#include "instance.h"
#include "leave.h"
#include "transmit.h"
#include "turn.h"
#include "link/thread.h"

/* Deadlines go down to 10 us (RNR timers); the default slack of 50 us would double them. */
#define TIMER_SLACK_NS 1000
/* A full socket is looked at again after this time. */
#define RETRY_NS 50000
/*
 * To sleep and be woken takes some 30 us: for so long the helper looks for the next datagram.
 * ibv_rc_pingpong -e takes 9.4 us with it and 48 us without, nine turns each on an idle machine.
 */
#define SPIN_NS 50000
/* It looks at the other descriptors at least this often. */
#define SPIN_MAX_NS PROGRESS_TICK_NS
/*
 * sched_yield() took this long: another thread is ready to run on the core.  It may be one that
 * spins on memory until the datagram comes that the helper then does not get to read, for a time
 * slice of milliseconds.  So there is no spinning for a while, longer each time.  Beside three
 * threads that compute, on two processors, ibv_rc_pingpong -e takes 0.12 ms with it and 1.3 ms
 * without (medians of five).
 *
 * To find out which thread it is, so as to spin on beside one of another process, took two system
 * calls for each spin and five more for each slow yield, and was no gain: on two processors with a
 * load of 13 (ibv_rc_pingpong -e, six turns each) the median was 477 us for an iteration with it
 * and 172 us without, and the processor time of a side 0.53 s and 0.16 s.
 */
#define YIELD_SLOW_NS 300000 /* a thread that was woken for an event computes for less */
/*
 * In one scheduling group, as a container is, it is 0.17 ms with these pauses and 1.7 ms without;
 * 1 or 100 ms at first, and 100 ms at most, are as good (medians of five and of two).
 */
#define SPIN_PAUSE_MIN_NS UINT64_C(10000000)
#define SPIN_PAUSE_MAX_NS UINT64_C(1600000000)
/*
 * Each look that has found something makes the next pause shorter by this part.  Where four threads
 * compute for a second, and from then on three of them for 6 ms in each 300, ibv_rc_pingpong -e
 * takes 20 us with it and 62 us without (150,000 times, medians of four).
 */
#define SPIN_REWARD 64

/*
 * When polls have stopped and a datagram has come meanwhile, it has waited for the tick: the
 * application spins on memory between its polls.  Then the interval is halved; each tick that
 * finds polls going on makes it longer by this part again.  Two processes that WRITE to each other,
 * poll for their completion and then spin on the answer take 32 us for there and back with it and
 * 47 us without, through shared memory 8 us and 36 us (medians of five).
 */
#define TICK_MIN_NS (PROGRESS_TICK_NS / 16)
#define TICK_GROWTH 16

/* What has come for queue pair 1, and what is due there. */
static void serve_gsi(struct progress *progress)
{
	int fd = atomic_load_explicit(&progress->gsi_wakeup.fd, memory_order_acquire);

	if (fd < 0)
		return;
	if (gsi_has_work(progress) || gsi_next_deadline(progress) <= progress_now())
		wakeup_call_watch(&progress->wakeup, fd);
}

static void take_deliveries(struct progress *progress)
{
	turn_lock(progress);
	turn_take_deliveries(progress);
	turn_unlock(progress);
}

/* A turn, but not against a poller. */
static enum turn_result try_turn(struct progress *progress)
{
	enum turn_result result = TURN_IDLE;

	if (pthread_mutex_trylock(&progress->turn_lock))
		return result;
	result = turn_make(progress, TURN_HELPER);
	turn_unlock(progress);
	return result;
}

static void turn_meanwhile(void *progress)
{
	try_turn(progress);
}

/* True when a local address has something to read. */
static bool handle(struct progress *progress, const struct epoll_event *events, int count)
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
			take_deliveries(progress);
			link_tend(progress->link, turn_meanwhile, progress);
			if (link_broker_changes(progress->link) != progress->broker_changes) {
				progress->broker_changes = link_broker_changes(progress->link);
				atomic_store(&progress->gsi_wakeup.work, true);
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
 * The helper does not ask a poller to leave the turn to it, as turn_lock() does: a poller that
 * holds the lock does all that the helper would.  On a processor that both share with a program
 * that computes, the poller would leave it undone while the helper waits for the processor:
 * MPI_Fetch_and_op over UCX takes 116 to 122 us so, and 58 to 82 us without (medians, by turns).
 */
static enum turn_result make_turn(struct progress *progress)
{
	enum turn_result result;

	pthread_mutex_lock(&progress->turn_lock);
	result = turn_make(progress, TURN_HELPER);
	turn_unlock(progress);
	return result;
}

/* See YIELD_SLOW_NS. */
static void note_slow_yield(struct helper *helper, uint64_t now)
{
	helper->spin_pause = helper->spin_pause ? 2 * helper->spin_pause : SPIN_PAUSE_MIN_NS;
	if (helper->spin_pause > SPIN_PAUSE_MAX_NS)
		helper->spin_pause = SPIN_PAUSE_MAX_NS;
	helper->spin_again = now + helper->spin_pause;
}

/*
 * Something has come: look for what comes next.  What the last turn was, TURN_WORKED when it would
 * be worth to go on.
 */
static enum turn_result spin(struct progress *progress)
{
	struct helper *helper = &progress->helper;
	uint64_t before = poll_turns(progress), begin = progress_now(), now = begin, found = begin;
	enum turn_result last = TURN_IDLE;

	while (now < found + SPIN_NS && now >= helper->spin_again &&
	       wakeup_armed_flag(&progress->wakeup) && poll_turns(progress) == before &&
	       !gsi_has_work(progress)) {
		uint64_t given = progress_now();

		sched_yield();
		now = progress_now();
		if (now - given > YIELD_SLOW_NS)
			note_slow_yield(helper, now);
		last = try_turn(progress);
		if (last == TURN_WORKED) {
			found = now;
			helper->spin_pause -= helper->spin_pause / SPIN_REWARD;
		}
		if (now > begin + SPIN_MAX_NS)
			return TURN_WORKED;
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

/* Let shared memory wake the helper; true when there is something in it already. */
static bool await_memory(struct progress *progress)
{
	bool readable = false;

	pthread_mutex_lock(&progress->wakeup.lock);
	for (unsigned int i = 0; i < progress->address_count; i++)
		readable |= link_addr_await(progress->address[i].addr);
	pthread_mutex_unlock(&progress->wakeup.lock);
	return readable;
}

static void stop_awaiting_memory(struct progress *progress)
{
	pthread_mutex_lock(&progress->wakeup.lock);
	for (unsigned int i = 0; i < progress->address_count; i++)
		link_addr_awake(progress->address[i].addr);
	pthread_mutex_unlock(&progress->wakeup.lock);
}

/* How long an armed helper may sleep. */
static uint64_t sleep_ns(struct progress *progress, enum turn_result last)
{
	uint64_t until = next_deadline(progress), now;

	/*
	 * Store what is waited for, then look again: a thread that queues an earlier deadline, or
	 * schedules a QP, does it in the other order, so that one of the two sees the other (as do
	 * arming and stopping, by the eventfd).
	 */
	atomic_store_explicit(&progress->wakeup.sleeps_until, until, memory_order_seq_cst);
	if (last == TURN_WORKED || !wakeup_armed_flag(&progress->wakeup) ||
	    next_deadline(progress) < until || gsi_has_work(progress) || await_memory(progress))
		return 0;
	if (transmit_is_scheduled(progress))
		return last == TURN_BLOCKED ? RETRY_NS : 0;
	now = progress_now();
	/* The room that QPs wait for in the share queue may come without a packet: the end of a QP.
	 */
	if (share_queue_waits(&progress->share_queue) && until > now + PROGRESS_TICK_NS)
		until = now + PROGRESS_TICK_NS;
	if (until == ENG_NEVER)
		return ENG_NEVER;
	return until > now ? until - now : 0;
}

static void round_armed(struct progress *progress)
{
	struct epoll_event events[WAKEUP_EVENTS];
	enum turn_result last = make_turn(progress);
	int count;

	serve_gsi(progress);
	if (last == TURN_WORKED)
		last = spin(progress);
	count = wakeup_wait(&progress->wakeup, events, sleep_ns(progress, last));
	atomic_store_explicit(&progress->wakeup.sleeps_until, 0, memory_order_seq_cst);
	stop_awaiting_memory(progress);
	handle(progress, events, count);
}

/* Polls have stopped. */
static void take_over(struct progress *progress)
{
	struct helper *helper = &progress->helper;

	wakeup_arm(progress);
	if (make_turn(progress) == TURN_WORKED && helper->tick_ns > TICK_MIN_NS)
		helper->tick_ns /= 2;
}

static void round_disarmed(struct progress *progress)
{
	struct helper *helper = &progress->helper;
	struct epoll_event events[WAKEUP_EVENTS];
	uint64_t before = poll_turns(progress), until = progress_now() + helper->tick_ns, now;

	do {
		now = progress_now();
		if (now >= until)
			break;
		/* An error at a socket is reported even without events: reading takes it away. */
		if (handle(progress, events, wakeup_wait(&progress->wakeup, events, until - now)))
			make_turn(progress);
		serve_gsi(progress);
	} while (!atomic_load(&helper->stop) && !atomic_load(&helper->leaves) &&
		 !wakeup_is_armed(progress));
	if (wakeup_is_armed(progress) || atomic_load(&helper->leaves))
		return;
	if (poll_turns(progress) == before) {
		take_over(progress);
		return;
	}
	helper->tick_ns += helper->tick_ns / TICK_GROWTH;
	if (helper->tick_ns > PROGRESS_TICK_NS)
		helper->tick_ns = PROGRESS_TICK_NS;
	if (transmit_is_scheduled(progress))
		make_turn(progress);
}

static void *helper_main(void *arg)
{
	struct progress *progress = arg;

	prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
	while (!atomic_load(&progress->helper.stop)) {
		if (atomic_load(&progress->helper.leaves))
			leave_send(progress);
		if (wakeup_is_armed(progress))
			round_armed(progress);
		else
			round_disarmed(progress);
	}
	return NULL;
}

int helper_start(struct progress *progress)
{
	int error = wakeup_open(progress);

	if (error)
		return error;
	progress->helper.tick_ns = PROGRESS_TICK_NS;
	error = thread_start(&progress->wakeup.thread, "uroce", helper_main, progress);
	if (error)
		wakeup_close(&progress->wakeup);
	return error;
}

void helper_stop(struct progress *progress)
{
	atomic_store(&progress->helper.stop, true);
	wakeup_helper(progress);
	pthread_join(progress->wakeup.thread, NULL);
	wakeup_close(&progress->wakeup);
}
