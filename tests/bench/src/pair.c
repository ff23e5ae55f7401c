/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "pair.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Time for caches, windows and the frequency of the processor to settle. */
#define WARM_UP_SECONDS 0.1 /* of a stream */
#define WARM_UP_ROUNDS 1000 /* of a ping-pong */
#define MAX_SAMPLES (4u << 20)

_Noreturn void pair_die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

uint64_t pair_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

static _Noreturn void usage(const char *program, const char *modes)
{
	fprintf(stderr,
		"usage: %s MODE [--size BYTES] [--run PACKETS] [--region BYTES] [--work]\n"
		"       [--seconds S] [--blocking] [--cpus SERVER,CLIENT]\n"
		"       [--netns SERVER,CLIENT] [--addresses SERVER,CLIENT]\n"
		"MODE: %s\n",
		program, modes);
	exit(2);
}

/* Splits "a,b" in place. */
static bool two_words(char *text, const char *words[PAIR_SIDES])
{
	char *comma = strchr(text, ',');

	if (!comma)
		return false;
	*comma = '\0';
	words[PAIR_SERVER] = text;
	words[PAIR_CLIENT] = comma + 1;
	return true;
}

static bool two_cpus(char *text, int cpu[PAIR_SIDES])
{
	const char *words[PAIR_SIDES];

	if (!two_words(text, words))
		return false;
	cpu[PAIR_SERVER] = atoi(words[PAIR_SERVER]);
	cpu[PAIR_CLIENT] = atoi(words[PAIR_CLIENT]);
	return true;
}

static bool two_addresses(char *text, struct in_addr address[PAIR_SIDES])
{
	const char *words[PAIR_SIDES];

	return two_words(text, words) &&
	       inet_pton(AF_INET, words[PAIR_SERVER], &address[PAIR_SERVER]) == 1 &&
	       inet_pton(AF_INET, words[PAIR_CLIENT], &address[PAIR_CLIENT]) == 1;
}

static bool take_option(struct pair *pair, int option, char *value)
{
	switch (option) {
	case 's':
		pair->size = strtoul(value, NULL, 0);
		return pair->size != 0;
	case 'r':
		pair->run = (unsigned int)strtoul(value, NULL, 0);
		return pair->run != 0;
	case 'R':
		pair->region = strtoul(value, NULL, 0);
		return true;
	case 't':
		pair->seconds = strtod(value, NULL);
		return pair->seconds > 0;
	case 'b':
		pair->blocking = true;
		return true;
	case 'w':
		pair->work = true;
		return true;
	case 'c':
		return two_cpus(value, pair->cpu);
	case 'n':
		return two_words(value, pair->netns);
	case 'a':
		return two_addresses(value, pair->address);
	default:
		return false;
	}
}

void pair_options(struct pair *pair, int argc, char **argv, const char *modes)
{
	static const struct option options[] = {
		{ "size", required_argument, NULL, 's' },
		{ "run", required_argument, NULL, 'r' },
		{ "region", required_argument, NULL, 'R' },
		{ "seconds", required_argument, NULL, 't' },
		{ "blocking", no_argument, NULL, 'b' },
		{ "work", no_argument, NULL, 'w' },
		{ "cpus", required_argument, NULL, 'c' },
		{ "netns", required_argument, NULL, 'n' },
		{ "addresses", required_argument, NULL, 'a' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	*pair = (struct pair){ .size = 32, .run = 1, .seconds = 0.5 };
	pair->cpu[PAIR_SERVER] = 1;
	pair->address[PAIR_SERVER].s_addr = htonl(INADDR_LOOPBACK);
	pair->address[PAIR_CLIENT].s_addr = htonl(INADDR_LOOPBACK);
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (!take_option(pair, option, optarg))
			usage(argv[0], modes);
	}
	if (optind + 1 != argc)
		usage(argv[0], modes);
	pair->mode = argv[optind];
}

static void enter_netns(const char *name)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "/run/netns/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET) != 0)
		pair_die(path);
	close(fd);
}

static void become(struct pair *pair, int side)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET((size_t)pair->cpu[side], &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus) != 0)
		pair_die("sched_setaffinity");
	if (pair->netns[side])
		enter_netns(pair->netns[side]);
}

static pid_t start(struct pair *pair, int side, void (*work)(struct pair *))
{
	pid_t child = fork();

	if (child < 0)
		pair_die("fork");
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		become(pair, side);
		work(pair);
		exit(0);
	}
	return child;
}

/* An error in a child has been reported there; here it only ends the run. */
static void end(pid_t child, bool kill_it)
{
	int status;

	if (kill_it && waitpid(child, &status, WNOHANG) == 0) {
		kill(child, SIGKILL);
		waitpid(child, &status, 0);
		return;
	}
	if (!kill_it && waitpid(child, &status, 0) != child)
		pair_die("waitpid");
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		exit(1);
}

