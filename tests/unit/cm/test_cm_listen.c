/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Selection of the listener for a request: by service id, address, device and family; and datagram
 * services.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cm_fixture.h"

#define PORT 99

static struct cm_listen_param wildcard(void)
{
	return (struct cm_listen_param){
		.service = CM_RC,
		.service_id = cm_service_id(CM_PS_TCP, PORT),
		.device = CM_ANY_DEVICE,
		.families = CM_FAMILY_IPV4,
		.any_address = true,
	};
}

/* The user of a listener identifies it in a request event; cm_pair.c expects a side there. */
static struct cm_listener *listen_at(const struct cm_listen_param *param)
{
	struct cm_listener *listener = NULL;
	void *memory = malloc(cm_listener_bytes());

	if (cm_listen(cm[1], memory, param, &pair->side[1], &listener) != CM_OK)
		free(memory);
	return listener;
}

static void end_listening(struct cm_listener *listener)
{
	cm_unlisten(cm[1], listener);
	free(listener);
}

/*
 * Delivers a REQ with an IP header of this version and family (0: none) for this address of side 1.
 */
static enum cm_verdict ask_in_version(uint8_t version, uint8_t family, const uint8_t *address)
{
	struct cm_ip_header header = { .family = family };
	struct mad req = { .attr = MAD_REQ };
	static uint32_t id = 100;

	req.req.local_id = id;
	req.req.local_qpn = id++;
	req.req.ca_guid = pair->side[0].guid;
	req.req.service_id = cm_service_id(CM_PS_TCP, PORT);
	memcpy(req.req.primary_local_gid, pair->side[1].path.dgid, MAD_GID_BYTES);
	memcpy(req.req.primary_remote_gid, pair->side[1].path.sgid, MAD_GID_BYTES);
	memcpy(header.destination, address, 16);
	if (family != 0)
		cm_ip_header_put(&header, req.req.private_data);
	req.req.private_data[0] = version;
	return pair_inject(pair, 1, &req);
}

static enum cm_verdict ask(uint8_t family, const uint8_t *address)
{
	return ask_in_version(0, family, address);
}

static const uint8_t ipv6_address[16] = { 0xfd, [15] = 9 };

/* The address and the family of a request must match the listener, not only the port. */
static void test_address_and_family(void **state)
{
	struct cm_listen_param param = wildcard();
	const uint8_t *mine = pair->side[1].path.sgid;
	struct cm_listener *listener;
	uint8_t other[16];

	(void)state;
	memcpy(other, mine, 16);
	other[15] = 77;
	assert_int_equal(ask(4, mine), CM_REFUSED_SERVICE);
	listener = listen_at(&param);
	assert_int_equal(ask(4, mine), CM_HANDLED);
	assert_int_equal(ask(6, ipv6_address), CM_REFUSED_MISMATCH);
	assert_int_equal(ask(0, mine), CM_REFUSED_MISMATCH);
	end_listening(listener);

	param.any_address = false;
	memcpy(param.address, mine, 16);
	listener = listen_at(&param);
	assert_int_equal(ask(4, mine), CM_HANDLED);
	assert_int_equal(ask(4, other), CM_REFUSED_MISMATCH);
	assert_int_equal(ask_in_version(1, 4, mine), CM_REFUSED_MISMATCH);
	end_listening(listener);

	param.device = pair->side[1].path.device + 1;
	param.any_address = true;
	listener = listen_at(&param);
	assert_int_equal(ask(4, mine), CM_REFUSED_MISMATCH);
	end_listening(listener);
	assert_int_equal(ask(4, mine), CM_REFUSED_SERVICE);
}

