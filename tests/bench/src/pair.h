/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Two processes that measure something between them: each on its processor and, if asked for, in
 * its network namespace, with a page of memory shared for what is no part of the measurement.
 *
 * Everything here ends the process with a message when it fails: a measurement has no other way on.
 */
#ifndef BENCH_PAIR_H
#define BENCH_PAIR_H

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PAIR_SERVER, PAIR_CLIENT, PAIR_SIDES };

/* Nothing may wait longer than this for the other side: a lost datagram is an error, no hang. */
#define PAIR_PATIENCE_NS 2000000000ULL

struct pair_shared {
	_Atomic uint16_t port[PAIR_SIDES];   /* host order, 0 until the socket is bound */
	_Alignas(64) _Atomic uint64_t bytes; /* what the receiver of a stream has had */
	_Alignas(64) _Atomic bool stop;
};

struct pair {
	/* Options. */
	const char *mode;
	size_t size;	  /* bytes of a message, or of one packet of a stream */
	unsigned int run; /* packets per system call of a stream */
	size_t region;	  /* bytes that a stream's sender walks over */
	bool work;	  /* a stream does what RoCEv2 asks of each packet */
	double seconds;
	bool blocking;
	int cpu[PAIR_SIDES];
	const char *netns[PAIR_SIDES]; /* names as in "ip netns", NULL: stay */
	struct in_addr address[PAIR_SIDES];

	struct pair_shared *shared;
};

/* Reads the command line; prints the usage and exits when it makes no sense. */
void pair_options(struct pair *pair, int argc, char **argv, const char *modes);

/* Runs both in children; client() takes the time, prints its report and returns. */
void pair_run(struct pair *pair, void (*server)(struct pair *), void (*client)(struct pair *));

/*
 * Runs both in children until shared->stop, and prints what went through shared->bytes per second,
 * measured over pair->seconds after a warm-up.
 */
void pair_run_stream(struct pair *pair, void (*server)(struct pair *),
		     void (*client)(struct pair *));

/* Binds the socket to the side's address and sends the port to the other side. */
void pair_bind(struct pair *pair, int fd, int side);

/* Where the other side has bound; waits for it. */
struct sockaddr_in pair_address(struct pair *pair, int side);

uint64_t pair_now_ns(void);

/* Sets SO_SNDBUF and SO_RCVBUF as far as this user may. */
void pair_socket_buffers(int fd, int bytes);

/*
 * The client of a ping-pong: times one exchange() with arg after the other for pair->seconds, after
 * a warm-up, and prints the distribution of the half round trips.  exchange() is false when there
 * is no answer.
 */
void pair_measure_latency(struct pair *pair, bool (*exchange)(struct pair *, void *), void *arg);

_Noreturn void pair_die(const char *what);

#endif
