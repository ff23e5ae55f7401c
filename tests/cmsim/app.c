/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Applications: they react to events after some time, in all ways that are permitted. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmsim/world.h"

#define ATTEMPT_AT CM_IP_HEADER_BYTES /* offset in the private data: number of the attempt */
#define SIDR_QKEY 0x01234567

static struct host *host_of(const struct app *app)
{
	return &app->world->hosts[app->host];
}

static const char *event_name(enum cm_event_type type)
{
	static const char *const names[CM_EVENTS] = {
		[CM_EVENT_REQ] = "REQ",
		[CM_EVENT_REP] = "REP",
		[CM_EVENT_ESTABLISHED] = "ESTABLISHED",
		[CM_EVENT_REJECTED] = "REJECTED",
		[CM_EVENT_UNREACHABLE] = "UNREACHABLE",
		[CM_EVENT_DISCONNECTED] = "DISCONNECTED",
		[CM_EVENT_TIMEWAIT_EXIT] = "TIMEWAIT_EXIT",
		[CM_EVENT_SIDR_REQ] = "SIDR_REQ",
		[CM_EVENT_SIDR_REP] = "SIDR_REP",
	};

	return names[type];
}

static void say(const struct app *app, const char *what)
{
	if (app->world->verbose)
		printf("%12.6f host %u %s end of attempt %u: %s\n", (double)app->world->now / 1e9,
		       app->host, app->active ? "active" : "passive", app->attempt, what);
}

static struct app *new_app(struct world *world, uint32_t host, uint32_t attempt)
{
	struct app *app;

	if (world->app_count == APPS)
		return NULL;
	app = &world->apps[world->app_count++];
	*app = (struct app){ .world = world, .host = host, .attempt = attempt };
	app->incarnation = world->hosts[host].incarnation;
	app->qpn = world->hosts[host].next_qpn++ & 0xffffff;
	app->psn = (uint32_t)random_next(&world->random) & 0xffffff;
	return app;
}

/* Returns the time until an application reacts: usually very short, sometimes much too long. */
static uint64_t pause_of(struct world *world)
{
	if (world->plan.slow_apps && random_chance(&world->random, 300))
		return random_next(&world->random) % (8000 * CM_MS);
	return random_skewed(&world->random, 20 * CM_MS);
}

static void plan_action(struct app *app, uint64_t after, enum happening_kind kind)
{
	struct happening *h = world_schedule(app->world, after, kind);

	h->app = (uint32_t)(app - app->world->apps);
}

void app_connect(struct world *world, uint32_t number)
{
	struct attempt *attempt = &world->attempts[number];
	struct host *from = &world->hosts[attempt->from];
	const struct cm_ip_header header = { .family = 4, .source_port = 1 };
	uint8_t data[ATTEMPT_AT + 1];
	struct cm_path path = from->path;
	enum cm_result result;
	struct app *app;

	if (!from->cm || (app = new_app(world, attempt->from, number)) == NULL)
		return;
	app->active = true;
	app->waits_since = world->now;
	attempt->app = (uint32_t)(app - world->apps);
	memcpy(path.dgid, world->hosts[attempt->to].path.sgid, MAD_GID_BYTES);
	cm_ip_header_put(&header, data);
	data[ATTEMPT_AT] = (uint8_t)number;
	app->conn = cm_conn_init(from->cm, malloc(cm_conn_bytes()), app);
	say(app, "connects");
	if (attempt->datagram) {
		const struct cm_sidr_request_param param = {
			.path = path,
			.service_id = cm_service_id(CM_PS_UDP, SERVICE_PORT),
			.pkey = 0xffff,
			.response_time = 20,
			.max_cm_retries = 15,
			.private_data = data,
			.private_length = sizeof(data),
		};
		world->total.datagrams++;
		result = cm_sidr_request(from->cm, app->conn, &param, world->now);
	} else {
		const struct cm_connect_param param = {
			.path = path,
			.service_id = cm_service_id(CM_PS_TCP, SERVICE_PORT),
			.ca_guid = from->guid,
			.qpn = app->qpn,
			.starting_psn = app->psn,
			.response_time = 20,
			.max_cm_retries = 15,
			.packet_life = 16,
			.ack_timeout = 17,
			.path_mtu = 3,
			.private_data = data,
			.private_length = sizeof(data),
		};
		world->total.connections++;
		result = cm_connect(from->cm, app->conn, &param, world->now);
	}
	if (result != CM_OK)
		world_fail(world, "cm_connect() is refused");
	if (random_chance(&world->random, world->plan.hasty))
		plan_action(app, random_skewed(&world->random, 3000 * CM_MS), APP_DESTROYS);
}

