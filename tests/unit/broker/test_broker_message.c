/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Messages between uroce-broker and its clients: valid ones are parsed unchanged, and all others
 * are refused.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include <rdma/rdma_user_cm.h>

#include "broker/message.h"

enum { NUMBER = 77, PAYLOAD = 300 };

static union broker_message sent, received;
static uint8_t bytes[sizeof(sent) + PAYLOAD];

static enum broker_message_error pass(size_t length)
{
	memcpy(bytes, &sent, sizeof(sent));
	return broker_message_parse(bytes, length, &received);
}

static void expect_refused(void)
{
	assert_int_equal(pass(broker_message_bytes(&sent)), BROKER_MESSAGE_VALUE);
}

static void expect_zero(uint32_t *reserved)
{
	*reserved = 1;
	expect_refused();
	*reserved = 0;
}

/*
 * The message is parsed unchanged.  It is refused if a byte is missing or added, if its version is
 * another one, or if its error is positive.
 */
static void expect_good(size_t length, unsigned int descriptors)
{
	assert_int_equal(pass(length), BROKER_MESSAGE_OK);
	assert_memory_equal(&sent, &received, sizeof(sent));
	assert_int_equal(broker_message_descriptor_count(&received), descriptors);
	assert_int_equal(pass(length + 1), BROKER_MESSAGE_LENGTH);
	for (size_t less = 0; less < length; less++)
		assert_int_not_equal(pass(less), BROKER_MESSAGE_OK);
	sent.header.version++;
	assert_int_equal(pass(length), BROKER_MESSAGE_VERSION);
	sent.header.version--;
	sent.header.error = EIO;
	assert_int_equal(pass(length), BROKER_MESSAGE_VALUE);
	sent.header.error = 0;
}

static void begin(enum uroce_broker_type type)
{
	broker_message_init(&sent, type, NUMBER);
}

static void test_hello(void **state)
{
	(void)state;
	begin(UROCE_BROKER_HELLO);
	expect_refused();
	sent.hello.role = UROCE_BROKER_WORKER;
	assert_int_equal(broker_message_bytes(&sent), 24);
	expect_good(24, 0);
	sent.hello.role = UROCE_BROKER_RETURNING;
	expect_refused();
	for (unsigned int i = 0; i < 17; i++)
		sent.hello.slot[i] = UROCE_BROKER_SLOTS - 1 - i;
	sent.hello.slots = 17;
	expect_good(24 + 4 * 17, 0);
	sent.hello.slot[16] = UROCE_BROKER_SLOTS;
	expect_refused();
	sent.hello.slot[16] = sent.hello.slot[0];
	expect_refused();
	sent.hello.slot[16] = UROCE_BROKER_SLOTS - 17;
	sent.hello.role = UROCE_BROKER_GUEST;
	expect_refused();
	sent.hello.role = UROCE_BROKER_RETURNING;
	sent.hello.slots = UROCE_BROKER_CLIENT_SLOTS;
	for (unsigned int i = 0; i < UROCE_BROKER_CLIENT_SLOTS; i++)
		sent.hello.slot[i] = i;
	expect_good(sizeof(sent.hello), 0);
	sent.hello.slots++;
	assert_int_equal(pass(sizeof(sent.hello) + 4), BROKER_MESSAGE_LENGTH);
	sent.hello.slots = UINT32_MAX;
	assert_int_equal(pass(24 - 4), BROKER_MESSAGE_SHORT);
	assert_int_equal(pass(sizeof(sent.hello)), BROKER_MESSAGE_LENGTH);
}

