/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Ports of librdmacm's port spaces among the clients of a broker.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "broker/ports.h"

enum {
	TCP = 0x106,
	UDP = 0x111,
	PORT = 18515,
	A = 1, /* clients */
	B = 2,
	FIRST = 40000, /* first port of the range to choose from */
	RANGE = 100,
};

static struct broker_ports ports;
static uint32_t next_id;

static struct uroce_broker_endpoint endpoint_of(const char *name)
{
	struct uroce_broker_endpoint endpoint = { .gid = { [10] = 0xff, [11] = 0xff } };

	if (!strcmp(name, "::") || !strcmp(name, "fe80::1"))
		memset(endpoint.gid, 0, sizeof(endpoint.gid));
	if (!strcmp(name, "fe80::1")) {
		endpoint.gid[0] = 0xfe;
		endpoint.gid[1] = 0x80;
		endpoint.gid[15] = 1;
		endpoint.scope_id = 2;
	} else if (!strcmp(name, "127.0.0.1")) {
		endpoint.gid[12] = 127;
		endpoint.gid[15] = 1;
	} else if (!strcmp(name, "192.0.2.1")) {
		endpoint.gid[12] = 192;
		endpoint.gid[14] = 2;
		endpoint.gid[15] = 1;
	}
	return endpoint;
}

static struct uroce_broker_port port_of(const char *name, uint16_t number, uint32_t flags)
{
	return (struct uroce_broker_port){
		.endpoint = endpoint_of(name),
		.space = TCP,
		.port = number,
		.flags = flags,
		.id = ++next_id,
	};
}

static int bind_port(uint32_t client, struct uroce_broker_port *port)
{
	const struct port_range range = { .first = FIRST, .count = RANGE, .random = 77 };

	return ports_bind(&ports, client, port, &range);
}

static uint32_t listener(const char *name, uint16_t number)
{
	const struct uroce_broker_endpoint endpoint = endpoint_of(name);

	return ports_find_listener(&ports, (uint64_t)TCP << 16 | number, &endpoint);
}

static int begin(void **state)
{
	(void)state;
	memset(&ports, 0, sizeof(ports));
	return 0;
}

static int end(void **state)
{
	(void)state;
	ports_remove_client(&ports, A);
	ports_remove_client(&ports, B);
	return 0;
}

/* The rules are the same for two ports of one client and of two clients. */
static void test_conflicts(void **state)
{
	static const struct {
		const char *first, *second;
		uint32_t flags; /* flags of the second port */
		int error;
	} cases[] = {
		{ "127.0.0.1", "127.0.0.1", 0, -EADDRINUSE },
		{ "127.0.0.1", "192.0.2.1", 0, 0 },
		{ "127.0.0.1", "0.0.0.0", 0, -EADDRNOTAVAIL },
		{ "0.0.0.0", "127.0.0.1", 0, -EADDRNOTAVAIL },
		{ "0.0.0.0", "0.0.0.0", 0, -EADDRINUSE },
		{ "0.0.0.0", "::", 0, -EADDRINUSE },
		{ "0.0.0.0", "::", UROCE_BROKER_PORT_AF_ONLY, 0 },
		{ "0.0.0.0", "fe80::1", 0, 0 },
		{ "::", "127.0.0.1", 0, -EADDRNOTAVAIL },
		{ "::", "fe80::1", 0, -EADDRNOTAVAIL },
		{ "fe80::1", "fe80::1", 0, -EADDRINUSE },
		/* Both must allow reuse. */
		{ "127.0.0.1", "127.0.0.1", UROCE_BROKER_PORT_REUSE, -EADDRINUSE },
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (uint32_t client = A; client <= B; client++) {
			struct uroce_broker_port first = port_of(cases[i].first, PORT, 0);
			struct uroce_broker_port second =
				port_of(cases[i].second, PORT, cases[i].flags);

			assert_int_equal(bind_port(A, &first), 0);
			assert_int_equal(bind_port(client, &second), cases[i].error);
			/* Port spaces are separate. */
			second.space = UDP;
			assert_int_equal(bind_port(client, &second), 0);
			ports_remove_client(&ports, A);
			ports_remove_client(&ports, B);
		}
	}
}

static void test_sharing(void **state)
{
	struct uroce_broker_port a = port_of("0.0.0.0", PORT, UROCE_BROKER_PORT_REUSE);
	struct uroce_broker_port b = port_of("127.0.0.1", PORT, UROCE_BROKER_PORT_REUSE);

	(void)state;
	assert_int_equal(bind_port(A, &a), 0);
	assert_int_equal(bind_port(B, &b), 0);
	assert_int_equal(ports_listen(&ports, A, &a), -EADDRNOTAVAIL);
	ports_release(&ports, B, &b);
	assert_int_equal(ports_listen(&ports, A, &a), 0);
	assert_int_equal(ports_listen(&ports, A, &a), 0);
	/* Not the same port: another id, or another client. */
	assert_int_equal(ports_listen(&ports, A, &b), -ENOENT);
	assert_int_equal(ports_listen(&ports, B, &a), -ENOENT);
	/* A client can use an id only once. */
	assert_int_equal(bind_port(A, &a), -EEXIST);
}

