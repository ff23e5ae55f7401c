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
	 * yield to it costs a time slice.  Each such yield raises the patience, and each quick one
	 * that has found a thread halves it, since single ones are slow as well where more pairs
	 * poll than there are processors.  One that finds no thread does not count: the program has
	 * only used up its share.  MPI_Fetch_and_op over UCX on two processors, each with a program
	 * that computes, takes 0.9 ms so, and 12 to 14 ms when patience ends with the first quick
	 * yield (medians of three, means of 1000 each, by turns); with a scheduling group for each
	 * program 0.09 ms.
	 */
	YIELD_SLOW_NS = 500000,
	PATIENCE_MAX_NS = 10000000,
	/*
	 * More patience than this has to pay: a wait has found work, as it does while the peer
	 * runs on another processor.  Where more threads poll than there are processors, patient
	 * ones make each other's yields slow and find nothing.  Eight pairs on two processors
	 * (bench_threads, threads of one process): 2.9 to 9.9 thousand round trips a second
	 * and 0.3 to 0.8 without this limit, 16 to 19 thousand SENDs of 64 KiB and 2.0.
	 */
	PATIENCE_UNPAID_NS = 20000,
	PAID_FACTOR = 8,
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
	patience->ns *= patience->paid ? PAID_FACTOR : 2;
	if (patience->ns > PATIENCE_MAX_NS)
		patience->ns = PATIENCE_MAX_NS;
}

void poller_yielded(struct poller_patience *patience, uint64_t took, uint64_t (*preemptions)(void))
{
	if (took > YIELD_SLOW_NS && (patience->paid || patience->ns < PATIENCE_UNPAID_NS))
		be_patient(patience);
	else if (took > YIELD_SLOW_NS)
		patience->ns /= 2;
	else if (is_shared(patience, took, preemptions))
		patience->ns =
			patience->ns > POLLER_PATIENCE_NS ? patience->ns / 2 : SHARED_PATIENCE_NS;
	else if (patience->ns < POLLER_PATIENCE_NS)
		patience->ns = POLLER_PATIENCE_NS;
	patience->paid = false;
}
