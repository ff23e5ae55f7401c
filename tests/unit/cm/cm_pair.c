/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "cm_pair.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct pair_side *other_side(struct pair *pair, const struct pair_side *side)
{
	return &pair->side[side == &pair->side[0] ? 1 : 0];
}

/* The owner of a manager is its side; this is the pair of that side. */
static struct pair *the_pair;

static void on_send(void *owner, const struct cm_path *path, const uint8_t *mad)
{
	struct pair_side *to = other_side(the_pair, owner);
	uint32_t i = the_pair->on_wire++;

	assert_true(i < PAIR_WIRE);
	assert_int_equal(path->dgid[15], to->path.sgid[15]);
	assert_int_equal(path->sgid[15], to->path.dgid[15]);
	the_pair->wire[i].to = to == &the_pair->side[1];
	memcpy(the_pair->wire[i].bytes, mad, MAD_BYTES);
	assert_int_equal(mad_decode(mad, MAD_BYTES, &the_pair->wire[i].mad), MAD_OK);
}

static void on_event(void *owner, struct cm_conn *conn, const struct cm_event *event)
{
	struct pair_side *side = owner;
	uint32_t i = side->events++;

	assert_true(i < PAIR_EVENTS);
	side->event[i].type = event->type;
	side->event[i].conn = conn;
	side->event[i].with_mad = event->mad != NULL;
	if (event->mad)
		side->event[i].mad = *event->mad;
	if (event->type == CM_EVENT_REQ || event->type == CM_EVENT_SIDR_REQ) {
		assert_non_null(event->listener);
		side->newest = conn;
	}
}

static void *on_accept(void *owner, struct cm_listener *listener, const struct mad *request,
		       const struct cm_path *from, void **user)
{
	struct pair_side *side = owner;

	assert_ptr_equal(cm_listener_user(listener), side);
	assert_non_null(request);
	assert_memory_equal(from->dgid, side->path.dgid, MAD_GID_BYTES);
	*user = side;
	if (side->room == 0)
		return NULL;
	side->room--;
	return malloc(cm_conn_bytes());
}

static void on_released(void *owner, struct cm_conn *conn, void *user)
{
	struct pair_side *side = owner;

	assert_ptr_equal(user, side);
	side->released++;
	free(conn);
}

static void on_last_message(void *owner, struct cm_conn *conn, const struct cm_path *path,
			    const uint8_t *mad)
{
	struct pair_side *side = owner;

	assert_non_null(conn);
	assert_int_equal(path->dgid[15], side->path.dgid[15]);
	if (!mad) {
		side->last_messages--;
		return;
	}
	side->last_messages++;
	assert_int_equal(mad_decode(mad, MAD_BYTES, &side->last_message), MAD_OK);
}

static const struct cm_ops ops = {
	.send = on_send,
	.event = on_event,
	.accept_conn = on_accept,
	.released = on_released,
	.last_message = on_last_message,
};

const struct cm_ops *pair_ops(void)
{
	return &ops;
}

static struct cm_listener *listen_for(struct pair_side *side, enum cm_service service,
				      enum cm_port_space space)
{
	const struct cm_listen_param param = {
		.service = service,
		.service_id = cm_service_id(space, PAIR_PORT),
		.device = CM_ANY_DEVICE,
		.families = CM_FAMILY_IPV4 | CM_FAMILY_IPV6 | CM_FAMILY_NONE,
		.any_address = true,
	};
	struct cm_listener *listener;

	assert_int_equal(cm_listen(side->cm, malloc(cm_listener_bytes()), &param, side, &listener),
			 CM_OK);
	return listener;
}

struct pair *pair_new(void)
{
	struct pair *pair = calloc(1, sizeof(*pair));

