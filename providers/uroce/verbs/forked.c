/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "forked.h"

#include <pthread.h>

#include "cq_overrun.h"
#include "key_table.h"
#include "shared.h"
#include "ud.h"
#include "xrc.h"

unsigned int uroce_generation = 1;

/* The child needs a table that nobody was just changing. */
static void before(void)
{
	uroce_xrc_before_fork();
	uroce_shared_before_fork();
	key_table_before_fork();
}

static void in_parent(void)
{
	key_table_after_fork(false);
	uroce_shared_after_fork();
	uroce_xrc_after_fork(false);
}

static void in_child(void)
{
	uroce_generation++;
	key_table_after_fork(true);
	uroce_shared_after_fork();
	uroce_overrun_forked();
	uroce_xrc_after_fork(true);
	uroce_channel_forked();
	uroce_ud_forked();
	uroce_mcast_forked();
}

static int watch_error;

static void watch(void)
{
	watch_error = pthread_atfork(before, in_parent, in_child);
}

int uroce_watch_forks(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch);
	return watch_error;
}
