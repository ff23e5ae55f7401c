// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Number of RNR NAKs: from uroce-stat for uroce devices, from sysfs for other devices that have the
 * counter, otherwise unknown.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

static const char *const names_in_sysfs[] = { "rnr_nak_retry_err", "rcvd_rnr_err" };

static bool source_is_selected(const struct run_options *options, const char *source)
{
	return !strcmp(options->counters, source) || !strcmp(options->counters, "auto");
}

/*
 * Returns the number of RNR NAKs that the first queue pair of a process has received, or -1 if
 * unknown.
 */
static int64_t process_rnr_naks(const char *uroce_stat, int pid)
{
	static const char key[] = "\"rcvd_rnr_err\":";
	char command[320], text[65536];
	const char *at;
	size_t n;
	FILE *pipe;

	snprintf(command, sizeof(command), "%s --json %d 2>/dev/null", uroce_stat, pid);
	pipe = popen(command, "r");
	if (!pipe)
		return -1;
	n = fread(text, 1, sizeof(text) - 1, pipe);
	pclose(pipe);
	text[n] = 0;
	/* Devices before it have the same key, for their destroyed queue pairs. */
	at = strstr(text, "\"qps\":");
	at = at ? strstr(at, key) : NULL;
	return at ? (int64_t)strtoull(at + sizeof(key) - 1, NULL, 10) : -1;
}

static int64_t sysfs_rnr_naks(const char *device, int port)
{
	char path[200];
	int64_t value = -1;

	for (unsigned int i = 0; device && value < 0 && i < 2; i++) {
		FILE *file;

		snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%d/hw_counters/%s",
			 device, port, names_in_sysfs[i]);
		file = fopen(path, "r");
		if (!file)
			continue;
		if (fscanf(file, "%" SCNd64, &value) != 1)
			value = -1;
		fclose(file);
	}
	return value;
}

int64_t counters_sysfs_rnr_naks(const struct run_options *options)
{
	return source_is_selected(options, "sysfs")
		       ? sysfs_rnr_naks(options->device.name, options->device.port)
		       : -1;
}

int64_t counters_rnr_naks(const struct run_options *options, const int pid[FLOW_SIDES],
			  int64_t before)
{
	int64_t sum = 0, one = -1;

	if (source_is_selected(options, "uroce-stat")) {
		for (unsigned int side = 0; side < FLOW_SIDES && pid[side] > 0; side++) {
			one = process_rnr_naks(options->uroce_stat, pid[side]);
			if (one < 0)
				break;
			sum += one;
		}
		if (one >= 0)
			return sum;
	}
	one = counters_sysfs_rnr_naks(options);
	return one < 0 || before < 0 ? -1 : one - before;
}
