/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The key table: many keys, removal in any order, bounds that cannot be circumvented, caches that
 * become invalid with their region, and a removal that waits for a copy in progress.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/types.h"
#include "verbs/mr/mkey_table.h"

static uint8_t memory[4096];
static int domain_a, domain_b;

static struct mkey_entry entry_at(uint64_t start, uint64_t length, uint32_t access)
{
	return (struct mkey_entry){ .start = start,
				    .length = length,
				    .memory = memory,
				    .access = access,
				    .domain = &domain_a };
}

static void *map(uint32_t key, uint64_t addr, uint32_t length, uint32_t need)
{
	struct mkey_cache cache = { 0 };
	void *found;

	mkey_read_lock(0);
	found = mkey_table_map(&cache, &domain_a, key, addr, length, need);
	mkey_read_unlock(0);
	return found;
}

static void bounds_are_kept(void **state)
{
	struct mkey_entry entry = entry_at(0x10000, 100, ENG_LOCAL_WRITE | ENG_REMOTE_READ);

	(void)state;
	assert_int_equal(mkey_table_add(&entry), 0);
	assert_ptr_equal(map(entry.key, 0x10000, 100, 0), memory);
	assert_ptr_equal(map(entry.key, 0x10000 + 99, 1, ENG_LOCAL_WRITE), memory + 99);
	assert_ptr_equal(map(entry.key, 0x10000 + 100, 0, 0), memory + 100);
	assert_null(map(entry.key, 0x10000 + 100, 1, 0));
	assert_null(map(entry.key, 0x10000 + 99, 2, 0));
	assert_null(map(entry.key, 0x10000, 101, 0));
	assert_null(map(entry.key, 0xffff, 2, 0));
	assert_null(map(entry.key, 0x10001, UINT32_MAX, 0));
	assert_null(map(entry.key, UINT64_MAX, 2, 0));
	assert_null(map(entry.key, 0, 1, 0));
	mkey_table_remove(&entry);
}

static void addresses_at_the_top_do_not_wrap(void **state)
{
	struct mkey_entry entry = entry_at(UINT64_MAX - 9, 10, 0);

	(void)state;
	assert_int_equal(mkey_table_add(&entry), 0);
	assert_ptr_equal(map(entry.key, UINT64_MAX, 1, 0), memory + 9);
	assert_null(map(entry.key, UINT64_MAX, 2, 0));
	assert_null(map(entry.key, 0, 1, 0));
	mkey_table_remove(&entry);
}

static void rights_and_domains_are_kept(void **state)
{
	struct mkey_entry entry = entry_at(0, 10, ENG_LOCAL_WRITE | ENG_REMOTE_WRITE);
	struct mkey_cache cache = { 0 };

	(void)state;
	assert_int_equal(mkey_table_add(&entry), 0);
	assert_non_null(map(entry.key, 0, 10, ENG_REMOTE_WRITE));
	assert_null(map(entry.key, 0, 10, ENG_REMOTE_READ));
	assert_null(map(entry.key, 0, 10, ENG_REMOTE_WRITE | ENG_REMOTE_READ));
	assert_null(map(entry.key + 1, 0, 10, 0));
	assert_null(map(0, 0, 0, 0));
	mkey_read_lock(0);
	assert_non_null(mkey_table_map(&cache, &domain_a, entry.key, 0, 1, 0));
	/* The cache must not give access to another protection domain. */
	assert_null(mkey_table_map(&cache, &domain_b, entry.key, 0, 1, 0));
	mkey_read_unlock(0);
	mkey_table_remove(&entry);
}

