/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Shared memory that one thread sends through while another replaces it. */
#include "link_fixture.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { ROUNDS = 20, BYTES = 100 };

struct sender {
	struct link_fixture *fixture;
	struct link_peer *peer;
	struct link_channel *channel;
	atomic_bool stop;
	atomic_uint sent;
};

/*
 * Each frame rings the doorbell, as if its reader had just fallen asleep.  The pauses leave time
 * for the child, which must reply within 100 ms when the ring is replaced.
 */
static void *send_always(void *arg)
{
	struct sender *sender = arg;

	while (!atomic_load(&sender->stop)) {
		int result;

		__atomic_store_n(&sender->channel->region->waiting, 1, __ATOMIC_SEQ_CST);
		result = shm_send(sender->fixture, sender->peer, 1, BYTES);
		if (result && result != -EAGAIN)
			return (void *)"shm_send() failed";
		atomic_fetch_add(&sender->sent, 1);
		usleep(200);
	}
	return NULL;
}

static void await_sends(struct sender *sender)
{
	unsigned int until = atomic_load(&sender->sent) + 10;
	int64_t end = now_ms() + CHILD_TIMEOUT_MS;

	while (atomic_load(&sender->sent) < until && now_ms() < end)
		serve(sender->fixture->link);
	assert_true(atomic_load(&sender->sent) >= until);
}

/* Breaks the ring, as a violation of its format does.  Nothing is written to it any more. */
static void break_ring(struct link_channel *channel)
{
	pthread_mutex_lock(&channel->lock);
	channel->broken = true;
	pthread_mutex_unlock(&channel->lock);
}

/*
 * Receives the child's reports until it has read all of the broken ring, since it blocks if nobody
 * does.
 */
static void drain_ring(struct link_fixture *fixture, const struct link_channel *channel)
{
	int64_t end = now_ms() + CHILD_TIMEOUT_MS;
	struct child_report report;
	bool reported;

	do {
		reported = child_report(&fixture->child, fixture->link, 20, &report);
		assert_true(now_ms() < end);
	} while (reported || __atomic_load_n(&channel->ring.shared->read, __ATOMIC_ACQUIRE) !=
				     channel->ring.written);
}

/*
 * A queue pair may still send through a ring that is broken when another queue pair connects and
 * gets a new channel.  ThreadSanitizer checks that it does not use a closed descriptor, whose
 * number the application may have by then.
 */
static void test_broken_ring_is_replaced(void **state)
{
	struct link_fixture *fixture = *state;

	for (unsigned int round = 0; round < ROUNDS; round++) {
		struct sender sender = { .fixture = fixture, .peer = shm_open_memory(fixture) };
		struct link_peer *next;
		pthread_t thread;
		void *complaint;

		sender.channel = fixture->addr->channel[fixture->child.slot];
		assert_int_equal(pthread_create(&thread, NULL, send_always, &sender), 0);
		await_sends(&sender);
		break_ring(sender.channel);
		drain_ring(fixture, sender.channel);
		next = shm_open_memory(fixture);
		assert_ptr_not_equal(fixture->addr->channel[fixture->child.slot], sender.channel);
		await_sends(&sender);
		atomic_store(&sender.stop, true);
		pthread_join(thread, &complaint);
		assert_null(complaint);
		link_peer_close(sender.peer);
		link_peer_close(next);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_TWO(test_broken_ring_is_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
