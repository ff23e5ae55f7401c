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
	 * yield to it costs a time slice.  Each such yield doubles the patience, and each quick one
	 * that has found a thread halves it, since single ones are slow as well where more pairs
	 * poll than there are processors.  One that finds no thread does not count: the program has
	 * only used up its share.  MPI_Fetch_and_op over UCX on two processors, each with a program
	 * that computes, takes 0.9 ms so, and 12 to 14 ms when patience ends with the first quick
	 * yield (medians of three, means of 1000 each, by turns); with a scheduling group for each
	 * program 0.09 ms.
	 */
	YIELD_SLOW_NS = 500000,
	PATIENCE_MAX_NS = 10000000,
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

static void be_patient(struct poller_patience *patience)
{
	if (patience->ns < POLLER_PATIENCE_NS)
		patience->ns = POLLER_PATIENCE_NS;
	patience->ns *= 2;
	if (patience->ns > PATIENCE_MAX_NS)
		patience->ns = PATIENCE_MAX_NS;
}

void poller_yielded(struct poller_patience *patience, uint64_t took, uint64_t (*preemptions)(void))
{
	if (took > YIELD_SLOW_NS)
		be_patient(patience);
	else if (is_shared(patience, took, preemptions))
		patience->ns =
			patience->ns > POLLER_PATIENCE_NS ? patience->ns / 2 : SHARED_PATIENCE_NS;
	else if (patience->ns < POLLER_PATIENCE_NS)
		patience->ns = POLLER_PATIENCE_NS;
}
