/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "event.h"

#include <stdlib.h>
#include <string.h>

#include "id.h"

struct ucm_event *ucm_event_new(struct ucm_id *id, enum ucm_event_type type, int status)
{
	struct ucm_event *event = calloc(1, sizeof(*event));

	if (!event)
		return NULL;
	event->id = id;
	event->resp.uid = id->uid;
	event->resp.id = id->handle;
	event->resp.event = type;
	event->resp.status = (uint32_t)status;
	return event;
}

void ucm_event_post(struct ucm_id *id, enum ucm_event_type type, int status)
{
	struct ucm_event *event = ucm_event_new(id, type, status);

	if (event)
		ucm_channel_queue_event(event);
}

void ucm_event_conn_data(struct ucm_event *event, const uint8_t *bytes, size_t length)
{
	memcpy(event->resp.param.conn.private_data, bytes, length);
	event->resp.param.conn.private_data_len = (uint8_t)length;
}

void ucm_event_ud_data(struct ucm_event *event, const uint8_t *bytes, size_t length)
{
	memcpy(event->resp.param.ud.private_data, bytes, length);
	event->resp.param.ud.private_data_len = (uint8_t)length;
}

void ucm_event_address_vector(const struct ucm_id *id, const struct cm_path *path,
			      struct ib_uverbs_ah_attr *ah)
{
	*ah = (struct ib_uverbs_ah_attr){
		.grh = { .flow_label = path->flow_label,
			 .sgid_index = (uint8_t)id->sgid_index,
			 .hop_limit = path->hop_limit,
			 .traffic_class = path->traffic_class },
		.sl = path->sl,
		.is_global = 1,
		.port_num = 1,
	};
	memcpy(ah->grh.dgid, path->dgid, sizeof(ah->grh.dgid));
}
