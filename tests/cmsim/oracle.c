/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Invariants, independent of the states of the manager: events occur in a permitted order, at most
 * once and in time; both ends agree; nothing is left over.
 */
#include <stddef.h>
#include <string.h>

#include "cmsim/world.h"

#define BIT(event) (1u << CM_EVENT_##event)
/* Longer than any request or reply is repeated, including the extension by an MRA. */
#define LONGEST_WAIT (2 * CM_GIVE_UP_NS + 1000 * CM_MS)
/* Longer than any message is in transit. */
#define ON_THE_WAY (1000 * CM_MS)
/* Maximum time between the last repetition of a DREQ and giving up. */
#define REPEATED_WITHIN (5000 * CM_MS)
/* Per mille: with at most this loss rate no run loses all repetitions of a message. */
#define TOLERABLE_LOSS 150
/* Maximum number of request events of one attempt, even with losses. */
#define MOST_REQUESTS 12

/* Events that must precede each event (after), and events that must not. */
static const struct {
	uint32_t after, not_after;
	bool active, passive;
} rules[CM_EVENTS] = {
	[CM_EVENT_REQ] = { 0, ~0u, false, true },
	[CM_EVENT_SIDR_REQ] = { 0, ~0u, false, true },
	[CM_EVENT_SIDR_REP] = { 0, ~0u, true, false },
	[CM_EVENT_REP] = { 0, ~0u, true, false },
	[CM_EVENT_ESTABLISHED] = { BIT(REQ),
				   BIT(REJECTED) | BIT(UNREACHABLE) | BIT(DISCONNECTED) |
					   BIT(TIMEWAIT_EXIT),
				   false, true },
	[CM_EVENT_REJECTED] = { 0, BIT(UNREACHABLE) | BIT(DISCONNECTED) | BIT(TIMEWAIT_EXIT), true,
				true },
	[CM_EVENT_UNREACHABLE] = { 0,
				   BIT(REP) | BIT(REJECTED) | BIT(ESTABLISHED) | BIT(DISCONNECTED) |
					   BIT(SIDR_REP) | BIT(TIMEWAIT_EXIT),
				   true, true },
	[CM_EVENT_DISCONNECTED] = { 0, BIT(REJECTED) | BIT(UNREACHABLE) | BIT(TIMEWAIT_EXIT), true,
				    true },
	[CM_EVENT_TIMEWAIT_EXIT] = { BIT(DISCONNECTED), BIT(REJECTED) | BIT(UNREACHABLE), true,
				     true },
};

static uint32_t told_so_far(const struct app *app)
{
	uint32_t told = 0;

	for (uint32_t i = 0; i < CM_EVENTS; i++)
		told |= (uint32_t)app->told[i] << i;
	return told;
}

static void check_order(struct app *app, enum cm_event_type type)
{
	uint32_t told = told_so_far(app);

	if (app->destroyed)
		world_fail(app->world, "an event after cm_destroy()");
	if (app->told[type])
		world_fail(app->world, "an event is told twice");
	if ((told & rules[type].after) != rules[type].after || (told & rules[type].not_after))
		world_fail(app->world, "an event that may not follow those before");
	if (!(app->active ? rules[type].active : rules[type].passive))
		world_fail(app->world, "an event of the other side");
	if (type == CM_EVENT_DISCONNECTED && app->active && !app->readied)
		world_fail(app->world, "disconnected before it was ready");
	if (type == CM_EVENT_DISCONNECTED && !app->active && !app->accepted)
		world_fail(app->world, "disconnected before it accepted");
}

static void check_time(struct app *app, enum cm_event_type type)
{
	const struct world *world = app->world;
	uint64_t longest = world->plan.mras ? LONGEST_WAIT : CM_GIVE_UP_NS, waited = 0;

	/*
	 * With a request limit each earlier request delays the others at most until its first
	 * repetition.
	 */
	if (world->plan.req_limit > 0)
		longest += APPS * 50 * CM_MS;

	if (app->waits_since != 0)
		waited = world->now - app->waits_since;
	if (waited > longest)
		world_fail(app->world, "an event came too late");
	if (type != CM_EVENT_TIMEWAIT_EXIT)
		app->waits_since = 0;
	/* No response to a DREQ takes this long: the DREQ has been given up. */
	if ((type == CM_EVENT_UNREACHABLE ||
	     (type == CM_EVENT_DISCONNECTED && waited > CM_GIVE_UP_NS / 2)) &&
	    world->plan.deaths == 0 && world->plan.hasty == 0 && world->plan.loss <= TOLERABLE_LOSS)
		world_fail(app->world, "unreachable, though the peer is there");
}

