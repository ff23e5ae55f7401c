/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A peer's request accesses registered memory that is no longer mapped.  The kernel sends SIGSEGV
 * or SIGBUS to the thread that copies; a handler of the program, or of a sanitizer, must run in
 * this thread, whichever it is.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs_memory.h"

enum {
	HANDLED = 42, /* exit code */
	BYTES = 16 * PAGE,
};

/* Signals that an instruction raises in the thread that executes it. */
static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };

/* The leak checker takes the allocator's locks at exit(), and the thread may hold them. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);

int __lsan_is_turned_off(void)
{
	return 1;
}

/* Not _exit(): programs run their exit handlers here, although the thread may hold any lock. */
static void handle(int number)
{
	(void)number;
	exit(HANDLED);
}

static uint8_t *map_file(int *fd)
{
	char name[] = "/tmp/uroce-handler-XXXXXX";
	uint8_t *memory;

	*fd = mkstemp(name);
	assert_true(*fd >= 0);
	unlink(name);
	assert_int_equal(ftruncate(*fd, BYTES), 0);
	memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	return memory;
}

struct loss {
	bool truncate; /* a mapped file loses its pages: SIGBUS; else they are unmapped: SIGSEGV */
	bool poll;     /* this thread copies; else the helper thread */
};

static _Noreturn void write_to_lost_memory(const struct loss *loss)
{
	struct ibv_mr *mr;
	struct pair pair;
	uint8_t *memory;
	struct ibv_wc wc;
	int fd = -1;

	signal(loss->truncate ? SIGBUS : SIGSEGV, handle);
	pair_open(&pair, NULL);
	memory = loss->truncate ? map_file(&fd) : map_pages(BYTES / PAGE);
	mr = reg(pair.b.pd, memory, BYTES, ALL_ACCESS);
	if (loss->truncate)
		assert_int_equal(ftruncate(fd, 0), 0);
	else
		munmap(memory, BYTES);
	post_sge(&pair.a, IBV_WR_RDMA_WRITE, 1, sge_of(&pair.a, 0, BYTES), mr->rkey,
		 (uintptr_t)memory);
	for (int i = 0; i < PATIENCE_MS; i++) {
		if (loss->poll)
			ibv_poll_cq(pair.a.cq, 1, &wc);
		usleep(1000);
	}
	_exit(0);
}

static void expect_handler(struct loss loss)
{
	pid_t child = fork();
	int status;

	if (!child)
		write_to_lost_memory(&loss);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFSIGNALED(status))
		print_error("ended by signal %d\n", WTERMSIG(status));
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), HANDLED);
}

static void unmapped_memory(void **state)
{
	(void)state;
	expect_handler((struct loss){ .poll = false });
	expect_handler((struct loss){ .poll = true });
}

static void a_truncated_file(void **state)
{
	(void)state;
	expect_handler((struct loss){ .truncate = true, .poll = false });
	expect_handler((struct loss){ .truncate = true, .poll = true });
}

/* The mask of signals that a thread of this process blocks, as /proc shows it: bit N-1 is N. */
static uint64_t blocked_by(const char *thread)
{
	unsigned long long mask = 0;
	char path[64], line[256];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%.20s/status", thread);
	file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "SigBlk: %llx", &mask) == 1)
			break;
	}
	fclose(file);
	/* Two signals that glibc keeps to itself cannot be blocked by pthread_sigmask(). */
	return mask | 3ull << 31;
}

/* glibc starts a thread with all signals blocked, and the thread then sets its own mask. */
static void await_blocked(const char *thread, uint64_t expected)
{
	for (int i = 0; i < PATIENCE_MS && blocked_by(thread) != expected; i++)
		usleep(1000);
	assert_int_equal(blocked_by(thread), expected);
}

/* The threads are the helper, the writer of the capture, and those that close descriptors. */
static void each_thread_blocks_all_else(void **state)
{
	const uint64_t unblockable = 1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1);
	uint64_t expected = ~unblockable;
	struct dirent *entry;
	struct pair pair;
	int threads = 0;
	DIR *tasks;

	(void)state;
	setenv("UROCE_CAPTURE", "/dev/null", 1);
	pair_open(&pair, NULL);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		expected &= ~(1ull << (faults[i] - 1));
	tasks = opendir("/proc/self/task");
	assert_non_null(tasks);
	while ((entry = readdir(tasks))) {
		if (entry->d_name[0] == '.' || atoi(entry->d_name) == getpid())
			continue;
		await_blocked(entry->d_name, expected | 3ull << 31);
		threads++;
	}
	closedir(tasks);
	assert_true(threads >= 2);
	pair_close(&pair);
	unsetenv("UROCE_CAPTURE");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* The tests that fork come first, so that the children start without threads. */
		cmocka_unit_test(unmapped_memory),
		cmocka_unit_test(a_truncated_file),
		cmocka_unit_test(each_thread_blocks_all_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
