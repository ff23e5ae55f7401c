/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "connection.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "ucm/addr/devices.h"
#include "ucm/event.h"
#include "ucm/ucm_core.h"
#include "connect_retry.h"
#include "ucm/addr/address.h"
#include "verbs/uroce.h"

enum {
	/* Size of a MAD in its packet without the IP header: UDP, BTH, DETH, MAD, ICRC. */
	MAD_PACKET_BYTES = 8 + 12 + 8 + MAD_BYTES + 4,
};

/* Memory of a connection of the protocol, which may outlive its id. */
struct conn_memory {
	struct ucm_id *id;		 /* NULL: destroyed */
	struct ucm_event *request_event; /* CONNECT_REQUEST until it is queued, then NULL */
	bool has_last_message;		 /* last_message is in use (gsi_last_message_set()) */
	unsigned int last_message;
	max_align_t conn[];
};

enum cm_service ucm_connection_service(const struct ucm_id *id)
{
	switch (id->qp_type) {
	case IBV_QPT_UD:
		return CM_UD;
	case IBV_QPT_UC:
		return CM_UC;
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return CM_XRC;
	default:
		return CM_RC;
	}
}

static struct conn_memory *alloc_conn_memory(struct ucm_id *id)
{
	struct conn_memory *memory = malloc(sizeof(*memory) + cm_conn_bytes());

	if (!memory)
		return NULL;
	memory->id = id;
	memory->request_event = NULL;
	memory->has_last_message = false;
	return memory;
}

int ucm_connection_create(struct ucm_id *id)
{
	struct conn_memory *memory = alloc_conn_memory(id);

	if (!memory)
		return ENOMEM;
	id->conn = cm_conn_init(ucm_cm(), memory->conn, memory);
	return 0;
}

void ucm_connection_destroy(struct ucm_id *id)
{
	struct conn_memory *memory = cm_conn_user(id->conn);

	memory->id = NULL;
	cm_destroy(ucm_cm(), id->conn, progress_now());
	id->conn = NULL;
	ucm_rearm_timer();
}

void ucm_connection_released(void *owner, struct cm_conn *conn, void *user)
{
	(void)owner;
	(void)conn;
	free(user);
}

/*
 * If there is no room for the message, the peer of a killed process notices only when its own
 * retries are exhausted.
 */
void ucm_connection_last_message(void *owner, struct cm_conn *conn, const struct cm_path *path,
				 const uint8_t *mad)
{
	struct conn_memory *memory = cm_conn_user(conn);
	struct gsi_path to;

	(void)owner;
	if (mad) {
		ucm_gsi_path(path, &to);
		memory->has_last_message =
			gsi_last_message_set(ucm_gsi(), &to, mad, &memory->last_message) == 0;
	} else if (memory->has_last_message) {
		gsi_last_message_drop(ucm_gsi(), memory->last_message);
		memory->has_last_message = false;
	}
}

void ucm_connection_path(const struct ucm_id *id, struct cm_path *path)
{
	*path = (struct cm_path){
		.device = id->device,
		.traffic_class = id->tos,
		.hop_limit = UCM_HOP_LIMIT,
	};
	memcpy(path->sgid, id->sgid, sizeof(path->sgid));
	memcpy(path->dgid, id->dgid, sizeof(path->dgid));
	/* Spread connections over UDP source ports as the kernel does. */
	path->flow_label = id->destination.flow_info;
	if (!path->flow_label)
		path->flow_label = (id->source.port * 31u + id->destination.port) & 0xfffff;
}

static uint32_t get_families(const struct ucm_id *id)
{
	switch (id->source.family) {
	case AF_INET:
		return CM_FAMILY_IPV4;
	case AF_INET6:
		if (gid_is_any(id->source.ip) && !id->af_only)
			return CM_FAMILY_IPV4 | CM_FAMILY_IPV6;
		return CM_FAMILY_IPV6;
	default:
		return CM_FAMILY_NONE;
	}
}

