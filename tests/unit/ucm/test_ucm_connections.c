/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Connections and datagram services from librdmacm's side: events, their order and their data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "ucm_fixture.h"

/* Events of a connection that is requested, accepted, used and closed, field by field. */
static void whole_connection(void **state)
{
	const uint8_t zeros[200] = { 0 };
	struct rdma_ucm_event_resp event;
	struct ucm_fixture fixture;

	(void)state;
	ucm_fixture_open(&fixture, RDMA_PS_TCP, 3);
	fixture.active = prepare_client(&fixture, RDMA_PS_TCP, "10.0.0.1", PORT);
	assert_int_equal(connect_id(fixture.client, fixture.active, "hello", 5), 0);
	assert_int_equal(connect_id(fixture.client, fixture.active, "hello", 5), EINVAL);
	world_deliver();
	assert_int_equal(get_event(fixture.server, &event), 0);
	assert_int_equal(event.event, CONNECT_REQUEST);
	assert_int_equal(event.uid, LISTENER_UID);
	assert_int_equal(event.status, 0);
	assert_int_equal(event.param.conn.private_data_len, 56);
	assert_memory_equal(event.param.conn.private_data, "hello", 5);
	assert_memory_equal(event.param.conn.private_data + 5, zeros, 51);
	/* The peer's initiator depth is the number of responder resources here, and vice versa. */
	assert_int_equal(event.param.conn.responder_resources, 2);
	assert_int_equal(event.param.conn.initiator_depth, 3);
	assert_int_equal(event.param.conn.qp_num, qpn_of(fixture.active));
	assert_int_equal(event.param.conn.retry_count, 6);
	assert_int_equal(event.param.conn.rnr_retry_count, 5);
	/* rule C19 test: the bit shows that this queue pair reports credits. */
	assert_int_equal(event.param.conn.flow_control, 1);
	fixture.passive = event.id;

	assert_int_equal(accept_id(fixture.server, fixture.passive, SERVER_UID, "welcome", 7), 0);
	assert_int_equal(accept_id(fixture.server, fixture.passive, SERVER_UID, "welcome", 7),
			 EINVAL);
	world_lose();
	ucm_fixture_close(&fixture);

	ucm_fixture_open(&fixture, RDMA_PS_TCP, 3);
	request_connection(&fixture, "10.0.0.1");
	assert_int_equal(accept_id(fixture.server, fixture.passive, SERVER_UID, "welcome", 7), 0);
	expect_no_event(fixture.client);
	world_deliver();
	expect_event(fixture.client, CONNECT_RESPONSE, 0, fixture.active, &event);
	assert_int_equal(event.uid, CLIENT_UID);
	assert_int_equal(event.param.conn.private_data_len, 196);
	assert_memory_equal(event.param.conn.private_data, "welcome", 7);
	assert_memory_equal(event.param.conn.private_data + 7, zeros, 189);
	assert_int_equal(event.param.conn.qp_num, qpn_of(fixture.passive));
	assert_int_equal(event.param.conn.flow_control, 1);
	expect_no_event(fixture.server);
	assert_int_equal(establish_id(fixture.client, fixture.active), 0);
	world_deliver();
	expect_event(fixture.server, ESTABLISHED, 0, fixture.passive, &event);
	assert_int_equal(event.uid, SERVER_UID);
	assert_int_equal(notify_id(fixture.server, fixture.passive, 4), EISCONN);

	assert_int_equal(disconnect_id(fixture.client, fixture.active), 0);
	world_deliver();
	expect_event(fixture.server, DISCONNECTED, 0, fixture.passive, NULL);
	assert_int_equal(disconnect_id(fixture.server, fixture.passive), 0);
	world_deliver();
	expect_event(fixture.client, DISCONNECTED, 0, fixture.active, NULL);
	assert_int_equal(disconnect_id(fixture.client, fixture.active), 0);
	world_pass(3 * SECOND);
	expect_event(fixture.client, TIMEWAIT_EXIT, 0, fixture.active, NULL);
	expect_event(fixture.server, TIMEWAIT_EXIT, 0, fixture.passive, NULL);
	expect_no_event(fixture.client);
	expect_no_event(fixture.server);
	ucm_fixture_close(&fixture);
}

