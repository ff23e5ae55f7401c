/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Events of queue pairs of another worker while queue pair 1 comes into use and goes out of use. */
#include <pthread.h>

#include "link_child.h"
#include "progress_end.h"
#include "progress/gsi/gsi.h"
#include "progress/loop.h"
#include "progress/progress_priv.h"

/* Minimum number of times that queue pair 1 comes into use */
enum { ROUNDS = 100 };

static struct progress *first, *second;
static atomic_bool stop;

/* Does what a cycle of the second worker does when a queue pair gets its first packet. */
static void *report_events(void *arg)
{
	(void)arg;
	while (!atomic_load(&stop)) {
		progress_lock(second);
		gsi_report_qp_event(first, 1, ENG_EVENT_FIRST_REQUEST);
		progress_unlock(second);
	}
	return NULL;
}

static void on_mad(void *arg, const struct gsi_mad *mad)
{
	(void)arg;
	(void)mad;
}

static void on_deadline(void *arg, uint64_t now)
{
	(void)arg;
	(void)now;
}

static atomic_uint reported;

static void on_first_request(void *arg, uint32_t qpn)
{
	(void)arg;
	atomic_fetch_add(&reported, qpn);
}

/* No cycle of any worker uses the instance after gsi_put() has freed it; the sanitizers check. */
static void test_events_while_it_ends(void **state)
{
	const struct gsi_hooks hooks = {
		.receive = on_mad,
		.expire = on_deadline,
		.first_request = on_first_request,
	};
	char error[PROGRESS_ERROR_TEXT] = "";
	uint64_t end = progress_now() + END_PATIENCE_NS;
	pthread_t reporter;

	(void)state;
	first = get_progress();
	assert_int_equal(progress_worker_get(1, &second, error), 0);
	assert_int_equal(pthread_create(&reporter, NULL, report_events, NULL), 0);
	for (unsigned int i = 0; i < ROUNDS || !atomic_load(&reported); i++) {
		struct gsi *gsi;

		assert_true(progress_now() < end);
		assert_int_equal(gsi_get(first, &hooks, &gsi, error), 0);
		gsi_put(gsi);
	}
	atomic_store(&stop, true);
	pthread_join(reporter, NULL);
	progress_put(first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_events_while_it_ends, enter_new_netns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