int ucm_connection_listen(struct ucm_id *id)
{
	struct cm_listen_param param = {
		.service = ucm_connection_service(id),
		.service_id = cm_service_id((enum cm_port_space)id->port_space, id->source.port),
		.device = id->device ? id->device : CM_ANY_DEVICE,
		.families = get_families(id),
		.any_address = gid_is_any(id->source.ip),
	};
	void *memory = malloc(cm_listener_bytes());
	enum cm_result result;
	int error;

	if (!memory)
		return ENOMEM;
	memcpy(param.address, id->source.ip, sizeof(param.address));
	result = cm_listen(ucm_cm(), memory, &param, id, &id->listener);
	if (result != CM_OK) {
		id->listener = NULL;
		free(memory);
		return result == CM_IN_USE ? EADDRINUSE : EINVAL;
	}
	id->listener_memory = memory;
	error = -gsi_port_listen(id->port);
	if (error)
		ucm_connection_unlisten(id);
	return error;
}

void ucm_connection_unlisten(struct ucm_id *id)
{
	cm_unlisten(ucm_cm(), id->listener);
	free(id->listener_memory);
	id->listener = NULL;
	id->listener_memory = NULL;
}

/* ---- Requests ---- */

static const uint8_t *get_private_data(const struct mad *request, size_t *length)
{
	if (request->attr == MAD_SIDR_REQ) {
		*length = MAD_SIDR_REQ_PRIVATE;
		return request->sidr_req.private_data;
	}
	*length = MAD_REQ_PRIVATE;
	return request->req.private_data;
}

/* Returns the user's part of the private data, which follows the IP header. */
static const uint8_t *get_user_data(const struct ucm_id *listener, const struct mad *request,
				    size_t *length)
{
	const uint8_t *bytes = get_private_data(request, length);

	if (listener->source.family == UCM_AF_IB)
		return bytes;
	*length -= CM_IP_HEADER_BYTES;
	return bytes + CM_IP_HEADER_BYTES;
}

static void set_addresses(struct ucm_id *id, const struct ucm_id *listener,
			  const struct mad *request, const struct cm_path *from)
{
	struct cm_ip_header header;
	size_t length;

	if (listener->source.family == UCM_AF_IB) {
		id->source.family = UCM_AF_IB;
		memcpy(id->source.ip, from->sgid, 16);
		memcpy(id->destination.ip, from->dgid, 16);
	} else {
		cm_ip_header_get(get_private_data(request, &length), &header);
		id->source.family = header.family == 4 ? AF_INET : AF_INET6;
		memcpy(id->source.ip, header.destination, 16);
		memcpy(id->destination.ip, header.source, 16);
		id->destination.port = header.source_port;
	}
	id->source.port_space = listener->port_space;
	id->source.port = listener->source.port;
	id->destination.family = id->source.family;
	id->destination.port_space = listener->port_space;
	if (gid_is_link_local(id->destination.ip))
		id->destination.scope_id = from->device;
	if (gid_is_link_local(id->source.ip))
		id->source.scope_id = from->device;
}

uint8_t ucm_connection_path_mtu(const struct ucm_device *device, const uint8_t sgid[16],
				const uint8_t dgid[16])
{
	uint32_t route_mtu = ucm_route_mtu(sgid, dgid, ucm_scope_id_of(dgid, device->number));
	uint32_t needed =
		MAD_PACKET_BYTES + (gid_is_ipv4(dgid) ? WIRE_IPV4_BYTES : WIRE_IPV6_BYTES);
	char here[INET6_ADDRSTRLEN], there[INET6_ADDRSTRLEN];
	uint8_t code;

	if (!route_mtu)
		return device->mtu;
	if (route_mtu < needed) {
		uroce_err("cannot connect %s to %s: the path MTU is %u bytes, and a message of "
			  "the connection manager has %u: give the interface a larger MTU",
			  inet_ntop(AF_INET6, sgid, here, sizeof(here)),
			  inet_ntop(AF_INET6, dgid, there, sizeof(there)), route_mtu, needed);
		return 0;
	}
	code = (uint8_t)uroce_active_mtu(route_mtu);
	return code < device->mtu ? code : device->mtu;
}

static bool set_device(struct ucm_id *id, const struct mad *request, const struct cm_path *from)
{
	struct ucm_device device;

	if (!ucm_device_of_gid(from->sgid, from->device, &id->device, &id->sgid_index) ||
	    !ucm_device(id->device, &device))
		return false;
	memcpy(id->sgid, from->sgid, 16);
	memcpy(id->dgid, from->dgid, 16);
	id->mtu = device.mtu;
	if (request->attr == MAD_REQ && request->req.path_mtu < id->mtu)
		id->mtu = request->req.path_mtu;
	id->packet_life = UCM_PACKET_LIFE;
	id->has_route = true;
	return true;
}

