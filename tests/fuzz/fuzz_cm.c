/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Messages, calls and time in any order for one connection manager, whose peer is the input or the
 * manager itself.  No event may follow the final one of its connection.  At the end everything is
 * destroyed, and nothing may be left.  A step is a byte: the lower half is the action, the upper
 * half the connection.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cm/cm.h"

#define CONNS 8
#define WIRE 16
#define MAX_STEPS 400
#define PORT 7174
#define GUID 0x505400fffe770003u

static struct {
	const uint8_t *data;
	size_t left;
} script;

static struct {
	struct cm *cm;
	struct cm_conn *conn[CONNS];
	uint64_t now;
	uint32_t reported[CONNS]; /* set of 1 << event type */
	uint32_t alive, room;
	uint32_t on_wire;
	uint8_t wire[WIRE][MAD_BYTES];
} world;

/* Path of the passive side of the captures, from 10.77.0.3 to 10.77.0.2. */
static const struct cm_path path = {
	.device = 1,
	.sgid = { [10] = 0xff, 0xff, 10, 77, 0, 3 },
	.dgid = { [10] = 0xff, 0xff, 10, 77, 0, 2 },
	.hop_limit = 64,
};

static const struct cm_path to_itself = {
	.device = 1,
	.sgid = { [10] = 0xff, 0xff, 10, 77, 0, 3 },
	.dgid = { [10] = 0xff, 0xff, 10, 77, 0, 3 },
	.hop_limit = 64,
};

static void require(bool condition)
{
	if (!condition)
		abort();
}

static uint8_t next8(void)
{
	if (script.left == 0)
		return 0;
	script.left--;
	return *script.data++;
}

static uint32_t next32(void)
{
	uint32_t value = 0;

	for (int i = 0; i < 4; i++)
		value = value << 8 | next8();
	return value;
}

static void on_send(void *owner, const struct cm_path *to, const uint8_t *mad)
{
	struct mad decoded;

	(void)owner;
	(void)to;
	require(mad_decode(mad, MAD_BYTES, &decoded) == MAD_OK);
	memcpy(world.wire[world.on_wire++ % WIRE], mad, MAD_BYTES);
}

/*
 * Checks the event against those reported before for the same connection, which is never connected
 * again: each type is reported at most once, none follows a final one, and only the end of timewait
 * follows a disconnection.  A destroyed connection has left its place.
 */
static void check_order(struct cm_conn *conn, enum cm_event_type type)
{
	const uint32_t final = 1u << CM_EVENT_REJECTED | 1u << CM_EVENT_UNREACHABLE |
			       1u << CM_EVENT_SIDR_REP | 1u << CM_EVENT_TIMEWAIT_EXIT;
	const uint32_t disconnected = 1u << CM_EVENT_DISCONNECTED;
	struct cm_conn **place = cm_conn_user(conn);
	uint32_t *reported = &world.reported[place - world.conn];

	require(*place == conn);
	require(!(*reported & (final | 1u << type)));
	require(!(*reported & disconnected) == (type != CM_EVENT_TIMEWAIT_EXIT));
	*reported |= 1u << type;
}

/* With REP or ESTABLISHED the attributes of the queue pair must be known. */
static void on_event(void *owner, struct cm_conn *conn, const struct cm_event *event)
{
	struct cm_qp_attr attr;

	(void)owner;
	require(conn && event->type < CM_EVENTS);
	check_order(conn, event->type);
	if (event->type == CM_EVENT_REP || event->type == CM_EVENT_ESTABLISHED)
		require(cm_qp_attr(conn, &attr) == CM_OK);
}

/* Returns a place for a new connection, for which no event has been reported. */
static struct cm_conn **free_place(void)
{
	for (uint32_t i = 0; i < CONNS; i++) {
		if (!world.conn[i]) {
			world.reported[i] = 0;
			return &world.conn[i];
		}
	}
	return NULL;
}

