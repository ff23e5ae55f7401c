/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Progress with the engine and the link, within one process: which thread runs the cycles, when the
 * progress thread sleeps, and that nothing is left after closing.
 */
#include "progress_end.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "link_child.h"
#include "progress/progress_priv.h"
#include "progress/loop.h"

enum {
	BUFFER_BYTES = 256 * 1024,
};
/* Time limit within which a busy host lets the progress thread run. */
#define PATIENCE_NS UINT64_C(10000000000)

static uint8_t from_memory[BUFFER_BYTES], to_memory[BUFFER_BYTES];

static void fill(uint8_t *bytes, size_t length, unsigned int seed)
{
	for (size_t i = 0; i < length; i++)
		bytes[i] = (uint8_t)(seed = seed * 1103515245 + 12345, seed >> 16);
}

static bool becomes(bool (*what)(struct progress *), struct progress *progress, bool value)
{
	uint64_t until = progress_now() + PATIENCE_NS;

	while (what(progress) != value && progress_now() < until)
		usleep(200);
	return what(progress) == value;
}

static bool is_armed(struct progress *progress)
{
	return wakeup_is_armed(progress);
}

/* Messages of all sizes arrive intact, in both directions, by polling alone. */
static void test_messages(void **state)
{
	static const uint32_t sizes[] = { 0,	1,    2,    3,	   4,	  64,	       1000,
					  4095, 4096, 4097, 20000, 65536, BUFFER_BYTES };
	struct progress *progress = get_progress();
	struct progress_end a, b;
	unsigned int n = 0;

	(void)state;
	end_pair(&a, &b, progress);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (int way = 0; way < 2; way++) {
			struct progress_end *from = way ? &b : &a, *to = way ? &a : &b;

			fill(from_memory, sizes[i], sizes[i] + (unsigned int)way);
			memset(to_memory, 0, sizeof(to_memory));
			assert_true(end_receive(to, to_memory, BUFFER_BYTES));
			assert_true(end_send(from, from_memory, sizes[i]));
			assert_true(end_poll_for(progress, &to->received, n + 1));
			assert_true(end_poll_for(progress, &from->sent, n + 1));
			assert_int_equal(to->lengths[n % END_SLOTS], sizes[i]);
			assert_memory_equal(to_memory, from_memory, sizes[i]);
		}
		n++;
	}
	assert_int_equal(a.failed + b.failed, 0);
	end_close(&a);
	end_close(&b);
	progress_put(progress);
}

/* Without polls the progress thread receives, acknowledges and completes. */
static void test_helper_alone(void **state)
{
	struct progress *progress = get_progress();
	struct progress_end a, b;

	(void)state;
	end_pair(&a, &b, progress);
	for (unsigned int i = 1; i <= 50; i++) {
		fill(from_memory, 9000, i);
		assert_true(end_receive(&b, to_memory, BUFFER_BYTES));
		assert_true(end_send(&a, from_memory, 9000));
		assert_true(end_wait_for(&b.received, i));
		assert_true(end_wait_for(&a.sent, i));
		assert_memory_equal(to_memory, from_memory, 9000);
	}
	assert_int_equal(progress_count(progress, PROGRESS_COUNT_POLL_CYCLES), 0);
	end_close(&a);
	end_close(&b);
	progress_put(progress);
}

/*
 * Posts that are batched because packets are in flight are sent even if the application does not
 * poll any more: the progress thread is disarmed when they are posted.
 */
static void test_gathered_posts_leave(void **state)
{
	struct progress *progress = get_progress();
	struct progress_end a, b;
	uint64_t until = progress_now() + PATIENCE_NS;

	(void)state;
	end_pair(&a, &b, progress);
	/* Polls yield, so a round may take seconds on a busy host. */
	for (unsigned int round = 0; round < 20 && (!round || progress_now() < until); round++) {
		unsigned int before = a.sent;

		while (wakeup_is_armed(progress))
			progress_poll(progress);
		for (int i = 0; i < 20; i++)
			assert_true(end_write(&a, from_memory, 100, to_memory));
		assert_true(end_wait_for(&a.sent, before + 20));
	}
	assert_int_equal(a.failed, 0);
	end_close(&a);
	end_close(&b);
	progress_put(progress);
}

/*
 * Polls until the progress thread is disarmed.  Returns true if it was; it may be armed again, as
 * polls stop if the caller loses its processor.
 */
static bool polls_disarm(struct progress *progress)
{
	uint64_t until = progress_now() + PATIENCE_NS;

	while (wakeup_is_armed(progress)) {
		if (progress_now() > until)
			return false;
		progress_poll(progress);
	}
	return true;
}

