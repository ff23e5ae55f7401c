/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "cm_log.h"

#include <stdlib.h>
#include <string.h>

#include "array.h"

#define MIN_MTU 256u
/*
 * Maximum number of connections, from the newest, that are searched for that of a message: bounds
 * the time if a file has many REQs.
 */
#define SEARCH_MAX 4096

static struct cm_connection *find_connection(struct cm_log *log, const uint8_t active[16],
					     const uint8_t passive[16], uint32_t active_id)
{
	size_t end = log->count > SEARCH_MAX ? log->count - SEARCH_MAX : 0;

	for (size_t i = log->count; i > end; i--) {
		struct cm_connection *connection = &log->items[i - 1];

		if (connection->active.id == active_id &&
		    memcmp(connection->active.address, active, 16) == 0 &&
		    memcmp(connection->passive.address, passive, 16) == 0)
			return connection;
	}
	return NULL;
}

static struct cm_connection *add_req(struct cm_log *log, const uint8_t src[16],
				     const uint8_t dst[16], const struct mad_req *req)
{
	struct cm_connection *connection = find_connection(log, src, dst, req->local_id);

	/* A repeated REQ adds nothing.  A REQ that reuses the ID has another QP number or PSN. */
	if (connection && connection->active.qpn == req->local_qpn &&
	    connection->active.psn == req->starting_psn)
		return NULL;
	connection = array_append(log);
	memset(connection, 0, sizeof(*connection));
	memcpy(connection->active.address, src, 16);
	memcpy(connection->passive.address, dst, 16);
	connection->active.id = req->local_id;
	connection->active.qpn = req->local_qpn;
	connection->active.psn = req->starting_psn;
	connection->active.responder_resources = req->responder_resources;
	connection->active.initiator_depth = req->initiator_depth;
	connection->active.flow_control = req->flow_control;
	connection->active.srq = req->srq;
	if (req->path_mtu >= 1 && req->path_mtu <= 5)
		connection->mtu = MIN_MTU << (req->path_mtu - 1);
	connection->service_id = req->service_id;
	connection->transport = req->transport;
	return connection;
}

static struct cm_connection *add_rep(struct cm_log *log, const uint8_t src[16],
				     const uint8_t dst[16], const struct mad_rep *rep)
{
	struct cm_connection *connection = find_connection(log, dst, src, rep->remote_id);

	if (!connection || connection->accepted)
		return NULL;
	connection->accepted = true;
	connection->passive.id = rep->local_id;
	connection->passive.qpn = rep->local_qpn;
	connection->passive.psn = rep->starting_psn;
	connection->passive.responder_resources = rep->responder_resources;
	connection->passive.initiator_depth = rep->initiator_depth;
	connection->passive.flow_control = rep->flow_control;
	connection->passive.srq = rep->srq;
	return connection;
}

static void add_rej(struct cm_log *log, const uint8_t src[16], const uint8_t dst[16],
		    const struct mad_rej *rej)
{
	struct cm_connection *connection = find_connection(log, dst, src, rej->remote_id);

	if (!connection)
		return;
	connection->rejected = true;
	connection->reject_reason = rej->reason;
}

const struct cm_connection *cm_log_add(struct cm_log *log, const uint8_t src[16],
				       const uint8_t dst[16], const uint8_t *payload, size_t length)
{
	struct mad mad;

	if (mad_decode(payload, length, &mad) != MAD_OK) {
		log->malformed++;
		return NULL;
	}
	log->messages[mad.attr - MAD_ATTR_FIRST]++;
	if (mad.attr == MAD_REQ)
		return add_req(log, src, dst, &mad.req);
	if (mad.attr == MAD_REP)
		return add_rep(log, src, dst, &mad.rep);
	if (mad.attr == MAD_REJ)
		add_rej(log, src, dst, &mad.rej);
	return NULL;
}

void cm_log_free(struct cm_log *log)
{
	free(log->items);
}