/* Returns the other end of the connection, whose QPN and PSN this end has received, or NULL. */
static const struct app *counterpart(const struct app *app)
{
	const struct world *world = app->world;

	for (uint32_t i = 0; i < world->app_count; i++) {
		const struct app *other = &world->apps[i];

		if (other->attempt == app->attempt && other->active != app->active &&
		    other->qpn == app->remote_qpn && other->psn == app->remote_psn)
			return other;
	}
	return NULL;
}

/* The peer's attributes for the queue pair must be those that the peer has sent. */
static void check_attributes(struct app *app, const struct cm_conn *conn)
{
	const struct app *other = counterpart(app);
	struct cm_qp_attr attr;

	if (cm_qp_attr(conn, &attr) != CM_OK) {
		world_fail(app->world, "no attributes for the queue pair");
		return;
	}
	if (!other || attr.dest_qpn != other->qpn || attr.sq_psn != other->psn)
		world_fail(app->world, "attributes are not the peer's");
	if (app->active && attr.rq_psn != app->psn)
		world_fail(app->world, "attributes are not our own");
}

static void check_request(struct app *app, const struct cm_event *event)
{
	struct world *world = app->world;
	struct attempt *attempt = &world->attempts[app->attempt];

	if (++attempt->requests > MOST_REQUESTS)
		world_fail(world, "a request is told again and again");
	/* The manager recognizes repetitions of a rejected request for half a second. */
	if (world->plan.jitter < 100 * CM_MS && world->plan.loss == 0 &&
	    world->plan.duplication == 0 && world->plan.deaths == 0 && world->plan.hasty == 0 &&
	    !world->plan.slow_apps && attempt->requests > 1)
		world_fail(world, "a request is told twice without need");
	if (event->type == CM_EVENT_REQ) {
		app->remote_qpn = event->mad->req.local_qpn;
		app->remote_psn = event->mad->req.starting_psn;
	}
}

/* SIDR has no PSN, so this only checks that an end on the host has accepted with this number. */
static bool has_queue_pair(const struct world *world, uint32_t host, uint32_t qpn)
{
	for (uint32_t i = 0; i < world->app_count; i++)
		if (world->apps[i].host == host && world->apps[i].qpn == qpn &&
		    world->apps[i].accepted)
			return true;
	return false;
}

void oracle_event(struct app *app, const struct cm_event *event)
{
	struct attempt *attempt = &app->world->attempts[app->attempt];

	check_order(app, event->type);
	check_time(app, event->type);
	app->told[event->type] = true;
	switch (event->type) {
	case CM_EVENT_REQ:
	case CM_EVENT_SIDR_REQ:
		check_request(app, event);
		break;
	case CM_EVENT_REP:
		app->remote_qpn = event->mad->rep.local_qpn;
		app->remote_psn = event->mad->rep.starting_psn;
		check_attributes(app, app->conn);
		break;
	case CM_EVENT_ESTABLISHED:
		app->established_at = app->world->now;
		if (++attempt->established > 1)
			world_fail(app->world, "one request is established twice");
		check_attributes(app, app->conn);
		if (!app->accepted)
			world_fail(app->world, "established before it accepted");
		if (attempt->app != NOBODY && !app->world->apps[attempt->app].readied)
			world_fail(app->world, "established before the active side was ready");
		break;
	case CM_EVENT_SIDR_REP:
		if (event->mad->sidr_rep.status == MAD_SIDR_OK) {
			app->remote_qpn = event->mad->sidr_rep.qpn;
			if (!has_queue_pair(app->world, attempt->to, app->remote_qpn))
				world_fail(app->world, "a datagram service that no program has");
		}
		break;
	default:
		break;
	}
}

