/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * fork(): calls on the child's copy of the instance fail or have no effect, a new instance works in
 * the child, and two processes exchange messages.
 */
#include "progress_end.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "link_child.h"

enum {
	MESSAGES = 500,
	MESSAGE_BYTES = 9000,
};

#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#define THREAD_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(THREAD_SANITIZER)
/* ThreadSanitizer ends the child of a multithreaded process when the child starts a thread. */
#define SKIPPED 77
#else
#define SKIPPED 0
#endif

static uint8_t from[MESSAGE_BYTES], to[MESSAGE_BYTES];

static void no_visit(struct progress_qp *qp, void *arg)
{
	(void)qp;
	(void)arg;
	_exit(10);
}

/*
 * Runs in the child.  Exits with 0 if every call on the parent's instance fails with the right
 * error or has no effect.
 */
static void use_dead(struct progress *progress, struct progress_end *a)
{
	struct progress_route route = { .dest_qpn = 1 };
	char error[PROGRESS_ERROR_TEXT] = "";
	struct progress_qp qp = { .qpn = 0 };
	struct eng_path path;

	if (progress_worker(0))
		_exit(1);
	progress_poll(progress);
	progress_notify_armed(progress);
	if (!end_send(a, from, 10) || !end_receive(a, to, 10))
		_exit(2);
	if (progress_qp_add(progress, &qp) != -EOWNERDEAD)
		_exit(3);
	if (progress_qp_connect(progress, &qp, &route, &path, error) != -EOWNERDEAD || !error[0])
		_exit(4);
	if (progress_watch(progress, 0, NULL, NULL) != -EOWNERDEAD)
		_exit(5);
	progress_unwatch(progress, 0);
	progress_for_each_qp(no_visit, NULL);
	progress_count(progress, PROGRESS_COUNT_SEND_CALLS);
	progress_qp_remove(progress, &a->qp);
	progress_put(progress);
	/* A new instance works, in a slot of its own. */
	struct progress *fresh = get_progress();
	struct progress_end b, c;

	if (fresh == progress || link_slot(progress_link(fresh)) == a->qp.qpn >> LINK_SLOT_SHIFT)
		_exit(6);
	end_pair(&b, &c, fresh);
	if (!end_receive(&c, to, sizeof(to)) || !end_send(&b, from, sizeof(from)) ||
	    !end_poll_for(fresh, &b.sent, 1) || c.received != 1)
		_exit(7);
	end_close(&b);
	end_close(&c);
	progress_put(fresh);
	_exit(progress_worker(0) ? 8 : 0);
}

static void wait_for_child(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/*
 * The allocator of AddressSanitizer does not handle fork(): if a thread of the parent is in the
 * allocator at that moment, the child blocks forever when it allocates memory.  A starting thread
 * allocates; the progress thread has started when it has run a cycle.
 */
static void await_helper(struct progress *progress)
{
	while (!progress_count(progress, PROGRESS_COUNT_THREAD_CYCLES))
		usleep(1000);
}

/* Calls on the child's copy fail or have no effect, and the parent's instance continues to work. */
static void test_child_is_dead(void **state)
{
	struct progress *progress = get_progress();
	struct progress_end a, b;
	pid_t child;

	(void)state;
	end_pair(&a, &b, progress);
	await_helper(progress);
	for (unsigned int i = 1; i <= 3; i++) {
		child = fork();
		assert_true(child >= 0);
		if (!child)
			use_dead(progress, &a);
		assert_true(end_receive(&b, to, sizeof(to)));
		assert_true(end_send(&a, from, sizeof(from)));
		assert_true(i % 2 ? end_poll_for(progress, &a.sent, i) : end_wait_for(&a.sent, i));
		wait_for_child(child);
	}
	end_close(&a);
	end_close(&b);
	progress_put(progress);
}

/* One side of a connection between two processes, which exchange their QP numbers over sock. */
static bool ping_pong(int sock, bool first, bool poll)
{
	struct progress *progress = get_progress();
	uint32_t qpn;
	struct progress_end end;
	bool good = true;

	end_open(&end, progress);
	qpn = end.qp.qpn;
	if (write(sock, &qpn, sizeof(qpn)) != sizeof(qpn) ||
	    read(sock, &qpn, sizeof(qpn)) != sizeof(qpn))
		return false;
	end_connect(&end, qpn);
	good = end_receive(&end, to, sizeof(to));
	/* Both are ready. */
	if (write(sock, &qpn, sizeof(qpn)) != sizeof(qpn) ||
	    read(sock, &qpn, sizeof(qpn)) != sizeof(qpn))
		return false;
	for (unsigned int i = 0; good && i < MESSAGES; i++) {
		if (i % 2 == first)
			good = poll ? end_poll_for(progress, &end.received, i / 2 + 1)
				    : end_wait_for(&end.received, i / 2 + 1);
		else
			good = end_send(&end, from, 1 + i * 17 % MESSAGE_BYTES);
		if (i % 2 == first)
			good = good && end_receive(&end, to, sizeof(to));
	}
	good = good && (poll ? end_poll_for(progress, &end.sent, MESSAGES / 2)
			     : end_wait_for(&end.sent, MESSAGES / 2));
	good = good && !end.failed;
	/* The other side may still wait for its last ACK. */
	good = good && write(sock, &qpn, sizeof(qpn)) == sizeof(qpn) &&
	       read(sock, &qpn, sizeof(qpn)) == sizeof(qpn);
	end_close(&end);
	progress_put(progress);
	return good;
}

/* Two processes: both poll, both leave the work to their progress threads, or one of each. */
static void test_two_processes(void **state)
{
	(void)state;
	for (int kinds = 0; kinds < 4; kinds++) {
		int socks[2];
		pid_t child;

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, socks), 0);
		child = fork();
		assert_true(child >= 0);
		if (!child) {
			close(socks[0]);
			_exit(ping_pong(socks[1], false, kinds & 1) ? 0 : 1);
		}
		close(socks[1]);
		assert_true(ping_pong(socks[0], true, kinds & 2));
		wait_for_child(child);
		close(socks[0]);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_child_is_dead),
		cmocka_unit_test(test_two_processes),
	};

	if (SKIPPED)
		return SKIPPED;
	return cmocka_run_group_tests(tests, enter_new_netns, NULL);
}
