/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A forked child uses descriptors of its parent's channels.  A write to one of them must not reach
 * write() of the C library: the eventfd would add the command to its counter.  But a descriptor
 * number that the child has reused for another file is no channel.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "caller.h"
#include "ucm/ucm_core.h"
#include "world.h"

static int parents[5];

/* Returns true if ucm handles the write, or false if it would be passed to the C library. */
static bool takes(int fd, size_t bytes)
{
	static const struct {
		struct rdma_ucm_cmd_hdr header;
		struct rdma_ucm_get_event body;
	} command = { .header = { .cmd = RDMA_USER_CM_CMD_GET_EVENT, .in = 16, .out = 400 } };
	ssize_t result = 0;

	errno = 0;
	if (!ucm_channels.write(fd, &command, bytes, &result))
		return false;
	assert_int_equal(result, -1);
	assert_int_equal(errno, EBADF);
	return true;
}

static void use_them(void)
{
	for (int i = 0; i < 5; i++) {
		assert_true(takes(parents[i], 24));
		assert_true(takes(parents[i], 12));
		assert_false(ucm_channels.owns(parents[i]));
	}
	assert_false(takes(parents[4] + 1000, 24));
	assert_false(takes(-1, 24));
}

static void use_numbers_again(void)
{
	int ends[2], fd;
	uint32_t id;

	/* Closed by librdmacm: ucm drops the channel, and the C library closes the descriptor. */
	assert_false(ucm_channels.close(parents[0]));
	assert_false(takes(parents[0], 24));
	assert_int_equal(close(parents[0]), 0);
	fd = open_channel();
	assert_int_equal(fd, parents[0]);
	assert_int_equal(create_id(fd, RDMA_PS_TCP, 1, &id), 0);
	/* Closed without notifying ucm. */
	assert_int_equal(close(parents[1]), 0);
	assert_false(takes(parents[1], 24));
	assert_return_code(pipe(ends), errno);
	assert_int_equal(dup2(ends[1], parents[2]), parents[2]);
	assert_false(takes(parents[2], 24));
	assert_int_equal(close(parents[2]), 0);
	assert_int_equal(dup2(eventfd(0, 0), parents[2]), parents[2]);
	assert_false(takes(parents[2], 24));
	/* An eventfd of librdmacm itself resembles a channel, but its writes have 8 bytes. */
	assert_int_equal(dup2(parents[2], parents[3]), parents[3]);
	assert_false(takes(parents[3], 8));
	assert_true(takes(parents[4], 24));
	assert_true(world_close(fd));
}

static void run_in_child(void (*run)(void))
{
	pid_t child = fork();
	int status;

	assert_return_code(child, errno);
	if (child == 0) {
		run();
		/* No leak check: the memory of the parent has not been freed. */
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void run_in_grandchild(void)
{
	run_in_child(use_them);
	use_numbers_again();
}

static void child_uses_channels(void **state)
{
	uint32_t id;

	(void)state;
	for (int i = 0; i < 5; i++)
		parents[i] = open_channel();
	run_in_child(use_them);
	run_in_child(use_numbers_again);
	run_in_child(run_in_grandchild);
	for (int i = 0; i < 5; i++) {
		expect_no_event(parents[i]);
		assert_int_equal(create_id(parents[i], RDMA_PS_TCP, 1, &id), 0);
		assert_true(world_close(parents[i]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(child_uses_channels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