void oracle_request(struct world *world, uint32_t host, uint32_t from, const struct mad_req *req)
{
	for (uint32_t i = 0; i < world->app_count; i++) {
		struct app *app = &world->apps[i];
		const struct attempt *attempt = &world->attempts[app->attempt];
		uint32_t peer = app->active ? attempt->to : attempt->from;

		if (app->conn && app->host == host && peer == from && !attempt->datagram &&
		    (app->told[CM_EVENT_REQ] || app->told[CM_EVENT_REP]) &&
		    app->remote_qpn == req->local_qpn && app->remote_psn != req->starting_psn)
			app->superseded = true;
	}
}

/*
 * Some verdicts must never occur; without network faults and with quick applications no request is
 * repeated.
 */
void oracle_verdict(struct world *world, uint16_t attr, enum cm_verdict verdict)
{
	const struct plan *plan = &world->plan;

	world->total.stale += verdict == CM_REFUSED_STALE;
	if (verdict == CM_DROP_MAD || verdict == CM_DROP_QPN || verdict == CM_REFUSED_PATH ||
	    verdict == CM_REFUSED_MISMATCH)
		world_fail(world, "a message is not understood");
	if (plan->deaths == 0 && (verdict == CM_REFUSED_STALE || verdict == CM_REFUSED_SERVICE))
		world_fail(world, "a refusal without reason");
	if (plan->loss == 0 && plan->duplication == 0 && plan->jitter == 0 && plan->hasty == 0 &&
	    plan->deaths == 0 && !plan->slow_apps && verdict == CM_REPEATED &&
	    (attr == MAD_REQ || attr == MAD_REP || attr == MAD_SIDR_REQ))
		world_fail(world, "something was repeated without need");
}

static bool same_life(const struct app *app)
{
	const struct host *host = &app->world->hosts[app->host];

	return host->cm && host->incarnation == app->incarnation;
}

/*
 * The peer of an established end must be established, unless no message about the peer's end could
 * arrive.
 */
static void check_agreement(struct app *app)
{
	struct world *world = app->world;
	const struct app *other = counterpart(app);
	bool untold;

	if (cm_conn_state(app->conn) != CM_ESTABLISHED)
		return;
	if (app->superseded)
		world_fail(world, "established with a queue pair that is used for something else");
	if (!other) {
		world_fail(world, "established without a peer");
		return;
	}
	if (!same_life(other)) {
		if (world->plan.last_messages && world->plan.loss == 0 &&
		    app->established_at + ON_THE_WAY < other->died_at)
			world_fail(world, "established with the dead, who have said it");
		return;
	}
	if (other->conn && !other->destroyed && cm_conn_state(other->conn) == CM_ESTABLISHED)
		return;
	/*
	 * With losses, all repetitions may have been lost, if they ended before the network was
	 * calm.
	 */
	untold = world->plan.loss > 0 &&
		 (!other->destroyed ||
		  other->destroyed_at + CM_DESTROY_DREQ_NS < world->calm_at + REPEATED_WITHIN);
	if (!untold || (!other->destroyed && other->told[CM_EVENT_DISCONNECTED]))
		world_fail(world, "one end is established, the other is not");
}

void oracle_settled(struct world *world)
{
	for (uint32_t i = 0; i < world->app_count; i++) {
		struct app *app = &world->apps[i];
		enum cm_state state;

		if (!app->conn)
			continue;
		state = cm_conn_state(app->conn);
		if (app->destroyed)
			world_fail(world, "destroyed long ago, and not released");
		if (state != CM_IDLE && state != CM_ESTABLISHED)
			world_fail(world, "a connection is never decided");
		if (app->waits_since != 0)
			world_fail(world, "an event never came");
		check_agreement(app);
	}
}

static void count(void *arg, const struct cm_conn *conn)
{
	(void)conn;
	(*(uint32_t *)arg)++;
}

void oracle_empty(struct world *world)
{
	for (uint32_t i = 0; i < world->plan.hosts; i++) {
		uint32_t left = 0;

		if (!world->hosts[i].cm)
			continue;
		cm_each_conn(world->hosts[i].cm, count, &left);
		if (left > 0)
			world_fail(world, "a connection is left over");
		if (cm_deadline(world->hosts[i].cm) != CM_NEVER)
			world_fail(world, "a deadline is left over");
		if (world->hosts[i].waiting != 0)
			world_fail(world, "a request is left over");
	}
	if (world->queued > 0)
		world_fail(world, "something still happens");
}