/* Attributes of both queue pairs fit each other. */
static void queue_pair_attributes(void **state)
{
	struct ib_uverbs_qp_attr active, passive;
	const uint8_t timeout = 21;
	struct ucm_fixture fixture;

	(void)state;
	ucm_fixture_open(&fixture, RDMA_PS_TCP, 3);
	assert_int_equal(init_qp_attr_id(fixture.server, fixture.listener, 1, &active), EINVAL);
	fixture.active = prepare_client(&fixture, RDMA_PS_TCP, "10.0.0.1", PORT);
	assert_int_equal(init_qp_attr_id(fixture.client, fixture.active, 1, &active), 0);
	assert_int_equal(active.qp_attr_mask, 1 | 1 << 3 | 1 << 4 | 1 << 5);
	assert_int_equal(active.qp_access_flags, 0);
	assert_int_equal(init_qp_attr_id(fixture.client, fixture.active, 2, &active), EINVAL);
	assert_int_equal(init_qp_attr_id(fixture.client, fixture.active, 7, &active), EINVAL);
	assert_int_equal(option_id(fixture.client, fixture.active, 0, RDMA_OPTION_ID_ACK_TIMEOUT,
				   &timeout, sizeof(timeout)),
			 0);
	assert_int_equal(destroy_id(fixture.client, fixture.active, NULL), 0);
	establish_connection(&fixture);
	assert_int_equal(init_qp_attr_id(fixture.client, fixture.active, 2, &active), 0);
	assert_int_equal(init_qp_attr_id(fixture.server, fixture.passive, 2, &passive), 0);
	assert_int_equal(active.dest_qp_num, qpn_of(fixture.passive));
	assert_int_equal(passive.dest_qp_num, qpn_of(fixture.active));
	assert_int_equal(active.ah_attr.is_global, 1);
	assert_int_equal(active.ah_attr.grh.dgid[15], 1);
	assert_int_equal(active.path_mtu, 5);
	assert_int_equal(passive.max_dest_rd_atomic, 3);
	{
		struct ib_uverbs_qp_attr active_rts, passive_rts;

		assert_int_equal(init_qp_attr_id(fixture.client, fixture.active, 3, &active_rts),
				 0);
		assert_int_equal(init_qp_attr_id(fixture.server, fixture.passive, 3, &passive_rts),
				 0);
		assert_int_equal(active.rq_psn, passive_rts.sq_psn);
		assert_int_equal(passive.rq_psn, active_rts.sq_psn);
		assert_int_equal(active_rts.rnr_retry, 5);
		assert_int_equal(passive_rts.retry_cnt, 6);
	}
	ucm_fixture_close(&fixture);
}

/*
 * A peer with a finite RNR retry count gets the RNR timer of the kernel, so that it does not give
 * up sooner; a peer that retries forever (7) gets a short one.
 */
static void rnr_timers(void **state)
{
	static const struct {
		uint8_t retry, timer;
	} cases[] = { { 0, 0 }, { 1, 0 }, { 6, 0 }, { 7, 12 } };
	struct ib_uverbs_qp_attr active, passive;
	const uint8_t usual = said_rnr_retry;
	struct ucm_fixture fixture;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		said_rnr_retry = cases[i].retry;
		ucm_fixture_open(&fixture, RDMA_PS_TCP, 3);
		establish_connection(&fixture);
		assert_int_equal(init_qp_attr_id(fixture.client, fixture.active, 2, &active), 0);
		assert_int_equal(init_qp_attr_id(fixture.server, fixture.passive, 2, &passive), 0);
		assert_int_equal(active.min_rnr_timer, cases[i].timer);
		assert_int_equal(passive.min_rnr_timer, cases[i].timer);
		ucm_fixture_close(&fixture);
	}
	said_rnr_retry = usual;
}