static void test_welcome(void **state)
{
	(void)state;
	begin(UROCE_BROKER_WELCOME);
	sent.welcome.role = UROCE_BROKER_WORKER;
	sent.welcome.slot = UROCE_BROKER_SLOTS - 1;
	expect_good(sizeof(sent.welcome), 2);
	sent.welcome.role = UROCE_BROKER_RETURNING;
	expect_good(sizeof(sent.welcome), 1);
	sent.welcome.role = UROCE_BROKER_GUEST;
	expect_refused();
	sent.welcome.slot = UROCE_BROKER_NO_SLOT;
	expect_good(sizeof(sent.welcome), 0);
	sent.welcome.role = UROCE_BROKER_WORKER;
	expect_refused();
	/* Only the error of a refused request matters. */
	sent.header.error = -ENOSPC;
	assert_int_equal(pass(sizeof(sent.welcome)), BROKER_MESSAGE_OK);
	assert_int_equal(broker_message_descriptor_count(&received), 0);
}

static void test_addresses(void **state)
{
	(void)state;
	begin(UROCE_BROKER_ADDRESS);
	expect_good(sizeof(sent.address), 0);
	expect_zero(&sent.address.endpoint.reserved);
	expect_zero(&sent.address.reserved);
	sent.address.flags = UROCE_BROKER_CLAIM;
	expect_good(sizeof(sent.address), 1);
	sent.address.flags = UROCE_BROKER_UNSTEERED;
	expect_refused();
	begin(UROCE_BROKER_ADDRESS_REPLY);
	expect_good(sizeof(sent.address), 1);
	sent.address.flags = UROCE_BROKER_UNSTEERED;
	expect_good(sizeof(sent.address), 1);
	sent.address.flags = UROCE_BROKER_CLAIM;
	expect_good(sizeof(sent.address), 0);
	sent.address.flags = UROCE_BROKER_CLAIM | UROCE_BROKER_UNSTEERED;
	expect_good(sizeof(sent.address), 0);
	begin(UROCE_BROKER_ADDRESS_END);
	expect_good(sizeof(sent.address), 0);
	begin(UROCE_BROKER_PROBED);
	expect_good(sizeof(sent.probed), 0);
	sent.probed.index = UINT16_MAX;
	expect_refused();
}

static void test_ports(void **state)
{
	(void)state;
	begin(UROCE_BROKER_PORT);
	expect_refused();
	sent.ports.ports = 1;
	sent.ports.port[0].flags = UROCE_BROKER_PORT_REUSE;
	expect_refused();
	sent.ports.port[0].space = RDMA_PS_IB;
	expect_good(24 + 40, 0);
	expect_zero(&sent.ports.port[0].reserved);
	expect_zero(&sent.ports.port[0].endpoint.reserved);
	expect_zero(&sent.ports.reserved);
	sent.ports.port[0].flags = UROCE_BROKER_PORT_LISTENING;
	expect_refused();
	/* Several ports are allowed in one message only if they were bound at an earlier broker. */
	sent.ports.ports = UROCE_BROKER_PORTS;
	for (unsigned int i = 0; i < UROCE_BROKER_PORTS; i++) {
		sent.ports.port[i].flags = UROCE_BROKER_PORT_RETURNING;
		sent.ports.port[i].port = (uint16_t)(i + 1);
		sent.ports.port[i].space = RDMA_PS_TCP;
	}
	expect_good(sizeof(sent.ports), 0);
	sent.ports.port[UROCE_BROKER_PORTS - 1].flags = 0;
	expect_refused();
	sent.ports.port[UROCE_BROKER_PORTS - 1].flags = UROCE_BROKER_PORT_RETURNING;
	sent.ports.port[0].port = 0;
	expect_refused();
	begin(UROCE_BROKER_PORT_LISTEN);
	sent.ports.ports = 1;
	sent.ports.port[0].space = RDMA_PS_UDP;
	expect_refused();
	sent.ports.port[0].port = 18515;
	expect_good(24 + 40, 0);
	sent.ports.port[0].flags = UROCE_BROKER_PORT_RETURNING;
	expect_refused();
}

