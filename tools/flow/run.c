// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "run.h"

#define POLL_NS 1000000L
#define EXIT_TIMEOUT_NS UINT64_C(5000000000) /* maximum time for an endpoint to exit */

void run_set_environment(const struct flow_run *run, uint32_t side)
{
	bool credits = run->scheme->flags & SCHEME_TRANSPORT_CREDITS;
	char faults[80];

	setenv("UROCE_CREDITS", credits ? "on" : "off", 1);
	if (!run->sc->faults)
		return;
	snprintf(faults, sizeof(faults), "%s,seed=%llu", run->sc->faults,
		 (unsigned long long)(run->options->seed * FLOW_SIDES + side + 1));
	setenv("UROCE_FAULT", faults, 1);
}

static void init_runner_options(struct runner_options *runner, const struct flow_run *run,
				uint32_t side, struct oob_sock sock, struct run_stats *stats)
{
	memset(runner, 0, sizeof(*runner));
	runner->device = run->options->device;
	runner->side = side;
	runner->sock = sock;
	runner->stats = stats;
	runner->plan.seed = run->options->seed;
	snprintf(runner->plan.scheme, sizeof(runner->plan.scheme), "%s", run->scheme->name);
	plan_from_scenario(&runner->plan, run->sc);
}

static pid_t start_endpoint(const struct flow_run *run, uint32_t side, int fd[FLOW_SIDES],
			    struct run_stats *stats)
{
	struct runner_options runner;
	enum flow_verdict verdict;
	pid_t parent = getpid(), pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	close(fd[!side]);
	run_set_environment(run, side);
	init_runner_options(&runner, run, side, (struct oob_sock){ .fd = fd[side] }, stats);
	_exit(runner_run(&runner, &verdict) ? 1 : 0);
}

/* Waits briefly.  An endpoint that has exited before the end of the run gets an error. */
static void reap_endpoints(struct run_stats *stats, pid_t pid[FLOW_SIDES])
{
	nanosleep(&(struct timespec){ .tv_nsec = POLL_NS }, NULL);
	for (unsigned int side = 0; side < FLOW_SIDES; side++) {
		struct endpoint_stats *s = &stats->side[side];

		if (pid[side] <= 0 || waitpid(pid[side], NULL, WNOHANG) != pid[side])
			continue;
		pid[side] = 0;
		if (!s->finished) {
			snprintf(s->what, sizeof(s->what), "its process has exited");
			s->error = 1000;
		}
	}
}

static bool all_exited(const pid_t pid[FLOW_SIDES])
{
	return pid[0] <= 0 && pid[1] <= 0;
}

static void stop_endpoints(struct run_stats *stats, pid_t pid[FLOW_SIDES])
{
	uint64_t until = clock_ns() + EXIT_TIMEOUT_NS;

	stats->stop = 1;
	while (!all_exited(pid) && clock_ns() < until)
		reap_endpoints(stats, pid);
	for (unsigned int side = 0; side < FLOW_SIDES; side++) {
		if (pid[side] <= 0)
			continue;
		kill(pid[side], SIGKILL);
		waitpid(pid[side], NULL, 0);
	}
}

static void fill_result(struct run_result *result, const struct run_checker *checker,
			struct run_stats *stats)
{
	uint64_t begun = UINT64_MAX, ended = 0;

	/* The negotiated depth may be smaller than requested. */
	if (stats->side[0].depth)
		result->sc.depth = stats->side[0].depth;
	result->verdict = checker_final(checker, result->verdict);
	for (unsigned int side = 0; side < FLOW_SIDES; side++) {
		struct endpoint_result *r = &stats->side[side].result;

		memcpy(&result->side[side], &stats->side[side], sizeof(result->side[side]));
		if (r->first_sent_ns && r->first_sent_ns < begun)
			begun = r->first_sent_ns;
		if (r->last_consumed_ns > ended)
			ended = r->last_consumed_ns;
	}
	result->seconds = ended > begun ? (double)(ended - begun) / 1e9 : 0;
}

