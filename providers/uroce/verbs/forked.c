/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "forked.h"

#include <pthread.h>

#include "key_table.h"

unsigned int uroce_generation = 1;

static void in_child(void)
{
	uroce_generation++;
	key_table_forked();
}

static int watch_error;

static void watch(void)
{
	watch_error = pthread_atfork(NULL, NULL, in_child);
}

int uroce_watch_forks(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch);
	return watch_error;
}