static void share(struct pair *pair)
{
	pair->shared = mmap(NULL, sizeof(*pair->shared), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (pair->shared == MAP_FAILED)
		pair_die("mmap");
}

void pair_run(struct pair *pair, void (*server)(struct pair *), void (*client)(struct pair *))
{
	pid_t children[PAIR_SIDES];

	share(pair);
	children[PAIR_SERVER] = start(pair, PAIR_SERVER, server);
	children[PAIR_CLIENT] = start(pair, PAIR_CLIENT, client);
	end(children[PAIR_CLIENT], false);
	pair->shared->stop = true;
	end(children[PAIR_SERVER], true);
}

static void report_stream(struct pair *pair)
{
	uint64_t first_bytes, last_bytes, first_ns, last_ns;
	double seconds;

	usleep((useconds_t)(WARM_UP_SECONDS * 1e6));
	first_bytes = pair->shared->bytes;
	first_ns = pair_now_ns();
	usleep((useconds_t)(pair->seconds * 1e6));
	last_bytes = pair->shared->bytes;
	last_ns = pair_now_ns();
	if (last_bytes == first_bytes) {
		errno = ETIMEDOUT;
		pair_die("the stream");
	}
	seconds = (double)(last_ns - first_ns) / 1e9;
	printf("{\"mode\": \"%s\", \"size\": %zu, \"bytes_per_s\": %.0f, \"units_per_s\": %.0f}\n",
	       pair->mode, pair->size, (double)(last_bytes - first_bytes) / seconds,
	       (double)(last_bytes - first_bytes) / (double)pair->size / seconds);
}

void pair_run_stream(struct pair *pair, void (*server)(struct pair *),
		     void (*client)(struct pair *))
{
	pid_t children[PAIR_SIDES];

	share(pair);
	children[PAIR_SERVER] = start(pair, PAIR_SERVER, server);
	children[PAIR_CLIENT] = start(pair, PAIR_CLIENT, client);
	report_stream(pair);
	pair->shared->stop = true;
	/* One of them may be blocked in a call that waits for the other, which has stopped. */
	end(children[PAIR_CLIENT], true);
	end(children[PAIR_SERVER], true);
}

void pair_bind(struct pair *pair, int fd, int side)
{
	struct sockaddr_in name = { .sin_family = AF_INET, .sin_addr = pair->address[side] };
	socklen_t length = sizeof(name);

	if (bind(fd, (struct sockaddr *)&name, sizeof(name)) != 0 ||
	    getsockname(fd, (struct sockaddr *)&name, &length) != 0)
		pair_die("bind");
	pair->shared->port[side] = ntohs(name.sin_port);
}

struct sockaddr_in pair_address(struct pair *pair, int side)
{
	struct sockaddr_in name = { .sin_family = AF_INET, .sin_addr = pair->address[side] };
	uint64_t give_up = pair_now_ns() + PAIR_PATIENCE_NS;

	while (pair->shared->port[side] == 0) {
		if (pair_now_ns() > give_up) {
			errno = ETIMEDOUT;
			pair_die("the other side");
		}
		usleep(100);
	}
	name.sin_port = htons(pair->shared->port[side]);
	return name;
}

void pair_socket_buffers(int fd, int bytes)
{
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
}

struct samples {
	uint32_t *ns; /* whole round trips */
	size_t count;
	size_t limit;
};

static void open_samples(struct samples *samples, size_t limit)
{
	*samples = (struct samples){ .limit = limit };
	samples->ns = calloc(limit, sizeof(*samples->ns));
	if (!samples->ns)
		pair_die("calloc");
	/* Touched before the measurement, so that no page fault falls into it. */
	memset(samples->ns, 1, limit * sizeof(*samples->ns));
}

static int compare_samples(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void report_latency(struct pair *pair, struct samples *samples)
{
	double sum = 0;
	size_t n = samples->count;

	if (n == 0) {
		errno = ETIMEDOUT;
		pair_die("the ping-pong");
	}
	qsort(samples->ns, n, sizeof(*samples->ns), compare_samples);
	for (size_t i = 0; i < n; i++)
		sum += samples->ns[i];
	printf("{\"mode\": \"%s\", \"size\": %zu, \"count\": %zu, \"mean_us\": %.3f, "
	       "\"p50_us\": %.3f, \"p99_us\": %.3f}\n",
	       pair->mode, pair->size, n, sum / (double)n / 2e3, samples->ns[n / 2] / 2e3,
	       samples->ns[n - 1 - n / 100] / 2e3);
}

void pair_measure_latency(struct pair *pair, bool (*exchange)(struct pair *, void *), void *arg)
{
	struct samples samples;
	uint64_t end = 0, before;

	open_samples(&samples, MAX_SAMPLES);
	before = pair_now_ns();
	for (uint64_t i = 0; samples.count < samples.limit; i++) {
		uint64_t now;

		if (!exchange(pair, arg))
			pair_die("no answer");
		now = pair_now_ns();
		if (i == WARM_UP_ROUNDS)
			end = now + (uint64_t)(pair->seconds * 1e9);
		if (i > WARM_UP_ROUNDS)
			samples.ns[samples.count++] = (uint32_t)(now - before);
		before = now;
		if (end && now > end)
			break;
	}
	report_latency(pair, &samples);
}
