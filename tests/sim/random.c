/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "sim/random.h"

#include <assert.h>
#include <string.h>

static uint64_t splitmix(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static uint64_t rotate(uint64_t x, int n)
{
	return x << n | x >> (64 - n);
}

void random_seed(struct sim_random *random, uint64_t seed, uint64_t stream)
{
	uint64_t mix = seed;
	uint64_t state = splitmix(&mix) ^ stream * 0xd1342543de82ef95u;

	for (int i = 0; i < 4; i++)
		random->state[i] = splitmix(&state);
}

uint64_t random_next(struct sim_random *random)
{
	uint64_t *s = random->state;
	uint64_t result = rotate(s[1] * 5, 7) * 9;
	uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotate(s[3], 45);
	return result;
}

uint32_t random_below(struct sim_random *random, uint32_t n)
{
	assert(n > 0);
	return (uint32_t)(((random_next(random) >> 32) * n) >> 32);
}

uint32_t random_between(struct sim_random *random, uint32_t low, uint32_t high)
{
	assert(low <= high);
	return low + random_below(random, high - low + 1);
}

bool random_chance(struct sim_random *random, uint32_t per_mille)
{
	return per_mille > 0 && random_below(random, 1000) < per_mille;
}

uint64_t random_skewed(struct sim_random *random, uint64_t limit)
{
	uint64_t bits = 0;

	while (limit >> bits && bits < 63)
		bits++;
	bits = random_below(random, (uint32_t)bits + 1);
	if (bits == 0)
		return 0;
	bits = random_next(random) & ((UINT64_C(1) << bits) - 1);
	return bits > limit ? limit : bits;
}

void random_fill(struct sim_random *random, void *to, size_t bytes)
{
	uint8_t *at = to;

	while (bytes > 0) {
		uint64_t value = random_next(random);
		size_t n = bytes < sizeof(value) ? bytes : sizeof(value);

		memcpy(at, &value, n);
		at += n;
		bytes -= n;
	}
}
