/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* sim: runs seeds through the simulated world and reports the failing ones. */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sim/mutant/mutant.h"
#include "sim/world.h"

static const char usage[] =
	"usage: sim [--seeds N] [--start N] [--keep-going] [--mutant NAME]   run N seeds\n"
	"       sim --flows ...             flows through a bottleneck; --table: a line for each\n"
	"       sim --today ...             the same, of a million that belong to this day\n"
	"       sim --seed N [--verbose] [--mutant NAME]                     run one seed\n"
	"       sim --kept FILE             run the seeds that a file names, and their "
	"generations\n"
	"       sim --generation N ...      plans as they once were: what a seed means has grown\n"
	"       sim --mutants [--seeds N]   every deliberate fault must be found in N seeds\n"
	"       sim --list                  the deliberate faults\n";

#define SEEDS_OF_A_DAY 1000000
#define SECONDS_OF_A_DAY 86400

struct options {
	uint64_t start, seeds, generation;
	bool one, verbose, keep_going, mutants, list, today, flows, table;
	const char *kept;
	const struct mutant *mutant;
};

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void print_failure(const struct world *world)
{
	printf("seed %" PRIu64 " FAILED at %.3f us: %s\n", world->plan.seed,
	       (double)world->now / 1000, world->reason);
	printf("  replay: sim %s--seed %" PRIu64 " --generation %u --verbose%s%s\n",
	       world->plans_flows ? "--flows " : "", world->plan.seed, world->plan.generation,
	       world->mutant ? " --mutant " : "", world->mutant ? world->mutant->name : "");
}

static void print_totals(const struct world *world, uint64_t seeds, uint64_t failures, double took)
{
	printf("%" PRIu64 " seeds, %" PRIu64 " failures, %.1f s\n", seeds, failures, took);
	printf("%" PRIu64 " messages, %" PRIu64 " packets (%" PRIu64 " lost, %" PRIu64
	       " damaged, %" PRIu64 " repeated), %.1f s of virtual time\n",
	       world->total.messages, world->total.packets, world->total.lost, world->total.damaged,
	       world->total.repeated, (double)world->total.virtual_ns * 1e-9);
	printf("%" PRIu64 " timeouts, %" PRIu64 " sequence NAKs, %" PRIu64 " RNR NAKs, %" PRIu64
	       " limited requests, %" PRIu64 " unsolicited ACKs, %" PRIu64 " errors, %" PRIu64
	       " drains\n",
	       world->total.timeouts, world->total.naks, world->total.rnr_naks,
	       world->total.limited, world->total.unsolicited, world->total.errors,
	       world->total.drains);
	printf("%" PRIu64 " messages of XRC; %" PRIu64 " of UC and UD, %" PRIu64
	       " received; %" PRIu64 " from shared queues; %" PRIu64 " windows, %" PRIu64
	       " memories gone\n",
	       world->total.xrc_sent, world->total.uc_ud_sent, world->total.uc_ud_received,
	       world->total.shared_received, world->total.windows_bound, world->total.gone);
	/*
	 * The ICRC detects less if the IPv4 ID may be any: half of its bits serve to solve for the
	 * ID.
	 */
	if (world->total.slipped > 0)
		printf("%" PRIu64 " damaged packets fit another IPv4 identification\n",
		       world->total.slipped);
}

static int run_seeds(struct world *world, const struct options *options)
{
	double began = seconds();
	uint64_t failures = 0, n;

	printf("seeds from %" PRIu64 " on\n", options->start);
	for (n = 0; n < options->seeds; n++) {
		bool passed = world_run(world, options->start + n);

		if (options->table)
			flows_print(world);
		if (passed)
			continue;
		failures++;
		print_failure(world);
		if (!options->keep_going)
			break;
	}
	print_totals(world, n < options->seeds ? n + 1 : n, failures, seconds() - began);
	return failures > 0;
}

static int run_one(struct world *world, const struct options *options)
{
	bool passed;

	world->verbose = options->verbose;
	passed = world_run(world, options->start);
	if (options->table && options->flows) {
		flows_print_shares(world);
		flows_print(world);
	}
	if (!passed) {
		print_failure(world);
		return 1;
	}
	printf("seed %" PRIu64 " passed, %.3f us of virtual time\n", options->start,
	       (double)world->now / 1000);
	return 0;
}

/* Runs the seeds of a file; comments there give the reason for each seed. */
static int run_kept(struct world *world, const struct options *options)
{
	FILE *file = fopen(options->kept, "r");
	uint64_t seeds = 0, failures = 0, seed;
	double began = seconds();
	char line[200], kind[8];
	int found;

	if (!file) {
		perror(options->kept);
		return 2;
	}
	while (fgets(line, sizeof(line), file)) {
		found = sscanf(line, "%" SCNu64 " %" SCNu32 " %7s", &seed, &world->generation,
			       kind);
		if (found < 2)
			continue;
		world->plans_flows = found == 3 && strcmp(kind, "flows") == 0;
		seeds++;
		if (world_run(world, seed))
			continue;
		failures++;
		print_failure(world);
	}
	fclose(file);
	print_totals(world, seeds, failures, seconds() - began);
	return seeds == 0 || failures > 0;
}