/*
 * Polls disarm the progress thread; it is armed again when they stop, and at once when a CQ is
 * armed.
 */
static void test_modes(void **state)
{
	struct progress *progress = get_progress();

	(void)state;
	assert_true(wakeup_is_armed(progress));
	for (int i = 0; i < 10; i++)
		progress_poll(progress);
	assert_true(wakeup_is_armed(progress));
	assert_true(polls_disarm(progress));
	assert_true(becomes(is_armed, progress, true));
	assert_true(polls_disarm(progress));
	progress_notify_armed(progress);
	assert_true(wakeup_is_armed(progress));
	progress_put(progress);
}

/* Returns the ID of the thread with this name in this process, or 0. */
static int find_thread(const char *name)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;
	int found = 0;

	while ((entry = readdir(tasks))) {
		char path[300], text[64] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		if (fgets(text, sizeof(text), file) && !strncmp(text, name, strlen(name)))
			found = atoi(entry->d_name);
		fclose(file);
	}
	closedir(tasks);
	return found;
}

/* Returns the number of context switches of the thread. */
static unsigned long switches_of(int thread)
{
	char path[64], line[128];
	unsigned long switches = 0, value;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", thread);
	file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "voluntary_ctxt_switches: %lu", &value) == 1 ||
		    sscanf(line, "nonvoluntary_ctxt_switches: %lu", &value) == 1)
			switches += value;
	fclose(file);
	return switches;
}

/* In an idle process the progress thread does not run at all, even with connected queue pairs. */
static void test_idle_sleeps(void **state)
{
	struct progress *progress = get_progress();
	struct progress_end a, b;
	unsigned long before, tries = 0;
	int thread;

	(void)state;
	end_pair(&a, &b, progress);
	assert_true(end_receive(&b, to_memory, BUFFER_BYTES));
	assert_true(end_send(&a, from_memory, 100));
	assert_true(end_poll_for(progress, &a.sent, 1));
	thread = find_thread("uroce");
	assert_int_not_equal(thread, 0);
	/* Once the timeout of the request has passed, the thread has nothing left to do. */
	do {
		usleep(200000);
		before = switches_of(thread);
		usleep(300000);
	} while (switches_of(thread) != before && ++tries < 5);
	assert_true(tries < 5);
	assert_true(wakeup_is_armed(progress));
	end_close(&a);
	end_close(&b);
	progress_put(progress);
}

/* rule S10 test: a request without a response fails in time, also without polls. */
static void test_deadline_wakes_helper(void **state)
{
	struct progress *progress = get_progress();
	struct progress_end a;
	uint64_t begin, took;

	(void)state;
	end_open(&a, progress);
	a.timeout_code = 12; /* 16.8 ms */
	a.retry_count = 1;
	end_connect(&a, a.qp.qpn + 1);
	/* Let the progress thread fall asleep first, without a timeout. */
	usleep(20000);
	begin = progress_now();
	assert_true(end_send(&a, from_memory, 100));
	assert_true(end_wait_for(&a.failed, 1));
	took = progress_now() - begin;
	assert_int_equal(a.last_status, ENG_RETRY_EXC_ERR);
	assert_true(took >= 2 * UINT64_C(16777216));
	assert_true(took < PATIENCE_NS);
	end_close(&a);
	progress_put(progress);
}

/*
 * Pollers give way to a thread that waits for cycle_lock, but a waiting thread that has no
 * processor does not stop them.
 */
static void test_giving_way_ends(void **state)
{
	struct progress *progress = get_progress();
	uint64_t before = progress_count(progress, PROGRESS_COUNT_POLL_CYCLES), turns;

	(void)state;
	atomic_fetch_add(&progress->cycle_lock_waiters, 1);
	for (int i = 0; i < 100000; i++)
		progress_poll(progress);
	atomic_fetch_sub(&progress->cycle_lock_waiters, 1);
	turns = progress_count(progress, PROGRESS_COUNT_POLL_CYCLES) - before;
	assert_uint_in_range(turns, 10, 1000);
	progress_put(progress);
}

/*
 * The progress thread does not count as waiting for cycle_lock, so a poller that runs the cycles
 * does not give way to it.
 */