/* Without an IP header the private data may resemble one, of any version. */
static void test_no_header(void **state)
{
	struct cm_listen_param param = wildcard();
	struct cm_listener *listener;

	(void)state;
	param.families = CM_FAMILY_NONE;
	param.any_address = false;
	memcpy(param.address, pair->side[1].path.sgid, 16);
	listener = listen_at(&param);
	assert_int_equal(ask(0, ipv6_address), CM_HANDLED);
	assert_int_equal(ask(4, ipv6_address), CM_HANDLED);
	assert_int_equal(ask(6, ipv6_address), CM_HANDLED);
	assert_int_equal(ask_in_version(0x1a, 6, ipv6_address), CM_HANDLED);
	end_listening(listener);

	param.address[15] ^= 1;
	listener = listen_at(&param);
	assert_int_equal(ask(0, ipv6_address), CM_REFUSED_MISMATCH);
	assert_int_equal(ask(6, ipv6_address), CM_REFUSED_MISMATCH);
	end_listening(listener);
}

static struct cm_listener *last_listener;

static void note_listener(void *owner, struct cm_conn *conn, const struct cm_event *event)
{
	(void)owner;
	(void)conn;
	last_listener = event->listener;
}

/* The most specific of several listeners gets the request. */
static void test_most_specific(void **state)
{
	struct cm_listen_param param = wildcard();
	struct cm_listener *any, *device, *address;
	static struct cm_ops ops;
	struct cm_config config = {
		.ops = &ops, .owner = &pair->side[1], .slot = 1, .id_start = 1
	};
	struct cm *before = cm[1];

	(void)state;
	/* A separate manager, whose event callback records the listener. */
	cm[1] = cm_init(malloc(cm_bytes()), &config);
	pair->side[1].cm = cm[1];
	ops = *pair_ops();
	ops.event = note_listener;
	any = listen_at(&param);
	param.device = pair->side[1].path.device;
	device = listen_at(&param);
	param.device = CM_ANY_DEVICE;
	param.any_address = false;
	memcpy(param.address, pair->side[1].path.sgid, 16);
	address = listen_at(&param);
	assert_true(any && device && address);
	assert_int_equal(ask(4, param.address), CM_HANDLED);
	assert_ptr_equal(last_listener, address);
	end_listening(address);
	assert_int_equal(ask(4, param.address), CM_HANDLED);
	assert_ptr_equal(last_listener, device);
	end_listening(device);
	assert_int_equal(ask(4, param.address), CM_HANDLED);
	assert_ptr_equal(last_listener, any);
	end_listening(any);
	pair_empty(pair, 1);
	free(cm[1]);
	pair->side[1].cm = before;
}

/*
 * A second listener with the same parameters is refused; one with another device or family is not.
 */
static void test_in_use(void **state)
{
	struct cm_listen_param param = wildcard();
	struct cm_listener *first = listen_at(&param), *second;

	(void)state;
	assert_non_null(first);
	assert_null(listen_at(&param));
	param.families = CM_FAMILY_IPV6;
	second = listen_at(&param);
	assert_non_null(second);
	end_listening(second);
	param.families = CM_FAMILY_IPV4;
	param.device = 3;
	second = listen_at(&param);
	assert_non_null(second);
	end_listening(second);
	end_listening(first);
	param.families = 0;
	assert_null(listen_at(&param));
}

/* A REQ whose path contains another GID than its destination is rejected with reason 12. */
static void test_path_of_another(void **state)
{
	struct cm_connect_param connect = pair_connect_param(pair, 0);
	struct cm_conn *conn = pair_conn(pair, 0);

	(void)state;
	assert_int_equal(cm_connect(cm[0], conn, &connect, pair->now), CM_OK);
	pair->wire[0].mad.req.primary_remote_gid[15]++;
	mad_encode(&pair->wire[0].mad, pair->wire[0].bytes);
	assert_int_equal(pair_deliver(pair), CM_REFUSED_PATH);
	assert_int_equal(pair->wire[0].mad.rej.reason, MAD_REJECT_INVALID_GID);
}

