/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Several threads at once, each with its own pair of QPs: most poll, one leaves the work to the
 * progress thread, and one creates and destroys QPs.  Meant to be run with -fsanitize=thread as
 * well.
 */
#include "progress_end.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "link_child.h"

enum {
	THREADS = 4,
	MESSAGES = 400,
	LIVES = 40,
	MESSAGE_BYTES = 5000,
};

static struct progress *progress;
static atomic_uint mistakes;

static void check(bool good)
{
	if (!good)
		atomic_fetch_add(&mistakes, 1);
}

/* Sends messages back and forth between a pair of QPs, by polling or by the progress thread. */
static void exchange(unsigned int messages, bool poll)
{
	struct progress_end a, b;
	uint8_t *from = malloc(MESSAGE_BYTES), *to = malloc(MESSAGE_BYTES);

	end_pair(&a, &b, progress);
	for (unsigned int i = 0; i < messages; i++) {
		struct progress_end *source = i % 2 ? &b : &a, *sink = i % 2 ? &a : &b;
		unsigned int arrived = i / 2 + 1;
		uint32_t length = 1 + i * 37 % MESSAGE_BYTES;

		memset(from, (int)i, length);
		memset(to, 0, length);
		check(end_receive(sink, to, MESSAGE_BYTES));
		check(end_send(source, from, length));
		if (poll)
			check(end_poll_for(progress, &sink->received, arrived) &&
			      end_poll_for(progress, &source->sent, arrived));
		else
			check(end_wait_for(&sink->received, arrived) &&
			      end_wait_for(&source->sent, arrived));
		check(!memcmp(from, to, length));
	}
	check(!atomic_load(&a.failed) && !atomic_load(&b.failed));
	end_close(&a);
	end_close(&b);
	free(from);
	free(to);
}

static void *exchange_by_polling(void *arg)
{
	(void)arg;
	exchange(MESSAGES, true);
	return NULL;
}

static void *exchange_by_helper(void *arg)
{
	(void)arg;
	exchange(MESSAGES / 4, false);
	return NULL;
}

static void *come_and_go(void *arg)
{
	(void)arg;
	for (int i = 0; i < LIVES; i++)
		exchange(3, i % 2);
	return NULL;
}

/* Calls that tools and event handlers make at the same time. */
static atomic_bool over;

static void visit(struct progress_qp *qp, void *arg)
{
	struct eng_qp_info view;

	eng_qp_query(qp->engine, &view);
	*(unsigned int *)arg += view.qpn == qp->qpn;
}

static void *look_on(void *arg)
{
	(void)arg;
	while (!atomic_load(&over)) {
		unsigned int seen = 0;

		progress_for_each_qp(visit, &seen);
		progress_count(progress, PROGRESS_COUNT_SEND_CALLS);
		progress_notify_armed(progress);
		usleep(3000);
	}
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t threads[THREADS + 2], watcher;
	int count = 0;

	(void)state;
	progress = get_progress();
	pthread_create(&watcher, NULL, look_on, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[count++], NULL, exchange_by_polling, NULL);
	pthread_create(&threads[count++], NULL, exchange_by_helper, NULL);
	pthread_create(&threads[count++], NULL, come_and_go, NULL);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	atomic_store(&over, true);
	pthread_join(watcher, NULL);
	assert_int_equal(mistakes, 0);
	progress_put(progress);
}

/* One thread posts, another polls: all posts complete. */
static struct progress_end one, other;

static void *poll_only(void *arg)
{
	(void)arg;
	check(end_poll_for(progress, &one.sent, 10 * MESSAGES));
	return NULL;
}

static void test_poster_and_poller(void **state)
{
	static uint8_t from[64], to[64];
	pthread_t poller;

	(void)state;
	progress = get_progress();
	end_pair(&one, &other, progress);
	pthread_create(&poller, NULL, poll_only, NULL);
	for (unsigned int i = 0; i < 10 * MESSAGES;) {
		if (end_write(&one, from, sizeof(from), to))
			i++;
		else
			sched_yield();
	}
	pthread_join(poller, NULL);
	assert_int_equal(mistakes, 0);
	assert_int_equal(one.failed, 0);
	end_close(&one);
	end_close(&other);
	progress_put(progress);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_poster_and_poller),
	};

	return cmocka_run_group_tests(tests, enter_new_netns, NULL);
}
