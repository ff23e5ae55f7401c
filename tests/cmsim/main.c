/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* cmsim: simulates connection managers, one run per seed. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmsim/world.h"

static const char usage[] =
	"usage: cmsim [--seeds N] [--start N] [--keep-going]    run N seeds\n"
	"       cmsim --today ...              the same, of a million that belong to this day\n"
	"       cmsim --seed N [--verbose] [--mutant N]         run one seed\n"
	"       cmsim --kept FILE              run the seeds that a file names\n"
	"       cmsim --mutants [--seeds N]    every deliberate fault must be found in N seeds\n";

#define SEEDS_OF_A_DAY 1000000
#define SECONDS_OF_A_DAY 86400

static void print_failure(const struct world *world, uint64_t seed)
{
	printf("seed %" PRIu64 " FAILED at %.6f s: %s\n", seed, (double)world->now / 1e9,
	       world->reason);
	printf("  replay: cmsim --seed %" PRIu64 " --verbose\n", seed);
}

static void print_totals(const struct total *t, uint64_t seeds, uint64_t failures)
{
	printf("%" PRIu64 " seeds, %" PRIu64 " failures, %.0f s of virtual time\n", seeds, failures,
	       (double)t->virtual_ns / 1e9);
	printf("%" PRIu64 " connections, %" PRIu64 " established, %" PRIu64 " refused, %" PRIu64
	       " unreachable, %" PRIu64 " stale; %" PRIu64 " datagram requests; %" PRIu64
	       " deaths; %" PRIu64 " messages, %" PRIu64 " lost, %" PRIu64 " doubled\n",
	       t->connections, t->established, t->refused, t->unreachable, t->stale, t->datagrams,
	       t->deaths, t->packets, t->lost, t->repeated);
}

static int run_seeds(struct world *world, uint64_t start, uint64_t seeds, bool keep_going)
{
	uint64_t failures = 0, n;

	for (n = 0; n < seeds && (failures == 0 || keep_going); n++) {
		if (world_run(world, start + n))
			continue;
		failures++;
		print_failure(world, start + n);
	}
	print_totals(&world->total, n, failures);
	return failures > 0;
}

/* The reason for each seed is in a comment before its line. */
static int run_kept(struct world *world, const char *path)
{
	FILE *file = fopen(path, "r");
	uint64_t seeds = 0, failures = 0, seed;
	char line[200];

	if (!file) {
		perror(path);
		return 2;
	}
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%" SCNu64, &seed) != 1)
			continue;
		seeds++;
		if (world_run(world, seed))
			continue;
		failures++;
		print_failure(world, seed);
	}
	fclose(file);
	print_totals(&world->total, seeds, failures);
	return seeds == 0 || failures > 0;
}

/* A mutant is found if any seed fails. */
static int run_mutants(struct world *world, uint64_t start, uint64_t seeds)
{
	uint32_t survivors = 0;

	for (mutant_now = 1; mutant_name(mutant_now); mutant_now++) {
		uint64_t n = 0;

		while (n < seeds && world_run(world, start + n))
			n++;
		survivors += n == seeds;
		printf("%-32s %s after %" PRIu64 " seeds: %s\n", mutant_name(mutant_now),
		       n == seeds ? "NOT FOUND" : "found", n == seeds ? n : n + 1,
		       n == seeds ? "" : world->reason);
	}
	printf("%u deliberate faults not found\n", survivors);
	return survivors > 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seeds", required_argument, NULL, 'n' },
		{ "start", required_argument, NULL, 's' },
		{ "seed", required_argument, NULL, '1' },
		{ "today", no_argument, NULL, 't' },
		{ "verbose", no_argument, NULL, 'v' },
		{ "kept", required_argument, NULL, 'K' },
		{ "keep-going", no_argument, NULL, 'k' },
		{ "mutants", no_argument, NULL, 'M' },
		{ "mutant", required_argument, NULL, 'm' },
		{ NULL, 0, NULL, 0 },
	};
	uint64_t start = 1, seeds = 1000;
	bool keep_going = false, mutants = false;
	const char *kept = NULL;
	struct world *world = world_new();
	int option, result;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'n':
			seeds = strtoull(optarg, NULL, 0);
			break;
		case 's':
			start = strtoull(optarg, NULL, 0);
			break;
		case '1':
			start = strtoull(optarg, NULL, 0);
			seeds = 1;
			break;
		case 't':
			start += (uint64_t)time(NULL) / SECONDS_OF_A_DAY * SEEDS_OF_A_DAY;
			break;
		case 'v':
			world->verbose = true;
			break;
		case 'K':
			kept = optarg;
			break;
		case 'k':
			keep_going = true;
			break;
		case 'M':
			mutants = true;
			break;
		case 'm':
			mutant_now = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		default:
			fputs(usage, stderr);
			return 2;
		}
	}
	if (kept)
		result = run_kept(world, kept);
	else
		result = mutants ? run_mutants(world, start, seeds)
				 : run_seeds(world, start, seeds, keep_going);
	world_free(world);
	return result;
}
