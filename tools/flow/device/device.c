// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

__attribute__((format(printf, 2, 3))) static int set_error(struct device *device,
							   const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(device->error, sizeof(device->error), format, arguments);
	va_end(arguments);
	return -1;
}

/* ---- the device ---- */

static bool port_is_active(struct ibv_context *context, int port, struct ibv_port_attr *attr)
{
	return !ibv_query_port(context, (uint8_t)port, attr) && attr->state == IBV_PORT_ACTIVE;
}

static int choose_gid(struct device *device)
{
	static const union ibv_gid zero;
	int index = device->options.gid_index;

	if (index >= 0)
		return ibv_query_gid(device->context, (uint8_t)device->options.port, index,
				     &device->gid)
			       ? set_error(device, "the device has no GID %d", index)
			       : 0;
	for (index = 0; index < 16; index++) {
		if (!ibv_query_gid(device->context, (uint8_t)device->options.port, index,
				   &device->gid) &&
		    memcmp(&device->gid, &zero, sizeof(zero))) {
			device->options.gid_index = index;
			return 0;
		}
	}
	return set_error(device, "the device has no GID");
}

int device_open(struct device *device, const struct device_options *options)
{
	int count;
	struct ibv_device **list = ibv_get_device_list(&count);
	struct ibv_port_attr attr = { 0 };

	memset(device, 0, sizeof(*device));
	device->options = *options;
	for (int i = 0; list && i < count && !device->context; i++) {
		if (options->name && strcmp(ibv_get_device_name(list[i]), options->name))
			continue;
		device->context = ibv_open_device(list[i]);
		if (device->context && !port_is_active(device->context, options->port, &attr)) {
			ibv_close_device(device->context);
			device->context = NULL;
		}
	}
	if (list)
		ibv_free_device_list(list);
	if (!device->context)
		return set_error(device, "no RDMA device%s%s with active port %d",
				 options->name ? " " : "", options->name ? options->name : "",
				 options->port);
	device->lid = attr.lid;
	device->mtu = attr.active_mtu;
	return choose_gid(device);
}

/* ---- objects of the device ---- */

static int create_memory(struct device *device, uint32_t receives_in_all, bool with_slots)
{
	size_t windows = device->links * sizeof(struct device_window);
	size_t slots = with_slots ? (size_t)device->links * DEVICE_SLOTS * device->bytes : 0;
	size_t sends = (size_t)device->links * ENDPOINT_SQ * device->bytes;
	size_t receives = (size_t)receives_in_all * device->bytes;
	uint32_t *indexes = calloc(receives_in_all, sizeof(*indexes));

	/* device_close() frees it here. */
	device->link[0].free_buffers = indexes;
	device->memory_bytes = windows + slots + sends + receives;
	device->memory = calloc(1, device->memory_bytes);
	if (!device->memory || !indexes)
		return set_error(device, "out of memory");
	device->mr = ibv_reg_mr(device->pd, device->memory, device->memory_bytes,
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					IBV_ACCESS_REMOTE_READ);
	if (!device->mr)
		return set_error(device, "ibv_reg_mr() of %zu bytes: %s", device->memory_bytes,
				 strerror(errno));
	device->receive_buffers = device->memory + windows + slots + sends;
	for (uint32_t i = 0; i < receives_in_all; i++)
		indexes[i] = i;
	for (uint32_t i = 0; i < device->links; i++) {
		struct device_link *l = &device->link[i];

		l->window = (struct device_window *)device->memory + i;
		l->slots = device->memory + windows +
			   (with_slots ? (size_t)i * DEVICE_SLOTS * device->bytes : 0);
		l->send_buffers =
			device->memory + windows + slots + (size_t)i * ENDPOINT_SQ * device->bytes;
		l->free_buffers = indexes + (device->shared ? 0 : i * device->receives);
		l->free_count = device->receives;
	}
	return 0;
}

static struct ibv_qp *create_qp(struct device *device)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = device->cq,
		.recv_cq = device->cq,
		.srq = device->srq,
		.cap = { .max_send_wr = ENDPOINT_SQ,
			 .max_recv_wr = device->shared ? 0 : device->receives,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = device->unreliable ? IBV_QPT_UC : IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	return ibv_create_qp(device->pd, &attr);
}

uint32_t device_max_depth(struct device *device, const struct scheme *scheme, uint32_t depth)
{
	struct ibv_pd *pd = ibv_alloc_pd(device->context);
	struct ibv_cq *cq = ibv_create_cq(device->context, 1, NULL, NULL, 0);
	struct ibv_qp *qp = NULL;

	for (; pd && cq && !qp && depth >= 4; depth--) {
		struct ibv_qp_init_attr attr = {
			.send_cq = cq,
			.recv_cq = cq,
			.cap = { .max_send_wr = ENDPOINT_SQ,
				 .max_recv_wr = scheme_receives(scheme, depth),
				 .max_send_sge = 1,
				 .max_recv_sge = 1 },
			.qp_type = IBV_QPT_RC,
		};

		qp = ibv_create_qp(pd, &attr);
	}
	depth = qp ? depth + 1 : 0;
	if (qp)
		ibv_destroy_qp(qp);
	else
		set_error(device, "cannot create a queue pair: %s", strerror(errno));
	if (cq)
		ibv_destroy_cq(cq);
	if (pd)
		ibv_dealloc_pd(pd);
	return depth;
}

