/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Runs one seed: chooses the calls, and reports findings. */
#include "world.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void note(struct world *world, const char *format, ...)
{
	char *line = world->trace[world->traced++ % COUNT_OF(world->trace)];
	va_list list;

	va_start(list, format);
	vsnprintf(line, sizeof(world->trace[0]), format, list);
	va_end(list);
	if (world->verbose) {
		puts(line);
		fflush(stdout);
	}
}

void finding(struct world *world, const char *format, ...)
{
	unsigned int kept = COUNT_OF(world->trace);
	va_list list;

	if (!world->verbose) {
		for (unsigned int i = world->traced > kept ? world->traced - kept : 0;
		     i < world->traced; i++)
			printf("    %s\n", world->trace[i % kept]);
	}
	printf("seed %" PRIu64 ": FINDING: ", world->seed);
	va_start(list, format);
	vprintf(format, list);
	va_end(list);
	putchar('\n');
	fflush(stdout);
	_exit(1);
}

void *pick(struct world *world, void *table, uint32_t count, size_t bytes, bool used)
{
	uint32_t first = below(world, count);

	for (uint32_t i = 0; i < count; i++) {
		void *object = (char *)table + (first + i) % count * bytes, *verbs;

		/* Each object begins with the pointer that libibverbs returned. */
		memcpy(&verbs, object, sizeof(verbs));
		if (!!verbs == used)
			return object;
	}
	return NULL;
}

void must_be_closed(struct world *world, const struct context *context, const char *call)
{
	MUST(world, context->closed, "%s refused: %s", call, strerror(errno));
	MUST(world, errno == EBADF, "%s in a closed context: %s", call, strerror(errno));
}

static const struct action {
	void (*make)(struct world *world);
	unsigned int weight;
} actions[] = {
	{ do_open_context, 1 },	  { do_alloc_domain, 3 },     { do_alloc_parent, 1 },
	{ do_create_channel, 2 }, { do_open_xrc_domain, 2 },  { do_create_handle, 5 },
	{ do_alloc_window, 3 },	  { do_alloc_memory, 1 },     { do_copy_memory, 1 },
	{ do_register, 9 },	  { do_register_special, 2 }, { do_reregister, 3 },
	{ do_advise, 1 },	  { do_create_queue, 5 },     { do_create_queue_ex, 3 },
	{ do_resize, 5 },	  { do_moderate, 2 },	      { do_create_shared, 4 },
	{ do_modify_shared, 3 },  { do_create_pair, 14 },     { do_open_target, 2 },
	{ do_group, 4 },	  { do_modify, 22 },	      { do_connect, 26 },
	{ do_query, 6 },	  { do_post_send, 50 },	      { do_post_extended, 12 },
	{ do_post_recv, 34 },	  { do_post_shared, 12 },     { do_bind, 4 },
	{ do_poll, 45 },	  { do_settle, 6 },	      { do_notify, 8 },
	{ do_events, 10 },	  { memory_check, 6 },	      { do_clean, 24 },
	{ do_destroy, 16 },	  { do_close_context, 1 },
};

static void act(struct world *world)
{
	unsigned int total = 0, drawn;

	for (uint32_t i = 0; i < COUNT_OF(actions); i++)
		total += actions[i].weight;
	drawn = below(world, total);
	for (uint32_t i = 0; i < COUNT_OF(actions); i++) {
		if (drawn < actions[i].weight) {
			actions[i].make(world);
			return;
		}
		drawn -= actions[i].weight;
	}
}

static void find_device(struct world *world)
{
	int count = 0;

	world->list = ibv_get_device_list(&count);
	for (int i = 0; i < count; i++)
		if (!strcmp(ibv_get_device_name(world->list[i]), "uroce_lo"))
			world->device = world->list[i];
	if (!world->device) {
		printf("skipped: there is no uroce_lo\n");
		fflush(stdout);
		_exit(77);
	}
}

static void learn_limits(struct world *world)
{
	struct ibv_context *context = ibv_open_device(world->device);
	static const union ibv_gid none;

	MUST(world, context, "ibv_open_device: %s", strerror(errno));
	MUST(world, !ibv_query_device(context, &world->limits), "ibv_query_device fails");
	for (int i = 0; i < (int)COUNT_OF(world->gid); i++) {
		MUST(world, !ibv_query_gid(context, 1, i, &world->gid[i]), "ibv_query_gid fails");
		if (world->gids == i && memcmp(&world->gid[i], &none, sizeof(none)))
			world->gids++;
	}
	MUST(world, !ibv_close_device(context), "ibv_close_device fails");
}

void world_run(struct world *world)
{
	uint32_t steps = random_between(&world->random, 50, 700);

	find_device(world);
	learn_limits(world);
	memory_open(world);
	world->work_count = 1;
	world->first_id = random_next(&world->random);
	world->xrc_file = memfd_create("verbsfuzz", MFD_CLOEXEC);
	do_open_context(world);
	for (int i = 0; i < 3; i++) {
		do_alloc_domain(world);
		do_create_queue(world);
		do_register(world);
		do_register(world);
		do_create_pair(world);
	}
	for (uint32_t i = 0; i < steps && world->work_count < MAX_WORKS - 1000; i++)
		act(world);
	if (chance(world, 80))
		drain_all(world);
	destroy_all(world);
	clean_close(world);
	memory_check(world);
	munmap(world->arena, ARENA_BYTES);
	free(world->before);
	close(world->xrc_file);
	ibv_free_device_list(world->list);
}