/* A rejection has its reason and private data of full size; other fields are zero. */
static void refusals(void **state)
{
	struct rdma_ucm_event_resp event;
	struct ucm_fixture fixture;

	(void)state;
	ucm_fixture_open(&fixture, RDMA_PS_TCP, 3);
	request_connection(&fixture, "127.0.0.1");
	assert_int_equal(reject_id(fixture.server, fixture.passive, 29, NULL, 0), EINVAL);
	assert_int_equal(reject_id(fixture.server, fixture.passive, 0, "no", 2), 0);
	assert_int_equal(accept_id(fixture.server, fixture.passive, SERVER_UID, NULL, 0), EINVAL);
	world_deliver();
	expect_event(fixture.client, REJECTED, 28, fixture.active, &event);
	assert_int_equal(event.param.conn.private_data_len, 148);
	assert_memory_equal(event.param.conn.private_data, "no\0", 3);
	assert_int_equal(disconnect_id(fixture.client, fixture.active), 0);

	/* There is no listener at that port. */
	fixture.active = prepare_client(&fixture, RDMA_PS_TCP, "10.0.0.1", PORT + 1);
	assert_int_equal(connect_id(fixture.client, fixture.active, NULL, 0), 0);
	world_deliver();
	/* A listener may appear soon: the request is repeated for 155 ms. */
	expect_no_event(fixture.client);
	for (int i = 0; i < 16; i++) {
		world_pass(SECOND / 100);
		world_deliver();
	}
	expect_event(fixture.client, REJECTED, 8, fixture.active, NULL);
	ucm_fixture_close(&fixture);
}

/*
 * The server starts to listen after the first request; neither side gets an event about the
 * rejections.
 */
static void listens_late(void **state)
{
	struct rdma_ucm_event_resp event;
	uint32_t late;
	struct ucm_fixture fixture;

	(void)state;
	ucm_fixture_open(&fixture, RDMA_PS_TCP, 3);
	fixture.active = prepare_client(&fixture, RDMA_PS_TCP, "10.0.0.1", PORT + 1);
	assert_int_equal(connect_id(fixture.client, fixture.active, "hello", 5), 0);
	world_deliver();
	world_pass(SECOND / 50);
	world_deliver();
	assert_int_equal(create_id(fixture.server, RDMA_PS_TCP, LISTENER_UID, &late), 0);
	assert_int_equal(bind_id(fixture.server, late, NULL, PORT + 1), 0);
	assert_int_equal(listen_id(fixture.server, late, 1), 0);
	world_pass(SECOND / 20);
	world_deliver();
	assert_int_equal(get_event(fixture.server, &event), 0);
	assert_int_equal(event.event, CONNECT_REQUEST);
	assert_memory_equal(event.param.conn.private_data, "hello\0", 6);
	assert_int_equal(accept_id(fixture.server, event.id, SERVER_UID, NULL, 0), 0);
	world_deliver();
	expect_event(fixture.client, CONNECT_RESPONSE, 0, fixture.active, NULL);
	ucm_fixture_close(&fixture);
}

/* The backlog limits the number of unread requests; the next one is rejected at once. */
static void backlog(void **state)
{
	struct rdma_ucm_event_resp event;
	uint32_t ids[4];
	struct ucm_fixture fixture;

	(void)state;
	ucm_fixture_open(&fixture, RDMA_PS_TCP, 2);
	for (int i = 0; i < 4; i++) {
		ids[i] = prepare_client(&fixture, RDMA_PS_TCP, "10.0.0.1", PORT);
		assert_int_equal(connect_id(fixture.client, ids[i], NULL, 0), 0);
		world_deliver();
		/* A request that has been read does not count, accepted or not. */
		if (i == 0)
			assert_int_equal(get_event(fixture.server, &event), 0);
	}
	expect_event(fixture.client, REJECTED, 3, ids[3], NULL);
	assert_int_equal(get_event(fixture.server, &event), 0);
	assert_int_equal(get_event(fixture.server, &event), 0);
	expect_no_event(fixture.server);
	ucm_fixture_close(&fixture);
}

/* Unread requests are destroyed with their listener, and do not count as reported events. */
static void listener_goes(void **state)
{
	struct ucm_fixture fixture;
	uint32_t reported;

	(void)state;
	ucm_fixture_open(&fixture, RDMA_PS_TCP, 9);
	request_connection(&fixture, "10.0.0.1");
	fixture.active = prepare_client(&fixture, RDMA_PS_TCP, "10.0.0.1", PORT);
	assert_int_equal(connect_id(fixture.client, fixture.active, NULL, 0), 0);
	world_deliver();
	assert_int_equal(destroy_id(fixture.server, fixture.listener, &reported), 0);
	assert_int_equal(reported, 1);
	expect_no_event(fixture.server);
	world_deliver();
	expect_event(fixture.client, REJECTED, 28, fixture.active, NULL);
	ucm_fixture_close(&fixture);
}