static void test_helper_asks_for_no_turn(void **state)
{
	struct progress *progress = get_progress();
	uint64_t before, after, until;
	unsigned int asked = 0;

	(void)state;
	wakeup_arm(progress);
	pthread_mutex_lock(&progress->cycle_lock);
	before = progress_count(progress, PROGRESS_COUNT_THREAD_CYCLES);
	wakeup_thread(progress);
	for (until = progress_now() + 100000000; progress_now() < until; usleep(1000))
		asked |= atomic_load(&progress->cycle_lock_waiters);
	after = progress_count(progress, PROGRESS_COUNT_THREAD_CYCLES);
	pthread_mutex_unlock(&progress->cycle_lock);
	assert_int_equal(asked, 0);
	assert_true(after == before);
	until = progress_now() + PATIENCE_NS;
	while (progress_count(progress, PROGRESS_COUNT_THREAD_CYCLES) == before &&
	       progress_now() < until)
		usleep(200);
	assert_true(progress_count(progress, PROGRESS_COUNT_THREAD_CYCLES) > before);
	progress_put(progress);
}

/* Repeated opening and closing leaves no descriptor and no thread. */
static void test_nothing_left(void **state)
{
	unsigned int before = count_descriptors();

	(void)state;
	for (int i = 0; i < 30; i++) {
		struct progress *progress = get_progress(), *same = get_progress();
		struct progress_end a, b;

		assert_ptr_equal(progress, same);
		assert_ptr_equal(progress_worker(0), progress);
		end_pair(&a, &b, progress);
		assert_true(end_receive(&b, to_memory, BUFFER_BYTES));
		assert_true(end_send(&a, from_memory, 100));
		assert_true(end_poll_for(progress, &b.received, 1));
		end_close(&a);
		end_close(&b);
		progress_put(same);
		progress_put(progress);
		assert_null(progress_worker(0));
		/*
		 * The kernel reports the end of a thread before it has removed the thread from
		 * /proc.
		 */
		for (int ms = 0; ms < 10000 && find_thread("uroce"); ms++)
			usleep(1000);
		assert_int_equal(find_thread("uroce"), 0);
	}
	assert_int_equal(count_descriptors(), before);
}

static int watched_fd;
static atomic_uint watch_calls;

static void watch_called(void *arg)
{
	uint64_t value;

	assert_int_equal(read(watched_fd, &value, sizeof(value)), sizeof(value));
	atomic_fetch_add((atomic_uint *)arg, (unsigned int)value);
}

/*
 * A watched descriptor's callback is called, whether the progress thread is armed or not, and never
 * after progress_unwatch().
 */
static void test_watch(void **state)
{
	struct progress *progress = get_progress();
	uint64_t one = 1;

	(void)state;
	watched_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_int_equal(progress_watch(progress, watched_fd, watch_called, &watch_calls), 0);
	for (unsigned int i = 1; i <= 10; i++) {
		while (i > 5 && wakeup_is_armed(progress))
			progress_poll(progress);
		assert_int_equal(write(watched_fd, &one, sizeof(one)), sizeof(one));
		assert_true(end_wait_for(&watch_calls, i));
	}
	progress_unwatch(progress, watched_fd);
	assert_int_equal(write(watched_fd, &one, sizeof(one)), sizeof(one));
	usleep(20000);
	assert_int_equal(watch_calls, 10);
	close(watched_fd);
	progress_put(progress);
}

/* An invalid UROCE_FAULT is refused with its error; with a valid one all messages still arrive. */
static void test_faults(void **state)
{
	char error[PROGRESS_ERROR_TEXT];
	struct progress *progress;
	struct progress_end a, b;
	unsigned int received = 0;

	(void)state;
	setenv("UROCE_FAULT", "drop=2", 1);
	assert_int_equal(progress_get(&progress, NULL, error), -EINVAL);
	assert_string_equal(error, "UROCE_FAULT: drop=2: probability must be 0..1");
	assert_null(progress_worker(0));
	setenv("UROCE_FAULT", "drop=0.02,dup=0.02,reorder=0.02,corrupt=0.02,delay=50us,seed=3", 1);
	progress = get_progress();
	unsetenv("UROCE_FAULT");
	end_open(&a, progress);
	end_open(&b, progress);
	a.timeout_code = b.timeout_code = 9; /* 2 ms */
	end_connect(&a, b.qp.qpn);
	end_connect(&b, a.qp.qpn);
	for (; received < 200; received++) {
		uint32_t length = 1 + received * 97 % 20000;

		fill(from_memory, length, received);
		assert_true(end_receive(&b, to_memory, BUFFER_BYTES));
		assert_true(end_send(&a, from_memory, length));
		assert_true(end_poll_for(progress, &b.received, received + 1));
		/*
		 * A received message may still be retransmitted: the buffer must not be reused
		 * before its ACK.
		 */
		assert_true(end_poll_for(progress, &a.sent, received + 1));
		assert_int_equal(b.lengths[received % END_SLOTS], length);
		assert_memory_equal(to_memory, from_memory, length);
	}
	assert_int_equal(a.failed + b.failed, 0);
	assert_int_equal(b.received, received);
	assert_true(progress_count(progress, PROGRESS_COUNT_FAULT_DROPPED) > 0);
	assert_true(progress_count(progress, PROGRESS_COUNT_FAULT_DUPLICATED) > 0);
	assert_true(progress_count(progress, PROGRESS_COUNT_FAULT_REORDERED) > 0);
	assert_true(progress_count(progress, PROGRESS_COUNT_FAULT_CORRUPTED) > 0);
	assert_true(progress_count(progress, PROGRESS_COUNT_FAULT_DELAYED) > 0);
	assert_true(progress_count(progress, PROGRESS_COUNT_ICRC_ERRORS) > 0);
	end_close(&a);
	end_close(&b);
	progress_put(progress);
}

