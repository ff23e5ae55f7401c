/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What the environment variable UROCE_FAULT asks for: parts NAME=VALUE with commas in between, each
 * name at most once, for instance
 *
 *   UROCE_FAULT=drop=0.02,dup=0.01,reorder=0.01,corrupt=0.01,delay=200us,seed=7
 *
 *   drop, dup, reorder, corrupt  probability of each packet's fate, 0..1
 *   delay                        of every packet: a number with its unit ns, us, ms or s, up to 10s
 *   seed                         0..2^64-1 (0 when not given)
 *
 * Deterministic means: the fate of the n-th packet that the process hands to the network (n from 0)
 * is a function of seed and n alone.  Which packet is the n-th depends on threads and timing,
 * unless the program has one QP and its peer answers in the same order.
 */
#ifndef UROCE_PROGRESS_FAULT_CONFIG_H
#define UROCE_PROGRESS_FAULT_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "progress.h"

#define FAULT_MAX_DELAY_NS UINT64_C(10000000000)

struct fault_config {
	double drop;
	double duplicate;
	double reorder;
	double corrupt;
	uint64_t delay_ns;
	uint64_t seed;
};

/* 0, or -EINVAL with one line in error that names the part which is wrong and why. */
int fault_parse(const char *text, struct fault_config *config, char error[PROGRESS_ERROR_TEXT]);

/* What becomes of one packet. */
struct fault_fate {
	bool dropped;	     /* then nothing else is true */
	bool duplicated;     /* sent twice */
	bool corrupted;	     /* one bit pattern in one byte is changed, the ICRC is not */
	unsigned int passed; /* held until so many later packets have gone (1..3), 0: not held */
	uint32_t random;     /* which byte is corrupted, and how */
};

struct fault_fate fault_fate(const struct fault_config *config, uint64_t n);

#endif
