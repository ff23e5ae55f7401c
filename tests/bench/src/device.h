/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The device that a client of libibverbs measures.
 */
#ifndef BENCH_DEVICE_H
#define BENCH_DEVICE_H

#include <infiniband/verbs.h>

#define PORT 1
#define GID_INDEX 0

/*
 * Never NULL: without such a device the process exits with a message.  The caller need not close
 * it.
 */
struct ibv_context *open_device(const char *name);
/* Moves an RC queue pair from RESET to RTS; the peer is on this host, gid is that of GID_INDEX. */
void connect_to_peer(struct ibv_qp *qp, uint32_t dest_qpn, const union ibv_gid *gid);
/* The same with the queue pair as its own peer. */
void connect_to_itself(struct ibv_qp *qp, const union ibv_gid *gid);

#endif
