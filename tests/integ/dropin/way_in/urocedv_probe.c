/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * usage: urocedv_probe DEVICE
 *
 * A program that gets uroce's devices by urocedv.h and runs on the stock libibverbs.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "urocedv.h"

#define CHECK(condition)                                                                 \
	do {                                                                             \
		if (!(condition)) {                                                      \
			printf("line %d: %s (errno %d)\n", __LINE__, #condition, errno); \
			return 1;                                                        \
		}                                                                        \
	} while (0)

int main(int argc, char **argv)
{
	struct ibv_device **list, *device = NULL;
	struct ibv_gid_entry entry;
	struct ibv_device_attr attr;
	struct ibv_comp_channel *channel;
	struct ibv_context *context;
	struct ibv_cq *cq;
	struct ibv_pd *pd;
	int count, i;

	CHECK(argc == 2);
	list = urocedv_get_device_list(&count);
	CHECK(list && count > 0 && !list[count]);
	for (i = 0; i < count; i++) {
		CHECK(urocedv_is_supported(list[i]));
		if (strcmp(ibv_get_device_name(list[i]), argv[1]) == 0)
			device = list[i];
	}
	CHECK(device);
	context = ibv_open_device(device);
	CHECK(context);
	ibv_free_device_list(list);
	CHECK(ibv_query_device(context, &attr) == 0);
	CHECK(attr.node_guid == urocedv_get_device_guid(device));
	CHECK(urocedv_query_gid_ex(context, 1, 0, &entry) == 0);
	CHECK(urocedv_query_gid_ex(context, 1, 256, &entry) == EINVAL);
	pd = ibv_alloc_pd(context);
	CHECK(pd);
	/* The stock function sends a command to the descriptor; this must not seem to succeed. */
	CHECK(!ibv_create_comp_channel(context));
	channel = urocedv_create_comp_channel(context);
	CHECK(channel);
	cq = ibv_create_cq(context, 4, NULL, channel, 0);
	CHECK(cq);
	CHECK(urocedv_destroy_comp_channel(channel) == EBUSY);
	CHECK(ibv_destroy_cq(cq) == 0);
	CHECK(urocedv_destroy_comp_channel(channel) == 0);
	CHECK(ibv_dealloc_pd(pd) == 0);
	CHECK(ibv_close_device(context) == 0);
	return 0;
}
