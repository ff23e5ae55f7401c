/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "keeper.h"

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
#include <time.h>
#include <unistd.h>

#include "counters.h"
#include "link/netdev.h"

#define STACK_BYTES (256 * 1024)
/*
 * An update of the counters queries every process.  It is made in every round until
 * WATCHED_ROUNDS after the last read of a counter file, and otherwise every UNWATCHED_ROUNDS.
 */
#define COUNTERS_MS 1000
#define UNWATCHED_ROUNDS 10
#define WATCHED_ROUNDS 60

struct keeper {
	struct tree *tree;
	const char *folder;
	pid_t program;
	int program_fd; /* pidfd of program, or -1 if the kernel has none */
	struct netdev_watch *watch;
	int readers;			  /* inotify fd: reads of counter files */
	unsigned int rounds, last_reader; /* rounds of COUNTERS_MS: number, that of the last read */
};

/* The process that keeper_start() has started. */
static struct {
	pid_t process;
	const char *folder;
} started;

int keeper_let_go(const int *keep, size_t count)
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

static void watch_readers(const char *path, void *arg)
{
	struct keeper *keeper = arg;

	/* Has no effect on a directory that is already watched. */
	inotify_add_watch(keeper->readers, path, IN_ACCESS | IN_ONLYDIR);
}

static void update(struct keeper *keeper)
{
	tree_update(keeper->tree);
	tree_each_counters(keeper->tree, watch_readers, keeper);
}

static void heard_reader(struct keeper *keeper)
{
	char events[4096] __attribute__((aligned(8)));

	while (read(keeper->readers, events, sizeof(events)) > 0)
		;
	keeper->last_reader = keeper->rounds;
}

static void count(struct keeper *keeper)
{
	if (++keeper->rounds - keeper->last_reader < WATCHED_ROUNDS ||
	    keeper->rounds % UNWATCHED_ROUNDS == 1)
		counters_update(keeper->tree);
}

static uint64_t milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static int keep(void *arg)
{
	struct keeper *keeper = arg;
	const int needed[] = { keeper->tree->root,
			       keeper->tree->class,
			       keeper->tree->devices,
			       keeper->program_fd,
			       netdev_watch_fd(keeper->watch),
			       keeper->readers };
	struct pollfd events[3] = {
		{ .fd = keeper->program_fd, .events = POLLIN },
		{ .fd = netdev_watch_fd(keeper->watch), .events = POLLIN },
		{ .fd = keeper->readers, .events = POLLIN },
	};
	uint64_t next = milliseconds();

	prctl(PR_SET_NAME, "uroce-view");
	setsid();
	signal(SIGPIPE, SIG_IGN);
	if (keeper_let_go(needed, sizeof(needed) / sizeof(needed[0])))
		return 1;
	/* The netdev watch was opened after the first update, so update again. */
	update(keeper);
	while (getppid() == keeper->program) {
		uint64_t now = milliseconds();

		if (now >= next) {
			count(keeper);
			next = now + COUNTERS_MS;
		}
		if (poll(events, 3, (int)(next > now ? next - now : 0)) <= 0)
			continue;
		if (events[0].revents)
			break;
		if (events[1].revents && netdev_watch_drain(keeper->watch) != 0)
			update(keeper);
		if (events[2].revents)
			heard_reader(keeper);
	}
	if (keeper->folder)
		tree_remove(AT_FDCWD, keeper->folder);
	return 0;
}

void keeper_stop(void)
{
	kill(started.process, SIGKILL);
	waitpid(started.process, NULL, __WALL);
	if (started.folder)
		tree_remove(AT_FDCWD, started.folder);
}

int keeper_start(struct tree *tree, const char *folder)
{
	struct keeper keeper = { .tree = tree,
				 .folder = folder,
				 .program = getpid(),
				 /* no counter file has been read yet */
				 .last_reader = 0u - WATCHED_ROUNDS };
	char *stack = malloc(STACK_BYTES);
	int error, child;

	if (!stack)
		return -ENOMEM;
	error = netdev_watch_open(&keeper.watch);
	if (error)
		goto free_stack;
	keeper.program_fd = (int)syscall(SYS_pidfd_open, keeper.program, 0);
	keeper.readers = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	/* Like fork(), but without exit signal: wait() does not return such a child. */
	child = clone(keep, stack + STACK_BYTES, 0, &keeper);
	if (child < 0)
		error = -errno;
	started.process = child;
	started.folder = folder;
	if (keeper.program_fd >= 0)
		close(keeper.program_fd);
	if (keeper.readers >= 0)
		close(keeper.readers);
	netdev_watch_close(keeper.watch);
free_stack:
	free(stack);
	return error;
}