void *app_accept(void *owner, struct cm_listener *listener, const struct mad *request,
		 const struct cm_path *from, void **user)
{
	struct host *host = owner;
	const uint8_t *data = request->attr == MAD_REQ ? request->req.private_data
						       : request->sidr_req.private_data;
	struct app *app;

	(void)from;
	assert(cm_listener_user(listener) == host);
	if (host->waiting >= host->world->plan.backlog)
		return NULL;
	app = new_app(host->world, host->number, data[ATTEMPT_AT]);
	if (!app)
		return NULL;
	host->waiting++;
	app->conn = malloc(cm_conn_bytes());
	*user = app;
	return app->conn;
}

void app_released(void *owner, struct cm_conn *conn, void *user)
{
	struct app *app = user;

	(void)owner;
	if (app->has_last_message)
		world_fail(app->world, "released with a last message");
	if (!app->destroyed || app->conn != conn)
		world_fail(app->world, "released, but not destroyed");
	app->conn = NULL;
	free(conn);
}

void app_last_message(void *owner, struct cm_conn *conn, const struct cm_path *path,
		      const uint8_t *mad)
{
	struct app *app = cm_conn_user(conn);

	(void)owner;
	if (app->has_last_message == (mad != NULL))
		world_fail(app->world, "a last message twice");
	app->has_last_message = mad != NULL;
	app->last_message_path = *path;
	if (mad)
		memcpy(app->last_message, mad, MAD_BYTES);
}

static void answered(struct app *app)
{
	if (app->active || app->accepted || app->refused)
		return;
	host_of(app)->waiting--;
}

void app_destroy(struct app *app)
{
	say(app, "destroys");
	answered(app);
	app->destroyed = true;
	app->destroyed_at = app->world->now;
	app->waits_since = 0;
	cm_destroy(host_of(app)->cm, app->conn, app->world->now);
}

static void decide_about_request(struct app *app)
{
	struct world *world = app->world;
	uint32_t mood = random_below(&world->random, 100);
	enum happening_kind kind = APP_ACCEPTS;

	if (mood >= 85)
		kind = mood < 95 ? APP_REFUSES : APP_DESTROYS;
	plan_action(app, pause_of(world), kind);
}

static void decide_about_reply(struct app *app)
{
	struct world *world = app->world;
	uint32_t mood = random_below(&world->random, 100);
	enum happening_kind kind = APP_READY;

	if (mood >= 90)
		kind = mood < 95 ? APP_REFUSES : APP_DESTROYS;
	plan_action(app, pause_of(world), kind);
}

/*
 * Plans the end of a connection: some applications keep it, some disconnect, some destroy it
 * without disconnecting; often the other end disconnects at the same time.
 */
static void decide_about_end(struct app *app)
{
	struct world *world = app->world;
	uint64_t after = random_skewed(&world->random, 2000 * CM_MS);
	uint32_t mood = random_below(&world->random, 100);

	if (mood < 40)
		plan_action(app, after, APP_DISCONNECTS);
	else if (mood < 70)
		plan_action(app, after, APP_DESTROYS);
	if (mood < 20)
		for (uint32_t i = 0; i < world->app_count; i++)
			if (world->apps[i].attempt == app->attempt && &world->apps[i] != app)
				plan_action(&world->apps[i], after, APP_DISCONNECTS);
}

static void react(struct app *app, enum cm_event_type type)
{
	struct world *world = app->world;

	switch (type) {
	case CM_EVENT_REQ:
	case CM_EVENT_SIDR_REQ:
		decide_about_request(app);
		break;
	case CM_EVENT_REP:
		decide_about_reply(app);
		break;
	case CM_EVENT_ESTABLISHED:
		world->total.established++;
		decide_about_end(app);
		break;
	case CM_EVENT_DISCONNECTED:
		/*
		 * Some never react to a DREQ: the manager then sends the DREP after the grace time.
		 */
		if (random_chance(&world->random, 600))
			plan_action(app, pause_of(world), APP_DISCONNECTS);
		if (random_chance(&world->random, 700))
			plan_action(app, pause_of(world), APP_DESTROYS);
		break;
	case CM_EVENT_REJECTED:
	case CM_EVENT_UNREACHABLE:
		world->total.refused += type == CM_EVENT_REJECTED;
		world->total.unreachable += type == CM_EVENT_UNREACHABLE;
		plan_action(app, pause_of(world), APP_DESTROYS);
		break;
	default:
		plan_action(app, pause_of(world), APP_DESTROYS);
	}
}

