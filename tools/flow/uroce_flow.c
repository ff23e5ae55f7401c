// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * uroce-flow: compares flow-control schemes under the same traffic.  It uses only libibverbs and
 * librdmacm and runs on any device with RC.
 */
#include <errno.h>
#include <getopt.h>
#include <libgen.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report.h"

enum { DEFAULT_PORT = 18515, RESULTS = 512 };

struct settings {
	struct run_options run;
	const char *scheme, *scenario, *output, *host;
	uint32_t depth, bytes, count, service_us;
	int port;
	bool all, server, rdma_cm, json;
	char uroce_stat[PATH_MAX + 16];
};

static struct run_result results[RESULTS];
static unsigned int result_count;

static const char usage[] =
	"usage: uroce-flow [options]            both ends on this host\n"
	"       uroce-flow [options] --server   one end: waits for the other\n"
	"       uroce-flow [options] HOST       the other end: sends to HOST\n"
	"\n"
	"  --all              every scheme under every scenario, the negative controls, depths\n"
	"  --scheme=NAME      one scheme; all of them if not given\n"
	"  --scenario=NAME    one scenario; one-way if not given\n"
	"  --list             list schemes and scenarios\n"
	"  --seed=N           default 1\n"
	"  --depth=N          receives promised, 4 to 8192, instead of the scenario's\n"
	"  --bytes=N          message size, 32 to 65536\n"
	"  --count=N          messages per connection\n"
	"  --service=US       receiver's time per message in microseconds\n"
	"  --output=FOLDER    write table.txt, results.json and plots there\n"
	"  --json             results on stdout as JSON\n"
	"  --device=NAME      default: the first with an active port\n"
	"  --ib-port=N        default 1\n"
	"  --gid=INDEX        default: the first that is not zero\n"
	"  --rnr-timer=CODE   0 to 31, default 12 (0.64 ms)\n"
	"  --timeout=CODE     Local ACK Timeout, 0 to 31, default 14 (67 ms)\n"
	"  --patience=SECONDS give up a run after this time without progress, default 20\n"
	"  --counters=SOURCE  source of RNR NAK counts: auto, uroce-stat, sysfs, none\n"
	"  --port=N           port for the connection between both ends, default 18515\n"
	"  --rdma-cm          connect both ends by librdmacm instead of TCP\n"
	"  --help\n"
	"  --version\n";

static const struct option options[] = {
	{ "all", no_argument, NULL, 'a' },
	{ "scheme", required_argument, NULL, 's' },
	{ "scenario", required_argument, NULL, 'c' },
	{ "list", no_argument, NULL, 'l' },
	{ "seed", required_argument, NULL, 'e' },
	{ "depth", required_argument, NULL, 'd' },
	{ "bytes", required_argument, NULL, 'b' },
	{ "count", required_argument, NULL, 'n' },
	{ "service", required_argument, NULL, 'v' },
	{ "output", required_argument, NULL, 'o' },
	{ "json", no_argument, NULL, 'j' },
	{ "device", required_argument, NULL, 'D' },
	{ "ib-port", required_argument, NULL, 'I' },
	{ "gid", required_argument, NULL, 'g' },
	{ "rnr-timer", required_argument, NULL, 'r' },
	{ "timeout", required_argument, NULL, 't' },
	{ "patience", required_argument, NULL, 'P' },
	{ "counters", required_argument, NULL, 'C' },
	{ "port", required_argument, NULL, 'p' },
	{ "rdma-cm", no_argument, NULL, 'R' },
	{ "server", no_argument, NULL, 'S' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

__attribute__((format(printf, 1, 2), noreturn)) static void fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fputs("uroce-flow: ", stderr);
	vfprintf(stderr, format, arguments);
	fputs("\n", stderr);
	va_end(arguments);
	exit(2);
}

static uint64_t parse_number(const char *name, const char *text, uint64_t minimum, uint64_t maximum)
{
	char *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || value < minimum || value > maximum)
		fail("--%s must be a number from %llu to %llu, not \"%s\"", name,
		     (unsigned long long)minimum, (unsigned long long)maximum, text);
	return value;
}

static const char *check_choice(const char *name, const char *text, const char *const *words)
{
	for (; *words; words++)
		if (!strcmp(text, *words))
			return text;
	fail("--%s: invalid value \"%s\"", name, text);
}

