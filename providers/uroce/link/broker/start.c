/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Starts the broker by two calls of clone(2) without an exit signal.  So no wait() of the program
 * returns the first child, and there is no SIGCHLD; the second child, the broker, belongs to init
 * when the first has ended, and init reaps it.  Both share the caller's memory, and the caller is
 * suspended until the second child has executed the broker or exited.  They write nothing but
 * struct broker_start and errno, and block all signals, so that no handler of the program runs in
 * them.  They make system calls by syscall(2), since a sanitizer would attribute calls of functions
 * that it intercepts to the caller's thread.
 */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker/names.h"
#include "link/link_priv.h"

enum {
	STACK_BYTES = 64 << 10, /* for each child; the frames of sanitizers are large */
	LISTENER = 3,		/* descriptor number that the broker expects */
	ENVIRONMENT_MAX = 16,
};

/*
 * Call the C library's clone(): ThreadSanitizer's would turn the caller's thread into that of a
 * forked child.
 */
#ifdef __SANITIZE_THREAD__
int __clone(int (*function)(void *), void *stack, int flags, void *arg, ...);
#define clone __clone
#endif
/*
 * For functions of the children: they never return, so the sanitizer would see entries without
 * exits in the caller's thread.
 */
#define IN_CHILD __attribute__((noinline, no_sanitize("thread")))

struct broker_start {
	char program[PATH_MAX];
	char title[128]; /* argv[0] of the broker, which ps(1) shows */
	char *arguments[2];
	char *environment[ENVIRONMENT_MAX + 1];
	uint8_t *stacks;
	int listener;
	int error; /* errno of the step that failed */
};

/*
 * Returns true if the broker gets the variable.  LD_PRELOAD is left out, so that no preloaded
 * sanitizer or debugger gets into the broker.
 */
static bool is_passed_on(const char *variable)
{
	return strncmp(variable, "UROCE_TEST_", 11) == 0 ||
	       strncmp(variable, "LD_LIBRARY_PATH=", 16) == 0;
}

static void copy_environment(struct broker_start *start)
{
	unsigned int count = 0;

	for (char **variable = environ; *variable && count < ENVIRONMENT_MAX; variable++)
		if (is_passed_on(*variable))
			start->environment[count++] = *variable;
}

/* Finds the broker in the plug-in's directory, or the one that a test names. */
static int find_program(struct broker_start *start)
{
	const char *named = secure_getenv("UROCE_TEST_BROKER");
	Dl_info plugin;
	const char *slash;
	int length;

	if (named) {
		length = snprintf(start->program, sizeof(start->program), "%s", named);
	} else {
		if (!dladdr(__extension__(void *) find_program, &plugin) || !plugin.dli_fname)
			return -ENOENT;
		slash = strrchr(plugin.dli_fname, '/');
		length =
			snprintf(start->program, sizeof(start->program), "%.*suroce-broker",
				 slash ? (int)(slash + 1 - plugin.dli_fname) : 0, plugin.dli_fname);
	}
	return length < (int)sizeof(start->program) ? 0 : -ENAMETOOLONG;
}

/* Runs in the second child. */
IN_CHILD static int become_broker(void *arg)
{
	struct broker_start *start = arg;
	long result;

	syscall(SYS_setsid);
	/* dup3(2) fails if both numbers are the same. */
	if (start->listener == LISTENER)
		result = syscall(SYS_fcntl, LISTENER, F_SETFD, 0);
	else
		result = syscall(SYS_dup3, start->listener, LISTENER, 0);
	/* From now on SO_PEERCRED reports this process, and not the one that started it. */
	if (result >= 0)
		result = syscall(SYS_listen, LISTENER, NAMES_BACKLOG);
	if (result >= 0)
		syscall(SYS_execve, start->program, start->arguments, start->environment);
	start->error = errno;
	syscall(SYS_exit, 1);
	return 1;
}

/* Runs in the first child, which ends at once, so that init becomes the parent of the broker. */
IN_CHILD static int start_second_child(void *arg)
{
	struct broker_start *start = arg;

	if (clone(become_broker, start->stacks + 2 * STACK_BYTES, CLONE_VM | CLONE_VFORK, start) <
	    0)
		start->error = errno;
	syscall(SYS_exit, 0);
	return 0;
}

static int start_first_child(struct broker_start *start)
{
	sigset_t all, before;
	int error = 0, status = 0;
	pid_t first;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	first = clone(start_second_child, start->stacks + STACK_BYTES, CLONE_VM | CLONE_VFORK,
		      start);
	if (first < 0)
		error = -errno;
	/* The child ends without SIGCHLD, and only __WCLONE waits for such a child. */
	else
		while (waitpid(first, &status, __WCLONE) < 0 && errno == EINTR)
			;
	/* If the first child was killed, the second may use its stack: keep the stacks mapped. */
	if (WIFSIGNALED(status))
		start->stacks = MAP_FAILED;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error ? error : -start->error;
}

int link_broker_start(int listener, char error[LINK_ERROR_TEXT])
{
	struct broker_start start = { .listener = listener };
	int result;

	start.stacks = mmap(NULL, 2 * STACK_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (start.stacks == MAP_FAILED)
		return -errno;
	copy_environment(&start);
	result = find_program(&start);
	snprintf(start.title, sizeof(start.title),
		 "uroce-broker: for user %u, started by process %d (%s)", geteuid(), getpid(),
		 program_invocation_short_name);
	start.arguments[0] = start.title;
	if (!result)
		result = start_first_child(&start);
	if (start.stacks != MAP_FAILED)
		munmap(start.stacks, 2 * STACK_BYTES);
	if (result)
		link_set_error(error,
			       "cannot start %s: %s; start it before this program (uroce-broker "
			       "--stay)",
			       start.program, strerror(-result));
	return result;
}