static struct cm_conn *request_datagrams(uint16_t port)
{
	const struct cm_ip_header header = { .family = 4 };
	uint8_t data[CM_IP_HEADER_BYTES + 5];
	const struct cm_sidr_request_param param = {
		.path = pair->side[0].path,
		.service_id = cm_service_id(CM_PS_UDP, port),
		.pkey = 0xffff,
		.response_time = 20,
		.max_cm_retries = 15,
		.private_data = data,
		.private_length = sizeof(data),
	};
	struct cm_conn *conn = pair_conn(pair, 0);

	cm_ip_header_put(&header, data);
	memcpy(data + CM_IP_HEADER_BYTES, "hello", 5);
	assert_int_equal(cm_sidr_request(cm[0], conn, &param, pair->now), CM_OK);
	return conn;
}

/*
 * A datagram service replies with its QPN; if the reply is lost, the repeated request gets the same
 * reply, and the application gets one event.
 */
static void test_datagram_service(void **state)
{
	const struct cm_sidr_reply_param reply = { .qpn = 0x77, .qkey = 0x01234567 };
	struct cm_conn *conn = request_datagrams(PAIR_PORT), *served;
	const struct mad *rep;

	(void)state;
	assert_int_equal(pair_deliver(pair), CM_HANDLED);
	served = pair->side[1].newest;
	assert_memory_equal(pair->side[1].event[0].mad.sidr_req.private_data + CM_IP_HEADER_BYTES,
			    "hello", 6);
	assert_int_equal(cm_sidr_reply(cm[1], served, &reply, pair->now), CM_OK);
	assert_int_equal(cm_sidr_reply(cm[1], served, &reply, pair->now), CM_BAD_STATE);
	pair_lose(pair);
	cm_destroy(cm[1], served, pair->now);
	pair_wait(pair, 50 * CM_MS);
	assert_int_equal(pair_deliver(pair), CM_REPEATED);
	assert_int_equal(pair_deliver(pair), CM_HANDLED);
	assert_int_equal(pair_last_event(pair, 0), CM_EVENT_SIDR_REP);
	rep = &pair->side[0].event[0].mad;
	assert_int_equal(rep->sidr_rep.qpn, 0x77);
	assert_int_equal(rep->sidr_rep.qkey, 0x01234567);
	assert_int_equal(pair_count(pair, 1, CM_EVENT_SIDR_REQ), 1);
	assert_int_equal(cm_conn_state(conn), CM_IDLE);
	pair_wait(pair, CM_SIDR_REPLY_CACHE_NS);
	assert_int_equal(pair->side[1].released, 1);
}

/* Status 1 if no listener has the port, 2 if the request is rejected or the backlog is full. */
static void test_datagram_refusals(void **state)
{
	const struct cm_reject_param no = { .private_data = (const uint8_t *)"no",
					    .private_length = 2 };

	(void)state;
	request_datagrams(PAIR_PORT + 1);
	assert_int_equal(pair_deliver(pair), CM_REFUSED_SERVICE);
	pair_deliver(pair);
	assert_int_equal(pair->side[0].event[0].mad.sidr_rep.status, MAD_SIDR_UNSUPPORTED);
	request_datagrams(PAIR_PORT);
	pair_deliver(pair);
	assert_int_equal(cm_reject(cm[1], pair->side[1].newest, &no, pair->now), CM_OK);
	pair_deliver(pair);
	assert_int_equal(pair->side[0].event[1].mad.sidr_rep.status, MAD_SIDR_REJECT);
	assert_memory_equal(pair->side[0].event[1].mad.sidr_rep.private_data, "no", 3);
	pair->side[1].room = 0;
	request_datagrams(PAIR_PORT);
	assert_int_equal(pair_deliver(pair), CM_REFUSED_BACKLOG);
	pair_deliver(pair);
	assert_int_equal(pair->side[0].event[2].mad.sidr_rep.status, MAD_SIDR_REJECT);
}