	assert_non_null(pair);
	the_pair = pair;
	pair->now = 1000;
	for (uint32_t i = 0; i < 2; i++) {
		struct pair_side *side = &pair->side[i];
		const struct cm_config config = {
			.ops = &ops, .owner = side, .slot = 5 + i, .id_start = 0x123456
		};

		side->cm = cm_init(malloc(cm_bytes()), &config);
		side->room = 100;
		side->guid = 0x1000 + i;
		side->path = (struct cm_path){ .device = 1, .hop_limit = 64 };
		memcpy(side->path.sgid, (uint8_t[16]){ [10] = 0xff, 0xff, 10, 0, 0, 1 }, 16);
		memcpy(side->path.dgid, side->path.sgid, 16);
		side->path.sgid[15] = (uint8_t)(1 + i);
		side->path.dgid[15] = (uint8_t)(2 - i);
	}
	pair->side[1].listener[0] = listen_for(&pair->side[1], CM_RC, CM_PS_TCP);
	pair->side[1].listener[1] = listen_for(&pair->side[1], CM_UD, CM_PS_UDP);
	return pair;
}

/* Drops the newest messages if many are on the wire, so that a test need not drop each one. */
static void lose_surplus(struct pair *pair)
{
	if (pair->on_wire > PAIR_WIRE / 2)
		pair->on_wire = PAIR_WIRE / 4;
}

#define MOST_CONNS 1000

struct leftover {
	struct cm_conn *conn[MOST_CONNS];
	uint32_t count;
};

static void collect(void *arg, const struct cm_conn *conn)
{
	struct leftover *left = arg;
	struct cm_conn_info info;

	cm_conn_info(conn, &info);
	if (info.destroyed)
		return;
	assert_true(left->count < MOST_CONNS);
	left->conn[left->count++] = (struct cm_conn *)conn;
}

static void count_one(void *arg, const struct cm_conn *conn)
{
	(void)conn;
	(*(uint32_t *)arg)++;
}

static void destroy_all(struct pair *pair, uint32_t side)
{
	struct leftover left = { .count = 0 };

	cm_each_conn(pair->side[side].cm, collect, &left);
	for (uint32_t n = 0; n < left.count; n++) {
		cm_destroy(pair->side[side].cm, left.conn[n], pair->now);
		lose_surplus(pair);
	}
}

void pair_empty(struct pair *pair, uint32_t side)
{
	uint32_t count = 0;

	destroy_all(pair, side);
	pair_wait(pair, 2 * CM_GIVE_UP_NS);
	cm_each_conn(pair->side[side].cm, count_one, &count);
	assert_int_equal(count, 0);
}

void pair_free(struct pair *pair)
{
	/* A request that is still on the wire would create another connection. */
	pair->on_wire = 0;
	destroy_all(pair, 0);
	destroy_all(pair, 1);
	pair_deliver_all(pair);
	pair_wait(pair, 2 * CM_GIVE_UP_NS);
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t count = 0;

		cm_each_conn(pair->side[i].cm, count_one, &count);
		assert_int_equal(count, 0);
		assert_int_equal(pair->side[i].last_messages, 0);
		assert_true(cm_deadline(pair->side[i].cm) == CM_NEVER);
		for (uint32_t l = 0; l < 2 && pair->side[i].listener[l]; l++) {
			cm_unlisten(pair->side[i].cm, pair->side[i].listener[l]);
			free(pair->side[i].listener[l]);
		}
		free(pair->side[i].cm);
	}
	free(pair);
}

struct cm_conn *pair_conn(struct pair *pair, uint32_t side)
{
	return cm_conn_init(pair->side[side].cm, malloc(cm_conn_bytes()), &pair->side[side]);
}

struct cm_connect_param pair_connect_param(const struct pair *pair, uint32_t side)
{
	return (struct cm_connect_param){
		.path = pair->side[side].path,
		.service = CM_RC,
		.service_id = cm_service_id(CM_PS_TCP, PAIR_PORT),
		.ca_guid = pair->side[side].guid,
		.qpn = 0x11 + side,
		.starting_psn = 0x1000 + side,
		.responder_resources = 3,
		.initiator_depth = 4,
		.retry_count = 6,
		.rnr_retry = 5,
		.flow_control = true,
		.pkey = 0xffff,
		.path_mtu = 3,
		.response_time = 20,
		.max_cm_retries = 15,
		.packet_life = 16,
		.ack_timeout = 17,
	};
}

struct cm_accept_param pair_accept_param(const struct pair *pair, uint32_t side)
{
	return (struct cm_accept_param){
		.ca_guid = pair->side[side].guid,
		.qpn = 0x21 + side,
		.starting_psn = 0x2000 + side,
		.responder_resources = 2,
		.initiator_depth = 1,
		.target_ack_delay = 15,
		.rnr_retry = 7,
	};
}