/* Handles options with a number.  Returns false for other options. */
static bool set_number_option(struct settings *s, int option, const char *text)
{
	switch (option) {
	case 'e':
		s->run.seed = parse_number("seed", text, 0, UINT32_MAX);
		return true;
	case 'd':
		s->depth = (uint32_t)parse_number("depth", text, MIN_DEPTH, MAX_DEPTH);
		return true;
	case 'b':
		s->bytes = (uint32_t)parse_number("bytes", text, HEADER_BYTES, DEVICE_SCRATCH);
		return true;
	case 'n':
		s->count = (uint32_t)parse_number("count", text, 1, MAX_COUNT);
		return true;
	case 'v':
		s->service_us = (uint32_t)parse_number("service", text, 0, 1000000) + 1;
		return true;
	case 'I':
		s->run.device.port = (int)parse_number("ib-port", text, 1, 255);
		return true;
	case 'g':
		s->run.device.gid_index = (int)parse_number("gid", text, 0, 255);
		return true;
	case 'r':
		s->run.device.rnr_timer = (uint32_t)parse_number("rnr-timer", text, 0, 31);
		return true;
	case 't':
		s->run.device.timeout = (uint32_t)parse_number("timeout", text, 0, 31);
		return true;
	case 'P':
		s->run.stall_timeout_ns =
			parse_number("patience", text, 1, 3600) * UINT64_C(1000000000);
		return true;
	case 'p':
		s->port = (int)parse_number("port", text, 1, 65535);
		return true;
	default:
		return false;
	}
}

static void set_option(struct settings *s, int option, const char *text)
{
	static const char *const sources[] = { "auto", "uroce-stat", "sysfs", "none", NULL };

	if (set_number_option(s, option, text))
		return;
	switch (option) {
	case 'a':
		s->all = true;
		break;
	case 's':
		s->scheme = text;
		if (!scheme_find(text))
			fail("unknown scheme \"%s\"; see --list", text);
		break;
	case 'c':
		s->scenario = text;
		if (!scenario_find(text))
			fail("unknown scenario \"%s\"; see --list", text);
		break;
	case 'l':
		report_schemes(stdout);
		exit(0);
	case 'o':
		s->output = text;
		break;
	case 'j':
		s->json = true;
		break;
	case 'D':
		s->run.device.name = text;
		break;
	case 'C':
		s->run.counters = check_choice("counters", text, sources);
		break;
	case 'S':
		s->server = true;
		break;
	case 'R':
		s->rdma_cm = true;
		break;
	case 'h':
		fputs(usage, stdout);
		exit(0);
	case 'V':
		puts("uroce-flow " UROCE_VERSION);
		exit(0);
	default:
		fputs(usage, stderr);
		exit(2);
	}
}

/* Finds uroce-stat in the directory of this program, otherwise by PATH. */
static void find_uroce_stat(struct settings *s)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	s->run.uroce_stat = "uroce-stat";
	if (n <= 0)
		return;
	self[n] = 0;
	snprintf(s->uroce_stat, sizeof(s->uroce_stat), "%s/uroce-stat", dirname(self));
	if (!access(s->uroce_stat, X_OK) && !strchr(s->uroce_stat, ' '))
		s->run.uroce_stat = s->uroce_stat;
}

/* ---- running ---- */

static struct scenario apply_settings(const struct settings *s, const struct scenario *base)
{
	struct scenario sc = *base;

	if (s->depth)
		sc.depth = s->depth;
	if (s->bytes)
		sc.bytes = s->bytes;
	for (unsigned int side = 0; side < FLOW_SIDES; side++)
		if (s->count && sc.count[side])
			sc.count[side] = s->count;
	if (s->service_us)
		sc.service_ns[1] = (uint64_t)(s->service_us - 1) * 1000;
	return sc;
}

static const struct flow_control_pair *find_negative_control(const char *scenario,
							     const char *scheme)
{
	for (const struct flow_control_pair *p = control_pairs; p->scenario; p++)
		if (!strcmp(p->scenario, scenario) && !strcmp(p->scheme, scheme))
			return p;
	return NULL;
}

static void print_result(const struct settings *s, const struct run_result *result)
{
	if (s->json)
		return;
	report_row(stdout, result);
	report_details(stdout, result);
	fflush(stdout);
}

static void run_one(const struct settings *s, const struct scheme *scheme,
		    const struct scenario *sc)
{
	const struct flow_run run = { &s->run, scheme, sc };
	struct run_result *result = &results[result_count];

	if (result_count == RESULTS)
		return;
	if (run_pair(&run, result))
		fail("cannot start both ends: %s", strerror(errno));
	result->predicted = find_negative_control(sc->name, scheme->name);
	result_count++;
	print_result(s, result);
}

static void run_matrix(const struct settings *s)
{
	static const uint32_t depths[] = { 4, 8, 32, 128 };

	for (const struct scenario *sc = scenarios; sc->name; sc++) {
		struct scenario its = apply_settings(s, sc);

		for (const struct scheme *const *scheme = schemes; *scheme; scheme++)
			if (find_negative_control(sc->name, (*scheme)->name) ||
			    !(sc->only_control || (*scheme)->flags & SCHEME_CONTROL))
				run_one(s, *scheme, &its);
	}
	for (unsigned int i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
		struct scenario its = apply_settings(s, scenario_find("one-way"));

		its.depth = depths[i];
		for (const struct scheme *const *scheme = schemes; *scheme; scheme++)
			if (!((*scheme)->flags & SCHEME_CONTROL))
				run_one(s, *scheme, &its);
	}
}

