/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "view.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "link/fd.h"
#include "link/netlink/netdev.h"

#define STACK_BYTES (256 * 1024)
/*
 * An update of the counters queries every process.  It is made in every round until
 * WATCHED_ROUNDS after the last read of a counter file, and otherwise every UNWATCHED_ROUNDS.
 */
#define COUNTERS_MS 1000
#define UNWATCHED_ROUNDS 10
#define WATCHED_ROUNDS 60

struct updater {
	struct tree *tree;
	const char *dir;
	pid_t program;
	int program_fd; /* pidfd of program, or -1 if the kernel has none */
	struct netdev_watch *watch;
	int reads_fd;		      /* inotify fd: reads of counter files */
	unsigned int rounds;	      /* number of rounds, of COUNTERS_MS each */
	unsigned int last_read_round; /* round of the last read */
};

/* The process that updater_start() has started. */
static struct {
	pid_t process;
	const char *dir;
} started;

int updater_detach(const int *keep, size_t count)
{
	long limit = sysconf(_SC_OPEN_MAX);
	int null = open("/dev/null", O_RDWR);

	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	for (int fd = 3; fd < (limit < 4096 ? limit : 4096); fd++) {
		bool kept = false;

		for (size_t i = 0; i < count; i++)
			kept = kept || keep[i] == fd;
		if (!kept)
			close(fd);
	}
	return chdir("/");
}

static void watch_counter_reads(const char *path, void *arg)
{
	struct updater *updater = arg;

	/* Has no effect on a directory that is already watched. */
	inotify_add_watch(updater->reads_fd, path, IN_ACCESS | IN_ONLYDIR);
}

static void update_tree(struct updater *updater)
{
	tree_update(updater->tree);
	tree_each_counters(updater->tree, watch_counter_reads, updater);
}

static void drain_reads(struct updater *updater)
{
	char events[4096] __attribute__((aligned(8)));

	while (read(updater->reads_fd, events, sizeof(events)) > 0)
		;
	updater->last_read_round = updater->rounds;
}

static void update_counters_if_due(struct updater *updater)
{
	if (++updater->rounds - updater->last_read_round < WATCHED_ROUNDS ||
	    updater->rounds % UNWATCHED_ROUNDS == 1)
		counters_update(updater->tree);
}

static uint64_t now_ms(void)
{
	return clock_ns(CLOCK_MONOTONIC) / 1000000;
}

static int updater_main(void *arg)
{
	struct updater *updater = arg;
	const int needed[] = { updater->tree->root,
			       updater->tree->class,
			       updater->tree->devices,
			       updater->program_fd,
			       netdev_watch_fd(updater->watch),
			       updater->reads_fd };
	struct pollfd events[3] = {
		{ .fd = updater->program_fd, .events = POLLIN },
		{ .fd = netdev_watch_fd(updater->watch), .events = POLLIN },
		{ .fd = updater->reads_fd, .events = POLLIN },
	};
	uint64_t next = now_ms();

	prctl(PR_SET_NAME, "uroce-view");
	setsid();
	signal(SIGPIPE, SIG_IGN);
	if (updater_detach(needed, sizeof(needed) / sizeof(needed[0])))
		return 1;
	/* The netdev watch was opened after the first update, so update again. */
	update_tree(updater);
	while (getppid() == updater->program) {
		uint64_t now = now_ms();

		if (now >= next) {
			update_counters_if_due(updater);
			next = now + COUNTERS_MS;
		}
		if (poll(events, 3, (int)(next > now ? next - now : 0)) <= 0)
			continue;
		if (events[0].revents)
			break;
		if (events[1].revents && netdev_watch_drain(updater->watch) != 0)
			update_tree(updater);
		if (events[2].revents)
			drain_reads(updater);
	}
	if (updater->dir)
		tree_remove(AT_FDCWD, updater->dir);
	return 0;
}

void updater_stop(void)
{
	kill(started.process, SIGKILL);
	waitpid(started.process, NULL, __WALL);
	if (started.dir)
		tree_remove(AT_FDCWD, started.dir);
}

int updater_start(struct tree *tree, const char *dir)
{
	struct updater updater = { .tree = tree,
				   .dir = dir,
				   .program = getpid(),
				   /* no counter file has been read yet */
				   .last_read_round = 0u - WATCHED_ROUNDS };
	char *stack = malloc(STACK_BYTES);
	int error, child;

	if (!stack)
		return -ENOMEM;
	error = netdev_watch_open(&updater.watch);
	if (error)
		goto free_stack;
	updater.program_fd = (int)syscall(SYS_pidfd_open, updater.program, 0);
	updater.reads_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	/* Like fork(), but without exit signal: wait() does not return such a child. */
	child = clone(updater_main, stack + STACK_BYTES, 0, &updater);
	if (child < 0)
		error = -errno;
	started.process = child;
	started.dir = dir;
	if (updater.program_fd >= 0)
		close(updater.program_fd);
	if (updater.reads_fd >= 0)
		close(updater.reads_fd);
	netdev_watch_close(updater.watch);
free_stack:
	free(stack);
	return error;
}
