/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "cmsim/world.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND (1000 * CM_MS)
#define MOST_HAPPENINGS 100000
/* Time limits of REQ and REP, each extended by an MRA, and the pauses of the applications. */
#define SETTLING (320 * SECOND)
#define AFTERWARDS (40 * SECOND)

struct world *world_new(void)
{
	struct world *world = calloc(1, sizeof(*world));

	assert(world);
	world->queue = calloc(HAPPENINGS, sizeof(*world->queue));
	assert(world->queue);
	return world;
}

void world_free(struct world *world)
{
	free(world->queue);
	free(world);
}

void world_fail(struct world *world, const char *reason)
{
	if (world->failed)
		return;
	world->failed = true;
	world->reason = reason;
	if (world->verbose)
		printf("%12.6f FAILED: %s\n", (double)world->now / 1e9, reason);
}

static bool before(const struct happening *a, const struct happening *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void swap(struct happening *a, struct happening *b)
{
	struct happening c = *a;

	*a = *b;
	*b = c;
}

/* Adds a happening and moves it up the heap; the caller must not change its time afterwards. */
struct happening *world_schedule(struct world *world, uint64_t after, enum happening_kind kind)
{
	uint32_t i = world->queued++;

	assert(i < HAPPENINGS - 1);
	memset(&world->queue[i], 0, offsetof(struct happening, bytes));
	world->queue[i].at = world->now + after;
	world->queue[i].order = world->order++;
	world->queue[i].kind = kind;
	for (; i > 0 && before(&world->queue[i], &world->queue[(i - 1) / 2]); i = (i - 1) / 2)
		swap(&world->queue[i], &world->queue[(i - 1) / 2]);
	return &world->queue[i];
}

static struct happening take_first(struct world *world)
{
	struct happening first = world->queue[0];
	uint32_t i = 0, child;

	world->queue[0] = world->queue[--world->queued];
	while ((child = 2 * i + 1) < world->queued) {
		if (child + 1 < world->queued &&
		    before(&world->queue[child + 1], &world->queue[child]))
			child++;
		if (!before(&world->queue[child], &world->queue[i]))
			break;
		swap(&world->queue[i], &world->queue[child]);
		i = child;
	}
	return first;
}

static void put_on_wire(struct world *world, const struct host *from, uint32_t to,
			const uint8_t *bytes)
{
	uint64_t trip = world->plan.trip;
	struct happening *h;

	if (world->plan.jitter > 0)
		trip += random_next(&world->random) % world->plan.jitter;
	h = world_schedule(world, trip, PACKET);
	h->host = to;
	h->from = from->path;
	memcpy(h->bytes, bytes, MAD_BYTES);
}

static void on_send(void *owner, const struct cm_path *path, const uint8_t *mad)
{
	struct host *from = owner;
	struct world *world = from->world;
	uint32_t to = path->dgid[15] - 1u;

	assert(to < world->plan.hosts && path->sgid[15] == from->number + 1);
	world->total.packets++;
	if (!world->calm && random_chance(&world->random, world->plan.loss)) {
		world->total.lost++;
		return;
	}
	put_on_wire(world, from, to, mad);
	if (!world->calm && random_chance(&world->random, world->plan.duplication)) {
		world->total.repeated++;
		put_on_wire(world, from, to, mad);
	}
}

static const struct cm_ops ops = {
	.send = on_send,
	.event = app_event,
	.accept_conn = app_accept,
	.released = app_released,
	.last_message = app_last_message,
};

static struct cm_listener *listen_for(struct host *host, enum cm_service service,
				      enum cm_port_space space)
{
	const struct cm_listen_param param = {
		.service = service,
		.service_id = cm_service_id(space, SERVICE_PORT),
		.device = CM_ANY_DEVICE,
		.families = CM_FAMILY_IPV4,
		.any_address = true,
	};
	struct cm_listener *listener;

	if (cm_listen(host->cm, malloc(cm_listener_bytes()), &param, host, &listener) != CM_OK)
		abort();
	return listener;
}

/* Starts a new process: with other ids, but the same GUID. */
static void host_start(struct host *host)
{
	const struct cm_config config = {
		.ops = &ops,
		.owner = host,
		.slot = host->number,
		.id_start = (uint32_t)random_next(&host->world->random),
		.req_limit = host->world->plan.req_limit,
	};
	uint32_t qpn = (uint32_t)random_next(&host->world->random) & 0xffffff;

	host->cm = cm_init(malloc(cm_bytes()), &config);
	host->incarnation++;
	host->waiting = 0;
	host->next_qpn = host->world->plan.same_qpns ? 0x10 : qpn;
	host->listener = listen_for(host, CM_RC, CM_PS_TCP);
	host->datagrams = listen_for(host, CM_UD, CM_PS_UDP);
}

static void host_end(struct host *host)
{
	struct world *world = host->world;

	for (uint32_t i = 0; i < world->app_count; i++) {
		struct app *app = &world->apps[i];

		if (app->host != host->number || !app->conn)
			continue;
		free(app->conn);
		app->conn = NULL;
		app->died_at = world->now;
	}
	free(host->listener);
	free(host->datagrams);
	free(host->cm);
	host->cm = NULL;
}

static void make_plan(struct world *world)
{
	struct sim_random *r = &world->random;
	struct plan *plan = &world->plan;

	memset(plan, 0, sizeof(*plan));
	plan->hosts = random_between(r, 2, HOSTS);
	plan->attempts = random_between(r, 1, random_chance(r, 300) ? ATTEMPTS : 5);
	plan->trip = random_between(r, 5000, 100000);
	plan->backlog = random_chance(r, 200) ? random_between(r, 0, 2) : 100;
	plan->slow_apps = random_chance(r, 300);
	plan->req_limit = random_chance(r, 300) ? random_between(r, 1, 3) : 0;
	if (random_chance(r, 250))
		return;
	plan->loss = random_chance(r, 700) ? random_between(r, 1, 250) : 0;
	plan->duplication = random_chance(r, 600) ? random_between(r, 1, 200) : 0;
	plan->jitter = random_chance(r, 600) ? (uint64_t)random_skewed(r, 300 * CM_MS) : 0;
	plan->deaths = random_chance(r, 300) ? random_between(r, 1, 3) : 0;
	plan->hasty = random_chance(r, 400) ? random_between(r, 1, 300) : 0;
	plan->same_qpns = random_chance(r, 500);
	plan->mras = random_chance(r, 200);
	plan->strays = random_chance(r, 300) ? random_between(r, 1, 10) : 0;
	plan->last_messages = random_chance(r, 500);
	plan->long_deaths = random_chance(r, 300);
}

static void start(struct world *world)
{
	struct sim_random *r = &world->random;
	uint64_t span = random_chance(r, 500) ? 10 * CM_MS : 20 * SECOND;

	for (uint32_t i = 0; i < world->plan.hosts; i++) {
		struct host *host = &world->hosts[i];

		*host = (struct host){ .world = world, .number = i, .guid = 0xbeef00 + i };
		host->path = (struct cm_path){ .device = 1, .hop_limit = 64 };
		memcpy(host->path.sgid, (uint8_t[16]){ [10] = 0xff, 0xff, 10, 0, 0, 0 }, 16);
		host->path.sgid[15] = (uint8_t)(i + 1);
		host_start(host);
	}
	for (uint32_t i = 0; i < world->plan.attempts; i++) {
		struct attempt *attempt = &world->attempts[i];

		*attempt = (struct attempt){ .app = NOBODY };
		attempt->datagram = random_chance(r, 200);
		attempt->from = random_below(r, world->plan.hosts);
		attempt->to =
			random_chance(r, 100) ? attempt->from : random_below(r, world->plan.hosts);
		world_schedule(world, random_next(r) % span, CONNECT)->attempt = i;
	}
	for (uint32_t i = 0; i < world->plan.deaths; i++)
		world_schedule(world, random_next(r) % (2 * span), HOST_DIES)->host =
			random_below(r, world->plan.hosts);
	for (uint32_t i = 0; i < world->plan.strays; i++)
		world_schedule(world, random_next(r) % (2 * span), STRAY);
	world->calm_at = world->now + 2 * span + random_below(r, 30) * SECOND;
}

/* Sends each last message several times, because nobody receives the responses. */
static void execute_last_messages(struct host *host)
{
	struct world *world = host->world;

	for (uint32_t i = 0; i < world->app_count; i++) {
		const struct app *app = &world->apps[i];

		if (app->host != host->number || !app->conn || !app->has_last_message)
			continue;
		for (uint32_t times = 0; times < 4; times++)
			on_send(host, &app->last_message_path, app->last_message);
	}
}

static void host_dies(struct world *world, uint32_t number)
{
	struct host *host = &world->hosts[number];
	uint64_t gone;

	if (!host->cm || world->now >= world->calm_at)
		return;
	world->total.deaths++;
	if (world->plan.last_messages)
		execute_last_messages(host);
	host_end(host);
	gone = random_next(&world->random) % (world->plan.long_deaths ? 100 * SECOND : 3 * SECOND);
	world_schedule(world, gone, HOST_RETURNS)->host = number;
}

/* A restarted host connects again as before. */
static void host_returns(struct world *world, uint32_t number)
{
	uint32_t before = world->plan.attempts;

	host_start(&world->hosts[number]);
	for (uint32_t i = 0; i < before && world->plan.attempts < ATTEMPTS; i++) {
		const struct attempt *old = &world->attempts[i];
		uint32_t again = world->plan.attempts;

		if (old->from != number || old->app == NOBODY || world->now >= world->calm_at)
			continue;
		world->attempts[again] = (struct attempt){
			.app = NOBODY, .datagram = old->datagram, .from = number, .to = old->to
		};
		world->plan.attempts++;
		world_schedule(world, random_next(&world->random) % SECOND, CONNECT)->attempt =
			again;
	}
}

/*
 * Response of a kernel to a REQ that it has already and that its application has not accepted yet.
 */
static void answer_with_mra(struct world *world, const struct happening *h)
{
	struct mad req, mra = { .attr = MAD_MRA };
	uint8_t bytes[MAD_BYTES];

	if (mad_decode(h->bytes, MAD_BYTES, &req) != MAD_OK || req.attr != MAD_REQ)
		return;
	mra.mra.local_id = 0xdead;
	mra.mra.remote_id = req.req.local_id;
	mra.mra.service_time = 24;
	mad_encode(&mra, bytes);
	put_on_wire(world, &world->hosts[h->host], h->from.sgid[15] - 1u, bytes);
}

/* Delivers a message with one wrong id, which must not change the state of the connection. */
static void stray_arrives(struct world *world)
{
	struct app *app = &world->apps[random_below(&world->random, world->app_count + 1)];
	struct mad mad = { .attr = MAD_RTU + random_below(&world->random, 3) };
	struct cm_conn_info info, after;
	struct cm_path from;
	uint8_t bytes[MAD_BYTES];

	if (app == &world->apps[world->app_count] || !app->conn)
		return;
	cm_conn_info(app->conn, &info);
	/* RTU, DREQ and DREP have the ids in the same place. */
	mad.dreq.local_id = info.remote_id + 1;
	mad.dreq.remote_id = info.local_id;
	if (mad.attr == MAD_DREQ)
		mad.dreq.remote_qpn = app->qpn;
	from = info.path;
	mad_encode(&mad, bytes);
	cm_receive(world->hosts[app->host].cm, &from, bytes, MAD_BYTES, world->now);
	cm_conn_info(app->conn, &after);
	if (after.state != info.state)
		world_fail(world, "a stray message is taken");
}

static const char *verdict_name(enum cm_verdict verdict)
{
	static const char *const names[CM_VERDICTS] = {
		[CM_HANDLED] = "handled",
		[CM_REPEATED] = "repeated",
		[CM_DROP_MAD] = "not a message of the connection manager",
		[CM_DROP_UNKNOWN_ID] = "unknown id",
		[CM_DROP_STATE] = "not in this state",
		[CM_DROP_QPN] = "wrong queue pair",
		[CM_REFUSED_SERVICE] = "no listener",
		[CM_REFUSED_MISMATCH] = "no listener for this address or service",
		[CM_REFUSED_BACKLOG] = "backlog full",
		[CM_REFUSED_STALE] = "stale connection",
		[CM_REFUSED_PATH] = "wrong GID or path MTU",
		[CM_REPLIED_UNKNOWN] = "unknown connection",
	};

	return names[verdict];
}

static void packet_arrives(struct world *world, const struct happening *h)
{
	struct host *host = &world->hosts[h->host];
	struct cm_path from = host->path;
	struct mad req;
	uint16_t attr = (uint16_t)(h->bytes[16] << 8 | h->bytes[17]);
	enum cm_verdict verdict;

	if (!host->cm)
		return;
	memcpy(from.dgid, h->from.sgid, MAD_GID_BYTES);
	if (attr == MAD_REQ && mad_decode(h->bytes, MAD_BYTES, &req) == MAD_OK)
		oracle_request(world, h->host, h->from.sgid[15] - 1u, &req.req);
	verdict = cm_receive(host->cm, &from, h->bytes, MAD_BYTES, world->now);
	if (world->verbose)
		printf("%12.6f host %u got %-8s: %s\n", (double)world->now / 1e9, h->host,
		       mad_attr_name(attr), verdict_name(verdict));
	if (verdict == CM_REPEATED && world->plan.mras && !world->calm)
		answer_with_mra(world, h);
	oracle_verdict(world, attr, verdict);
}

static void happen(struct world *world, const struct happening *h)
{
	switch (h->kind) {
	case PACKET:
		packet_arrives(world, h);
		break;
	case CONNECT:
		app_connect(world, h->attempt);
		break;
	case STRAY:
		stray_arrives(world);
		break;
	case HOST_DIES:
		host_dies(world, h->host);
		break;
	case HOST_RETURNS:
		host_returns(world, h->host);
		break;
	default:
		app_happens(world, h);
	}
}

/*
 * Returns the time of the next happening or timer; *timer_of is the host of a timer, else NOBODY.
 */
static uint64_t next_time(const struct world *world, uint32_t *timer_of)
{
	uint64_t next = world->queued > 0 ? world->queue[0].at : CM_NEVER;

	*timer_of = NOBODY;
	for (uint32_t i = 0; i < world->plan.hosts; i++) {
		if (!world->hosts[i].cm || cm_deadline(world->hosts[i].cm) >= next)
			continue;
		next = cm_deadline(world->hosts[i].cm);
		*timer_of = i;
	}
	return next;
}

static void run_until(struct world *world, uint64_t until)
{
	uint32_t timer_of, count = 0;
	uint64_t next;

	while (!world->failed && (next = next_time(world, &timer_of)) < until) {
		if (next > world->now)
			world->now = next;
		if (world->now >= world->calm_at)
			world->calm = true;
		if (++count > MOST_HAPPENINGS) {
			world_fail(world, "it does not end");
		} else if (timer_of == NOBODY) {
			struct happening h = take_first(world);

			happen(world, &h);
		} else {
			struct host *host = &world->hosts[timer_of];

			cm_expire(host->cm, world->now);
			if (cm_deadline(host->cm) <= world->now)
				world_fail(world, "a deadline that was served is due again");
		}
	}
	if (!world->failed && until > world->now)
		world->now = until;
}

static void destroy_all(struct world *world)
{
	for (uint32_t i = 0; i < world->app_count; i++)
		if (world->apps[i].conn && !world->apps[i].destroyed)
			app_destroy(&world->apps[i]);
}

bool world_run(struct world *world, uint64_t seed)
{
	random_seed(&world->random, seed, 1);
	world->now = SECOND;
	world->order = 0;
	world->queued = 0;
	world->app_count = 0;
	world->failed = false;
	world->calm = false;
	make_plan(world);
	start(world);
	run_until(world, world->calm_at);
	world->calm = true;
	run_until(world, world->calm_at + SETTLING);
	if (!world->failed)
		oracle_settled(world);
	destroy_all(world);
	run_until(world, world->now + AFTERWARDS);
	if (!world->failed)
		oracle_empty(world);
	world->total.virtual_ns += world->now;
	for (uint32_t i = 0; i < world->plan.hosts; i++)
		if (world->hosts[i].cm)
			host_end(&world->hosts[i]);
	return !world->failed;
}
