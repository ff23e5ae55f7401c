/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Two or three hosts whose connection managers talk over a network that loses, repeats and
 * reorders, with applications that connect, accept, refuse, close and destroy at any moment, and
 * hosts that die and come back.  All in virtual time, all decided by a seed.
 *
 *   world.c    the hosts, the network, the queue of what happens when
 *   app.c      the applications
 *   oracle.c   what must hold at each event, and at the end
 *   mutant.c   deliberate faults, which the oracle must find
 *   main.c     the program
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
	struct cm_conn *conn; /* NULL: released, or its host died */
	uint32_t host, incarnation;
	uint32_t attempt;
	bool active;
	bool destroyed;
	bool accepted, readied, refused, disconnects;
	bool told[CM_EVENTS];
	bool has_last_message; /* to be sent when its host dies */
	struct cm_path last_message_path;
	uint8_t last_message[MAD_BYTES];
	bool superseded;		 /* the peer uses its queue pair for something new */
	uint32_t remote_qpn, remote_psn; /* learned with REQ or REP */
	uint32_t qpn, psn;
	uint64_t waits_since; /* for an event that has to come, or 0 */
	uint64_t established_at, destroyed_at, died_at;
};

/* Connection attempt of one application to another, and its result. */
struct attempt {
	bool datagram;
	uint32_t from, to;
	uint32_t app;	      /* the active end, NOBODY before it began */
	uint32_t requests;    /* number of request events */
	uint32_t established; /* number of ESTABLISHED events at passive ends */
};

struct host {
	struct world *world;
	uint32_t number;
	struct cm *cm; /* NULL: dead */
	struct cm_listener *listener, *datagrams;
	uint32_t incarnation;
	uint64_t guid;
	uint32_t next_qpn;
	uint32_t waiting;    /* connections that the application has not answered */
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
	STRAY, /* a message with a right id and a wrong one */
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
	uint32_t hasty;		    /* per mille: applications that destroy at any moment */
	uint32_t backlog;
	uint32_t req_limit; /* as in struct cm_config */
	bool slow_apps;
	bool same_qpns; /* a host that comes back uses the same queue pair numbers */
	uint32_t strays;
	bool last_messages; /* a host that dies has its last messages sent by others */
	bool long_deaths;
	bool mras; /* repeated REQs bring an MRA, as from the kernel */
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
	uint64_t calm_at; /* from here on nothing is lost, no host dies and nothing begins */
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
	uint32_t mutant; /* 0: none */
};

/* One seed; false with world->reason when something was wrong. */
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
/* Before the application sees it. */
void oracle_event(struct app *app, const struct cm_event *event);
void oracle_verdict(struct world *world, uint16_t attr, enum cm_verdict verdict);
/* A REQ has arrived at a host. */
void oracle_request(struct world *world, uint32_t host, uint32_t from, const struct mad_req *req);
/* Long after the network has become calm: all is decided, both ends agree. */
void oracle_settled(struct world *world);
/* All is destroyed, and time has passed. */
void oracle_empty(struct world *world);

/* mutant.c */
extern uint32_t mutant_now;
const char *mutant_name(uint32_t mutant); /* NULL behind the last; 0 is no mutant */

#endif
