/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "rand.h"

uint32_t rand_below(uint32_t below)
{
	static uint64_t state = 88172645463325252u;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 20) % below;
}