void app_event(void *owner, struct cm_conn *conn, const struct cm_event *event)
{
	struct app *app = cm_conn_user(conn);

	(void)owner;
	say(app, event_name(event->type));
	oracle_event(app, event);
	react(app, event->type);
}

static void accepts(struct app *app)
{
	struct host *host = host_of(app);
	const struct cm_accept_param param = {
		.ca_guid = host->guid,
		.qpn = app->qpn,
		.starting_psn = app->psn,
		.target_ack_delay = 15,
	};
	const struct cm_sidr_reply_param reply = {
		.status = MAD_SIDR_OK,
		.qpn = app->qpn,
		.qkey = SIDR_QKEY,
	};
	bool datagram = app->world->attempts[app->attempt].datagram;
	enum cm_result result =
		datagram ? cm_sidr_reply(host->cm, app->conn, &reply, app->world->now)
			 : cm_accept(host->cm, app->conn, &param, app->world->now);

	if (result == CM_BAD_STATE && !app->told[CM_EVENT_REJECTED])
		world_fail(app->world, "cm_accept() is refused");
	answered(app);
	app->accepted = true;
	if (result == CM_OK && !datagram)
		app->waits_since = app->world->now;
}

static void refuses(struct app *app)
{
	const struct cm_reject_param param = { .reason = MAD_REJECT_CONSUMER };
	enum cm_result result = cm_reject(host_of(app)->cm, app->conn, &param, app->world->now);

	if (result != CM_OK && !app->told[CM_EVENT_REJECTED])
		world_fail(app->world, "cm_reject() is refused");
	answered(app);
	app->refused = true;
}

static void is_ready(struct app *app)
{
	enum cm_result result = cm_rtu(host_of(app)->cm, app->conn, NULL, 0, app->world->now);
	struct happening *h;

	if (result != CM_OK && !app->told[CM_EVENT_REJECTED])
		world_fail(app->world, "cm_rtu() is refused");
	if (result != CM_OK)
		return;
	app->readied = true;
	app->established_at = app->world->now;
	/* The first packet of the queue pair may overtake the RTU. */
	if (random_chance(&app->world->random, 500)) {
		h = world_schedule(app->world, app->world->plan.trip, DATA);
		h->host = app->world->attempts[app->attempt].to;
		h->app = (uint32_t)(app - app->world->apps);
	}
	decide_about_end(app);
}

/*
 * The first packet of the active end's queue pair establishes the end whose queue pair receives it.
 */
static void data_arrives(struct world *world, const struct happening *h)
{
	const struct app *from = &world->apps[h->app];
	struct host *host = &world->hosts[h->host];

	for (uint32_t i = 0; host->cm && i < world->app_count; i++) {
		struct app *app = &world->apps[i];

		if (app->conn && !app->destroyed && !app->active && app->host == h->host &&
		    app->qpn == from->remote_qpn && app->remote_qpn == from->qpn &&
		    app->remote_psn == from->psn)
			cm_established(host->cm, app->conn, world->now);
	}
}

static void disconnects(struct app *app)
{
	struct cm_conn *conn = app->conn;
	enum cm_state state = cm_conn_state(conn);
	enum cm_result result = cm_disconnect(host_of(app)->cm, conn, app->world->now);

	if (state == CM_ESTABLISHED && result != CM_OK)
		world_fail(app->world, "cm_disconnect() is refused");
	if (result != CM_OK)
		return;
	app->disconnects = true;
	/* From now on the application waits for the response to the DREQ and for nothing else. */
	if (cm_conn_state(conn) == CM_DREQ_SENT && state != CM_DREQ_SENT)
		app->waits_since = app->world->now;
}

void app_happens(struct world *world, const struct happening *h)
{
	struct app *app = &world->apps[h->app];

	if (h->kind == DATA) {
		data_arrives(world, h);
		return;
	}
	if (!app->conn || app->destroyed)
		return;
	switch (h->kind) {
	case APP_ACCEPTS:
		accepts(app);
		break;
	case APP_REFUSES:
		refuses(app);
		break;
	case APP_READY:
		is_ready(app);
		break;
	case APP_DISCONNECTS:
		disconnects(app);
		break;
	default:
		app_destroy(app);
	}
}
