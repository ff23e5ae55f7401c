// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Preloaded into stock programs: a queue pair is destroyed only once the file named by HOLD_UNTIL
 * exists, so that its counters can be read when the program's work is done.  A file of the same
 * name with the process id appended shows that the program has got that far.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct ibv_qp;

int ibv_destroy_qp(struct ibv_qp *qp);

static void hold(const char *until)
{
	char name[256];
	FILE *here;

	snprintf(name, sizeof(name), "%s.%d", until, (int)getpid());
	here = fopen(name, "we");
	if (!here)
		abort();
	fclose(here);
	while (access(until, F_OK))
		usleep(5000);
}

__attribute__((visibility("default"))) int ibv_destroy_qp(struct ibv_qp *qp)
{
	int (*destroy)(struct ibv_qp *) = (int (*)(struct ibv_qp *))dlsym(RTLD_NEXT, __func__);
	const char *until = getenv("HOLD_UNTIL");

	if (!destroy)
		abort();
	if (until)
		hold(until);
	return destroy(qp);
}