/* Sends datagrams that no queue pair takes to the address of the ends. */
static void send_strays(unsigned int count)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(4791),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	for (unsigned int i = 0; i < count; i++)
		assert_int_equal(sendto(fd, "x", 1, 0, (struct sockaddr *)&to, sizeof(to)), 1);
	close(fd);
}

/*
 * A process that had no processor for longer than the Local ACK Timeout finds the ACK queued after
 * more packets than a cycle receives: this must not count as a timeout.
 */
static void test_unread_ack_is_no_timeout(void **state)
{
	struct progress *progress = get_progress();
	struct progress_end a, b;

	(void)state;
	end_open(&a, progress);
	end_open(&b, progress);
	a.timeout_code = 18; /* 1,074 ms */
	end_connect(&a, b.qp.qpn);
	end_connect(&b, a.qp.qpn);
	progress_lock(progress);
	assert_true(end_receive(&b, to_memory, BUFFER_BYTES));
	assert_true(end_send(&a, from_memory, 100));
	send_strays(200);
	/* Each cycle receives one packet, and b may delay the ACK for some cycles. */
	while (b.received == 0 || eng_resp_pending(b.qp.engine) != ENG_RESP_NONE)
		progress_run_once(progress, PROGRESS_CALLER_POLLER);
	assert_int_equal(eng_timeouts(a.qp.engine), 0);
	assert_int_equal(a.sent, 0);
	usleep(1100000);
	progress_run_once(progress, PROGRESS_CALLER_POLLER);
	assert_int_equal(a.sent, 1);
	assert_int_equal(eng_timeouts(a.qp.engine), 0);
	progress_unlock(progress);
	end_close(&a);
	end_close(&b);
	progress_put(progress);
}

/*
 * A congestion window that has been full does not stay closed when packets are lost: they are
 * retransmitted.
 */
static void test_loss_in_a_full_window(void **state)
{
	struct progress *progress;
	struct progress_end a, b;
	unsigned int posted = 0;

	(void)state;
	setenv("UROCE_FAULT", "drop=0.005,seed=11", 1);
	progress = get_progress();
	unsetenv("UROCE_FAULT");
	end_open(&a, progress);
	end_open(&b, progress);
	a.timeout_code = b.timeout_code = 10; /* 4 ms */
	end_connect(&a, b.qp.qpn);
	end_connect(&b, a.qp.qpn);
	while (posted < 300) {
		if (end_write(&a, from_memory, BUFFER_BYTES, to_memory))
			posted++;
		else
			assert_true(end_poll_for(progress, &a.sent, a.sent + 1));
	}
	assert_true(end_poll_for(progress, &a.sent, posted));
	assert_int_equal(a.failed, 0);
	assert_true(progress_count(progress, PROGRESS_COUNT_FAULT_DROPPED) > 0);
	end_close(&a);
	end_close(&b);
	progress_put(progress);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_helper_alone),
		cmocka_unit_test(test_gathered_posts_leave),
		cmocka_unit_test(test_modes),
		cmocka_unit_test(test_idle_sleeps),
		cmocka_unit_test(test_deadline_wakes_helper),
		cmocka_unit_test(test_giving_way_ends),
		cmocka_unit_test(test_helper_asks_for_no_turn),
		cmocka_unit_test(test_nothing_left),
		cmocka_unit_test(test_watch),
		cmocka_unit_test(test_unread_ack_is_no_timeout),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_loss_in_a_full_window),
	};

	return cmocka_run_group_tests(tests, enter_new_netns, NULL);
}