static void a_cache_forgets_what_is_gone(void **state)
{
	struct mkey_entry entry = entry_at(0, 10, 0), other;
	struct mkey_cache cache = { 0 };
	uint32_t key;

	(void)state;
	assert_int_equal(mkey_table_add(&entry), 0);
	key = entry.key;
	mkey_read_lock(0);
	assert_ptr_equal(mkey_table_map(&cache, &domain_a, key, 0, 1, 0), memory);
	mkey_read_unlock(0);

	other = entry;
	other.memory = memory + 16;
	other.length = 5;
	mkey_table_change(&entry, &other);
	assert_int_equal(entry.key, key);
	mkey_read_lock(0);
	assert_ptr_equal(mkey_table_map(&cache, &domain_a, key, 0, 5, 0), memory + 16);
	assert_null(mkey_table_map(&cache, &domain_a, key, 0, 6, 0));
	mkey_read_unlock(0);

	mkey_table_remove(&entry);
	memset(&entry, 0xff, sizeof(entry));
	mkey_read_lock(0);
	assert_null(mkey_table_map(&cache, &domain_a, key, 0, 1, 0));
	mkey_read_unlock(0);
}

enum {
	MANY = 20000,
};

static int by_key(const void *a, const void *b)
{
	uint32_t x = ((const struct mkey_entry *)a)->key, y = ((const struct mkey_entry *)b)->key;

	return x < y ? -1 : x > y;
}

static void many_come_and_go(void **state)
{
	struct mkey_entry *entries = calloc(MANY, sizeof(*entries));
	struct mkey_entry *sorted = calloc(2 * MANY, sizeof(*sorted));
	uint32_t seed = 1;

	(void)state;
	for (int i = 0; i < MANY; i++) {
		entries[i] = entry_at((uint64_t)i << 20, 10, 0);
		assert_int_equal(mkey_table_add(&entries[i]), 0);
		sorted[i] = entries[i];
	}
	assert_int_equal(mkey_table_count(), MANY);
	/* Remove and add entries in a scattered order; after each round all must still be found. */
	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < MANY / 4; i++) {
			int victim;

			seed = seed * 1664525 + 1013904223;
			victim = (int)((seed >> 8) % MANY);
			mkey_table_remove(&entries[victim]);
			assert_null(map(entries[victim].key, entries[victim].start, 1, 0));
			assert_int_equal(mkey_table_add(&entries[victim]), 0);
			sorted[MANY + round * MANY / 4 + i] = entries[victim];
		}
		for (int i = 0; i < MANY; i++)
			assert_non_null(map(entries[i].key, entries[i].start, 10, 0));
	}
	/* No key was assigned twice. */
	qsort(sorted, 2 * MANY, sizeof(*sorted), by_key);
	for (int i = 1; i < 2 * MANY; i++)
		assert_int_not_equal(sorted[i - 1].key, sorted[i].key);
	for (int i = 0; i < MANY; i++)
		mkey_table_remove(&entries[i]);
	assert_int_equal(mkey_table_count(), 0);
	free(sorted);
	free(entries);
}

static atomic_bool removed;

static void *remover(void *entry)
{
	mkey_table_remove(entry);
	atomic_store(&removed, true);
	return NULL;
}

static void removal_waits_for_a_visit(void **state)
{
	struct mkey_entry entry = entry_at(0, 10, 0);
	struct mkey_cache cache = { 0 };
	pthread_t thread;

	(void)state;
	assert_int_equal(mkey_table_add(&entry), 0);
	mkey_read_lock(0);
	pthread_create(&thread, NULL, remover, &entry);
	usleep(20000);
	assert_false(atomic_load(&removed));
	assert_non_null(mkey_table_map(&cache, &domain_a, entry.key, 0, 10, 0));
	mkey_read_unlock(0);
	pthread_join(thread, NULL);
	assert_true(atomic_load(&removed));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bounds_are_kept),
		cmocka_unit_test(addresses_at_the_top_do_not_wrap),
		cmocka_unit_test(rights_and_domains_are_kept),
		cmocka_unit_test(a_cache_forgets_what_is_gone),
		cmocka_unit_test(many_come_and_go),
		cmocka_unit_test(removal_waits_for_a_visit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