uint8_t ucm_connection_mtu(void *owner, const struct cm_path *from)
{
	struct ucm_device device;
	uint8_t mtu;

	(void)owner;
	if (!ucm_device(from->device, &device))
		return UINT8_MAX;
	/* If the path does not carry replies, do not limit the MTU of the request. */
	mtu = ucm_connection_path_mtu(&device, from->sgid, from->dgid);
	return mtu ? mtu : UINT8_MAX;
}

void *ucm_connection_accept(void *owner, struct cm_listener *cm_listener, const struct mad *request,
			    const struct cm_path *from, void **user)
{
	struct ucm_id *listener = cm_listener_user(cm_listener);
	struct conn_memory *memory;
	struct ucm_id *id;

	(void)owner;
	if (listener->unread_requests >= listener->backlog)
		return NULL;
	id = ucm_id_create(listener->channel, listener->port_space, listener->qp_type);
	if (!id)
		return NULL;
	memory = set_device(id, request, from) ? alloc_conn_memory(id) : NULL;
	if (memory)
		memory->request_event = ucm_event_new(listener, UCM_EVENT_CONNECT_REQUEST, 0);
	if (!memory || !memory->request_event) {
		free(memory);
		ucm_id_free(id);
		return NULL;
	}
	id->reports_events = false;
	id->state = UCM_CONNECT;
	if (request->attr == MAD_REQ) {
		id->tos = request->req.traffic_class;
		id->responder_resources = request->req.initiator_depth;
	}
	set_addresses(id, listener, request, from);
	*user = memory;
	return memory->conn;
}

static void fill_request_event(struct ucm_event *event, const struct ucm_id *listener,
			       const struct mad *request)
{
	struct rdma_ucm_conn_param *conn = &event->resp.param.conn;
	const struct mad_req *req = &request->req;
	size_t length;
	const uint8_t *data = get_user_data(listener, request, &length);

	if (request->attr == MAD_SIDR_REQ) {
		ucm_event_ud_data(event, data, length);
		return;
	}
	ucm_event_conn_data(event, data, length);
	/* The peer's initiator depth is our number of responder resources, and vice versa. */
	conn->responder_resources = req->initiator_depth;
	conn->initiator_depth = req->responder_resources;
	conn->flow_control = req->flow_control;
	conn->retry_count = req->retry_count;
	conn->rnr_retry_count = req->rnr_retry;
	conn->srq = req->srq;
	conn->qp_num = req->local_qpn;
	event->resp.ece.vendor_id = req->vendor_id;
	event->resp.ece.attr_mod = request->attr_modifier;
}

/* Allocates nothing, since an accepted request cannot be rejected here. */
static void queue_connect_request(struct conn_memory *memory, const struct cm_event *cm_event)
{
	struct ucm_id *listener = cm_listener_user(cm_event->listener);
	struct ucm_event *event = memory->request_event;
	struct ucm_id *id = memory->id;

	memory->request_event = NULL;
	event->request = id;
	event->resp.id = id->handle;
	fill_request_event(event, listener, cm_event->mad);
	if (cm_event->mad->attr == MAD_REQ)
		id->peer_flow_control = cm_event->mad->req.flow_control;
	listener->unread_requests++;
	ucm_channel_queue_event(event);
}

/* ---- Events of connections ---- */

static void queue_connect_response(struct ucm_id *id, const struct mad *mad)
{
	struct ucm_event *event = ucm_event_new(id, UCM_EVENT_CONNECT_RESPONSE, 0);
	struct rdma_ucm_conn_param *conn;
	const struct mad_rep *rep = &mad->rep;

	id->peer_flow_control = rep->flow_control;
	if (!event)
		return;
	conn = &event->resp.param.conn;
	ucm_event_conn_data(event, rep->private_data, sizeof(rep->private_data));
	conn->responder_resources = rep->initiator_depth;
	conn->initiator_depth = rep->responder_resources;
	conn->flow_control = rep->flow_control;
	conn->rnr_retry_count = rep->rnr_retry;
	conn->srq = rep->srq;
	conn->qp_num = rep->local_qpn;
	event->resp.ece.vendor_id = (uint32_t)rep->vendor_id_high << 16 |
				    (uint32_t)rep->vendor_id_middle << 8 | rep->vendor_id_low;
	event->resp.ece.attr_mod = mad->attr_modifier;
	ucm_channel_queue_event(event);
}

