/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* uroce-trace: analyses RoCEv2 connections in a capture, of uroce or any other device. */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/input/capture_file.h"
#include "trace/report/report.h"

#define QPN_MAX 0xffffffu

enum exit_code {
	EXIT_OK = 0,
	EXIT_UNREADABLE = 1, /* or the result could not be written or drawn */
	EXIT_USAGE = 2,
	EXIT_EMPTY = 3, /* no RoCEv2 packet in the file */
};

struct options {
	const char *path, *plot;
	bool summary, json, timeline;
	struct plot_range range;
	struct trace_options trace;
};

static const char usage[] =
	"usage: uroce-trace [--summary] [--json] [--timeline] [--plot FILE] [--qp N]\n"
	"                   [--from SECONDS] [--to SECONDS] FILE\n"
	"Shows what a capture (pcap or pcapng; - is standard input) of RoCEv2 says of its queue\n"
	"pairs: PSNs, credits, NAKs, what was sent again, round trips, and broken rules.\n"
	"  -s, --summary       a table for each connection (default, if nothing else is asked "
	"for)\n"
	"  -j, --json          the same as JSON\n"
	"  -t, --timeline      every event with the state behind it, as comma-separated values\n"
	"  -p, --plot FILE     draw sent, acknowledged and the credit limit: .png, .svg, .pdf, "
	".gp\n"
	"  -q, --qp N          only connections of queue pair N (0x... is hexadecimal)\n"
	"      --from, --to    the seconds that are drawn, from the capture's begin\n"
	"  -h, --help          this text\n"
	"      --version       the version\n"
	"Exit code: 0; 1 when FILE is not readable to its end, or the result not writable; 2 for\n"
	"wrong usage; 3 when FILE has no packet of RoCEv2.\n";

static bool parse_seconds(const char *text, double *seconds)
{
	char *end;

	*seconds = strtod(text, &end);
	return end != text && *end == '\0' && isfinite(*seconds) && *seconds >= 0;
}

static bool parse_qpn(const char *text, uint32_t *qpn)
{
	char *end;
	unsigned long value = strtoul(text, &end, 0);

	*qpn = (uint32_t)value;
	return end != text && *end == '\0' && *text != '-' && value <= QPN_MAX;
}

static bool reject_option(const char *name, const char *text, const char *why)
{
	fprintf(stderr, "uroce-trace: %s %s: %s\n", name, text, why);
	return false;
}

static bool parse_option(struct options *options, int c)
{
	switch (c) {
	case 's':
		options->summary = true;
		return true;
	case 'j':
		options->json = true;
		return true;
	case 't':
		options->timeline = true;
		return true;
	case 'p':
		options->plot = optarg;
		return plot_name_known(optarg) ||
		       reject_option("--plot", optarg, "not a .png, .svg, .pdf or .gp file");
	case 'q':
		return parse_qpn(optarg, &options->trace.qpn) ||
		       reject_option("--qp", optarg, "not the number of a queue pair");
	case 'f':
		return parse_seconds(optarg, &options->range.from) ||
		       reject_option("--from", optarg, "not a time in seconds");
	case 'T':
		return parse_seconds(optarg, &options->range.to) ||
		       reject_option("--to", optarg, "not a time in seconds");
	default:
		fputs(usage, stderr);
		return false;
	}
}

/* Returns -1 to continue, else the exit code. */
static int parse_args(int argc, char **argv, struct options *options)
{
	static const struct option names[] = {
		{ "summary", no_argument, NULL, 's' },	{ "json", no_argument, NULL, 'j' },
		{ "timeline", no_argument, NULL, 't' }, { "plot", required_argument, NULL, 'p' },
		{ "qp", required_argument, NULL, 'q' }, { "from", required_argument, NULL, 'f' },
		{ "to", required_argument, NULL, 'T' }, { "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },	{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "sjtp:q:h", names, NULL)) != -1) {
		if (c == 'h') {
			fputs(usage, stdout);
			return EXIT_OK;
		}
		if (c == 'V') {
			puts("uroce-trace " UROCE_VERSION);
			return EXIT_OK;
		}
		if (!parse_option(options, c))
			return EXIT_USAGE;
	}
	if (optind + 1 != argc || options->json + options->timeline > 1 ||
	    (options->summary && options->json)) {
		fputs(usage, stderr);
		return EXIT_USAGE;
	}
	options->path = argv[optind];
	if (!options->json && !options->timeline && !options->plot)
		options->summary = true;
	options->trace.keep_events = options->timeline || options->plot;
	return -1;
}

static int write_reports(const struct options *options, struct trace *trace)
{
	int result = 0;

	trace_analyze(trace, &options->trace);
	if (options->summary)
		report_summary(stdout, options->path, trace);
	if (options->json)
		result |= report_json(stdout, options->path, trace);
	if (options->timeline)
		report_timeline(stdout, trace);
	if (options->plot && trace->totals.roce)
		result |= plot_draw(options->plot, trace, &options->range);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		fprintf(stderr, "uroce-trace: standard output is not writable\n");
		result = -1;
	}
	return result;
}

int main(int argc, char **argv)
{
	static struct trace trace;
	struct options options = { .range = { 0, -1 }, .trace = { .qpn = UINT32_MAX } };
	int code = parse_args(argc, argv, &options);
	char error[512];
	int read;

	if (code >= 0)
		return code;
	read = capture_read(options.path, trace_add, &trace, error, sizeof(error));
	/* Show what was read of a truncated file. */
	if (read < 0)
		fprintf(stderr, "uroce-trace: %s: %s\n", options.path, error);
	code = EXIT_UNREADABLE;
	if (read == 0 || trace.totals.roce > 0)
		code = write_reports(&options, &trace) || read < 0 ? EXIT_UNREADABLE
		       : trace.totals.roce			   ? EXIT_OK
								   : EXIT_EMPTY;
	if (code == EXIT_EMPTY)
		fprintf(stderr, "uroce-trace: %s: no packet of RoCEv2 (UDP port %d)\n",
			options.path, WIRE_UDP_PORT);
	trace_free(&trace);
	return code;
}