static enum flow_verdict await_verdict(const struct run_options *options,
				       struct run_checker *checker, struct run_stats *stats,
				       pid_t pid[FLOW_SIDES])
{
	enum flow_verdict verdict = VERDICT_RUNNING;

	checker->stall_timeout_ns = options->stall_timeout_ns;
	while (verdict == VERDICT_RUNNING) {
		reap_endpoints(stats, pid);
		verdict = checker_poll(checker, clock_ns());
	}
	return verdict;
}

int run_pair(const struct flow_run *run, struct run_result *result)
{
	struct run_stats *stats = mmap(NULL, sizeof(*stats), PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t begun = clock_ns();
	int64_t before = counters_sysfs_rnr_naks(run->options);
	pid_t pid[FLOW_SIDES], alive[FLOW_SIDES];
	struct run_checker checker;
	int fd[FLOW_SIDES];

	memset(result, 0, sizeof(*result));
	if (stats == MAP_FAILED)
		return -1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd)) {
		munmap(stats, sizeof(*stats));
		return -1;
	}
	result->scheme = run->scheme;
	result->sc = *run->sc;
	result->seed = run->options->seed;
	fflush(NULL);
	for (unsigned int side = 0; side < FLOW_SIDES; side++)
		alive[side] = pid[side] = start_endpoint(run, side, fd, stats);
	close(fd[0]);
	close(fd[1]);
	checker_init(&checker, stats, &result->sc, run->scheme, begun);
	result->verdict = pid[0] < 0 || pid[1] < 0
				  ? VERDICT_ERROR
				  : await_verdict(run->options, &checker, stats, alive);
	result->rnr_naks = counters_rnr_naks(run->options, pid, before);
	stop_endpoints(stats, alive);
	fill_result(result, &checker, stats);
	munmap(stats, sizeof(*stats));
	return 0;
}

struct own_counters {
	const struct run_options *options;
	int64_t before, naks;
};

/* Must be called while the device is open: afterwards the process has no counters. */
static void count_naks(void *argument)
{
	struct own_counters *own = argument;
	const int pid[FLOW_SIDES] = { getpid(), 0 };

	own->naks = counters_rnr_naks(own->options, pid, own->before);
}

int run_one_endpoint(const struct flow_run *run, struct oob_sock sock, uint32_t side,
		     struct run_result *result)
{
	struct run_stats *stats = calloc(1, sizeof(*stats));
	uint64_t begun = clock_ns();
	struct own_counters own = { run->options, counters_sysfs_rnr_naks(run->options), -1 };
	struct runner_options runner;
	struct run_checker checker;
	int error;

	memset(result, 0, sizeof(*result));
	if (!stats)
		return -1;
	init_runner_options(&runner, run, side, sock, stats);
	runner.plan.two_hosts = 1;
	runner.finished = count_naks;
	runner.argument = &own;
	error = runner_run(&runner, &result->verdict);
	result->scheme = scheme_find(runner.plan.scheme);
	if (!plan_scenario(&runner.plan, &result->sc))
		result->sc = *run->sc;
	result->seed = runner.plan.seed;
	result->rnr_naks = own.naks;
	checker_init(&checker, stats, &result->sc, result->scheme, begun);
	fill_result(result, &checker, stats);
	free(stats);
	return error;
}

bool run_is_as_predicted(const struct run_result *result)
{
	return result->verdict == (result->predicted ? result->predicted->predicted : VERDICT_OK);
}

double run_messages(const struct run_result *result)
{
	uint64_t consumed = result->side[0].result.consumed + result->side[1].result.consumed;

	return result->seconds > 0 ? (double)consumed / result->seconds : 0;
}

double run_goodput_mb(const struct run_result *result)
{
	return run_messages(result) * result->sc.bytes / 1e6;
}

double run_updates_per_message(const struct run_result *result)
{
	uint64_t data = result->side[0].data_sent + result->side[1].data_sent;
	uint64_t control = result->side[0].control_sent + result->side[1].control_sent;

	return data ? (double)control / (double)data : 0;
}
