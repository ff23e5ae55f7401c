/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "poll_yield.h"

#include <stdbool.h>
#include <sys/resource.h>

enum {
	/*
	 * A yield this short has not run another thread.  After a longer one the kernel is asked,
	 * because where system calls are slow a yield without a switch takes 1.4 us as well.
	 */
	YIELD_NO_SWITCH_NS = 1000,
	/*
	 * Time between yields if another thread, perhaps the peer, is ready on this CPU.  With 0,
	 * a poll that reads the clock yields (CLOCK_READ_POLLS in loop.c: every second one).
	 */
	SHARED_CPU_WAIT_NS = 0,
	/*
	 * A yield longer than this has run another program that computes, and every yield to it
	 * costs a time slice: it lengthens the wait, or halves one of WAIT_UNREWARDED_MAX_NS that
	 * has found nothing.  A shorter yield that has run a thread halves the wait, or ends it at
	 * POLL_YIELD_NS: with more polling pairs than CPUs, single yields are slow as well.
	 */
	YIELD_SLOW_NS = 500000,
	WAIT_MAX_NS = 10000000,
	/*
	 * From this value on, the wait grows only if it has found work, as is the case while the
	 * peer runs on another CPU.  With more polling threads than CPUs, threads that wait long
	 * make each other's yields slow and find nothing.
	 */
	WAIT_UNREWARDED_MAX_NS = 20000,
	REWARDED_FACTOR = 8,
};

/* Returns the resource usage of the calling thread, or zeros if the kernel does not report it. */
static struct rusage thread_usage(void)
{
	struct rusage usage = { 0 };

	getrusage(RUSAGE_THREAD, &usage);
	return usage;
}

uint64_t thread_voluntary_switches(void)
{
	return (uint64_t)thread_usage().ru_nvcsw;
}

uint64_t thread_involuntary_switches(void)
{
	return (uint64_t)thread_usage().ru_nivcsw;
}

static bool cpu_is_shared(struct poll_backoff *backoff, uint64_t took,
			  uint64_t (*preemptions)(void))
{
	uint64_t before = backoff->preemptions;

	if (took <= YIELD_NO_SWITCH_NS)
		return false;
	backoff->preemptions = preemptions();
	return backoff->preemptions != before;
}

static void lengthen_wait(struct poll_backoff *backoff)
{
	if (backoff->ns < POLL_YIELD_NS)
		backoff->ns = POLL_YIELD_NS;
	backoff->ns *= backoff->wait_found_work ? REWARDED_FACTOR : 2;
	if (backoff->ns > WAIT_MAX_NS)
		backoff->ns = WAIT_MAX_NS;
}

void poll_backoff_yielded(struct poll_backoff *backoff, uint64_t took,
			  uint64_t (*preemptions)(void))
{
	if (took > YIELD_SLOW_NS &&
	    (backoff->wait_found_work || backoff->ns < WAIT_UNREWARDED_MAX_NS))
		lengthen_wait(backoff);
	else if (took > YIELD_SLOW_NS)
		backoff->ns /= 2;
	else if (cpu_is_shared(backoff, took, preemptions))
		backoff->ns = backoff->ns > POLL_YIELD_NS ? backoff->ns / 2 : SHARED_CPU_WAIT_NS;
	else if (backoff->ns < POLL_YIELD_NS)
		backoff->ns = POLL_YIELD_NS;
	backoff->wait_found_work = false;
}
