/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * One end's verbs objects: a device, a completion queue, queue pairs, memory.  Functions return 0
 * or -1, and then error holds one line for people.
 */
#ifndef UROCE_FLOW_DEVICE_H
#define UROCE_FLOW_DEVICE_H

#include <infiniband/verbs.h>

#include "header.h"

enum {
	DEVICE_SLOTS = 256,	/* for what comes with a WRITE with immediate */
	DEVICE_SCRATCH = 65536, /* what plain WRITEs and READs work on */
};

struct device_options {
	const char *name; /* NULL: the first that has an active port */
	int port;
	int gid_index;	    /* -1: the first that is not zero */
	uint32_t rnr_timer; /* code */
	uint32_t timeout;   /* code */
};

/* A queue pair's memory that the peer writes to. */
struct device_window {
	struct flow_header update;
	uint8_t scratch[DEVICE_SCRATCH];
};

/* What each end tells the other of one queue pair; sent in network byte order. */
struct device_address {
	uint32_t qpn, psn, lid, mtu, rkey;
	uint64_t window, slots;
	uint8_t gid[16];
};

struct device_link {
	struct ibv_qp *qp;
	struct device_window *window; /* ours, for the peer */
	uint8_t *slots;		      /* DEVICE_SLOTS of message size, likewise */
	struct device_address peer;
	uint8_t *send_buffers; /* STATION_SQ of message size */
	uint32_t sq_in;	       /* posted in all */
	uint32_t slot;	       /* of the peer's window, next WRITE with immediate */
	uint64_t updates_out, update_seen;
	uint32_t *free_buffers; /* indexes of receive buffers, a stack */
	uint32_t free_count;
};

struct device {
	struct device_options options;
	uint32_t links, bytes, receives; /* receives: of a connection, or of the shared queue */
	bool shared, unreliable;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	union ibv_gid gid;
	uint16_t lid;
	enum ibv_mtu mtu;
	uint8_t *memory, *receive_buffers;
	size_t memory_bytes;
	struct device_link link[FLOW_LINKS];
	char error[160];
};

int device_open(struct device *device, const struct device_options *options);
/*
 * The largest depth up to this one for which the device makes a queue pair: tried one by one
 * downwards, as o2iblnd does.  0 if there is none.
 */
uint32_t device_fit_depth(struct device *device, const struct scheme *scheme, uint32_t depth);
/* Queue pairs and memory for a scenario; the queue pairs in INIT. */
int device_make(struct device *device, const struct scenario *sc, const struct scheme *scheme,
		uint32_t side);
void device_address(const struct device *device, uint32_t link, struct device_address *address);
int device_connect(struct device *device, uint32_t link, const struct device_address *peer,
		   bool rnr_retry);
/* Post so many receives to a connection, or to the shared queue. */
int device_post_receives(struct device *device, uint32_t link, uint32_t count);
int device_post(struct device *device, const struct flow_message *message);
/* What came with this completion of a receive: false, and an error, if it is none of ours. */
bool device_received(struct device *device, const struct ibv_wc *wc, struct flow_message *message);
/* A new update by RDMA WRITE on this connection. */
bool device_update(struct device *device, uint32_t link, struct flow_message *message);
void device_close(struct device *device);

/* The connection in the wr_id of a send request, and the buffer in that of a receive. */
#define WR_RECEIVE (UINT64_C(1) << 63)

#endif