static int modify_to_init(struct device *device, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = (uint8_t)device->options.port,
				    .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };
	int error;

	if (!device->unreliable)
		attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ;
	error = ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	return error ? set_error(device, "queue pair to INIT: %s", strerror(error)) : 0;
}

static int create_srq(struct device *device)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = device->receives, .max_sge = 1 } };

	device->srq = ibv_create_srq(device->pd, &attr);
	return device->srq ? 0
			   : set_error(device, "ibv_create_srq() of %u: %s", device->receives,
				       strerror(errno));
}

int device_create_objects(struct device *device, const struct scenario *sc,
			  const struct scheme *scheme, uint32_t side)
{
	uint32_t receives_in_all;

	device->links = sc->links;
	device->bytes = at_least(HEADER_BYTES, sc->bytes);
	device->shared = endpoint_has_srq(sc, side);
	device->unreliable = sc->unreliable;
	device->receives = endpoint_receives(sc, scheme, side);
	receives_in_all = device->receives * (device->shared ? 1 : device->links);
	device->pd = ibv_alloc_pd(device->context);
	if (!device->pd)
		return set_error(device, "ibv_alloc_pd(): %s", strerror(errno));
	device->cq =
		ibv_create_cq(device->context, (int)(receives_in_all + device->links * ENDPOINT_SQ),
			      NULL, NULL, 0);
	if (!device->cq)
		return set_error(device, "ibv_create_cq(): %s", strerror(errno));
	if (create_memory(device, receives_in_all, sc->mixed_percent) ||
	    (device->shared && create_srq(device)))
		return -1;
	for (uint32_t i = 0; i < device->links; i++) {
		device->link[i].qp = create_qp(device);
		if (!device->link[i].qp)
			return set_error(device, "ibv_create_qp() with %u receives: %s",
					 device->receives, strerror(errno));
		if (modify_to_init(device, device->link[i].qp))
			return -1;
	}
	return 0;
}

void device_get_address(const struct device *device, uint32_t link, struct device_address *address)
{
	*address = (struct device_address){ .qpn = device->link[link].qp->qp_num,
					    .psn = (0x7f0000 + 0x1011 * link) & 0xffffff,
					    .lid = device->lid,
					    .mtu = device->mtu,
					    .rkey = device->mr->rkey,
					    .window = (uintptr_t)device->link[link].window,
					    .slots = (uintptr_t)device->link[link].slots };
	memcpy(address->gid, device->gid.raw, sizeof(address->gid));
}

static int modify_to_rtr(struct device *device, struct ibv_qp *qp,
			 const struct device_address *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = peer->mtu < device->mtu ? (enum ibv_mtu)peer->mtu : device->mtu,
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = (uint8_t)device->options.rnr_timer,
	};
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = (uint8_t)device->options.port;
	attr.ah_attr.dlid = (uint16_t)peer->lid;
	attr.ah_attr.grh.sgid_index = (uint8_t)device->options.gid_index;
	attr.ah_attr.grh.hop_limit = 64;
	memcpy(attr.ah_attr.grh.dgid.raw, peer->gid, sizeof(peer->gid));
	if (!device->unreliable)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return ibv_modify_qp(qp, &attr, mask);
}

static int modify_to_rts(struct device *device, struct ibv_qp *qp, uint32_t psn, bool rnr_retry)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS,
				    .sq_psn = psn,
				    .max_rd_atomic = 4,
				    .timeout = (uint8_t)device->options.timeout,
				    .retry_cnt = 7,
				    .rnr_retry = rnr_retry ? 7 : 0 };
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (!device->unreliable)
		mask |= IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			IBV_QP_RNR_RETRY;
	return ibv_modify_qp(qp, &attr, mask);
}

int device_connect(struct device *device, uint32_t link, const struct device_address *peer,
		   bool rnr_retry)
{
	struct device_link *l = &device->link[link];
	struct device_address own;
	int error;

	device_get_address(device, link, &own);
	l->peer = *peer;
	error = modify_to_rtr(device, l->qp, peer);
	if (!error)
		error = modify_to_rts(device, l->qp, own.psn, rnr_retry);
	return error ? set_error(device, "connecting a queue pair: %s", strerror(error)) : 0;
}

void device_close(struct device *device)
{
	for (uint32_t i = 0; i < device->links; i++)
		if (device->link[i].qp)
			ibv_destroy_qp(device->link[i].qp);
	if (device->srq)
		ibv_destroy_srq(device->srq);
	if (device->cq)
		ibv_destroy_cq(device->cq);
	if (device->mr)
		ibv_dereg_mr(device->mr);
	if (device->pd)
		ibv_dealloc_pd(device->pd);
	if (device->context)
		ibv_close_device(device->context);
	free(device->link[0].free_buffers);
	free(device->memory);
}
