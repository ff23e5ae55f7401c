/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* One run of a scheme under a scenario: two processes on this host, or one end of two hosts. */
#ifndef UROCE_FLOW_RUN_H
#define UROCE_FLOW_RUN_H

#include "end.h"

struct run_result {
	const struct scheme *scheme;
	struct scenario sc; /* as it was run: with the depth that was agreed */
	uint64_t seed;
	enum flow_verdict verdict;
	const struct flow_control_pair *predicted; /* NULL: it should be VERDICT_OK */
	struct side_ledger side[FLOW_SIDES];
	int64_t rnr_naks; /* received by both, -1: not known */
	double seconds;	  /* from the first message to the last that was consumed */
	double wall;	  /* with set-up */
};

struct run_options {
	struct device_options device;
	uint64_t seed;
	uint64_t patience_ns;
	const char *counters; /* "auto", "uroce-stat", "sysfs", "none" */
	const char *uroce_stat;
};

/* Both ends on this host.  -1: it could not be run at all. */
int run_pair(const struct run_options *options, const struct scheme *scheme,
	     const struct scenario *sc, struct run_result *result);
/*
 * One end: side 0 has connected, side 1 was connected to and gets its plan from there.  What
 * devices are told by the environment is set before, since a stream of librdmacm opens a device as
 * well.
 */
void run_set_environment(const struct run_options *options, const struct scheme *scheme,
			 const struct scenario *sc, uint32_t side);
int run_apart(const struct run_options *options, struct stream stream, uint32_t side,
	      const struct scheme *scheme, const struct scenario *sc, struct run_result *result);

bool run_is_as_predicted(const struct run_result *result);
double run_goodput_mb(const struct run_result *result); /* 10^6 bytes a second */
double run_messages(const struct run_result *result);	/* consumed, a second */
double run_control_per_data(const struct run_result *result);

/* RNR NAKs that the device counts in sysfs; -1: it does not, or is not asked. */
int64_t counters_before(const struct run_options *options);
/* RNR NAKs that these processes have received, or the device since; -1: not to be known. */
int64_t counters_rnr_naks(const struct run_options *options, const int pid[FLOW_SIDES],
			  int64_t before);

#endif
