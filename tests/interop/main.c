/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * usage: interop_end -d DEVICE -g GID_INDEX -p PORT [options] [SERVER]
 *
 * Runs the plans of both ends (end.h) and prints one line with the result, or the first error.
 */
#include "end.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	BATCH = 32,
	NS_PER_S = 1000000000,
	STALL_S = 20, /* seconds without a completion or a post after which the run has failed */
	NAP_US = 1000,
	WAIT_MS = 20,
};

void die(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fprintf(stderr, "interop_end: ");
	vfprintf(stderr, format, arguments);
	fprintf(stderr, "\n");
	va_end(arguments);
	exit(1);
}

uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static enum ibv_mtu mtu_of(unsigned int bytes)
{
	enum ibv_mtu mtu = IBV_MTU_256;

	while (mtu < IBV_MTU_4096 && 128u << mtu < bytes)
		mtu++;
	return mtu;
}

static void option(struct options *options, int letter, const char *value)
{
	bool right = true;

	switch (letter) {
	/* clang-format off */
	case 'd': options->device = value; break;
	case 'g': options->gid_index = atoi(value); break;
	case 'p': options->port = value; break;
	case 'm': options->mtu = mtu_of((unsigned int)atoi(value)); break;
	case 'u': options->type = IBV_QPT_UC; break;
	case 'T': options->timeout = (uint8_t)atoi(value); break;
	case 'R': options->retries = (uint8_t)atoi(value); break;
	case 'q': options->connections = (unsigned int)atoi(value); break;
	case 'o': options->depth = (unsigned int)atoi(value); break;
	case 'n': options->count = (uint32_t)atoi(value); break;
	case 't': options->seconds = atof(value); break;
	case 'i': options->pause = atof(value); break;
	case 'D': options->asks = !!strchr(value, options->address ? 'c' : 's'); break;
	case 'e': options->events = true; break;
	case 'x': options->at_end = value; break;
	case 'k': right = plan_parse_kinds(&options->plan, value); break;
	case 's': right = plan_parse_sizes(&options->plan, value); break;
	case 'L': options->plan.min_size = (uint32_t)atoi(value); break;
	case 'S': options->plan.max_size = (uint32_t)atoi(value); break;
	/* clang-format on */
	default:
		right = false;
	}
	if (!right)
		die("usage: -%c", letter);
}

static void read_options(struct options *options, int argc, char **argv)
{
	const char *letters = "d:g:p:m:uT:R:q:o:n:t:i:D:ex:k:s:L:S:";
	int letter;

	*options = (struct options){ .mtu = IBV_MTU_1024,
				     .type = IBV_QPT_RC,
				     .timeout = 17,
				     .retries = 7,
				     .connections = 1,
				     .depth = 1,
				     .asks = true };
	plan_parse_kinds(&options->plan, "siwWrfc");
	/* The role is known only after getopt() has moved the non-options to the end of argv. */
	while (getopt(argc, argv, letters) != -1)
		;
	if (optind < argc)
		options->address = argv[optind];
	optind = 1;
	while ((letter = getopt(argc, argv, letters)) != -1)
		option(options, letter, optarg);
	if (!options->device || !options->port || options->connections > MAX_CONNECTIONS ||
	    !options->connections || options->depth > MAX_DEPTH || !options->depth ||
	    (!options->count && !options->seconds))
		die("usage: interop_end -d DEVICE -g GID_INDEX -p PORT -n COUNT [options] "
		    "[SERVER]");
}

static struct connection *connection_of(struct interop_end *end, const struct ibv_wc *wc)
{
	struct connection *connection = &end->connections[wc->wr_id];

	if (wc->wr_id >= end->options.connections || connection->qp->qp_num != wc->qp_num)
		die("completion of queue pair %u with the wr_id of another", wc->qp_num);
	return connection;
}

/*
 * The opcode of an error completion is undefined: without an outstanding request it is a receive.
 */
static bool is_receive(const struct connection *connection, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS)
		return connection->requests_posted == connection->requests_completed;
	return wc->opcode & IBV_WC_RECV;
}

static bool take_completions(struct interop_end *end)
{
	struct ibv_wc wc[BATCH];
	int count = ibv_poll_cq(end->cq, BATCH, wc);

	if (count < 0)
		die("polling: %m");
	for (int i = 0; i < count; i++) {
		struct connection *connection = connection_of(end, &wc[i]);

		if (is_receive(connection, &wc[i]))
			responder_completed(end, connection, &wc[i]);
		else
			requester_completed(end, connection, &wc[i]);
	}
	return count > 0;
}

static bool is_over(const struct interop_end *end, const struct connection *connection,
		    uint64_t start)
{
	const struct options *options = &end->options;

	if (!options->asks || (options->count && connection->requests_posted >= options->count))
		return true;
	return options->seconds && now_ns() - start > (uint64_t)(options->seconds * NS_PER_S);
}

