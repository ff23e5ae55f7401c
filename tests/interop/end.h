/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * One end of connections between uroce and the kernel's soft RoCE: the same program runs on both,
 * asks by its plan and checks what the other one asks by its own.
 *
 * Everything here ends the process with a message when it fails.
 */
#ifndef INTEROP_END_H
#define INTEROP_END_H

#include <infiniband/verbs.h>

#include "plan.h"

enum {
	MAX_CONNECTIONS = 64,
	MAX_DEPTH = 64,
	RECEIVES = 16,
	/* A WRITE with immediate may land before the receives of the last ones were looked at. */
	PLACES = 2 * RECEIVES,
	SLACK = 64, /* bytes beside a payload, for its shift */
};

struct options {
	const char *device;
	int gid_index;
	const char *port;
	const char *address; /* of the server; NULL: this is the server */
	enum ibv_mtu mtu;
	enum ibv_qp_type type; /* IBV_QPT_RC or IBV_QPT_UC */
	uint8_t timeout;       /* as the queue pair has it: 4.096 us times 2^timeout */
	uint8_t retries;       /* 7 is unlimited for rxe, and seven for the specification */
	unsigned int connections;
	unsigned int depth; /* requests of a connection under way */
	uint32_t count;	    /* requests of a connection; 0: until the time is over */
	double seconds;	    /* 0: until the count is reached */
	double pause;	    /* seconds of nothing between two requests */
	bool asks;	    /* this end sends requests, and does not only answer */
	bool events;	    /* sleeps until something comes */
	const char *at_end; /* command to run while the device is still open */
	struct plan_options plan;
};

/* Where things are in a connection's memory, in bytes from its beginning; the same at both ends. */
struct layout {
	size_t words;	   /* the atomics' */
	size_t source;	   /* what the peer READs */
	size_t receives;   /* RECEIVES */
	size_t targets;	   /* PLACES of the peer's WRITEs */
	size_t immediates; /* PLACES of the peer's WRITEs with immediate */
	size_t out;	   /* depth, what leaves */
	size_t in;	   /* depth, what is READ */
	size_t place;	   /* bytes of each */
	size_t bytes;	   /* of all */
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
	uint64_t since; /* ns */
	uint64_t found; /* what an atomic has to find; FETCH_ADD: at least */
};

struct connection {
	struct ibv_qp *qp;
	uint8_t *memory;
	struct conn_attrs local, remote;

	/* Requests of this end. */
	struct pending_request pending[MAX_DEPTH];
	uint32_t requests_posted, requests_completed;
	uint32_t requests_with_recv; /* requests posted that take a receive */
	uint64_t resume_ns;	     /* ns */
	uint64_t word_add, word_swap;

	/* Requests of the peer. */
	uint32_t peer_requests_seen;	  /* requests of its plan that are behind us */
	uint32_t peer_requests_with_recv; /* of those that took a receive */
	uint32_t recvs_posted;		  /* receives so far */
	uint32_t peer_requests_total;	  /* in all; known at the end */
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
	uint8_t *peer_source; /* what the peer's sources hold, one for all connections */
	int tcp;
	struct connection connections[MAX_CONNECTIONS];
	uint64_t requests, bytes, slowest; /* slowest: ns from post to completion */
};

_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
uint64_t now_ns(void);

/* connect.c: from options to connections in RTS that have their receives. */
void end_open(struct interop_end *end);
/* Wait until the peer has come here as well. */
void end_barrier(struct interop_end *end);
void end_close(struct interop_end *end);
void end_send(struct interop_end *end, const void *bytes, size_t size);
/* Blocks until all has come. */
void end_receive(struct interop_end *end, void *bytes, size_t size);

/* requester.c: post what may be posted; true if that was something. */
bool requester_post(struct interop_end *end, struct connection *connection);
void requester_completed(struct interop_end *end, struct connection *connection,
			 const struct ibv_wc *wc);
bool requester_is_done(const struct interop_end *end, const struct connection *connection);

/* responder.c */
void responder_prepare(struct interop_end *end, struct connection *connection);
void responder_completed(struct interop_end *end, struct connection *connection,
			 const struct ibv_wc *wc);
/*
 * To be called once peer_requests_total is known: returns true if all requests that can be observed
 * have been.
 */
bool responder_is_done(struct interop_end *end, struct connection *connection);
/* Checks the effects that raise no event here: the peer's WRITEs and Atomics. */
void responder_check_memory(struct interop_end *end);

static inline bool is_client(const struct interop_end *end)
{
	return end->options.address != NULL;
}

#endif