/* Prints after how many seeds the oracle finds the fault.  Returns false if it does not. */
static bool find_mutant(const struct mutant *mutant, const struct options *options)
{
	struct world *world = world_new();
	uint64_t changed = 0, start = options->start;

	world->mutant = mutant;
	world->generation = (uint32_t)options->generation;
	world->plans_flows = world->mutant->flows;
	if (world->mutant->seed > 0)
		start = world->mutant->seed;
	for (uint64_t n = 0; n < options->seeds; n++) {
		bool passed = world_run(world, start + n);

		changed += world->mutations;
		if (passed)
			continue;
		printf("%-20s found after %" PRIu64 " seeds, %" PRIu64 " faults: %s\n",
		       world->mutant->name, n + 1, changed, world->reason);
		return true;
	}
	printf("%-20s NOT FOUND in %" PRIu64 " seeds, %" PRIu64 " faults: %s\n",
	       world->mutant->name, options->seeds, changed, world->mutant->fault);
	return false;
}

/* Runs in its own process: an assertion of the engine may find the fault before the oracle. */
static bool find_mutant_apart(const struct mutant *mutant, const struct options *options)
{
	int status = 0;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		bool is_found = find_mutant(mutant, options);

		fflush(stdout);
		_exit(is_found ? EXIT_SUCCESS : EXIT_FAILURE);
	}
	if (child < 0 || waitpid(child, &status, 0) != child) {
		perror("sim: fork");
		return false;
	}
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) {
		printf("%-20s found by an assertion\n", mutant->name);
		return true;
	}
	return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
}

static int run_mutants(const struct options *options)
{
	uint32_t survivors = 0;

	for (uint32_t i = 0; mutant_at(i); i++)
		survivors += !find_mutant_apart(mutant_at(i), options);
	printf("%u deliberate faults not found\n", survivors);
	return survivors > 0;
}

static void list_mutants(void)
{
	for (uint32_t i = 0; mutant_at(i); i++)
		printf("%-20s %s\n", mutant_at(i)->name, mutant_at(i)->fault);
}

static uint64_t number(const char *text)
{
	char *rest;
	uint64_t value = strtoull(text, &rest, 0);

	if (*text == '\0' || *rest != '\0') {
		fprintf(stderr, "sim: not a number: %s\n%s", text, usage);
		exit(2);
	}
	return value;
}

static void read_option(struct options *options, int option)
{
	switch (option) {
	case 's':
		options->seeds = number(optarg);
		break;
	case 'f':
		options->start = number(optarg);
		break;
	case 'g':
		options->generation = number(optarg);
		break;
	case '1':
		options->start = number(optarg);
		options->one = true;
		break;
	case 'v':
		options->verbose = true;
		break;
	case 'k':
		options->keep_going = true;
		break;
	case 'F':
		options->flows = true;
		break;
	case 'T':
		options->table = true;
		break;
	case 't':
		options->today = true;
		break;
	case 'K':
		options->kept = optarg;
		break;
	case 'M':
		options->mutants = true;
		break;
	case 'l':
		options->list = true;
		break;
	case 'm':
		options->mutant = mutant_find(optarg);
		if (options->mutant)
			break;
		fprintf(stderr, "sim: no mutant has the name %s, see sim --list\n", optarg);
		exit(2);
	default:
		fputs(usage, stderr);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "seeds", required_argument, NULL, 's' },
		{ "start", required_argument, NULL, 'f' },
		{ "generation", required_argument, NULL, 'g' },
		{ "seed", required_argument, NULL, '1' },
		{ "verbose", no_argument, NULL, 'v' },
		{ "keep-going", no_argument, NULL, 'k' },
		{ "flows", no_argument, NULL, 'F' },
		{ "table", no_argument, NULL, 'T' },
		{ "today", no_argument, NULL, 't' },
		{ "kept", required_argument, NULL, 'K' },
		{ "mutant", required_argument, NULL, 'm' },
		{ "mutants", no_argument, NULL, 'M' },
		{ "list", no_argument, NULL, 'l' },
		{ NULL, 0, NULL, 0 },
	};
	struct options options = { .start = 1, .seeds = 1000, .generation = PLAN_GENERATION };
	struct world *world;
	int option, result = 0;

	/* Failures are printed at once, also during a long run. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		read_option(&options, option);
	if (options.today)
		options.start += (uint64_t)time(NULL) / SECONDS_OF_A_DAY * SEEDS_OF_A_DAY;
	if (options.list) {
		list_mutants();
		return 0;
	}
	if (options.mutants)
		return run_mutants(&options);
	world = world_new();
	world->mutant = options.mutant;
	world->generation = (uint32_t)options.generation;
	world->plans_flows = options.flows;
	if (options.kept)
		result = run_kept(world, &options);
	else if (options.one)
		result = run_one(world, &options);
	else
		result = run_seeds(world, &options);
	world_free(world);
	return result;
}
