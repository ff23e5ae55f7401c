/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "ring_fixture.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

uint8_t ring_noise[NOISE_BYTES];
int ring_set_up(void **state)
{
	struct ring_fixture *fixture = calloc(1, sizeof(*fixture));
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *at = mmap(NULL, 4 * page + ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED || mprotect(at + page, page, PROT_READ | PROT_WRITE) ||
	    mprotect(at + 3 * page, ROOM, PROT_READ | PROT_WRITE))
		return -1;
	mprotect(at + 3 * page + ROOM, page, PROT_NONE);
	for (unsigned int i = 0; i < NOISE_BYTES; i++)
		ring_noise[i] = (uint8_t)rand_below(256);
	fixture->mapping = at;
	fixture->page = page;
	/* At the end of its page, so that any access beyond it hits the guard page. */
	fixture->shared = (void *)(at + 2 * page - sizeof(*fixture->shared));
	fixture->data = at + 3 * page;
	link_ring_open_writer(&fixture->writer, fixture->shared, fixture->data);
	link_ring_open_reader(&fixture->reader, fixture->shared, fixture->data);
	*state = fixture;
	return 0;
}

int ring_tear_down(void **state)
{
	struct ring_fixture *fixture = *state;

	munmap(fixture->mapping, 4 * fixture->page + ROOM);
	free(fixture);
	return 0;
}