/* Private data that is missing, or that does not fit, is refused, and nothing is sent. */
static void test_datagram_arguments(void **state)
{
	struct cm_sidr_request_param request = { .path = pair->side[0].path, .private_length = 1 };
	struct cm_sidr_reply_param reply = { .private_length = 1 };
	struct cm_conn *conn = pair_conn(pair, 0);

	(void)state;
	assert_int_equal(cm_sidr_request(cm[0], conn, &request, pair->now), CM_BAD_ARGUMENT);
	request.private_data = (const uint8_t *)"";
	request.private_length = MAD_SIDR_REQ_PRIVATE + 1;
	assert_int_equal(cm_sidr_request(cm[0], conn, &request, pair->now), CM_BAD_ARGUMENT);
	assert_int_equal(pair->on_wire, 0);
	request_datagrams(PAIR_PORT);
	pair_deliver(pair);
	conn = pair->side[1].newest;
	assert_int_equal(cm_sidr_reply(cm[1], conn, &reply, pair->now), CM_BAD_ARGUMENT);
	reply.private_data = (const uint8_t *)"";
	reply.private_length = MAD_SIDR_REP_PRIVATE + 1;
	assert_int_equal(cm_sidr_reply(cm[1], conn, &reply, pair->now), CM_BAD_ARGUMENT);
	assert_int_equal(pair->on_wire, 0);
}

/* Two hosts may use the same request id. */
static void test_requests_of_two_hosts(void **state)
{
	struct mad request = { .attr = MAD_SIDR_REQ };

	(void)state;
	request.sidr_req.request_id = 4;
	request.sidr_req.service_id = cm_service_id(CM_PS_UDP, PAIR_PORT);
	assert_int_equal(pair_inject(pair, 1, &request), CM_HANDLED);
	assert_int_equal(pair_inject(pair, 1, &request), CM_REPEATED);
	pair->side[1].path.dgid[14]++;
	pair->side[0].path.sgid[14]++;
	assert_int_equal(pair_inject(pair, 1, &request), CM_HANDLED);
	pair_empty(pair, 1);
	pair->on_wire = 0;
	pair->side[1].path.dgid[14]--;
	pair->side[0].path.sgid[14]--;
}

/*
 * Communication ids: the slot is in the upper bits, 0 is skipped, and each process has another
 * start.
 */
static void test_ids(void **state)
{
	struct cm_config config = {
		.ops = pair_ops(), .owner = &pair->side[0], .slot = 0, .id_start = (1u << 20) - 2
	};
	struct cm *manager = cm_init(malloc(cm_bytes()), &config);
	struct cm_connect_param connect = pair_connect_param(pair, 0);
	const uint32_t ids[] = { 0xffffe, 0xfffff, 1, 2 };
	struct cm_conn *conn[4];
	struct cm_conn_info info;

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		conn[i] = cm_conn_init(manager, malloc(cm_conn_bytes()), &pair->side[0]);
		assert_int_equal(cm_connect(manager, conn[i], &connect, pair->now), CM_OK);
		cm_conn_info(conn[i], &info);
		assert_int_equal(info.local_id, ids[i]);
	}
	for (uint32_t i = 0; i < 4; i++)
		cm_destroy(manager, conn[i], pair->now);
	cm_expire(manager, pair->now + CM_TIMEWAIT_MAX_NS);
	assert_int_equal(pair->side[0].released, 4);
	free(manager);
	pair->on_wire = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_PAIR(test_address_and_family),    WITH_PAIR(test_no_header),
		WITH_PAIR(test_most_specific),	       WITH_PAIR(test_in_use),
		WITH_PAIR(test_path_of_another),       WITH_PAIR(test_datagram_service),
		WITH_PAIR(test_datagram_refusals),     WITH_PAIR(test_datagram_arguments),
		WITH_PAIR(test_requests_of_two_hosts), WITH_PAIR(test_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
