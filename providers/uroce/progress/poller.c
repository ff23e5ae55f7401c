/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "poller.h"

#include <stdbool.h>
#include <sys/resource.h>

enum {
	/*
	 * A yield this short has not run another thread.  A longer one may have: where system calls
	 * are slow a yield takes 1.4 us, so then the kernel is asked.
	 */
	YIELD_NO_SWITCH_NS = 1000,
	/*
	 * If another thread is ready to run on this CPU it may be the peer, so the poller then
	 * yields with every second poll.
	 */
	SHARED_CPU_WAIT_NS = 0,
	/*
	 * A yield longer than this has run another program that computes, and every yield to it
	 * costs a time slice.  Each such yield raises the time between yields, and each short one
	 * that has run a thread halves it, since single yields are also slow when there are more
	 * polling pairs than CPUs.  A yield that runs no thread does not count: the other program
	 * has only used up its time slice.
	 */
	YIELD_SLOW_NS = 500000,
	WAIT_MAX_NS = 10000000,
	/*
	 * The time between yields may exceed this only if a wait has found work, as is the case
	 * while the peer runs on another CPU.  With more polling threads than CPUs, threads that
	 * wait long make each other's yields slow and find nothing.
	 */
	WAIT_UNREWARDED_MAX_NS = 20000,
	REWARDED_FACTOR = 8,
};

/* Returns zeros if the kernel does not report it. */
static struct rusage thread_usage(void)
{
	struct rusage usage = { 0 };

	getrusage(RUSAGE_THREAD, &usage);
	return usage;
}

uint64_t poller_sleeps(void)
{
	return (uint64_t)thread_usage().ru_nvcsw;
}

uint64_t poller_preemptions(void)
{
	return (uint64_t)thread_usage().ru_nivcsw;
}

static bool cpu_is_shared(struct poller_patience *patience, uint64_t took,
			  uint64_t (*preemptions)(void))
{
	uint64_t before = patience->preemptions;

	if (took <= YIELD_NO_SWITCH_NS)
		return false;
	patience->preemptions = preemptions();
	return patience->preemptions != before;
}

static void lengthen_wait(struct poller_patience *patience)
{
	if (patience->ns < POLLER_PATIENCE_NS)
		patience->ns = POLLER_PATIENCE_NS;
	patience->ns *= patience->paid ? REWARDED_FACTOR : 2;
	if (patience->ns > WAIT_MAX_NS)
		patience->ns = WAIT_MAX_NS;
}

void poller_yielded(struct poller_patience *patience, uint64_t took, uint64_t (*preemptions)(void))
{
	if (took > YIELD_SLOW_NS && (patience->paid || patience->ns < WAIT_UNREWARDED_MAX_NS))
		lengthen_wait(patience);
	else if (took > YIELD_SLOW_NS)
		patience->ns /= 2;
	else if (cpu_is_shared(patience, took, preemptions))
		patience->ns =
			patience->ns > POLLER_PATIENCE_NS ? patience->ns / 2 : SHARED_CPU_WAIT_NS;
	else if (patience->ns < POLLER_PATIENCE_NS)
		patience->ns = POLLER_PATIENCE_NS;
	patience->paid = false;
}
