/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* The GID table, which follows the addresses of an interface; GUID and path MTU of a device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/context/device.h"

static struct uroce_gid_table table;
static uint8_t addresses[UROCE_GID_TABLE + 1][16];

static void set_addresses(struct netdev *netdev, const char *last_bytes)
{
	netdev->address_count = (unsigned int)strlen(last_bytes);
	netdev->address = (const uint8_t(*)[16])addresses;
	memset(addresses, 0, sizeof(addresses));
	for (unsigned int i = 0; i < netdev->address_count; i++)
		addresses[i][15] = (uint8_t)last_bytes[i];
}

/* Compares the table with a text: the last byte of each GID, '.' for an empty entry. */
static void assert_table(const char *text)
{
	assert_int_equal(table.entries, strlen(text));
	for (unsigned int i = 0; i < table.entries; i++) {
		char found = table.gid[i].raw[15] ? (char)table.gid[i].raw[15] : '.';

		if (found != (i < strlen(text) ? text[i] : '.'))
			fail_msg("place %u has '%c', expected \"%s\"", i, found, text);
	}
}

static int empty_table(void **state)
{
	(void)state;
	memset(&table, 0, sizeof(table));
	return 0;
}

static void without_users_the_order_is_the_interface_s(void **state)
{
	struct netdev netdev = { 0 };

	(void)state;
	set_addresses(&netdev, "abc");
	assert_true(uroce_gid_table_update(&table, &netdev, false));
	assert_table("abc");
	assert_false(uroce_gid_table_update(&table, &netdev, false));
	set_addresses(&netdev, "xac");
	assert_true(uroce_gid_table_update(&table, &netdev, false));
	assert_table("xac");
	assert_true(uroce_gid_table_update(&table, NULL, false));
	assert_table("");
}

static void with_users_an_address_keeps_its_place(void **state)
{
	struct netdev netdev = { 0 };

	(void)state;
	set_addresses(&netdev, "abcd");
	uroce_gid_table_update(&table, &netdev, true);
	set_addresses(&netdev, "bd");
	assert_true(uroce_gid_table_update(&table, &netdev, true));
	assert_table(".b.d");
	set_addresses(&netdev, "db");
	assert_false(uroce_gid_table_update(&table, &netdev, true));
	assert_table(".b.d");
	set_addresses(&netdev, "xbydz");
	assert_true(uroce_gid_table_update(&table, &netdev, true));
	assert_table("xbydz");
}

/* Sets count addresses, whose last two bytes are the numbers from first on. */
static void number_addresses(struct netdev *netdev, unsigned int first, unsigned int count)
{
	netdev->address = (const uint8_t(*)[16])addresses;
	netdev->address_count = count;
	memset(addresses, 0, sizeof(addresses));
	for (unsigned int i = 0; i < count; i++) {
		addresses[i][14] = (uint8_t)((first + i) >> 8);
		addresses[i][15] = (uint8_t)(first + i);
	}
}

static unsigned int number_at(unsigned int place)
{
	return table.gid[place].raw[14] * 256u + table.gid[place].raw[15];
}

static void a_full_table_takes_no_more(void **state)
{
	struct netdev netdev = { 0 };
	union ibv_gid gid;

	(void)state;
	number_addresses(&netdev, 1, UROCE_GID_TABLE);
	assert_true(uroce_gid_table_update(&table, &netdev, true));
	for (unsigned int i = 0; i < UROCE_GID_TABLE; i++)
		assert_int_equal(number_at(i), i + 1);
	number_addresses(&netdev, 3, UROCE_GID_TABLE);
	assert_true(uroce_gid_table_update(&table, &netdev, true));
	assert_int_equal(number_at(0), UROCE_GID_TABLE + 1);
	assert_int_equal(number_at(1), UROCE_GID_TABLE + 2);
	assert_int_equal(number_at(2), 3);
	memcpy(&gid, addresses[UROCE_GID_TABLE - 1], sizeof(gid));
	assert_int_equal(uroce_gid_table_find(&table, &gid), 1);
	memset(&gid, 0xff, sizeof(gid));
	assert_int_equal(uroce_gid_table_find(&table, &gid), UROCE_GID_TABLE);
}

static void a_guid_is_made_of_the_mac(void **state)
{
	const struct netdev universal = { .name = "a", .mac = { 0x00, 0x1b, 0x21, 1, 2, 3 } };
	const struct netdev local = { .name = "b", .mac = { 0x02, 0, 0, 0, 0, 1 } };

	(void)state;
	assert_true(uroce_node_guid(&universal) == UINT64_C(0x021b21fffe010203));
	assert_true(uroce_node_guid(&local) == UINT64_C(0x000000fffe000001));
}

static void without_a_mac_the_guid_is_local_stable_and_unique(void **state)
{
	struct netdev netdev = { 0 };
	uint64_t seen[100];
	int i, j;

	(void)state;
	for (i = 0; i < 100; i++) {
		snprintf(netdev.name, sizeof(netdev.name), "tun%d", i);
		seen[i] = uroce_node_guid(&netdev);
		assert_true(seen[i] != 0 && seen[i] == uroce_node_guid(&netdev));
		/* Neither the group bit nor the bit of a universally unique number is set. */
		assert_true((seen[i] >> 56 & 3) == 0);
		for (j = 0; j < i; j++)
			assert_true(seen[i] != seen[j]);
	}
}

static void the_path_mtu_fits_with_its_headers(void **state)
{
	(void)state;
	assert_int_equal(uroce_active_mtu(65536), IBV_MTU_4096);
	assert_int_equal(uroce_active_mtu(9000), IBV_MTU_4096);
	assert_int_equal(uroce_active_mtu(4096 + 88), IBV_MTU_4096);
	assert_int_equal(uroce_active_mtu(4096 + 87), IBV_MTU_2048);
	assert_int_equal(uroce_active_mtu(1500), IBV_MTU_1024);
	assert_int_equal(uroce_active_mtu(1280), IBV_MTU_1024);
	assert_int_equal(uroce_active_mtu(1000), IBV_MTU_512);
	assert_int_equal(uroce_active_mtu(576), IBV_MTU_256);
	assert_int_equal(uroce_active_mtu(0), IBV_MTU_256);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(without_users_the_order_is_the_interface_s, empty_table),
		cmocka_unit_test_setup(with_users_an_address_keeps_its_place, empty_table),
		cmocka_unit_test_setup(a_full_table_takes_no_more, empty_table),
		cmocka_unit_test(a_guid_is_made_of_the_mac),
		cmocka_unit_test(without_a_mac_the_guid_is_local_stable_and_unique),
		cmocka_unit_test(the_path_mtu_fits_with_its_headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