static void queue_rejected(struct ucm_id *id, const struct mad_rej *rej)
{
	struct ucm_event *event = ucm_event_new(id, UCM_EVENT_REJECTED, rej->reason);

	if (!event)
		return;
	ucm_event_conn_data(event, rej->private_data, sizeof(rej->private_data));
	ucm_channel_queue_event(event);
}

static void queue_sidr_response(struct ucm_id *id, const struct mad_sidr_rep *rep)
{
	struct ucm_event *event;
	struct cm_path path;

	event = ucm_event_new(id, rep->status ? UCM_EVENT_UNREACHABLE : UCM_EVENT_ESTABLISHED,
			      rep->status);
	if (!event)
		return;
	ucm_event_ud_data(event, rep->private_data, sizeof(rep->private_data));
	if (!rep->status) {
		ucm_connection_path(id, &path);
		ucm_event_address_vector(id, &path, &event->resp.param.ud.ah_attr);
		event->resp.param.ud.qp_num = rep->qpn;
		event->resp.param.ud.qkey = rep->qkey;
	}
	ucm_channel_queue_event(event);
}

/*
 * If the peer has rejected the REQ with its own smaller path MTU, stores that MTU for the next REQ
 * and returns true.
 */
static bool adopt_smaller_mtu(struct ucm_id *id, const struct cm_event *event)
{
	const struct mad_rej *rej;

	if (event->type != CM_EVENT_REJECTED)
		return false;
	rej = &event->mad->rej;
	if (rej->reason != MAD_REJECT_INVALID_MTU || !rej->ari_length ||
	    rej->ari[0] < IBV_MTU_256 || rej->ari[0] >= id->mtu)
		return false;
	id->mtu = rej->ari[0];
	return true;
}

static bool has_no_listener(const struct cm_event *event)
{
	if (event->type == CM_EVENT_SIDR_REP)
		return event->mad->sidr_rep.status == MAD_SIDR_UNSUPPORTED;
	return event->type == CM_EVENT_REJECTED &&
	       event->mad->rej.reason == MAD_REJECT_INVALID_SERVICE_ID;
}

void ucm_connection_event(void *owner, struct cm_conn *conn, const struct cm_event *event)
{
	struct conn_memory *memory = cm_conn_user(conn);
	struct ucm_id *id = memory->id;

	(void)owner;
	if (!id)
		return;
	if (event->type == CM_EVENT_REQ || event->type == CM_EVENT_SIDR_REQ) {
		id->conn = conn;
		queue_connect_request(memory, event);
		return;
	}
	/* A passive id reports no events until it is accepted; accepting it fails instead. */
	if (!id->reports_events)
		return;
	if (event->type == CM_EVENT_TIMEWAIT_EXIT) {
		if (id->state == UCM_DISCONNECT)
			ucm_event_post(id, UCM_EVENT_TIMEWAIT_EXIT, 0);
		return;
	}
	if (id->state != UCM_CONNECT)
		return;
	if ((has_no_listener(event) || adopt_smaller_mtu(id, event)) &&
	    ucm_retry_schedule(id, event))
		return;
	ucm_retry_cancel(id);
	switch (event->type) {
	case CM_EVENT_REP:
		queue_connect_response(id, event->mad);
		break;
	case CM_EVENT_ESTABLISHED:
		ucm_event_post(id, UCM_EVENT_ESTABLISHED, 0);
		break;
	case CM_EVENT_REJECTED:
		queue_rejected(id, &event->mad->rej);
		break;
	case CM_EVENT_UNREACHABLE:
		ucm_event_post(id, UCM_EVENT_UNREACHABLE, -ETIMEDOUT);
		break;
	case CM_EVENT_DISCONNECTED:
		id->state = UCM_DISCONNECT;
		ucm_event_post(id, UCM_EVENT_DISCONNECTED, event->mad ? 0 : -ETIMEDOUT);
		break;
	case CM_EVENT_SIDR_REP:
		queue_sidr_response(id, &event->mad->sidr_rep);
		break;
	default:
		break;
	}
}
