/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Sends the REQ or SIDR_REQ of an id, and repeats it. */
#include <stdint.h>
#include <string.h>

#include "connect_retry.h"
#include "connection.h"
#include "engine/base/aeth.h"
#include "ucm/event.h"
#include "ucm/ucm_core.h"

/* The private data does not fit into the message. */
#define TOO_LONG SIZE_MAX

/*
 * Writes the IP addresses (not for AF_IB), followed by the user's data.  Returns the number of
 * bytes, or TOO_LONG.
 */
static size_t put_private_data(const struct ucm_id *id, const struct rdma_ucm_conn_param *param,
			       uint8_t *bytes, size_t room)
{
	struct cm_ip_header header = {
		.family = id->source.family == AF_INET ? 4 : 6,
		.source_port = id->source.port,
	};
	size_t used = 0;

	if (id->source.family != UCM_AF_IB) {
		memcpy(header.source, id->source.ip, sizeof(header.source));
		memcpy(header.destination, id->destination.ip, sizeof(header.destination));
		cm_ip_header_put(&header, bytes);
		used = CM_IP_HEADER_BYTES;
	}
	if (used + param->private_data_len > room)
		return TOO_LONG;
	memcpy(bytes + used, param->private_data, param->private_data_len);
	return used + param->private_data_len;
}

static enum cm_result send_req(struct ucm_id *id, const struct rdma_ucm_conn_param *param)
{
	uint8_t bytes[MAD_REQ_PRIVATE + CM_IP_HEADER_BYTES];
	struct ucm_device device;
	struct cm_connect_param request = {
		.service = ucm_connection_service(id),
		.service_id =
			cm_service_id((enum cm_port_space)id->port_space, id->destination.port),
		.qpn = param->qp_num & 0xffffff,
		.starting_psn = id->rq_psn,
		.responder_resources = param->responder_resources,
		.initiator_depth = param->initiator_depth,
		.retry_count = param->retry_count,
		.rnr_retry = param->rnr_retry_count,
		.flow_control = id->flow_control,
		.srq = param->srq,
		.pkey = UCM_PKEY,
		.path_mtu = id->mtu,
		.response_time = UCM_RESPONSE_TIME,
		.max_cm_retries = UCM_MAX_CM_RETRIES,
		.packet_life = id->packet_life,
		.ack_timeout = cm_ack_timeout(ACK_DELAY_CODE, id->packet_life),
		.private_data = bytes,
	};

	request.private_length = put_private_data(id, param, bytes, MAD_REQ_PRIVATE);
	if (request.private_length == TOO_LONG)
		return CM_BAD_ARGUMENT;
	if (!ucm_device(id->device, &device))
		return CM_BAD_ARGUMENT;
	request.ca_guid = device.guid;
	ucm_connection_path(id, &request.path);
	return cm_connect(ucm_cm(), id->conn, &request, progress_now());
}

static enum cm_result send_sidr_req(struct ucm_id *id, const struct rdma_ucm_conn_param *param)
{
	uint8_t bytes[MAD_SIDR_REQ_PRIVATE + RDMA_MAX_PRIVATE_DATA];
	struct cm_sidr_request_param request = {
		.service_id =
			cm_service_id((enum cm_port_space)id->port_space, id->destination.port),
		.pkey = UCM_PKEY,
		.response_time = UCM_RESPONSE_TIME,
		.max_cm_retries = UCM_MAX_CM_RETRIES,
		.private_data = bytes,
	};

	request.private_length = put_private_data(id, param, bytes, MAD_SIDR_REQ_PRIVATE);
	if (request.private_length == TOO_LONG)
		return CM_BAD_ARGUMENT;
	ucm_connection_path(id, &request.path);
	return cm_sidr_request(ucm_cm(), id->conn, &request, progress_now());
}

bool ucm_send_request(struct ucm_id *id, const struct rdma_ucm_conn_param *param)
{
	return (ucm_id_is_datagram(id) ? send_sidr_req(id, param) : send_req(id, param)) == CM_OK;
}

void ucm_retries_send(uint64_t now)
{
	struct ucm_retry *retry;

	while ((retry = ucm_retry_take_due(now))) {
		ucm_connection_destroy(retry->id);
		if (ucm_connection_create(retry->id) || !ucm_send_request(retry->id, &retry->param))
			ucm_event_post(retry->id, UCM_EVENT_REJECTED, retry->reason);
	}
}
