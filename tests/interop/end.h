/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * One end of connections between uroce and the kernel's soft RoCE: the same program runs on both,
 * posts the requests of its own plan, and checks the requests of the peer's plan.
 *
 * All functions end the process with a message when they fail.
 */
#ifndef INTEROP_END_H
#define INTEROP_END_H

#include <infiniband/verbs.h>

#include "plan.h"

enum {
	MAX_CONNECTIONS = 64,
	MAX_DEPTH = 64,
	RECEIVES = 16,
	/* A WRITE with immediate may arrive before the data of the previous ones was checked. */
	PLACES = 2 * RECEIVES,
	SLACK = 64, /* bytes of a place in addition to the largest payload, for its shift */
};

struct options {
	const char *device;
	int gid_index;
	const char *port;
	const char *address; /* of the server; NULL: this is the server */
	enum ibv_mtu mtu;
	enum ibv_qp_type type; /* IBV_QPT_RC or IBV_QPT_UC */
	uint8_t timeout;       /* attribute of the queue pair: 4.096 us times 2^timeout */
	uint8_t retries;       /* 7 means unlimited for rxe, and seven in the specification */
	unsigned int connections;
	unsigned int depth; /* maximum number of outstanding requests per connection */
	uint32_t count;	    /* number of requests per connection; 0: until the time is over */
	double seconds;	    /* duration; 0: until the count is reached */
	double pause;	    /* seconds from a completion to the next request */
	bool asks;	    /* this end sends requests, and does not only respond */
	bool events;	    /* sleeps until a completion event */
	const char *at_end; /* command to run while the device is still open */
	struct plan_options plan;
};

/*
 * Layout of a connection's memory, the same at both ends: offsets of areas in bytes.  The areas
 * after the words consist of one or more places, each for one payload.
 */
struct layout {
	size_t words;	   /* words of the peer's Atomics */
	size_t source;	   /* one place: data of the peer's READs */
	size_t receives;   /* RECEIVES places of receives */
	size_t targets;	   /* PLACES of the peer's WRITEs */
	size_t immediates; /* PLACES of the peer's WRITEs with immediate */
	size_t out;	   /* depth places of data to send */
	size_t in;	   /* depth places of data of READs and Atomics */
	size_t place;	   /* size of a place, bytes */
	size_t bytes;	   /* size of the whole memory */
};

enum { WORD_ADD, WORD_SWAP, WORDS = 8 };

/*
 * Attributes of a connection that the other end needs.  Both ends run on the same kind of machine.
 */
struct conn_attrs {
	uint32_t qpn, psn, rkey;
	uint64_t memory;
	union ibv_gid gid;
};

struct pending_request {
	struct request request;
	uint64_t since; /* time of the post, ns */
	uint64_t found; /* value that an Atomic must return; FETCH_ADD: see check_atomic() */
};

struct connection {
	struct ibv_qp *qp;
	uint8_t *memory;
	struct conn_attrs local, remote;

	/* Requests of this end. */
	struct pending_request pending[MAX_DEPTH];
	uint32_t requests_posted, requests_completed;
	uint32_t requests_with_recv; /* requests posted that take a receive */
	uint64_t resume_ns;	     /* earliest time of the next request, ns */
	uint64_t word_add, word_swap;

	/* Requests of the peer. */
	uint32_t peer_requests_seen;	  /* requests of its plan that were received or skipped */
	uint32_t peer_requests_with_recv; /* those of them that took a receive */
	uint32_t recvs_posted;		  /* receives posted so far */
	uint32_t peer_requests_total;	  /* all requests of the peer; known at the end */
};

struct interop_end {
	struct options options;
	struct layout layout;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *memory;
	uint8_t *peer_source; /* data of the peer's source areas, the same for all connections */
	int tcp;
	struct connection connections[MAX_CONNECTIONS];
	uint64_t requests, bytes, slowest; /* slowest: ns from post to completion */
};

_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
uint64_t now_ns(void);

/* connect.c: opens the connections: queue pairs in RTS, with receives posted. */
void end_open(struct interop_end *end);
/* Waits until the peer has called end_barrier() as well. */
void end_barrier(struct interop_end *end);
void end_close(struct interop_end *end);
void end_send(struct interop_end *end, const void *bytes, size_t size);
/* Blocks until all bytes have arrived. */
void end_receive(struct interop_end *end, void *bytes, size_t size);

/* requester.c: posts the next request, if depth and pause allow it; returns true if they do. */
bool requester_post(struct interop_end *end, struct connection *connection);
void requester_completed(struct interop_end *end, struct connection *connection,
			 const struct ibv_wc *wc);
bool requester_is_done(const struct interop_end *end, const struct connection *connection);

/* responder.c */
void responder_prepare(struct interop_end *end, struct connection *connection);
void responder_completed(struct interop_end *end, struct connection *connection,
			 const struct ibv_wc *wc);
/*
 * Call once peer_requests_total is known: returns true if all requests of the peer that take a
 * receive have arrived.
 */
bool responder_is_done(struct interop_end *end, struct connection *connection);
/* Checks requests of the peer that cause no completion here: WRITEs and Atomics. */
void responder_check_memory(struct interop_end *end);

static inline bool is_client(const struct interop_end *end)
{
	return end->options.address != NULL;
}

#endif
