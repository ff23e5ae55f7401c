/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Random numbers for tests: the same sequence in every run. */
#ifndef UROCE_TESTS_UNIT_RAND_H
#define UROCE_TESTS_UNIT_RAND_H

#include <stdint.h>

/* Returns a number less than below. */
uint32_t rand_below(uint32_t below);

#endif
