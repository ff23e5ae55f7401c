/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* uroce-stat: shows the state of the uroce processes of this user. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "broker/names.h"
#include "link/link.h"
#include "uroce_stat.h"

struct options {
	bool json;
	bool all;
	bool watch;
	double seconds;
	unsigned long pid;   /* 0 for all processes */
	const char *capture; /* settings of --capture, or NULL */
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

/* Returns 0 to continue, else the exit code plus one. */
static int parse_args(int argc, char **argv, struct options *options)
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

struct view {
	const struct options *options;
	struct link_guest broker;
	unsigned int shown; /* number of processes */
	/* Number of processes that could not be shown, and of brokers without reply or access */
	unsigned int failed;
	bool has_failed; /* failed was not 0, perhaps in an earlier round */
};

/* Prints why the process of a slot is not shown.  snapshot may be NULL. */
static void print_failure(uint32_t slot, int error, const json_t *snapshot)
{
	const char *version = json_string_value(json_object_get(snapshot, "version"));

	if (snapshot)
		fprintf(stderr,
			"uroce-stat: process %lu has uroce %s, whose format this uroce-stat (%s) "
			"does not know\n",
			snapshot_pid(snapshot), version ? version : "?", UROCE_VERSION);
	else
		fprintf(stderr, "uroce-stat: slot %u does not answer: %s\n", slot,
			strerror(-error));
}

/* Shows the process of a slot.  Callback of link_guest_for_each(); returns false to continue. */
static bool show_process(void *arg, uint32_t slot)
{
	struct view *view = arg;
	const struct options *options = view->options;
	json_t *snapshot;
	int result = snapshot_fetch(&view->broker, slot, &snapshot);

	if (result == -ENOENT)
		return false;
	if (snapshot && options->pid != 0 && options->pid != snapshot_pid(snapshot)) {
		/* Another process */
	} else if (result < 0) {
		print_failure(slot, result, snapshot);
		view->failed++;
	} else {
		if (options->json) {
			if (view->shown > 0)
				putchar(',');
			report_json(stdout, snapshot);
		} else {
			report_text(stdout, snapshot, options->all);
		}
		view->shown++;
	}
	json_decref(snapshot);
	return false;
}

/* A broker of another version has processes that this program cannot reach. */
static void report_other_version(struct view *view)
{
	char other[NAMES_OTHER_VERSION_TEXT];

	if ((view->options->pid && view->shown) || !names_find_other_version(geteuid(), other))
		return;
	fprintf(stderr, "uroce-stat: %s: the processes of that version are not shown\n", other);
	view->failed++;
}

/* Shows all processes once.  Without a broker there are none. */
static void show_processes(struct view *view)
{
	int result = link_guest_open(&view->broker);

	view->shown = view->failed = 0;
	if (view->options->json)
		putchar('[');
	if (!result) {
		link_guest_for_each(&view->broker, show_process, view);
		link_guest_close(&view->broker);
	} else if (result != -ENOENT) {
		fprintf(stderr, "uroce-stat: uroce-broker does not answer: %s\n",
			strerror(-result));
		view->failed++;
	}
	if (view->options->json)
		puts("]");
	report_other_version(view);
	view->has_failed |= view->failed > 0;
}

int main(int argc, char **argv)
{
	struct options options = { .seconds = 1 };
	struct view view = { .options = &options };
	bool found = false;
	int result = parse_args(argc, argv, &options);

	if (result > 0)
		return result - 1;
	if (options.capture)
		return capture_control(options.pid, options.capture);
	for (;;) {
		if (options.watch && !options.json && isatty(STDOUT_FILENO))
			fputs("\033[H\033[2J", stdout);
		show_processes(&view);
		found = found || view.shown > 0;
		if (view.shown == 0 && view.failed == 0 && !options.json)
			puts(options.pid ? "uroce-stat: no uroce process of yours has this number"
					 : "uroce-stat: you have no uroce process running");
		if (fflush(stdout) != 0)
			return 1;
		if (!options.watch)
			break;
		usleep((useconds_t)(options.seconds * 1e6));
	}
	return view.has_failed || (options.pid && !found) ? 1 : 0;
}
