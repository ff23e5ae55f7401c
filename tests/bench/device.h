/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The device that a client of libibverbs measures.
 */
#ifndef BENCH_DEVICE_H
#define BENCH_DEVICE_H

#include <infiniband/verbs.h>

/* Never NULL: without such a device the process ends with a message.  It stays open for ever. */
struct ibv_context *open_device(const char *name);

#endif
