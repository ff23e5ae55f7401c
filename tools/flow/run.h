/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* A run of a scheme under a scenario: two processes on this host, or one endpoint of two hosts. */
#ifndef UROCE_FLOW_RUN_H
#define UROCE_FLOW_RUN_H

#include "runner.h"

struct run_result {
	const struct scheme *scheme;
	struct scenario sc; /* scenario of the run, with the negotiated depth */
	uint64_t seed;
	enum flow_verdict verdict;
	/* the negative control of this run and its verdict; NULL: VERDICT_OK is expected */
	const struct flow_control_pair *predicted;
	struct endpoint_stats side[FLOW_SIDES];
	int64_t rnr_naks; /* number of RNR NAKs received by the local endpoints; -1: unknown */
	double seconds;	  /* time from the first message sent to the last consumed */
};

struct run_options {
	struct device_options device;
	uint64_t seed;
	uint64_t stall_timeout_ns;
	const char *counters; /* "auto", "uroce-stat", "sysfs", "none" */
	const char *uroce_stat;
};

struct flow_run {
	const struct run_options *options;
	const struct scheme *scheme;
	const struct scenario *sc;
};

/*
 * Runs both endpoints on this host.  Returns 0 with a verdict in *result, or -1 with errno if the
 * shared memory or the sockets cannot be created.
 */
int run_pair(const struct flow_run *run, struct run_result *result);
/*
 * run_one_endpoint() runs one endpoint: side 0 has connected, side 1 has accepted and receives the
 * plan.  Returns 0 or -1.  run_set_environment() sets the environment variables that uroce reads
 * when it opens a device; it must be called before the stream is opened, since an rsocket opens the
 * device as well.
 */
void run_set_environment(const struct flow_run *run, uint32_t side);
int run_one_endpoint(const struct flow_run *run, struct oob_sock sock, uint32_t side,
		     struct run_result *result);

bool run_is_as_predicted(const struct run_result *result);
double run_goodput_mb(const struct run_result *result); /* in 10^6 bytes/s */
double run_messages(const struct run_result *result);	/* consumed messages/s */
double run_updates_per_message(const struct run_result *result);

/*
 * Returns the device's number of RNR NAKs in sysfs, or -1 if it has none or options->counters
 * selects another source.
 */
int64_t counters_sysfs_rnr_naks(const struct run_options *options);
/*
 * Returns the number of RNR NAKs received by these processes, from uroce-stat, or else by the
 * device: its number in sysfs less the earlier one, before.  Returns -1 if unknown.
 */
int64_t counters_rnr_naks(const struct run_options *options, const int pid[FLOW_SIDES],
			  int64_t before);

#endif
