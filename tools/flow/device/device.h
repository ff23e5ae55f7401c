/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Verbs objects of one endpoint: device, CQ, QPs, memory.  Functions return 0, or -1 with a message
 * in device->error.
 */
#ifndef UROCE_FLOW_DEVICE_H
#define UROCE_FLOW_DEVICE_H

#include <infiniband/verbs.h>

#include "endpoint.h"

#define HEADER_MAGIC UINT32_C(0x75666c77)

/*
 * Header of SENDs, of WRITEs with immediate and of updates by WRITE, in network byte order.  Other
 * WRITEs have it as well, but nobody reads it; a READ has none.
 */
struct flow_header {
	uint32_t magic;
	uint8_t kind, flags;
	uint16_t count;
	uint32_t number, limit;
	uint64_t ready_ns;
	/* number of an update by WRITE, from 1; last, since the device writes it last */
	uint64_t update;
};

enum { HEADER_BYTES = sizeof(struct flow_header) };

enum {
	DEVICE_SLOTS = 256,	/* number of buffers for WRITEs with immediate */
	DEVICE_SCRATCH = 65536, /* size of the buffer for plain WRITEs and READs */
};

struct device_options {
	const char *name; /* NULL: the first device with an active port */
	int port;
	int gid_index;	    /* -1: the first GID that is not zero */
	uint32_t rnr_timer; /* code of the RNR timer */
	uint32_t timeout;   /* code of the Local ACK Timeout */
};

/* Memory of a QP that the peer accesses by RDMA WRITE and READ. */
struct device_window {
	struct flow_header update;
	uint8_t scratch[DEVICE_SCRATCH];
};

/* Address of one QP, exchanged out of band in network byte order. */
struct device_address {
	uint32_t qpn, psn, lid, mtu, rkey;
	uint64_t window, slots;
	uint8_t gid[16];
};

struct device_link {
	struct ibv_qp *qp;
	struct device_window *window; /* local memory for the peer's WRITEs and READs */
	uint8_t *slots; /* DEVICE_SLOTS buffers of message size for the peer's WRITEs with imm */
	struct device_address peer;
	uint8_t *send_buffers; /* ENDPOINT_SQ buffers of message size */
	uint32_t sq_in;	       /* number of send requests posted */
	uint32_t slot;	       /* number of WRITEs with immediate; modulo DEVICE_SLOTS: next slot */
	uint64_t updates_out, update_seen; /* numbers of the last update sent and received */
	uint32_t *free_buffers;		   /* stack of indexes of free receive buffers */
	uint32_t free_count;
};

struct device {
	struct device_options options;
	uint32_t links, bytes, receives; /* receives: receive WQEs of a connection or of the SRQ */
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
 * Returns the largest depth, up to the given one, for which a QP can be created, found by trying
 * downwards, as o2iblnd does; 0 with a message in device->error if there is none.
 */
uint32_t device_max_depth(struct device *device, const struct scheme *scheme, uint32_t depth);
/* Creates memory and QPs, in state INIT, for a scenario. */
int device_create_objects(struct device *device, const struct scenario *sc,
			  const struct scheme *scheme, uint32_t side);
void device_get_address(const struct device *device, uint32_t link, struct device_address *address);
int device_connect(struct device *device, uint32_t link, const struct device_address *peer,
		   bool rnr_retry);
/* Posts count receive WQEs to a connection, or to the SRQ. */
int device_post_receives(struct device *device, uint32_t link, uint32_t count);
int device_post(struct device *device, const struct flow_message *message);
/* Reads the message of a receive completion.  Returns false if it is not one of uroce-flow. */
bool device_read_message(struct device *device, const struct ibv_wc *wc,
			 struct flow_message *message);
/* Reads a new update by RDMA WRITE on this connection.  Returns false if there is none. */
bool device_poll_update(struct device *device, uint32_t link, struct flow_message *message);
void device_close(struct device *device);

/* wr_id of a send WQE: index of the connection; of a receive WQE: WR_RECEIVE | buffer index. */
#define WR_RECEIVE (UINT64_C(1) << 63)

#endif
