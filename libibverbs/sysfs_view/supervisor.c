/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "view.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

bool supervisor_needed(void)
{
	const unsigned long long child = 1ull << (SIGCHLD - 1);
	unsigned long long mask;
	bool handles_sigchld = false, found = false;
	char line[256];
	FILE *file;

	/*
	 * When process 1 exits, the kernel kills all others of its PID namespace: no zombie
	 * remains.
	 */
	if (getpid() == 1)
		return false;
	file = fopen("/proc/1/status", "re");
	if (!file)
		return false;
	while (fgets(line, sizeof(line), file)) {
		/* An init process may block and await the signal, catch it, or ignore it. */
		if (sscanf(line, "SigBlk: %llx", &mask) == 1 ||
		    sscanf(line, "SigIgn: %llx", &mask) == 1 ||
		    sscanf(line, "SigCgt: %llx", &mask) == 1) {
			found = true;
			handles_sigchld = handles_sigchld || (mask & child);
		}
	}
	fclose(file);
	return found && !handles_sigchld;
}

/*
 * Waits for the program and returns its wait status; forwards other signals to it, except those of
 * the kernel: the terminal sends them to the whole process group.
 */
static int wait_forwarding_signals(pid_t program, const sigset_t *signals)
{
	int status, number;
	siginfo_t info;

	for (;;) {
		number = sigwaitinfo(signals, &info);
		if (number == SIGCHLD && waitpid(program, &status, WNOHANG) == program)
			return status;
		if (number > 0 && number != SIGCHLD && info.si_code != SI_KERNEL)
			kill(program, number);
	}
}

static _Noreturn void exit_like(int status)
{
	const struct rlimit no_core = { 0, 0 };
	sigset_t signals;

	if (WIFEXITED(status))
		_exit(WEXITSTATUS(status));
	setrlimit(RLIMIT_CORE, &no_core);
	signal(WTERMSIG(status), SIG_DFL);
	raise(WTERMSIG(status));
	sigemptyset(&signals);
	sigprocmask(SIG_SETMASK, &signals, NULL);
	_exit(128 + WTERMSIG(status));
}

void supervisor_fork(void)
{
	const pid_t supervisor = getpid();
	/* If SIGCHLD were ignored, waitpid() would return no status. */
	void (*old_handler)(int) = signal(SIGCHLD, SIG_DFL);
	sigset_t signals, old_mask;
	pid_t program;
	int status;

	/* Job control signals stop the supervisor as well, so that the shell notices. */
	sigfillset(&signals);
	sigdelset(&signals, SIGTSTP);
	sigdelset(&signals, SIGTTIN);
	sigdelset(&signals, SIGTTOU);
	sigprocmask(SIG_BLOCK, &signals, &old_mask);
	/* Before fork(), since the program may list processes before the supervisor runs. */
	prctl(PR_SET_NAME, "uroce-run");
	program = fork();
	if (program <= 0) {
		if (program == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != supervisor))
			_exit(1);
		signal(SIGCHLD, old_handler);
		sigprocmask(SIG_SETMASK, &old_mask, NULL);
		return;
	}
	/* If chdir() fails, the supervisor keeps its working directory. */
	(void)!updater_detach(NULL, 0);
	status = wait_forwarding_signals(program, &signals);
	updater_stop();
	exit_like(status);
}