static void run_selected(const struct settings *s)
{
	struct scenario sc =
		apply_settings(s, scenario_find(s->scenario ? s->scenario : "one-way"));

	for (const struct scheme *const *scheme = schemes; *scheme; scheme++)
		if (s->scheme ? !strcmp((*scheme)->name, s->scheme)
			      : !((*scheme)->flags & SCHEME_CONTROL))
			run_one(s, *scheme, &sc);
}

/*
 * Opens the out-of-band stream to the peer.  Returns 0, or -1 with errno; exits if it cannot
 * listen.
 */
static int open_stream(const struct settings *s, struct oob_sock *sock)
{
	struct oob_sock listener;

	if (!s->server)
		return oob_sock_connect(sock, s->rdma_cm, s->host, s->port);
	if (oob_sock_listen(&listener, s->rdma_cm, s->port))
		fail("%s port %d: %s", s->rdma_cm ? "RDMA" : "TCP", s->port, strerror(errno));
	return oob_sock_accept(sock, &listener);
}

static void run_endpoint(const struct settings *s)
{
	struct scenario sc =
		apply_settings(s, scenario_find(s->scenario ? s->scenario : "one-way"));
	const struct scheme *scheme = scheme_find(s->scheme ? s->scheme : "rds-lowwater");
	const struct flow_run run = { &s->run, scheme, &sc };
	struct run_result *result = &results[0];
	struct oob_sock sock;

	run_set_environment(&run, s->server);
	if (open_stream(s, &sock))
		fail("%s: %s", s->server ? "accept" : s->host, strerror(errno));
	if (s->server && !s->depth)
		sc.depth = MAX_DEPTH;
	if (run_one_endpoint(&run, sock, s->server, result) || !result->scheme)
		fail("the run failed: %s", result->side[s->server].what);
	oob_sock_close(sock);
	result->predicted = find_negative_control(result->sc.name, result->scheme->name);
	result_count = 1;
	print_result(s, result);
}

static void write_output(const struct settings *s)
{
	char path[PATH_MAX];
	FILE *out;

	if (mkdir(s->output, 0777) && errno != EEXIST)
		fail("%s: %s", s->output, strerror(errno));
	snprintf(path, sizeof(path), "%s/results.json", s->output);
	out = fopen(path, "w");
	if (!out)
		fail("%s: %s", path, strerror(errno));
	report_json(out, results, result_count);
	fclose(out);
	snprintf(path, sizeof(path), "%s/table.txt", s->output);
	out = fopen(path, "w");
	if (!out)
		fail("%s: %s", path, strerror(errno));
	report_header(out);
	for (unsigned int i = 0; i < result_count; i++)
		report_row(out, &results[i]);
	for (unsigned int i = 0; i < result_count; i++)
		report_details(out, &results[i]);
	if (s->all)
		report_smallest_depths(out, results, result_count);
	fclose(out);
	if (s->all && plot_all(s->output, results, result_count))
		fprintf(stderr, "uroce-flow: no plots in %s: %s\n", s->output, strerror(errno));
}

int main(int argc, char **argv)
{
	struct settings s = {
		.run = { .device = { .port = 1, .gid_index = -1, .rnr_timer = 12, .timeout = 14 },
			 .seed = 1,
			 .stall_timeout_ns = UINT64_C(20000000000),
			 .counters = "auto" },
		.port = DEFAULT_PORT
	};
	unsigned int unexpected = 0;
	int option;

	while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1)
		set_option(&s, option, optarg);
	if (optind < argc)
		s.host = argv[optind++];
	if (optind < argc || (s.server && s.host) || (s.all && (s.server || s.host)))
		fail("--all, --server and one HOST exclude each other; --help shows the usage");
	if (s.rdma_cm && !s.server && !s.host)
		fail("--rdma-cm is for two hosts: with --server or HOST");
	find_uroce_stat(&s);
	if (!s.json)
		report_header(stdout);
	if (s.server || s.host)
		run_endpoint(&s);
	else if (s.all)
		run_matrix(&s);
	else
		run_selected(&s);
	if (s.json)
		report_json(stdout, results, result_count);
	if (s.all && !s.json)
		report_smallest_depths(stdout, results, result_count);
	if (s.output)
		write_output(&s);
	for (unsigned int i = 0; i < result_count; i++)
		unexpected += !run_is_as_predicted(&results[i]);
	if (unexpected && !s.json)
		printf("%u of %u runs did not end as predicted\n", unexpected, result_count);
	return unexpected ? 1 : 0;
}