static void test_connections(void **state)
{
	(void)state;
	begin(UROCE_BROKER_CONNECT);
	expect_refused();
	sent.connect.purpose = UROCE_BROKER_STATISTICS;
	expect_good(sizeof(sent.connect), 0);
	sent.connect.slot = UROCE_BROKER_NO_SLOT;
	expect_refused();
	begin(UROCE_BROKER_CONNECTION);
	sent.connect.slot = UROCE_BROKER_NO_SLOT;
	sent.connect.purpose = UROCE_BROKER_SHARED_MEMORY;
	expect_good(sizeof(sent.connect), 1);
	begin(UROCE_BROKER_LOOKUP);
	expect_good(sizeof(sent.lookup), 0);
	expect_zero(&sent.lookup.endpoint.reserved);
	expect_zero(&sent.lookup.reserved);
	sent.lookup.slot = UROCE_BROKER_SLOTS;
	expect_refused();
	begin(UROCE_BROKER_LIST_REPLY);
	sent.list.clients = 2;
	expect_refused();
	sent.list.client[1].slot = 9;
	expect_good(24 + 16, 0);
}

static void test_switches(void **state)
{
	static const enum uroce_broker_type bare[] = { UROCE_BROKER_PING, UROCE_BROKER_PONG,
						       UROCE_BROKER_SUPERSEDE };

	(void)state;
	for (unsigned int i = 0; i < sizeof(bare) / sizeof(bare[0]); i++) {
		begin(bare[i]);
		expect_good(sizeof(sent.header), 0);
	}
	begin(UROCE_BROKER_GSI);
	sent.on_off.flags = UROCE_BROKER_ON | UROCE_BROKER_MESSAGES;
	expect_good(sizeof(sent.on_off), 1);
	sent.on_off.flags = UROCE_BROKER_MESSAGES;
	expect_refused();
	begin(UROCE_BROKER_WATCH);
	sent.on_off.flags = UROCE_BROKER_ON;
	expect_good(sizeof(sent.on_off), 0);
	sent.on_off.flags = UROCE_BROKER_MESSAGES;
	expect_refused();
	begin(UROCE_BROKER_SLOT);
	expect_refused();
	sent.slot.slot = UROCE_BROKER_NO_SLOT;
	expect_good(sizeof(sent.slot), 0);
	expect_zero(&sent.slot.reserved);
	begin(UROCE_BROKER_SLOT_REPLY);
	expect_good(sizeof(sent.slot), 1);
}

static void test_datagrams(void **state)
{
	(void)state;
	begin(UROCE_BROKER_DATAGRAM);
	sent.datagram.bytes = PAYLOAD;
	assert_int_equal(pass(sizeof(sent.datagram) + PAYLOAD), BROKER_MESSAGE_VALUE);
	sent.datagram.reason = UROCE_BROKER_MAD_NONE;
	assert_int_equal(broker_message_bytes(&sent), sizeof(sent.datagram));
	expect_good(sizeof(sent.datagram) + PAYLOAD, 0);
	sent.datagram.reason++;
	assert_int_equal(pass(sizeof(sent.datagram) + PAYLOAD), BROKER_MESSAGE_VALUE);
	sent.datagram.reason = UROCE_BROKER_MISDIRECTED;
	sent.datagram.bytes = UINT16_MAX;
	assert_int_equal(pass(sizeof(sent.datagram) + UINT16_MAX), BROKER_MESSAGE_VALUE);
}

static void test_types(void **state)
{
	(void)state;
	begin(0);
	assert_int_equal(pass(sizeof(sent)), BROKER_MESSAGE_TYPE);
	assert_int_equal(broker_message_bytes(&sent), 0);
	begin(UROCE_BROKER_WATCH + 1);
	assert_int_equal(pass(sizeof(sent)), BROKER_MESSAGE_TYPE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hello),	    cmocka_unit_test(test_welcome),
		cmocka_unit_test(test_addresses),   cmocka_unit_test(test_ports),
		cmocka_unit_test(test_connections), cmocka_unit_test(test_switches),
		cmocka_unit_test(test_datagrams),   cmocka_unit_test(test_types),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