/*
 * The client gives up before the server has accepted: the server gets no event, and accepting fails
 * with EINVAL.
 */
static void given_up_before_it_was_accepted(void **state)
{
	struct ucm_fixture fixture;

	(void)state;
	ucm_fixture_open(&fixture, RDMA_PS_TCP, 9);
	request_connection(&fixture, "10.0.0.1");
	assert_int_equal(destroy_id(fixture.client, fixture.active, NULL), 0);
	world_deliver();
	expect_no_event(fixture.server);
	assert_int_equal(accept_id(fixture.server, fixture.passive, SERVER_UID, NULL, 0), EINVAL);
	ucm_fixture_close(&fixture);
}

/* Closing a channel sends a DREQ or REJ for each of its ids. */
static void channel_goes(void **state)
{
	struct ucm_fixture fixture;

	(void)state;
	ucm_fixture_open(&fixture, RDMA_PS_TCP, 9);
	establish_connection(&fixture);
	/* One last message for each end, which is sent if the process is killed. */
	assert_int_equal(world_last_messages(), 2);
	world_close(fixture.client);
	world_deliver();
	expect_event(fixture.server, DISCONNECTED, 0, fixture.passive, NULL);
	fixture.client = open_channel();
	ucm_fixture_close(&fixture);
}

/*
 * The peer does not respond: the client gets the kernel's status, but sooner than after the
 * kernel's 98 seconds.
 */
static void unreachable(void **state)
{
	struct ucm_fixture fixture;

	(void)state;
	ucm_fixture_open(&fixture, RDMA_PS_TCP, 9);
	fixture.active = prepare_client(&fixture, RDMA_PS_TCP, "10.0.0.1", PORT);
	assert_int_equal(connect_id(fixture.client, fixture.active, NULL, 0), 0);
	for (int i = 0; i < 75; i++) {
		world_lose();
		world_pass(SECOND);
	}
	expect_event(fixture.client, UNREACHABLE, -ETIMEDOUT, fixture.active, NULL);
	ucm_fixture_close(&fixture);
}

/* Events move with their id to another channel; the number of events already read is returned. */
static void migration(void **state)
{
	struct rdma_ucm_event_resp event;
	struct ucm_fixture fixture;
	uint32_t reported;
	int other;

	(void)state;
	ucm_fixture_open(&fixture, RDMA_PS_TCP, 9);
	other = open_channel();
	assert_int_equal(migrate_id(other, 9999, fixture.listener, NULL), ENOENT);
	assert_int_equal(migrate_id(other, 0, fixture.listener, NULL), EINVAL);
	assert_int_equal(migrate_id(other, fixture.client, fixture.listener, NULL), EINVAL);
	request_connection(&fixture, "10.0.0.1");
	fixture.active = prepare_client(&fixture, RDMA_PS_TCP, "10.0.0.1", PORT);
	assert_int_equal(connect_id(fixture.client, fixture.active, NULL, 0), 0);
	world_deliver();
	assert_int_equal(migrate_id(other, fixture.server, fixture.listener, &reported), 0);
	assert_int_equal(reported, 1);
	expect_no_event(fixture.server);
	assert_int_equal(get_event(other, &event), 0);
	assert_int_equal(event.event, CONNECT_REQUEST);
	assert_int_equal(accept_id(other, event.id, SERVER_UID, NULL, 0), 0);
	assert_int_equal(accept_id(fixture.server, fixture.passive, SERVER_UID, NULL, 0), 0);
	world_close(other);
	ucm_fixture_close(&fixture);
}

