/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "poller.h"

#include <stdbool.h>
#include <sys/resource.h>

enum {
	/*
	 * A yield that takes no longer has found no other thread.  One that takes longer may have:
	 * where system calls are slow, each takes 1.4 us, so then the kernel is asked.
	 */
	YIELD_ALONE_NS = 1000,
	/*
	 * Where another thread is ready to run on the core, it may be the one that is waited for:
	 * then a poller yields with every second poll.  Both ends of ib_send_lat on one core take
	 * 4.7 us so, 10.6 us when they always wait for 5 us, and 140 us when they never yield
	 * (medians of five).
	 */
	SHARED_PATIENCE_NS = 0,
	/*
	 * But one that takes the core for so long is another program, that computes, and every
	 * yield to it costs a time slice.  It is one when so many yields in a row have been slow:
	 * single ones are slow as well where more pairs poll than there are processors, and one
	 * that then waits longer holds the others up.  In one scheduling group (a container), on
	 * two processors, with eight, with four, with one and without the rule: ibv_rc_pingpong
	 * beside three threads that compute takes 1.3, 1.5, 0.09 and 2.9 ms, four pairs of
	 * ib_send_lat make 102, 95, 38 and 104 thousand round trips a second, and four of
	 * ib_send_bw with 64 KiB 3.7, 3.5, 3.4 and 4.1 GB/s (medians, of the streams the best, of
	 * two to nine rounds).
	 */
	YIELD_SLOW_NS = 500000,
	YIELD_SLOW_ROW = 8,
	SLOW_PATIENCE_NS = 100000,
};

/* Zeros where the kernel does not tell. */
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

static bool is_shared(struct poller_patience *patience, uint64_t took,
		      uint64_t (*preemptions)(void))
{
	uint64_t before = patience->preemptions;

	if (took <= YIELD_ALONE_NS)
		return false;
	patience->preemptions = preemptions();
	return patience->preemptions != before;
}

void poller_yielded(struct poller_patience *patience, uint64_t took, uint64_t (*preemptions)(void))
{
	patience->slow_yields = took > YIELD_SLOW_NS ? patience->slow_yields + 1 : 0;
	if (patience->slow_yields >= YIELD_SLOW_ROW)
		patience->ns = SLOW_PATIENCE_NS;
	else if (is_shared(patience, took, preemptions))
		patience->ns = SHARED_PATIENCE_NS;
	else
		patience->ns = POLLER_PATIENCE_NS;
}
