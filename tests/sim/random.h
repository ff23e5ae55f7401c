/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Source of all random numbers of a simulation: xoshiro256**, seeded by splitmix64, so that a seed
 * means the same on every machine.
 */
#ifndef UROCE_SIM_RANDOM_H
#define UROCE_SIM_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_random {
	uint64_t state[4];
};

/* Streams of one seed with different stream numbers are independent of each other. */
void random_seed(struct sim_random *random, uint64_t seed, uint64_t stream);
uint64_t random_next(struct sim_random *random);
/* 0 .. n - 1; n must not be 0. */
uint32_t random_below(struct sim_random *random, uint32_t n);
/* low .. high, both included. */
uint32_t random_between(struct sim_random *random, uint32_t low, uint32_t high);
/* Returns true in per_mille of 1000 calls on average. */
bool random_chance(struct sim_random *random, uint32_t per_mille);
/* 0 .. limit, small numbers much more often than large ones. */
uint64_t random_skewed(struct sim_random *random, uint64_t limit);
void random_fill(struct sim_random *random, void *to, size_t bytes);

#endif