static void test_listeners(void **state)
{
	struct uroce_broker_port one = port_of("127.0.0.1", PORT, 0);
	struct uroce_broker_port other = port_of("192.0.2.1", PORT, 0);
	struct uroce_broker_port dual = port_of("::", PORT + 1, 0);
	struct uroce_broker_port six = port_of("::", PORT + 2, UROCE_BROKER_PORT_AF_ONLY);

	(void)state;
	assert_int_equal(bind_port(A, &one), 0);
	assert_int_equal(bind_port(B, &other), 0);
	assert_int_equal(bind_port(B, &dual), 0);
	assert_int_equal(bind_port(A, &six), 0);
	assert_int_equal(listener("127.0.0.1", PORT), 0);
	assert_int_equal(ports_listen(&ports, A, &one), 0);
	assert_int_equal(ports_listen(&ports, B, &dual), 0);
	assert_int_equal(ports_listen(&ports, A, &six), 0);
	assert_int_equal(listener("127.0.0.1", PORT), A);
	assert_int_equal(listener("192.0.2.1", PORT), 0);
	assert_int_equal(listener("192.0.2.1", PORT + 1), B);
	assert_int_equal(listener("fe80::1", PORT + 1), B);
	assert_int_equal(listener("192.0.2.1", PORT + 2), 0);
	assert_int_equal(listener("fe80::1", PORT + 2), A);
	/* A service id of no port space. */
	assert_int_equal(
		ports_find_listener(&ports, UINT64_C(0x1000000010000) << 4 | PORT, &one.endpoint),
		0);
	ports_release(&ports, A, &one);
	assert_int_equal(listener("127.0.0.1", PORT), 0);
	ports_remove_client(&ports, B);
	assert_int_equal(listener("192.0.2.1", PORT + 1), 0);
	assert_int_equal(listener("fe80::1", PORT + 2), A);
}

static void test_chosen(void **state)
{
	struct uroce_broker_port port[RANGE + 2];
	bool seen[RANGE] = { false };

	(void)state;
	port[0] = port_of("127.0.0.1", FIRST + 5, 0);
	assert_int_equal(bind_port(B, &port[0]), 0);
	seen[5] = true;
	for (unsigned int i = 1; i < RANGE; i++) {
		port[i] = port_of("127.0.0.1", 0, 0);
		assert_int_equal(bind_port(A, &port[i]), 0);
		assert_true(port[i].port >= FIRST && port[i].port < FIRST + RANGE);
		assert_false(seen[port[i].port - FIRST]);
		seen[port[i].port - FIRST] = true;
	}
	/* All numbers are in use: chosen numbers are shared, but not those of listeners. */
	for (unsigned int i = 2; i < RANGE; i++)
		assert_int_equal(ports_listen(&ports, A, &port[i]), 0);
	port[RANGE] = port_of("127.0.0.1", 0, 0);
	assert_int_equal(bind_port(B, &port[RANGE]), 0);
	assert_int_equal(port[RANGE].port, port[1].port);
	assert_int_equal(ports_listen(&ports, B, &port[RANGE]), -EADDRINUSE);
	ports_release(&ports, A, &port[1]);
	assert_int_equal(ports_listen(&ports, B, &port[RANGE]), 0);
	port[RANGE + 1] = port_of("127.0.0.1", 0, 0);
	assert_int_equal(bind_port(A, &port[RANGE + 1]), -EADDRNOTAVAIL);
	assert_int_equal(ports.chosen, RANGE - 1);
	ports_remove_client(&ports, A);
	assert_int_equal(ports.chosen, 1);
}

/* Clients return the ports that they bound at an earlier broker; conflicts are not checked. */
static void test_return(void **state)
{
	const uint32_t returning = UROCE_BROKER_PORT_RETURNING;
	struct uroce_broker_port a =
		port_of("0.0.0.0", PORT, returning | UROCE_BROKER_PORT_LISTENING);
	struct uroce_broker_port b =
		port_of("127.0.0.1", FIRST, returning | UROCE_BROKER_PORT_CHOSEN);
	struct uroce_broker_port c = port_of("127.0.0.1", FIRST, returning);

	(void)state;
	assert_int_equal(ports_restore(&ports, A, &a), 0);
	assert_int_equal(ports_restore(&ports, A, &a), -EEXIST);
	assert_int_equal(listener("127.0.0.1", PORT), A);
	assert_int_equal(ports_restore(&ports, A, &b), 0);
	assert_int_equal(ports_restore(&ports, B, &c), 0);
	assert_int_equal(ports.chosen, 1);
	ports_release(&ports, A, &b);
	assert_int_equal(ports.chosen, 0);
	assert_int_equal(ports_listen(&ports, B, &c), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_conflicts, begin, end),
		cmocka_unit_test_setup_teardown(test_sharing, begin, end),
		cmocka_unit_test_setup_teardown(test_listeners, begin, end),
		cmocka_unit_test_setup_teardown(test_chosen, begin, end),
		cmocka_unit_test_setup_teardown(test_return, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
