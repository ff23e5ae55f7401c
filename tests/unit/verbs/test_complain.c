/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* A message of the provider does not end the program, whatever its stderr is. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include <errno.h>

#include "verbs/log.h"

static int real_stderr;

static void set_stderr(int fd)
{
	fflush(stderr);
	dup2(fd, STDERR_FILENO);
}

static bool is_pending(void)
{
	sigset_t pending;

	sigpending(&pending);
	return sigismember(&pending, SIGPIPE);
}

static int keep_stderr(void **state)
{
	(void)state;
	real_stderr = dup(STDERR_FILENO);
	return 0;
}

static int give_stderr_back(void **state)
{
	(void)state;
	set_stderr(real_stderr);
	close(real_stderr);
	return 0;
}

static void test_nobody_reads(void **state)
{
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	close(fds[0]);
	set_stderr(fds[1]);
	close(fds[1]);
	errno = ENXIO;
	uroce_err("what nobody hears");
	assert_int_equal(errno, ENXIO);
	assert_false(is_pending());
}

/* A SIGPIPE that was pending before is still pending. */
static void test_the_applications_own(void **state)
{
	sigset_t pipe_only;
	int fds[2];

	(void)state;
	sigemptyset(&pipe_only);
	sigaddset(&pipe_only, SIGPIPE);
	sigprocmask(SIG_BLOCK, &pipe_only, NULL);
	raise(SIGPIPE);
	assert_int_equal(pipe(fds), 0);
	close(fds[0]);
	set_stderr(fds[1]);
	close(fds[1]);
	uroce_err("what nobody hears");
	assert_true(is_pending());
	signal(SIGPIPE, SIG_IGN); /* discards the pending signal */
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_UNBLOCK, &pipe_only, NULL);
}

static void test_somebody_reads(void **state)
{
	char text[100] = { 0 };
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	set_stderr(fds[1]);
	uroce_err("%d words of %s", 4, "two");
	assert_true(read(fds[0], text, sizeof(text) - 1) > 0);
	assert_string_equal(text, "uroce: 4 words of two\n");
	close(fds[0]);
	close(fds[1]);
}

#define WITH_STDERR(test) cmocka_unit_test_setup_teardown(test, keep_stderr, give_stderr_back)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_STDERR(test_nobody_reads),
		WITH_STDERR(test_the_applications_own),
		WITH_STDERR(test_somebody_reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