static void *on_accept(void *owner, struct cm_listener *listener, const struct mad *request,
		       const struct cm_path *from, void **user)
{
	struct cm_conn **place = free_place();

	(void)owner;
	(void)listener;
	(void)request;
	(void)from;
	if (!place)
		return NULL;
	*place = malloc(cm_conn_bytes());
	*user = place;
	world.alive++;
	return *place;
}

static void on_released(void *owner, struct cm_conn *conn, void *user)
{
	(void)owner;
	(void)user;
	world.alive--;
	free(conn);
}

static const struct cm_ops ops = {
	.send = on_send,
	.event = on_event,
	.accept_conn = on_accept,
	.released = on_released,
};

static void connect_one(uint8_t number)
{
	struct cm_conn **place = free_place();
	const struct cm_connect_param param = {
		.path = number & 8 ? path : to_itself,
		.service = (enum cm_service)(number % CM_UD),
		.service_id = cm_service_id(CM_PS_TCP, PORT),
		.ca_guid = GUID,
		.qpn = next8(),
		.response_time = next8(),
		.max_cm_retries = next8(),
		.packet_life = next8(),
		.ack_timeout = next8(),
	};
	const struct cm_sidr_request_param sidr = {
		.path = param.path,
		.service_id = cm_service_id(CM_PS_UDP, PORT),
		.response_time = param.response_time,
		.max_cm_retries = param.max_cm_retries,
	};

	if (!place)
		return;
	*place = cm_conn_init(world.cm, malloc(cm_conn_bytes()), place);
	world.alive++;
	if (number == 7)
		require(cm_sidr_request(world.cm, *place, &sidr, world.now) == CM_OK);
	else
		require(cm_connect(world.cm, *place, &param, world.now) == CM_OK);
}

static void answer(struct cm_conn *conn)
{
	const struct cm_accept_param accept = { .ca_guid = GUID, .qpn = next8() };
	const struct cm_sidr_reply_param reply = { .qpn = 9 };

	if (cm_accept(world.cm, conn, &accept, world.now) != CM_OK &&
	    cm_sidr_reply(world.cm, conn, &reply, world.now) != CM_OK)
		cm_rtu(world.cm, conn, NULL, 0, world.now);
}

static void destroy(struct cm_conn **place)
{
	struct cm_conn *conn = *place;

	*place = NULL;
	cm_destroy(world.cm, conn, world.now);
}

static void receive(const uint8_t *bytes, size_t length, bool from_itself)
{
	const struct cm_path *from = from_itself ? &to_itself : &path;
	/* A copy of exactly this length, so that the sanitizer detects reads beyond it. */
	uint8_t *copy = malloc(length + 1);

	memcpy(copy, bytes, length);
	copy = realloc(copy, length ? length : 1);
	require(cm_receive(world.cm, from, copy, length, world.now) < CM_VERDICTS);
	free(copy);
}

/* Receives a forged message of any kind that belongs to a connection, or almost. */
static void forge(struct cm_conn *conn)
{
	struct cm_conn_info info = { .local_id = 0 };
	struct mad mad = { .attr = MAD_REQ + next8() % 9 };
	uint8_t bytes[MAD_BYTES], how = next8();

	if (conn)
		cm_conn_info(conn, &info);
	mad_encode(&mad, bytes);
	for (unsigned int i = 0; i < how >> 4; i++)
		bytes[MAD_HEADER_BYTES + next8() % MAD_MESSAGE_BYTES] = next8();
	mad_decode(bytes, MAD_BYTES, &mad);
	if (how & 1)
		mad.rtu.local_id = info.remote_id ? info.remote_id : next32();
	if (how & 2 && mad.attr != MAD_REQ && mad.attr != MAD_SIDR_REQ)
		mad.rtu.remote_id = info.local_id;
	if (how & 4 && mad.attr == MAD_DREQ)
		mad.dreq.remote_qpn = info.local_qpn;
	if (mad.attr == MAD_REQ && how & 4)
		mad.req.ca_guid = info.remote_guid;
	if (mad.attr == MAD_REQ && how & 8) {
		mad.req.service_id = cm_service_id(CM_PS_TCP, PORT);
		memcpy(mad.req.primary_local_gid, path.dgid, MAD_GID_BYTES);
		memcpy(mad.req.primary_remote_gid, path.sgid, MAD_GID_BYTES);
	}
	if (mad.attr == MAD_SIDR_REP && how & 2)
		mad.sidr_rep.request_id = info.local_id;
	mad_encode(&mad, bytes);
	receive(bytes, MAD_BYTES, false);
}

