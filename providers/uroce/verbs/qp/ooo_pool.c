/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "qp.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include "engine/engine.h"

enum {
	BLOCKS = 2048, /* 9 MB: the congestion windows of eight QPs */
	WORD_BITS = 64,
	WORDS = BLOCKS / WORD_BITS,
};

static uint8_t *pool;
static _Atomic uint64_t used[WORDS];

static void map_pool(void)
{
	void *mapped = mmap(NULL, BLOCKS * eng_ooo_packet_bytes(), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (mapped != MAP_FAILED)
		pool = mapped;
}

void ooo_pool_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, map_pool);
}

/* Takes the lowest free block, so that pages used before are used again. */
void *ooo_pool_alloc(void)
{
	for (uint32_t i = 0; pool && i < WORDS; i++) {
		uint64_t word = atomic_load_explicit(&used[i], memory_order_relaxed);

		while (~word) {
			uint32_t bit = (uint32_t)__builtin_ctzll(~word);

			if (atomic_compare_exchange_weak_explicit(
				    &used[i], &word, word | UINT64_C(1) << bit,
				    memory_order_acquire, memory_order_relaxed))
				return pool + (i * WORD_BITS + bit) * eng_ooo_packet_bytes();
		}
	}
	return NULL;
}

void ooo_pool_free(void *block)
{
	size_t index = (size_t)((uint8_t *)block - pool) / eng_ooo_packet_bytes();

	atomic_fetch_and_explicit(&used[index / WORD_BITS], ~(UINT64_C(1) << index % WORD_BITS),
				  memory_order_release);
}
