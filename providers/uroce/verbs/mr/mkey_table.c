/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "mkey_table.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "mr.h"
#include "verbs/fork.h"

/*
 * Open addressing with linear probing.  At most half of the slots are in use.  When a key is
 * removed, later entries of its probe sequence move up, so that a search can end at the first empty
 * slot.
 */
struct key_slot {
	struct mkey_entry *entry; /* NULL: empty */
	uint32_t name;		  /* constant part of the key */
};

enum {
	CACHE_LINE = 64,
	FIRST_SLOTS = 64,
	/* four rounds make the permutation indistinguishable from a random one */
	FEISTEL_ROUNDS = 4,
};

/* Never allocated: programs use 0 and all ones for "no key". */
#define KEY_NONE 0u
#define KEY_ALL_ONES UINT32_MAX
/* The low byte of a window's key belongs to the consumer. */
#define WINDOW_TAG 0xffu

static struct {
	/*
	 * Held during every change, outside of the reader locks: fork() waits for changes but must
	 * not wait for visits.
	 */
	pthread_mutex_t change_lock;
	unsigned int readers;	       /* number of readers admitted, from 0 on */
	pthread_rwlock_t windows_lock; /* protects bindings of windows: mkey_table.h */
	struct key_slot *slots;
	uint32_t mask; /* number of slots - 1 */
	uint32_t used;
	uint64_t generation; /* incremented by removals and changes; invalidates all caches */
	uint32_t counter;
	uint64_t secret[FEISTEL_ROUNDS];
	bool seeded;
} table = {
	.change_lock = PTHREAD_MUTEX_INITIALIZER,
	.readers = 1,
	.windows_lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP,
	.generation = 1, /* differs from the generation of a zeroed cache */
};

/*
 * The table's lock is an array of locks, one per reader on its own cache line, so that workers do
 * not share a cache line in each visit.  A visit takes the read side of its lock, a change the
 * write side of all.  Writers have precedence, or a busy QP would starve dereg_mr.
 */
static struct reader_lock {
	_Alignas(CACHE_LINE) pthread_rwlock_t lock;
} reader_locks[MKEY_TABLE_READERS] = {
	[0 ... MKEY_TABLE_READERS - 1] = { PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP },
};

/* The visit of this thread holds the read side of windows_lock. */
static _Thread_local bool visit_holds_windows_lock;

static void lock_windows_for_visit(void)
{
	if (!visit_holds_windows_lock)
		pthread_rwlock_rdlock(&table.windows_lock);
	visit_holds_windows_lock = true;
}

static __attribute__((noinline)) void unlock_windows_of_visit(void)
{
	if (visit_holds_windows_lock)
		pthread_rwlock_unlock(&table.windows_lock);
	visit_holds_windows_lock = false;
}

void mkey_read_lock(unsigned int reader)
{
	pthread_rwlock_rdlock(&reader_locks[reader].lock);
}

void mkey_read_unlock(unsigned int reader)
{
	if (__builtin_expect(visit_holds_windows_lock, 0))
		unlock_windows_of_visit();
	pthread_rwlock_unlock(&reader_locks[reader].lock);
}

void mkey_table_admit(unsigned int reader)
{
	pthread_mutex_lock(&table.change_lock);
	if (table.readers <= reader)
		table.readers = reader + 1;
	pthread_mutex_unlock(&table.change_lock);
}

/*
 * Releases the read side of this visit first, so that visits that bind windows do not wait for each
 * other.  That is safe, because copies through windows are complete and a visit keeps no pointer
 * into memory that a peer has addressed.
 */
void mkey_mw_write_lock(void)
{
	unlock_windows_of_visit();
	pthread_rwlock_wrlock(&table.windows_lock);
}

void mkey_mw_write_unlock(void)
{
	pthread_rwlock_unlock(&table.windows_lock);
}

static void begin_change(void)
{
	pthread_mutex_lock(&table.change_lock);
	for (unsigned int i = 0; i < table.readers; i++)
		pthread_rwlock_wrlock(&reader_locks[i].lock);
}

static void end_change(void)
{
	for (unsigned int i = 0; i < table.readers; i++)
		pthread_rwlock_unlock(&reader_locks[i].lock);
	pthread_mutex_unlock(&table.change_lock);
}

static void prepare_fork(void)
{
	pthread_mutex_lock(&table.change_lock);
}

static void finish_fork_in_parent(void)
{
	pthread_mutex_unlock(&table.change_lock);
}