/* The RTU is lost, but the program reports that it has received the first packet. */
static void rtu_is_lost(void **state)
{
	struct ucm_fixture fixture;

	(void)state;
	ucm_fixture_open(&fixture, RDMA_PS_TCP, 9);
	request_connection(&fixture, "10.0.0.1");
	assert_int_equal(notify_id(fixture.server, fixture.passive, 4), EINVAL);
	assert_int_equal(accept_id(fixture.server, fixture.passive, SERVER_UID, NULL, 0), 0);
	world_deliver();
	expect_event(fixture.client, CONNECT_RESPONSE, 0, fixture.active, NULL);
	assert_int_equal(establish_id(fixture.client, fixture.active), 0);
	assert_int_equal(world_lose(), 1);
	assert_int_equal(notify_id(fixture.server, fixture.passive, 5), EINVAL);
	assert_int_equal(notify_id(fixture.server, fixture.passive, 4), 0);
	expect_event(fixture.server, ESTABLISHED, 0, fixture.passive, NULL);
	ucm_fixture_close(&fixture);
}

/*
 * The RTU is lost, and the peer's first request establishes the connection: only once, and only at
 * the passive end.
 */
static void first_request_establishes(void **state)
{
	struct ucm_fixture fixture;

	(void)state;
	ucm_fixture_open(&fixture, RDMA_PS_TCP, 9);
	request_connection(&fixture, "10.0.0.1");
	world_first_request(qpn_of(fixture.passive));
	assert_int_equal(accept_id(fixture.server, fixture.passive, SERVER_UID, NULL, 0), 0);
	world_deliver();
	expect_event(fixture.client, CONNECT_RESPONSE, 0, fixture.active, NULL);
	world_first_request(qpn_of(fixture.active));
	expect_no_event(fixture.client);
	assert_int_equal(establish_id(fixture.client, fixture.active), 0);
	assert_int_equal(world_lose(), 1);
	expect_no_event(fixture.server);
	world_first_request(qpn_of(fixture.passive));
	expect_event(fixture.server, ESTABLISHED, 0, fixture.passive, NULL);
	world_first_request(qpn_of(fixture.passive));
	world_first_request(qpn_of(fixture.active));
	expect_no_event(fixture.server);
	expect_no_event(fixture.client);
	/* No message is repeated: none of them still expects a response. */
	world_pass(20 * SECOND);
	assert_int_equal(world_deliver(), 0);
	assert_int_equal(disconnect_id(fixture.client, fixture.active), 0);
	world_deliver();
	expect_event(fixture.server, DISCONNECTED, 0, fixture.passive, NULL);
	ucm_fixture_close(&fixture);
}

/*
 * A peer that has promised credits but does not report them is detected once for each end of the
 * connection.
 */
static void broken_words(void **state)
{
	struct ucm_fixture fixture;

	(void)state;
	ucm_fixture_open(&fixture, RDMA_PS_TCP, 3);
	establish_connection(&fixture);
	assert_false(world_credits_hidden(qpn_of(fixture.passive) + 1000));
	/* rule C19 test */
	assert_true(world_credits_hidden(qpn_of(fixture.passive)));
	assert_false(world_credits_hidden(qpn_of(fixture.passive)));
	assert_true(world_credits_hidden(qpn_of(fixture.active)));
	ucm_fixture_close(&fixture);
}

/*
 * Datagram service: the reply contains an address handle, a QPN and a Q_Key; there is no connection
 * that could be closed.
 */
