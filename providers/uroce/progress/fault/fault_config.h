/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Parses UROCE_FAULT: comma-separated NAME=VALUE, each name at most once, for example
 *
 *   UROCE_FAULT=drop=0.02,dup=0.01,reorder=0.01,corrupt=0.01,delay=200us,seed=7
 *
 *   drop, dup, reorder, corrupt  probability of the fault for each packet, 0..1
 *   delay                        of every packet: a number with unit ns, us, ms or s, up to 10s
 *   seed                         0..2^64-1, default 0
 *
 * The faults of the n-th packet that the process sends (n from 0) depend on seed and n only.  Which
 * packet is the n-th depends on threads and timing, unless the program has one QP and its peer
 * replies in the same order.
 */
#ifndef UROCE_PROGRESS_FAULT_FAULT_CONFIG_H
#define UROCE_PROGRESS_FAULT_FAULT_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "progress/progress.h"

#define FAULT_MAX_DELAY_NS UINT64_C(10000000000)

struct fault_config {
	double drop;
	double duplicate;
	double reorder;
	double corrupt;
	uint64_t delay_ns;
	uint64_t seed;
};

/* Returns 0, or -EINVAL with one line in error that contains the invalid part and the reason. */
int fault_parse(const char *text, struct fault_config *config, char error[PROGRESS_ERROR_TEXT]);

/* Faults of one packet. */
struct fault_action {
	bool dropped;	 /* excludes the others */
	bool duplicated; /* sent twice */
	bool corrupted;	 /* one byte is changed, without updating the ICRC */
	unsigned int
		hold_packets; /* number of later packets for which it is held (1..3); 0: not held */
	uint32_t random;      /* selects the byte to corrupt, and how */
};

struct fault_action fault_action(const struct fault_config *config, uint64_t n);

#endif
