/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * uroce-stat: what the uroce processes of this user are doing.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture_control.h"
#include "link/link.h"
#include "report.h"

struct options {
	bool json;
	bool all;
	bool watch;
	double seconds;
	unsigned long pid;   /* 0: all */
	const char *capture; /* NULL, or the file */
};

static const char usage[] =
	"usage: uroce-stat [--json] [--all] [--watch[=SECONDS]] [PID]\n"
	"       uroce-stat --capture PID FILE[,OPTION=VALUE...]\n"
	"Shows the uroce processes of this user: devices, queue pairs (state, peer, PSNs, "
	"credits,\n"
	"retries, what is outstanding) and counters.\n"
	"  -j, --json             one JSON array of processes (with --watch: one a line)\n"
	"  -a, --all              also counters that are zero\n"
	"  -w, --watch[=SECONDS]  again every SECONDS (default 1) until interrupted\n"
	"  -c, --capture PID      write the packets of this process to FILE (pcapng; -: standard\n"
	"                         output) until interrupted; options as in UROCE_CAPTURE\n"
	"  -h, --help             this text\n"
	"      --version          the version\n"
	"Exit code: 0 when all answered, 1 when one did not or PID is not there, 2 for wrong "
	"usage.\n";

static bool parse_seconds(const char *text, double *seconds)
{
	char *end;

	*seconds = strtod(text, &end);
	return end != text && *end == '\0' && *seconds >= 0.01 && *seconds <= 86400;
}

/* 0: go on; else the exit code plus one. */
static int parse(int argc, char **argv, struct options *options)
{
	static const struct option names[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "all", no_argument, NULL, 'a' },
		{ "watch", optional_argument, NULL, 'w' },
		{ "capture", required_argument, NULL, 'c' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	const char *pid = NULL;
	char *end;
	int c;

	while ((c = getopt_long(argc, argv, "jaw::c:h", names, NULL)) != -1) {
		if (c == 'j') {
			options->json = true;
		} else if (c == 'a') {
			options->all = true;
		} else if (c == 'w') {
			options->watch = true;
			if (optarg && !parse_seconds(optarg, &options->seconds)) {
				fprintf(stderr, "uroce-stat: --watch=%s: not a time in seconds\n",
					optarg);
				return 3;
			}
		} else if (c == 'c') {
			pid = optarg;
		} else if (c == 'h') {
			fputs(usage, stdout);
			return 1;
		} else if (c == 'V') {
			puts("uroce-stat " UROCE_VERSION);
			return 1;
		} else {
			fputs(usage, stderr);
			return 3;
		}
	}
	if (pid)
		options->capture = optind < argc ? argv[optind++] : "";
	else if (optind < argc)
		pid = argv[optind++];
	if (pid) {
		options->pid = strtoul(pid, &end, 10);
		if (*end || options->pid == 0 || optind < argc) {
			fputs(usage, stderr);
			return 3;
		}
	}
	return 0;
}

/* How many processes were shown; *failed is set when one did not answer. */
static unsigned int show(const struct options *options, bool *failed)
{
	unsigned int shown = 0;

	if (options->json)
		putchar('[');
	for (unsigned int slot = 0; slot < LINK_SLOTS; slot++) {
		struct snapshot snapshot;
		int result = snapshot_fetch(slot, &snapshot);

		/* No process, or another user's: not ours to show. */
		if (result == -ENOENT || result == -EPERM)
			continue;
		/* It has ended while it was being asked. */
		if (result == -ECONNRESET || result == -EPIPE)
			continue;
		if (result < 0) {
			fprintf(stderr, "uroce-stat: slot %u does not answer: %s\n", slot,
				strerror(-result));
			*failed = true;
			continue;
		}
		if (options->pid == 0 || options->pid == snapshot.process->pid) {
			if (options->json) {
				if (shown > 0)
					putchar(',');
				report_json(stdout, &snapshot);
			} else {
				report_table(stdout, &snapshot, options->all);
			}
			shown++;
		}
		snapshot_free(&snapshot);
	}
	if (options->json)
		puts("]");
	return shown;
}

int main(int argc, char **argv)
{
	struct options options = { .seconds = 1 };
	bool failed = false, found = false;
	int result = parse(argc, argv, &options);

	if (result > 0)
		return result - 1;
	if (options.capture)
		return capture_control(options.pid, options.capture);
	for (;;) {
		unsigned int shown;

		if (options.watch && !options.json && isatty(STDOUT_FILENO))
			fputs("\033[H\033[2J", stdout);
		shown = show(&options, &failed);
		found = found || shown > 0;
		if (shown == 0 && !options.json)
			puts(options.pid ? "uroce-stat: no uroce process of yours has this number"
					 : "uroce-stat: you have no uroce process running");
		if (fflush(stdout) != 0)
			return 1;
		if (!options.watch)
			break;
		usleep((useconds_t)(options.seconds * 1e6));
	}
	return failed || (options.pid && !found) ? 1 : 0;
}