static void datagrams(void **state)
{
	struct rdma_ucm_event_resp event;
	struct ib_uverbs_qp_attr attr;
	struct ucm_fixture fixture;

	(void)state;
	ucm_fixture_open(&fixture, RDMA_PS_UDP, 9);
	fixture.active = prepare_client(&fixture, RDMA_PS_UDP, "10.0.0.1", PORT);
	assert_int_equal(init_qp_attr_id(fixture.client, fixture.active, 2, &attr), 0);
	assert_int_equal(attr.qkey, 0x01234567);
	assert_int_equal(connect_id(fixture.client, fixture.active, "hello", 5), 0);
	world_deliver();
	assert_int_equal(get_event(fixture.server, &event), 0);
	assert_int_equal(event.event, CONNECT_REQUEST);
	assert_int_equal(event.param.ud.private_data_len, 180);
	assert_memory_equal(event.param.ud.private_data, "hello\0", 6);
	assert_int_equal(event.param.ud.qp_num, 0);
	fixture.passive = event.id;
	assert_int_equal(accept_id(fixture.server, fixture.passive, SERVER_UID, "yes", 3), 0);
	world_deliver();
	expect_event(fixture.client, ESTABLISHED, 0, fixture.active, &event);
	assert_int_equal(event.param.ud.private_data_len, 136);
	assert_memory_equal(event.param.ud.private_data, "yes\0", 4);
	assert_int_equal(event.param.ud.qp_num, qpn_of(fixture.passive));
	assert_int_equal(event.param.ud.qkey, 0x01234567);
	assert_int_equal(event.param.ud.ah_attr.grh.dgid[12], 10);
	expect_no_event(fixture.server);
	assert_int_equal(disconnect_id(fixture.server, fixture.passive), 0);

	fixture.active = prepare_client(&fixture, RDMA_PS_UDP, "10.0.0.1", PORT);
	assert_int_equal(connect_id(fixture.client, fixture.active, NULL, 0), 0);
	world_deliver();
	assert_int_equal(get_event(fixture.server, &event), 0);
	assert_int_equal(reject_id(fixture.server, event.id, 0, "no", 2), 0);
	world_deliver();
	expect_event(fixture.client, UNREACHABLE, 2, fixture.active, &event);
	assert_memory_equal(event.param.ud.private_data, "no\0", 3);
	ucm_fixture_close(&fixture);
}

/* A multicast group has its own number; its events count both for the group and for its id. */
static void groups(void **state)
{
	struct rdma_ucm_event_resp event;
	uint32_t group, second, reported;
	struct ucm_fixture fixture;

	(void)state;
	ucm_fixture_open(&fixture, RDMA_PS_UDP, 9);
	assert_int_equal(create_id(fixture.client, RDMA_PS_UDP, CLIENT_UID, &fixture.active), 0);
	assert_int_equal(bind_id(fixture.client, fixture.active, "10.0.0.1", 0), 0);
	assert_int_equal(join_id(fixture.client, fixture.active, 7, "224.1.2.3", 0, &group), 0);
	assert_int_equal(join_id(fixture.client, fixture.active, 8, "224.1.2.4", 1, &second), 0);
	assert_int_equal(join_id(fixture.client, fixture.active, 9, "224.1.2.4", 2, &reported),
			 EINVAL);
	assert_int_equal(join_id(fixture.client, fixture.active, 9, "10.0.0.1", 0, &reported),
			 EINVAL);
	expect_event(fixture.client, MULTICAST_JOIN, 0, group, &event);
	assert_int_equal(event.uid, 7);
	assert_int_equal(event.param.ud.qp_num, 0xffffff);
	assert_int_equal(event.param.ud.qkey, 0x01234567);
	assert_int_equal(event.param.ud.ah_attr.grh.dgid[12], 224);
	assert_int_equal(leave_group(fixture.server, group, &reported), EINVAL);
	assert_int_equal(leave_group(fixture.client, group, &reported), 0);
	assert_int_equal(reported, 1);
	assert_int_equal(leave_group(fixture.client, group, &reported), ENOENT);
	/* The event of the other group has not been read. */
	assert_int_equal(leave_group(fixture.client, second, &reported), 0);
	assert_int_equal(reported, 0);
	expect_no_event(fixture.client);
	assert_int_equal(destroy_id(fixture.client, fixture.active, &reported), 0);
	assert_int_equal(reported, 1);
	ucm_fixture_close(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_connection),
		cmocka_unit_test(queue_pair_attributes),
		cmocka_unit_test(rnr_timers),
		cmocka_unit_test(refusals),
		cmocka_unit_test(listens_late),
		cmocka_unit_test(backlog),
		cmocka_unit_test(listener_goes),
		cmocka_unit_test(given_up_before_it_was_accepted),
		cmocka_unit_test(channel_goes),
		cmocka_unit_test(unreachable),
		cmocka_unit_test(migration),
		cmocka_unit_test(rtu_is_lost),
		cmocka_unit_test(first_request_establishes),
		cmocka_unit_test(broken_words),
		cmocka_unit_test(datagrams),
		cmocka_unit_test(groups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
