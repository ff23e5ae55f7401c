/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Any bytes as a capture file: uroce-trace reads them to the end or reports why it cannot, and its
 * results are consistent.  The captures of the golden tests are the corpus.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trace/input/capture_file.h"
#include "trace/report/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_stream(const struct stream *stream)
{
	const struct stream_stats *counts = &stream->counts;

	assert(stream->unacked <= stream->next || !stream->started);
	assert(counts->resent_packets + counts->late_packets <= counts->request_packets);
	assert(counts->unsolicited_acks + counts->repeated_acks + counts->stale_acks <=
	       counts->acks);
	assert(stream->reads <= stream->messages.count);
	for (size_t i = 1; i < stream->messages.count; i++)
		assert(stream->messages.items[i - 1].end <= stream->messages.items[i].first);
}

static void check(const struct trace *trace)
{
	assert(trace->totals.roce == trace->packets.count);
	for (size_t i = 0; i < trace->connections.count; i++)
		for (int side = 0; side < 2 && trace->connections.items[i].is_reliable; side++)
			check_stream(&trace->connections.items[i].streams[side]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct trace_options options = { .qpn = UINT32_MAX, .keep_events = true };
	static FILE *nowhere;
	struct trace trace;
	char path[64], error[512];
	int file = memfd_create("capture", 0);

	if (!nowhere)
		nowhere = fopen("/dev/null", "w");
	assert(nowhere && file >= 0 && write(file, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	memset(&trace, 0, sizeof(trace));
	if (capture_read(path, trace_add, &trace, error, sizeof(error)) < 0)
		assert(*error && !strchr(error, '\n'));
	trace_analyze(&trace, &options);
	check(&trace);
	report_summary(nowhere, "capture", &trace);
	report_timeline(nowhere, &trace);
	report_json(nowhere, "capture", &trace);
	trace_free(&trace);
	close(file);
	return 0;
}
