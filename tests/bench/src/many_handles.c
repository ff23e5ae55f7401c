/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Measures the time to create COUNT address handles, each for another destination, and to destroy
 * them.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device.h"

static void need(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Creates an address handle for the address 127.0.0.1 + number. */
static struct ibv_ah *make(struct ibv_pd *pd, unsigned int number)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = PORT, .grh.sgid_index = GID_INDEX };
	uint32_t address = htonl(INADDR_LOOPBACK + number);
	struct ibv_ah *ah;

	attr.grh.dgid.raw[10] = attr.grh.dgid.raw[11] = 0xff;
	memcpy(attr.grh.dgid.raw + 12, &address, sizeof(address));
	ah = ibv_create_ah(pd, &attr);
	need(ah, "ibv_create_ah");
	return ah;
}

int main(int argc, char **argv)
{
	unsigned int count = argc == 3 ? (unsigned int)strtoul(argv[2], NULL, 0) : 0;
	struct ibv_context *context;
	struct ibv_ah **handles;
	double start, made, gone;
	struct ibv_pd *pd;

	if (!count) {
		fprintf(stderr, "usage: %s DEVICE COUNT\n", argv[0]);
		return 2;
	}
	context = open_device(argv[1]);
	pd = ibv_alloc_pd(context);
	handles = calloc(count, sizeof(struct ibv_ah *));
	need(pd && handles, "set-up");
	start = now();
	for (unsigned int i = 0; i < count; i++)
		handles[i] = make(pd, i);
	made = now();
	for (unsigned int i = 0; i < count; i++)
		ibv_destroy_ah(handles[i]);
	gone = now();
	printf("{\"make_s\": %.4f, \"destroy_s\": %.4f}\n", made - start, gone - made);
	free(handles);
	ibv_dealloc_pd(pd);
	ibv_close_device(context);
	return 0;
}