uint16_t pair_next(const struct pair *pair)
{
	return pair->on_wire > 0 ? pair->wire[0].mad.attr : 0;
}

void pair_lose(struct pair *pair)
{
	assert_true(pair->on_wire > 0);
	pair->on_wire--;
	memmove(pair->wire, pair->wire + 1, pair->on_wire * sizeof(pair->wire[0]));
}

enum cm_verdict pair_deliver(struct pair *pair)
{
	uint32_t to = pair->wire[0].to;
	uint8_t bytes[MAD_BYTES];

	memcpy(bytes, pair->wire[0].bytes, sizeof(bytes));
	pair_lose(pair);
	return cm_receive(pair->side[to].cm, &pair->side[to].path, bytes, sizeof(bytes), pair->now);
}

enum cm_verdict pair_deliver_twice(struct pair *pair)
{
	assert_true(pair->on_wire > 0 && pair->on_wire < PAIR_WIRE);
	pair->wire[pair->on_wire++] = pair->wire[0];
	return pair_deliver(pair);
}

void pair_deliver_all(struct pair *pair)
{
	while (pair->on_wire > 0)
		pair_deliver(pair);
}

enum cm_verdict pair_inject(struct pair *pair, uint32_t to, const struct mad *mad)
{
	uint8_t bytes[MAD_BYTES];

	mad_encode(mad, bytes);
	return cm_receive(pair->side[to].cm, &pair->side[to].path, bytes, sizeof(bytes), pair->now);
}

void pair_wait(struct pair *pair, uint64_t ns)
{
	uint64_t until = pair->now + ns, next;

	do {
		next = until;
		for (uint32_t i = 0; i < 2; i++)
			if (cm_deadline(pair->side[i].cm) < next)
				next = cm_deadline(pair->side[i].cm);
		if (next > pair->now)
			pair->now = next;
		/*
		 * Drop the newest messages if many are on the wire, so that a test need not drop
		 * each one.
		 */
		if (pair->on_wire > PAIR_WIRE / 2)
			pair->on_wire = PAIR_WIRE / 4;
		for (uint32_t i = 0; i < 2; i++)
			cm_expire(pair->side[i].cm, pair->now);
	} while (next < until);
}

enum cm_event_type pair_last_event(const struct pair *pair, uint32_t side)
{
	const struct pair_side *s = &pair->side[side];

	return s->events > 0 ? s->event[s->events - 1].type : CM_EVENTS;
}

uint32_t pair_count(const struct pair *pair, uint32_t side, enum cm_event_type type)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < pair->side[side].events; i++)
		count += pair->side[side].event[i].type == type;
	return count;
}

void pair_establish(struct pair *pair, struct cm_conn *conn[2])
{
	pair_establish_qps(pair, conn, 0x11, 0x22);
}

void pair_establish_qps(struct pair *pair, struct cm_conn *conn[2], uint32_t qpn0, uint32_t qpn1)
{
	struct cm_connect_param connect = pair_connect_param(pair, 0);
	struct cm_accept_param accept = pair_accept_param(pair, 1);

	connect.qpn = qpn0;
	accept.qpn = qpn1;
	conn[0] = pair_conn(pair, 0);
	assert_int_equal(cm_connect(pair->side[0].cm, conn[0], &connect, pair->now), CM_OK);
	assert_int_equal(pair_deliver(pair), CM_HANDLED);
	conn[1] = pair->side[1].newest;
	assert_int_equal(cm_accept(pair->side[1].cm, conn[1], &accept, pair->now), CM_OK);
	assert_int_equal(pair_deliver(pair), CM_HANDLED);
	assert_int_equal(cm_rtu(pair->side[0].cm, conn[0], NULL, 0, pair->now), CM_OK);
	assert_int_equal(pair_deliver(pair), CM_HANDLED);
	assert_int_equal(pair->on_wire, 0);
	assert_int_equal(cm_conn_state(conn[0]), CM_ESTABLISHED);
	assert_int_equal(cm_conn_state(conn[1]), CM_ESTABLISHED);
}
