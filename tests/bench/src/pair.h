/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Two processes for a measurement between them, each on its own processor and, if requested, in its
 * own network namespace.  They share memory for data that is not part of the measurement.
 *
 * Functions that fail end the process with a message, since the measurement cannot continue.
 */
#ifndef BENCH_PAIR_H
#define BENCH_PAIR_H

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PAIR_SERVER, PAIR_CLIENT, PAIR_SIDES };

/* Maximum time to wait for the other side: a lost datagram must cause an error, not a hang. */
#define PAIR_PATIENCE_NS 2000000000ULL

struct pair_shared {
	_Atomic uint16_t port[PAIR_SIDES];   /* host order, 0 until the socket is bound */
	_Alignas(64) _Atomic uint64_t bytes; /* number received by the receiver of a stream */
	_Alignas(64) _Atomic bool stop;
};

struct pair {
	/* Options. */
	const char *mode;
	size_t size;	  /* bytes of a message, or of one packet of a stream */
	unsigned int run; /* packets per system call of a stream */
	size_t region;	  /* size of the memory that a stream's sender cycles through, bytes */
	bool work;	  /* a stream includes RoCEv2's work for each packet (floor_work.h) */
	double seconds;
	bool blocking;
	int cpu[PAIR_SIDES];
	const char *netns[PAIR_SIDES]; /* names as in "ip netns", NULL: stay */
	struct in_addr address[PAIR_SIDES];

	struct pair_shared *shared;
};

/* Reads the command line; prints the usage and exits if it is invalid. */
void pair_options(struct pair *pair, int argc, char **argv, const char *modes);

/* Runs both in child processes; client() measures, prints its report and returns. */
void pair_run(struct pair *pair, void (*server)(struct pair *), void (*client)(struct pair *));

/*
 * Runs both in child processes until shared->stop, and prints by how much shared->bytes grows per
 * second, measured over pair->seconds after a warm-up.
 */
void pair_run_stream(struct pair *pair, void (*server)(struct pair *),
		     void (*client)(struct pair *));

/* Binds the socket to the side's address and sends the port to the other side. */
void pair_bind(struct pair *pair, int fd, int side);

/* Returns the address to which the side has bound its socket; waits until it has. */
struct sockaddr_in pair_address(struct pair *pair, int side);

uint64_t pair_now_ns(void);

/* Sets SO_SNDBUF and SO_RCVBUF as far as this user may. */
void pair_socket_buffers(int fd, int bytes);

/*
 * The client of a ping-pong: times one exchange() with arg after the other for pair->seconds, after
 * a warm-up, and prints the distribution of the half round trips.  exchange() returns false if
 * there is no response.
 */
void pair_measure_latency(struct pair *pair, bool (*exchange)(struct pair *, void *), void *arg);

_Noreturn void pair_die(const char *what);

#endif
