/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Simulates two or three hosts whose connection managers communicate over a network that loses,
 * repeats and reorders messages, with applications that connect, accept, reject, disconnect and
 * destroy at any time, and with hosts that crash and restart.  Time is virtual, and the seed
 * determines the whole run.
 *
 *   world.c    hosts, network, and the queue of happenings
 *   app.c      applications
 *   oracle.c   invariants, checked at each event and at the end
 *   mutant.c   deliberate faults, which the oracle must find
 *   main.c     main program
 */
#ifndef UROCE_CMSIM_WORLD_H
#define UROCE_CMSIM_WORLD_H

#include "cm/cm.h"
#include "sim/random.h"

#define HOSTS 3
#define APPS 400
#define ATTEMPTS 16
#define HAPPENINGS 4096
#define SERVICE_PORT 4711
#define NOBODY UINT32_MAX

/* One end of a connection, as its application sees it. */
struct app {
	struct world *world;
	struct cm_conn *conn; /* NULL: released, or its host has crashed */
	uint32_t host, incarnation;
	uint32_t attempt;
	bool active;
	bool destroyed;
	bool accepted, readied, refused, disconnects;
	bool told[CM_EVENTS];
	bool has_last_message; /* sent if its host crashes */
	struct cm_path last_message_path;
	uint8_t last_message[MAD_BYTES];
	bool superseded;		 /* the peer uses its QP for a new connection */
	uint32_t remote_qpn, remote_psn; /* learned with REQ or REP */
	uint32_t qpn, psn;
	uint64_t waits_since; /* start of the wait for an event that must occur; 0: none */
	uint64_t established_at, destroyed_at, died_at;
};

/* Connection attempt of one application to another, and its result. */
struct attempt {
	bool datagram;
	uint32_t from, to;
	uint32_t app;	      /* index of the active end; NOBODY until it starts */
	uint32_t requests;    /* number of request events */
	uint32_t established; /* number of ESTABLISHED events at passive ends */
};

struct host {
	struct world *world;
	uint32_t number;
	struct cm *cm; /* NULL: crashed */
	struct cm_listener *listener, *datagrams;
	uint32_t incarnation;
	uint64_t guid;
	uint32_t next_qpn;
	uint32_t waiting;    /* requests that the application has not answered */
	struct cm_path path; /* its own address in sgid */
};

enum happening_kind {
	PACKET,
	DATA, /* the first packet of a queue pair */
	CONNECT,
	APP_ACCEPTS,
	APP_REFUSES,
	APP_READY,
	APP_DISCONNECTS,
	APP_DESTROYS,
	HOST_DIES,
	HOST_RETURNS,
	STRAY, /* a message with one correct and one wrong id */
};

struct happening {
	uint64_t at, order;
	enum happening_kind kind;
	uint32_t host, incarnation, app, attempt;
	struct cm_path from;
	uint8_t bytes[MAD_BYTES];
};

struct plan {
	uint32_t hosts, attempts, deaths;
	uint32_t loss, duplication; /* per mille */
	uint64_t trip, jitter;	    /* ns */
	uint32_t hasty;		    /* per mille: applications that destroy at any time */
	uint32_t backlog;
	uint32_t req_limit; /* as in struct cm_config */
	bool slow_apps;
	bool same_qpns; /* a restarted host uses the same queue pair numbers */
	uint32_t strays;
	bool last_messages; /* others send the last messages of a crashed host */
	bool long_deaths;
	bool mras; /* repeated REQs are answered with an MRA, as by the kernel */
};

struct total {
	uint64_t connections, established, datagrams, refused, unreachable, stale, deaths;
	uint64_t packets, lost, repeated;
	uint64_t virtual_ns;
};

struct world {
	struct plan plan;
	struct sim_random random;
	uint64_t now, order;
	uint64_t calm_at; /* from now on nothing is lost, no host crashes and nothing begins */
	bool calm;
	struct host hosts[HOSTS];
	struct attempt attempts[ATTEMPTS];
	struct app apps[APPS];
	uint32_t app_count;
	struct happening *queue; /* a binary heap */
	uint32_t queued;
	bool failed, verbose;
	const char *reason;
	struct total total;
};

/* Runs one seed.  Returns false, with world->reason, if something was wrong. */
bool world_run(struct world *world, uint64_t seed);
struct world *world_new(void);
void world_free(struct world *world);

void world_fail(struct world *world, const char *reason);
struct happening *world_schedule(struct world *world, uint64_t after, enum happening_kind kind);

/* app.c */
void app_happens(struct world *world, const struct happening *h);
void app_connect(struct world *world, uint32_t attempt);
void app_event(void *owner, struct cm_conn *conn, const struct cm_event *event);
void *app_accept(void *owner, struct cm_listener *listener, const struct mad *request,
		 const struct cm_path *from, void **user);
void app_released(void *owner, struct cm_conn *conn, void *user);
void app_last_message(void *owner, struct cm_conn *conn, const struct cm_path *path,
		      const uint8_t *mad);
void app_destroy(struct app *app);

/* oracle.c */
/* Called before the application gets the event. */
void oracle_event(struct app *app, const struct cm_event *event);
void oracle_verdict(struct world *world, uint16_t attr, enum cm_verdict verdict);
/* Called when a REQ has arrived at a host. */
void oracle_request(struct world *world, uint32_t host, uint32_t from, const struct mad_req *req);
/*
 * Called long after the network has become calm: every connection must be decided, and both ends
 * must agree.
 */
void oracle_settled(struct world *world);
/* Called some time after all connections have been destroyed: nothing may be left. */
void oracle_empty(struct world *world);

/* mutant.c */
extern uint32_t mutant_now;
const char *mutant_name(uint32_t mutant); /* NULL after the last; 0 is no mutant */

#endif