static void finish_fork_in_child(void)
{
	static const pthread_rwlock_t initial_lock =
		PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

	/* The readers that held a lock are threads of the parent. */
	for (unsigned int i = 0; i < MKEY_TABLE_READERS; i++)
		reader_locks[i].lock = initial_lock;
	table.windows_lock = initial_lock;
	visit_holds_windows_lock = false;
	/* Parent and child must not allocate the same keys. */
	table.seeded = false;
	pthread_mutex_unlock(&table.change_lock);
}

static void seed_secret(void)
{
	if (getrandom(table.secret, sizeof(table.secret), GRND_NONBLOCK) != sizeof(table.secret)) {
		/* Early boot: the clock is better than nothing, and keys are unique in any case. */
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

static uint32_t permute_counter(uint32_t number)
{
	uint16_t left = (uint16_t)(number >> 16), right = (uint16_t)number;

	for (unsigned int i = 0; i < FEISTEL_ROUNDS; i++) {
		uint16_t next = left ^ scramble(right, table.secret[i]);

		left = right;
		right = next;
	}
	return (uint32_t)left << 16 | right;
}

static uint32_t constant_part(uint32_t key)
{
	return mkey_is_window(key) ? key & ~WINDOW_TAG : key;
}

/* Keys are random.  The second byte is mixed in, because the low one is 0 in names of windows. */
static uint32_t home_slot(uint32_t name, uint32_t mask)
{
	return (name ^ name >> 8) & mask;
}

struct mkey_entry *mkey_table_find(uint32_t key)
{
	uint32_t name = constant_part(key);

	if (!table.slots)
		return NULL;
	for (uint32_t i = home_slot(name, table.mask); table.slots[i].entry;
	     i = (i + 1) & table.mask) {
		if (table.slots[i].name == name)
			return table.slots[i].entry;
	}
	return NULL;
}

static void insert_entry(struct key_slot *slots, uint32_t mask, struct mkey_entry *entry)
{
	uint32_t name = constant_part(entry->key), i = home_slot(name, mask);

	while (slots[i].entry)
		i = (i + 1) & mask;
	slots[i].entry = entry;
	slots[i].name = name;
}

static int grow_table(void)
{
	uint32_t count = table.slots ? table.mask + 1 : 0;

	if (count && table.used < count / 2)
		return 0;
	count = count ? count * 2 : FIRST_SLOTS;

	struct key_slot *slots = calloc(count, sizeof(*slots));

	if (!slots)
		return ENOMEM;
	for (uint32_t i = 0; table.slots && i <= table.mask; i++) {
		if (table.slots[i].entry)
			insert_entry(slots, count - 1, table.slots[i].entry);
	}
	free(table.slots);
	table.slots = slots;
	table.mask = count - 1;
	return 0;
}

static bool is_free_key(uint32_t key)
{
	return key != KEY_NONE && constant_part(key) != constant_part(KEY_ALL_ONES) &&
	       !mkey_table_find(key);
}

static int add_entry(struct mkey_entry *entry, bool window)
{
	int error;

	begin_change();
	if (!table.seeded)
		seed_secret();
	error = grow_table();
	if (!error) {
		do
			entry->key = permute_counter(table.counter++);
		while (mkey_is_window(entry->key) != window || !is_free_key(entry->key));
		insert_entry(table.slots, table.mask, entry);
		table.used++;
	}
	end_change();
	return error;
}

int mkey_table_add(struct mkey_entry *entry)
{
	return add_entry(entry, false);
}

int mkey_table_add_window(struct mkey_entry *entry)
{
	return add_entry(entry, true);
}

/* Caller is between begin_change() and end_change(). */
static void remove_entry(struct mkey_entry *entry)
{
	uint32_t hole = home_slot(constant_part(entry->key), table.mask);

	while (table.slots[hole].entry != entry) {
		assert(table.slots[hole].entry);
		hole = (hole + 1) & table.mask;
	}
	/* Move each following entry that a search would no longer find because of the hole. */
	for (uint32_t i = (hole + 1) & table.mask; table.slots[i].entry; i = (i + 1) & table.mask) {
		uint32_t home = home_slot(table.slots[i].name, table.mask);

		if (((i - home) & table.mask) >= ((i - hole) & table.mask)) {
			table.slots[hole] = table.slots[i];
			hole = i;
		}
	}
	table.slots[hole].entry = NULL;
	table.used--;
	table.generation++;
}

int mkey_table_remove(struct mkey_entry *entry)
{
	int error = 0;

	begin_change();
	if (entry->windows) {
		error = EBUSY;
	} else {
		remove_entry(entry);
		mkey_table_unbind(entry);
	}
	end_change();
	return error;
}

int mkey_table_change(struct mkey_entry *entry, const struct mkey_entry *contents)
{
	uint32_t key = entry->key;
	int error = 0;

	begin_change();
	if (mkey_table_find(key) != entry) {
		error = EINVAL;
	} else if (entry->windows) {
		error = EBUSY;
	} else {
		*entry = *contents;
		entry->key = key;
		entry->windows = 0;
		table.generation++;
	}
	end_change();
	return error;
}

void mkey_table_unbind(struct mkey_entry *window)
{
	if (!window->region)
		return;
	window->region->windows--;
	window->region = NULL;
	window->user = NULL;
	window->access = 0;
}

void mkey_table_unbind_user(const void *user)
{
	begin_change();
	for (uint32_t i = 0; table.slots && i <= table.mask; i++) {
		struct mkey_entry *entry = table.slots[i].entry;

		if (entry && entry->region && entry->user == user)
			mkey_table_unbind(entry);
	}
	end_change();
}

/* Shared by all visits: zeros is never written, scratch never read. */
static uint8_t zeros[MKEY_NULL_BYTES], scratch[MKEY_NULL_BYTES];

/* Slow path for memory that may be unmapped (ODP) or does not exist (null MR). */
static __attribute__((noinline)) void *map_unpinned(const struct mkey_entry *entry, void *memory,
						    uint32_t length, uint32_t needed_rights)
{
	const uint32_t writes = ENG_LOCAL_WRITE | ENG_REMOTE_WRITE | ENG_REMOTE_ATOMIC;

	if (entry->kind == MKEY_NULL)
		return needed_rights & writes ? scratch : zeros;
	return length && uroce_memory_check(memory, length, needed_rights & writes) ? NULL : memory;
}

/* Caches regions, but not windows, whose binding may change during a visit. */
static struct mkey_entry *lookup_entry(struct mkey_cache *cache, uint32_t key)
{
	struct mkey_entry *entry = mkey_table_find(key);

	if (entry && mkey_is_window(key)) {
		lock_windows_for_visit();
		if (entry->key != key || (entry->user && entry->user != cache->user))
			return NULL;
	} else if (entry) {
		cache->entry = entry;
		cache->key = key;
		cache->generation = table.generation;
	}
	return entry;
}

static inline void *map_entry(const struct mkey_entry *entry, const void *domain, uint64_t addr,
			      uint32_t length, uint32_t needed_rights)
{
	uint64_t offset = addr - entry->start;
	void *memory;

	if (entry->domain != domain || (entry->access & needed_rights) != needed_rights)
		return NULL;
	/* Written so that no addr, which a peer may have sent, causes an overflow. */
	if (offset > entry->length || length > entry->length - offset)
		return NULL;
	/* Integer arithmetic, because implicit regions start at address 0. */
	memory = (void *)((uintptr_t)entry->memory + offset);
	return entry->kind == MKEY_PINNED ? memory
					  : map_unpinned(entry, memory, length, needed_rights);
}

static __attribute__((noinline)) void *map_slow(struct mkey_cache *cache, const void *domain,
						uint32_t key, uint64_t addr, uint32_t length,
						uint32_t needed_rights)
{
	const struct mkey_entry *entry = lookup_entry(cache, key);

	return entry ? map_entry(entry, domain, addr, length, needed_rights) : NULL;
}

/*
 * Called for each packet.  Rare cases are tail calls of noinline functions, so that this one saves
 * no registers.
 */
inline void *mkey_table_map(struct mkey_cache *cache, const void *domain, uint32_t key,
			    uint64_t addr, uint32_t length, uint32_t needed_rights)
{
	if (cache->key != key || cache->generation != table.generation)
		return map_slow(cache, domain, key, addr, length, needed_rights);
	return map_entry(cache->entry, domain, addr, length, needed_rights);
}

bool mkey_table_flush(struct mkey_cache *cache, const void *domain, const struct eng_flush *flush)
{
	const struct mkey_entry *entry = lookup_entry(cache, flush->rkey);
	uint64_t length = flush->length;
	void *memory;

	if (!entry)
		return false;
	memory = map_entry(entry, domain, flush->whole_region ? entry->start : flush->addr,
			   flush->whole_region ? 0 : flush->length, flush->need);
	if (flush->whole_region)
		length = entry->length;
	if (!memory || !(flush->need & ENG_FLUSH_PERSISTENT) || !length)
		return memory;
	return uroce_memory_sync(memory, length) == 0;
}

size_t mkey_table_count(void)
{
	size_t count;

	pthread_mutex_lock(&table.change_lock);
	count = table.used;
	pthread_mutex_unlock(&table.change_lock);
	return count;
}

UROCE_FORK_HANDLERS(UROCE_FORK_MKEY_TABLE, prepare_fork, finish_fork_in_parent,
		    finish_fork_in_child)
