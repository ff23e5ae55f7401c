/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * verbsfuzz: runs seeds, each in a process of its own, so that one which crashes or hangs is a
 * finding and the others go on.
 */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "world.h"

static const char usage[] =
	"usage: verbsfuzz [--seed N] [--count N] [--keep-going] [--patience SECONDS]\n"
	"       verbsfuzz --seed N --verbose   show each call of one seed\n";

/* One seed of this number ends by exit(), and the others by _exit(). */
#define LEAK_CHECK 4

struct options {
	uint64_t seed, count;
	unsigned int patience; /* seconds that a seed may take */
	bool keep_going, verbose;
};

/*
 * Settings are read when the first device is opened, so a seed sets them at its start. Packets are
 * not damaged: over IPv4 one damaged packet in 65536 passes the ICRC check
 * (Documentation/decisions/icrc.md), which the model of the clean pair would take for a fault.
 */
static void set_environment(uint64_t seed, bool verbose)
{
	struct sim_random random;
	uint32_t drop, dup, reorder, delay;
	char fault[120];

	random_seed(&random, seed, 2);
	drop = random_below(&random, 9);
	dup = random_below(&random, 5);
	reorder = random_below(&random, 5);
	delay = random_below(&random, 300);
	snprintf(fault, sizeof(fault),
		 "drop=0.0%u,dup=0.0%u,reorder=0.0%u,delay=%uus,seed=%" PRIu64, drop, dup, reorder,
		 delay, seed);
	unsetenv("UROCE_FAULT");
	if (random_chance(&random, 300))
		setenv("UROCE_FAULT", fault, 1);
	setenv("UROCE_CREDITS", random_chance(&random, 200) ? "off" : "on", 1);
	setenv("UROCE_OOO", random_chance(&random, 200) ? "off" : "on", 1);
	setenv("UROCE_LOG", verbose ? "error" : "off", 1);
}

static void run_child(uint64_t seed, bool verbose)
{
	struct world *world = calloc(1, sizeof(*world));

	if (!world)
		_exit(2);
	set_environment(seed, verbose);
	random_seed(&world->random, seed, 1);
	world->seed = seed;
	world->verbose = verbose;
	world_run(world);
	free(world);
	/* exit() checks for leaks, which takes as long as all the rest: only some seeds call it. */
	if (seed % LEAK_CHECK == 0)
		exit(0);
	_exit(0);
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Returns false if the child has not ended in time. */
static bool await(pid_t child, uint64_t ms, int *status)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	uint64_t until = now_ms() + ms;

	while (waitpid(child, status, WNOHANG) == 0) {
		if (now_ms() > until)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

/* Returns true if nothing was found. */
static bool run_seed(const struct options *options, uint64_t seed)
{
	int status = 0;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child < 0) {
		perror("verbsfuzz: fork");
		exit(2);
	}
	if (child == 0)
		run_child(seed, options->verbose);
	if (!await(child, options->patience * UINT64_C(1000), &status)) {
		printf("seed %" PRIu64 ": HANGS after %u s\n", seed, options->patience);
		/* With ASAN_OPTIONS=handle_abort=1 the child shows where it hangs. */
		kill(child, SIGABRT);
		if (!await(child, 5000, &status)) {
			kill(child, SIGKILL);
			waitpid(child, &status, 0);
		}
	} else if (WIFSIGNALED(status)) {
		printf("seed %" PRIu64 ": ended by signal %d\n", seed, WTERMSIG(status));
	} else if (WEXITSTATUS(status) == 77) {
		exit(77);
	} else if (WEXITSTATUS(status)) {
		printf("seed %" PRIu64 ": exit code %d\n", seed, WEXITSTATUS(status));
	} else {
		return true;
	}
	printf("  replay: verbsfuzz --seed %" PRIu64 " --verbose\n", seed);
	return false;
}

static int run_seeds(const struct options *options)
{
	uint64_t findings = 0, run = 0;

	for (; run < options->count && (!findings || options->keep_going); run++)
		findings += !run_seed(options, options->seed + run);
	printf("%" PRIu64 " seeds from %" PRIu64 ", %" PRIu64 " findings\n", run, options->seed,
	       findings);
	return findings > 0;
}

int main(int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "count", required_argument, NULL, 'c' },
		{ "patience", required_argument, NULL, 'p' },
		{ "keep-going", no_argument, NULL, 'g' },
		{ "verbose", no_argument, NULL, 'v' },
		{ 0 },
	};
	struct options options = { .seed = 1, .count = 1, .patience = 30 };
	int option;

	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (option == 's')
			options.seed = strtoull(optarg, NULL, 0);
		else if (option == 'c')
			options.count = strtoull(optarg, NULL, 0);
		else if (option == 'p')
			options.patience = (unsigned int)strtoul(optarg, NULL, 0);
		else if (option == 'g')
			options.keep_going = true;
		else if (option == 'v')
			options.verbose = true;
		else
			break;
	}
	if (option != -1 || optind != argc) {
		fputs(usage, stderr);
		return 2;
	}
	return run_seeds(&options);
}