/* Returns true if a request was posted; *left: number of connections that have not finished. */
static bool post_all(struct interop_end *end, uint64_t start, unsigned int *left)
{
	bool busy = false;

	*left = 0;
	for (unsigned int i = 0; i < end->options.connections; i++) {
		struct connection *connection = &end->connections[i];
		bool over = is_over(end, connection, start);

		while (!over && requester_post(end, connection)) {
			busy = true;
			over = is_over(end, connection, start);
		}
		if (!over || !requester_is_done(end, connection))
			++*left;
	}
	return busy;
}

/* Sleeps until there may be something to do; returns true if it took completions instead. */
static bool rest(struct interop_end *end)
{
	struct pollfd fds[2] = { { .fd = end->tcp, .events = POLLRDHUP } };
	struct ibv_cq *cq;
	void *context;

	if (!end->channel) {
		if (end->options.pause > 0)
			usleep(NAP_US);
		return false;
	}
	if (ibv_req_notify_cq(end->cq, 0))
		die("asking for an event: %m");
	if (take_completions(end))
		return true;
	fds[1] = (struct pollfd){ .fd = end->channel->fd, .events = POLLIN };
	poll(fds, 2, WAIT_MS);
	if (!(fds[1].revents & POLLIN))
		return false;
	if (ibv_get_cq_event(end->channel, &cq, &context))
		die("taking an event: %m");
	ibv_ack_cq_events(cq, 1);
	return false;
}

/* Receives the peer's number of requests of each connection; returns true on success. */
static bool receive_counts(struct interop_end *end, bool asks)
{
	uint32_t counts[MAX_CONNECTIONS];
	size_t size = end->options.connections * sizeof(counts[0]);
	ssize_t got = recv(end->tcp, counts, size, MSG_PEEK | MSG_DONTWAIT);

	/* While requests are outstanding, their retries must notice the end of a peer. */
	if ((got == 0 && !asks) || (got < 0 && errno != EAGAIN))
		die("the peer is gone");
	if (got != (ssize_t)size)
		return false;
	end_receive(end, counts, size);
	for (unsigned int i = 0; i < end->options.connections; i++)
		end->connections[i].peer_requests_total = counts[i];
	return true;
}

static void tell_counts(struct interop_end *end)
{
	uint32_t counts[MAX_CONNECTIONS];

	for (unsigned int i = 0; i < end->options.connections; i++)
		counts[i] = end->connections[i].requests_posted;
	end_send(end, counts, end->options.connections * sizeof(counts[0]));
}

static bool all_requests_seen(struct interop_end *end)
{
	for (unsigned int i = 0; i < end->options.connections; i++) {
		if (!responder_is_done(end, &end->connections[i]))
			return false;
	}
	return true;
}

static void check_progress(const struct interop_end *end, uint64_t last)
{
	uint64_t allowed = (uint64_t)((STALL_S + end->options.pause) * NS_PER_S);

	if (now_ns() - last < allowed)
		return;
	for (unsigned int i = 0; i < end->options.connections; i++)
		fprintf(stderr, "connection %u: asked %u, answered %u; heard %u of %u\n", i,
			end->connections[i].requests_posted, end->connections[i].requests_completed,
			end->connections[i].peer_requests_seen,
			end->connections[i].peer_requests_total);
	/* The counters of a process that still runs show the losses. */
	if (end->options.at_end && system(end->options.at_end))
		fprintf(stderr, "%s has failed\n", end->options.at_end);
	die("stands still");
}

static void run(struct interop_end *end)
{
	uint64_t start = now_ns(), last = start;
	bool told = false, knows = false;
	unsigned int left;

	for (;;) {
		bool busy = take_completions(end);

		busy |= post_all(end, start, &left);
		if (!left && !told) {
			tell_counts(end);
			told = true;
		}
		if (busy) {
			last = now_ns();
			continue;
		}
		if (!knows)
			knows = receive_counts(end, left > 0);
		if (knows && told && all_requests_seen(end))
			return;
		check_progress(end, last);
		if (rest(end))
			last = now_ns();
	}
}

int main(int argc, char **argv)
{
	static struct interop_end end;
	uint64_t start;

	read_options(&end.options, argc, argv);
	end.peer_source = malloc(end.options.plan.max_size + SLACK);
	end_open(&end);
	start = now_ns();
	run(&end);
	responder_check_memory(&end);
	printf("requests %lu bytes %lu seconds %.2f slowest_ms %.3f\n", (unsigned long)end.requests,
	       (unsigned long)end.bytes, (double)(now_ns() - start) / NS_PER_S,
	       (double)end.slowest / 1e6);
	fflush(stdout);
	end_barrier(&end);
	if (end.options.at_end && system(end.options.at_end))
		die("%s has failed", end.options.at_end);
	end_close(&end);
	return 0;
}
