/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* A snapshot for uroce-stat: no text is written while the locks of the data path are held. */
#include "progress_end.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "link_child.h"
#include "verbs/qp/qp.h"
#include "verbs/stats/json_writer.h"
#include "verbs/stats/stats.h"

enum { QPS = 200, TEXT_MAX = 1 << 20 };

void __wrap_progress_for_each_qp(void (*visit)(struct progress_qp *qp, void *arg), void *arg);
void __wrap_json_write_begin(struct json_writer *json, const char *key, char bracket);
void __wrap_json_write_number(struct json_writer *json, const char *key, uint64_t number);
void __real_json_write_begin(struct json_writer *json, const char *key, char bracket);
void __real_json_write_number(struct json_writer *json, const char *key, uint64_t number);

static struct progress_end end;
static bool locked;
static unsigned int written; /* calls of the JSON writer */
static unsigned int written_locked;

/* Visits one queue pair QPS times, and destroys it afterwards. */
void __wrap_progress_for_each_qp(void (*visit)(struct progress_qp *qp, void *arg), void *arg)
{
	struct uroce_device device = { .base.device.name = "uroce_test" };
	struct uroce_context context = { .device = &device };
	struct uroce_qp qp = { .context = &context };

	qp.progress.engine = end.qp.engine;
	qp.progress.worker = end.qp.worker;
	locked = true;
	for (unsigned int i = 0; i < QPS; i++)
		visit(&qp.progress, arg);
	locked = false;
	memset(&device, 0xff, sizeof(device));
}

static void count(void)
{
	written++;
	written_locked += locked;
}

void __wrap_json_write_begin(struct json_writer *json, const char *key, char bracket)
{
	count();
	__real_json_write_begin(json, key, bracket);
}

void __wrap_json_write_number(struct json_writer *json, const char *key, uint64_t number)
{
	count();
	__real_json_write_number(json, key, number);
}

static unsigned int occurrences(const char *text, const char *word)
{
	unsigned int found = 0;

	for (; (text = strstr(text, word)); text++)
		found++;
	return found;
}

/* The workers are locked while the queue pairs are copied, and not while text is written. */
static void test_written_without_locks(void **state)
{
	static char text[TEXT_MAX];
	struct progress *progress = get_progress();
	char number[32];
	int file;

	(void)state;
	end_open(&end, progress);
	file = uroce_stats_snapshot(progress);
	assert_true(file >= 0);
	assert_true(read(file, text, sizeof(text) - 1) > 0);
	close(file);
	assert_int_equal(occurrences(text, "\"device\":\"uroce_test\""), QPS);
	snprintf(number, sizeof(number), "\"qpn\":%u", end.qp.qpn);
	assert_int_equal(occurrences(text, number), QPS);
	assert_true(written > QPS);
	assert_int_equal(written_locked, 0);
	end_close(&end);
	progress_put(progress);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_written_without_locks, enter_new_netns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
