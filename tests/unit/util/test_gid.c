/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Kinds of GIDs, compared with the macros of <netinet/in.h> for the same addresses. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "util/gid.h"

static void kinds_of_ipv6_addresses(void **state)
{
	static const char *const addresses[] = {
		"::",	   "::1",    "::2",  "1::1",   "fe80::1",  "febf::1",
		"fec0::1", "ff02::", "ff::", "feff::", "::7f00:1", "::fffe:127.0.0.1",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		struct in6_addr in6;
		const uint8_t *gid = in6.s6_addr;

		assert_int_equal(inet_pton(AF_INET6, addresses[i], &in6), 1);
		assert_false(gid_is_ipv4(gid));
		assert_int_equal(gid_is_any(gid), IN6_IS_ADDR_UNSPECIFIED(&in6));
		assert_int_equal(gid_is_loopback(gid), IN6_IS_ADDR_LOOPBACK(&in6));
		assert_int_equal(gid_is_multicast(gid), IN6_IS_ADDR_MULTICAST(&in6));
		assert_int_equal(gid_is_link_local(gid), IN6_IS_ADDR_LINKLOCAL(&in6));
	}
}

static void kinds_of_ipv4_addresses(void **state)
{
	static const char *const addresses[] = {
		"0.0.0.0",     "0.0.0.1",   "126.255.255.255", "127.0.0.0",
		"127.3.2.1",   "128.0.0.1", "223.255.255.255", "224.0.0.1",
		"239.255.0.1", "240.0.0.1", "255.255.255.255",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		struct in6_addr in6;
		struct in_addr in;
		uint8_t gid[16];
		uint32_t host;

		assert_int_equal(inet_pton(AF_INET, addresses[i], &in), 1);
		host = ntohl(in.s_addr);
		gid_from_ipv4(gid, &in);
		memcpy(&in6, gid, sizeof(in6));
		assert_true(IN6_IS_ADDR_V4MAPPED(&in6));
		assert_memory_equal(in6.s6_addr + 12, &in, 4);
		assert_true(gid_is_ipv4(gid));
		assert_int_equal(gid_is_any(gid), host == INADDR_ANY);
		assert_int_equal(gid_is_loopback(gid), host >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET);
		assert_int_equal(gid_is_multicast(gid), IN_MULTICAST(host));
		assert_false(gid_is_link_local(gid));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds_of_ipv6_addresses),
		cmocka_unit_test(kinds_of_ipv4_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
