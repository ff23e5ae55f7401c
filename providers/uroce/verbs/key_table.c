/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "key_table.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

/*
 * Open addressing with linear probing.  The keys are random already, so their low bits are the
 * hash.  At most half of the slots are in use; a removed key's followers move up, so a search ends
 * at the first empty slot.
 */
struct slot {
	struct key_entry *entry; /* NULL: empty */
	uint32_t key;
};

enum {
	FIRST_SLOTS = 64,
	FEISTEL_ROUNDS = 4, /* with four the permutation cannot be told from a random one */
};

/* Never given out: programs use 0 for "no key", and all ones for the same. */
#define KEY_NONE 0u
#define KEY_ALL_ONES UINT32_MAX

static struct {
	/* Held for every change, around lock: fork() waits for changes, but must not for visits. */
	pthread_mutex_t change_lock;
	pthread_rwlock_t lock;
	struct slot *slots;
	uint32_t mask; /* slots - 1 */
	uint32_t used;
	uint64_t generation; /* of all caches; odd steps do not matter, every change counts */
	uint32_t counter;
	uint64_t secret[FEISTEL_ROUNDS];
	bool seeded;
} table = {
	.change_lock = PTHREAD_MUTEX_INITIALIZER,
	/* A reader that waits for more readers would let dereg_mr starve behind a busy QP. */
	.lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP,
	.generation = 1, /* a zeroed cache fits no generation */
};

void key_table_enter(void)
{
	pthread_rwlock_rdlock(&table.lock);
}

void key_table_leave(void)
{
	pthread_rwlock_unlock(&table.lock);
}

static void begin_change(void)
{
	pthread_mutex_lock(&table.change_lock);
	pthread_rwlock_wrlock(&table.lock);
}

static void end_change(void)
{
	pthread_rwlock_unlock(&table.lock);
	pthread_mutex_unlock(&table.change_lock);
}

void key_table_before_fork(void)
{
	pthread_mutex_lock(&table.change_lock);
}

void key_table_after_fork(bool in_child)
{
	static const pthread_rwlock_t fresh = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

	if (in_child) {
		/* Visitors that held the lock exist in the parent only. */
		table.lock = fresh;
		/* Parent and child must not give out the same keys from now on. */
		table.seeded = false;
	}
	pthread_mutex_unlock(&table.change_lock);
}

static void seed(void)
{
	if (getrandom(table.secret, sizeof(table.secret), GRND_NONBLOCK) != sizeof(table.secret)) {
		/* Early boot: the clock is better than nothing, and keys stay unique all the same.
		 */
		for (unsigned int i = 0; i < FEISTEL_ROUNDS; i++) {
			struct timespec now;

			clock_gettime(CLOCK_MONOTONIC, &now);
			table.secret[i] ^=
				(uint64_t)now.tv_nsec * 0x9e3779b97f4a7c15u + (uintptr_t)&now;
		}
	}
	table.seeded = true;
}

static uint16_t scramble(uint16_t half, uint64_t secret)
{
	uint64_t x = (half ^ secret) * 0xff51afd7ed558ccdu;

	x ^= x >> 33;
	x *= (secret | 1);
	return (uint16_t)(x >> 40);
}

static uint32_t permute(uint32_t number)
{
	uint16_t left = (uint16_t)(number >> 16), right = (uint16_t)number;

	for (unsigned int i = 0; i < FEISTEL_ROUNDS; i++) {
		uint16_t next = left ^ scramble(right, table.secret[i]);

		left = right;
		right = next;
	}
	return (uint32_t)left << 16 | right;
}

static struct key_entry *find(uint32_t key)
{
	if (!table.slots)
		return NULL;
	for (uint32_t i = key & table.mask; table.slots[i].entry; i = (i + 1) & table.mask) {
		if (table.slots[i].key == key)
			return table.slots[i].entry;
	}
	return NULL;
}

static void put(struct slot *slots, uint32_t mask, struct key_entry *entry)
{
	uint32_t i = entry->key & mask;

	while (slots[i].entry)
		i = (i + 1) & mask;
	slots[i].entry = entry;
	slots[i].key = entry->key;
}

static int make_room(void)
{
	uint32_t count = table.slots ? table.mask + 1 : 0;

	if (count && table.used < count / 2)
		return 0;
	count = count ? count * 2 : FIRST_SLOTS;

	struct slot *slots = calloc(count, sizeof(*slots));

	if (!slots)
		return ENOMEM;
	for (uint32_t i = 0; table.slots && i <= table.mask; i++) {
		if (table.slots[i].entry)
			put(slots, count - 1, table.slots[i].entry);
	}
	free(table.slots);
	table.slots = slots;
	table.mask = count - 1;
	return 0;
}

int key_table_add(struct key_entry *entry)
{
	int error;

	begin_change();
	if (!table.seeded)
		seed();
	error = make_room();
	if (!error) {
		do
			entry->key = permute(table.counter++);
		while (entry->key == KEY_NONE || entry->key == KEY_ALL_ONES || find(entry->key));
		put(table.slots, table.mask, entry);
		table.used++;
	}
	end_change();
	return error;
}

void key_table_remove(struct key_entry *entry)
{
	begin_change();

	uint32_t hole = entry->key & table.mask;

	while (table.slots[hole].entry != entry) {
		assert(table.slots[hole].entry);
		hole = (hole + 1) & table.mask;
	}
	/* Move up each follower that its own search would no longer reach across the hole. */
	for (uint32_t i = (hole + 1) & table.mask; table.slots[i].entry; i = (i + 1) & table.mask) {
		uint32_t home = table.slots[i].key & table.mask;

		if (((i - home) & table.mask) >= ((i - hole) & table.mask)) {
			table.slots[hole] = table.slots[i];
			hole = i;
		}
	}
	table.slots[hole].entry = NULL;
	table.used--;
	table.generation++;
	end_change();
}

void key_table_change(struct key_entry *entry, const struct key_entry *meaning)
{
	uint32_t key = entry->key;

	begin_change();
	*entry = *meaning;
	entry->key = key;
	table.generation++;
	end_change();
}

void *key_table_map(struct key_cache *cache, const void *domain, uint32_t key, uint64_t addr,
		    uint32_t length, uint32_t need)
{
	const struct key_entry *entry = cache->entry;

	if (cache->key != key || cache->generation != table.generation) {
		entry = find(key);
		if (!entry)
			return NULL;
		cache->entry = entry;
		cache->key = key;
		cache->generation = table.generation;
	}

	uint64_t offset = addr - entry->start;

	if (entry->domain != domain || (entry->access & need) != need)
		return NULL;
	/* Written so that nothing can overflow: addr may be anything that a peer has sent. */
	if (offset > entry->length || length > entry->length - offset)
		return NULL;
	return entry->memory + offset;
}

size_t key_table_count(void)
{
	size_t count;

	pthread_rwlock_rdlock(&table.lock);
	count = table.used;
	pthread_rwlock_unlock(&table.lock);
	return count;
}