static void raw(void)
{
	size_t length = next8() ? MAD_BYTES : next8();

	if (length > script.left)
		length = script.left;
	receive(script.data, length, false);
	script.data += length;
	script.left -= length;
}

static void pass_time(uint8_t how)
{
	if (how & 1 && cm_deadline(world.cm) != CM_NEVER)
		world.now = cm_deadline(world.cm) > world.now ? cm_deadline(world.cm) : world.now;
	else
		world.now += (uint64_t)next32() << (how & 7);
	cm_expire(world.cm, world.now);
	require(cm_deadline(world.cm) > world.now);
}

static void take_step(uint8_t what)
{
	uint8_t number = what >> 4;
	struct cm_conn **place = &world.conn[number % CONNS];
	const struct cm_reject_param no = { .reason = number };

	switch (what & 15) {
	case 0:
		connect_one(number);
		break;
	case 1:
		raw();
		break;
	case 2:
	case 3:
		forge(*place);
		break;
	case 4:
	case 5:
		if (world.on_wire > 0)
			receive(world.wire[(world.on_wire - 1 - number) % WIRE], MAD_BYTES, true);
		break;
	case 6:
	case 7:
		pass_time(number);
		break;
	default:
		if (!*place)
			break;
		if ((what & 15) < 11)
			answer(*place);
		else if ((what & 15) == 11)
			cm_reject(world.cm, *place, &no, world.now);
		else if ((what & 15) == 12)
			cm_established(world.cm, *place, world.now);
		else if ((what & 15) == 13)
			destroy(place);
		else
			cm_disconnect(world.cm, *place, world.now);
	}
}

static void listen_for(void *memory, enum cm_service service, enum cm_port_space space)
{
	const struct cm_listen_param param = {
		.service = service,
		.service_id = cm_service_id(space, PORT),
		.families = CM_FAMILY_IPV4 | CM_FAMILY_IPV6 | CM_FAMILY_NONE,
		.any_address = true,
	};
	struct cm_listener *listener;

	require(cm_listen(world.cm, memory, &param, NULL, &listener) == CM_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct cm_config config = { .ops = &ops, .owner = NULL, .slot = 3, .id_start = 1 };
	void *listeners[2] = { malloc(cm_listener_bytes()), malloc(cm_listener_bytes()) };

	memset(&world, 0, sizeof(world));
	script.data = data;
	script.left = size;
	world.now = 1;
	world.cm = cm_init(malloc(cm_bytes()), &config);
	listen_for(listeners[0], CM_RC, CM_PS_TCP);
	listen_for(listeners[1], CM_UD, CM_PS_UDP);
	for (int steps = 0; script.left > 0 && steps < MAX_STEPS; steps++)
		take_step(next8());
	for (uint32_t i = 0; i < CONNS; i++)
		if (world.conn[i])
			destroy(&world.conn[i]);
	/* A destroyed connection is released after its last message. */
	while (cm_deadline(world.cm) != CM_NEVER) {
		require(cm_deadline(world.cm) <= world.now + CM_GIVE_UP_NS);
		cm_expire(world.cm, cm_deadline(world.cm));
	}
	require(world.alive == 0);
	free(listeners[0]);
	free(listeners[1]);
	free(world.cm);
	return 0;
}
