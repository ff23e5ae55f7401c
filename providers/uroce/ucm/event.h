/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Events in the format that librdmacm reads. */
#ifndef UROCE_UCM_EVENT_H
#define UROCE_UCM_EVENT_H

#include <stddef.h>
#include <stdint.h>

#include "channel.h"
#include "cm/cm.h"

/* Values of enum rdma_cm_event_type of librdmacm. */
enum ucm_event_type {
	UCM_EVENT_ADDR_RESOLVED,
	UCM_EVENT_ADDR_ERROR,
	UCM_EVENT_ROUTE_RESOLVED,
	UCM_EVENT_ROUTE_ERROR,
	UCM_EVENT_CONNECT_REQUEST,
	UCM_EVENT_CONNECT_RESPONSE,
	UCM_EVENT_CONNECT_ERROR,
	UCM_EVENT_UNREACHABLE,
	UCM_EVENT_REJECTED,
	UCM_EVENT_ESTABLISHED,
	UCM_EVENT_DISCONNECTED,
	UCM_EVENT_DEVICE_REMOVAL,
	UCM_EVENT_MULTICAST_JOIN,
	UCM_EVENT_MULTICAST_ERROR,
	UCM_EVENT_ADDR_CHANGE,
	UCM_EVENT_TIMEWAIT_EXIT,
	/* Linux 6.17 and later: two of an address service, and two that programs write. */
	UCM_EVENT_ADDRINFO_RESOLVED,
	UCM_EVENT_ADDRINFO_ERROR,
	UCM_EVENT_USER,
	UCM_EVENT_INTERNAL,
};

/*
 * Returns a new event about id, zeroed apart from the id and the arguments; NULL if there is no
 * memory, and the event is lost.
 */
struct ucm_event *ucm_event_new(struct ucm_id *id, enum ucm_event_type type, int status);
/* Creates and queues an event. */
void ucm_event_post(struct ucm_id *id, enum ucm_event_type type, int status);

/* Set the private data; the rest of the field stays zero. */
void ucm_event_conn_data(struct ucm_event *event, const uint8_t *bytes, size_t length);
void ucm_event_ud_data(struct ucm_event *event, const uint8_t *bytes, size_t length);
/* Sets the address handle attributes of packets that id's device sends along path. */
void ucm_event_address_vector(const struct ucm_id *id, const struct cm_path *path,
			      struct ib_uverbs_ah_attr *ah);

#endif
