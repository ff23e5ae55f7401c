/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * An RDMA WRITE as seen by an application that polls its memory: when the last byte is there all of
 * it is, and bytes that the application then writes are not overwritten.  A child process executes
 * the copy in single steps, and this process reads and writes the memory in between.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/ordered_copy.h"

enum {
	BYTES_MAX = 4096,
	STEPS_MAX = 1000000,
	OLD = 0x00,
	NEW = 0x55,
	NEXT = 0xaa,
};

static uint8_t *memory; /* shared by both processes */
static uint8_t bytes[BYTES_MAX];

static pid_t start(uint32_t length)
{
	pid_t child = fork();

	assert_return_code(child, errno);
	if (child)
		return child;
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(1);
	raise(SIGSTOP);
	copy_last_word_last(memory, bytes, length);
	_exit(0);
}

static bool all_are(uint32_t length, uint8_t value)
{
	for (uint32_t i = 0; i < length; i++)
		if (memory[i] != value)
			return false;
	return true;
}

static void step_through(uint32_t length)
{
	pid_t child = start(length);
	bool seen = false;
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	/* Tracing is not permitted here. */
	if (WIFEXITED(status))
		skip();
	for (unsigned int steps = 0; !WIFEXITED(status) && steps < STEPS_MAX; steps++) {
		if (!seen && memory[length - 1] != OLD) {
			seen = true;
			assert_true(all_are(length, NEW));
			memset(memory, NEXT, length);
		}
		if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL))
			skip();
		assert_int_equal(waitpid(child, &status, 0), child);
	}
	assert_true(WIFEXITED(status));
	assert_true(seen);
	assert_true(all_are(length, NEXT));
}

/* Lengths at which two stores of memcpy() meet, and lengths around them. */
static void test_last_bytes_come_last_and_once(void **state)
{
	static const uint32_t lengths[] = { 1,	2,  3,	4,  5,	7,  8,	 9,   15,  16,	17,
					    31, 32, 33, 63, 64, 65, 127, 128, 129, 256, 4096 };

	(void)state;
	memory = mmap(NULL, BYTES_MAX, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	memset(bytes, NEW, sizeof(bytes));
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		memset(memory, OLD, BYTES_MAX);
		step_through(lengths[i]);
	}
	munmap(memory, BYTES_MAX);
}

/* Only the given bytes are written, at any alignment. */
static void test_bytes(void **state)
{
	uint8_t from[80], to[96];

	(void)state;
	for (uint8_t i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i + 1);
	for (uint32_t length = 1; length <= 70; length++)
		for (uint32_t at = 0; at < 9; at++) {
			memset(to, 0xee, sizeof(to));
			copy_last_word_last(to + 8 + at, from + at, length);
			assert_memory_equal(to + 8 + at, from + at, length);
			assert_int_equal(to[7 + at], 0xee);
			assert_int_equal(to[8 + at + length], 0xee);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_last_bytes_come_last_and_once),
		cmocka_unit_test(test_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
