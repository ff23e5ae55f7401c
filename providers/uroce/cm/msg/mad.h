/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Messages of the connection manager as host-order structures: management datagrams (MADs) of 256
 * bytes between the queue pairs 1 of two hosts (IBA volume 1, chapter 12; 13.4 for the common
 * header).  Decoding and encoding use the same table of field positions, in mad.c.
 *
 * A MAD is the payload of a UD SEND Only with Q_Key MAD_QKEY, always of full length.
 */
#ifndef UROCE_CM_MSG_MAD_H
#define UROCE_CM_MSG_MAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/mad_header.h"

#define MAD_GID_BYTES 16

/* Maximum length of the private data in bytes; shorter data is padded with zeros. */
#define MAD_REQ_PRIVATE 92
#define MAD_MRA_PRIVATE 222
#define MAD_REJ_PRIVATE 148
#define MAD_REP_PRIVATE 196
#define MAD_RTU_PRIVATE 224
#define MAD_DREQ_PRIVATE 220
#define MAD_DREP_PRIVATE 224
#define MAD_SIDR_REQ_PRIVATE 216
#define MAD_SIDR_REP_PRIVATE 136
/* Length of the additional reject information, and of the information in a SIDR_REP. */
#define MAD_ARI_BYTES 72

/* First value of enum mad_attr, and number of values. */
#define MAD_ATTR_FIRST MAD_REQ
#define MAD_ATTRS (MAD_APR - MAD_REQ + 1)
/* Returns a name such as "REQ", or "?" if attr is not in enum mad_attr. */
const char *mad_attr_name(uint16_t attr);

/* Transport service of a REQ. */
enum mad_transport {
	MAD_TRANSPORT_RC = 0,
	MAD_TRANSPORT_UC = 1,
	MAD_TRANSPORT_XRC = 3, /* with extended_transport 1 */
};

/* Message to which a REJ or an MRA refers. */
enum mad_refers_to {
	MAD_REFERS_TO_REQ = 0,
	MAD_REFERS_TO_REP = 1,
	MAD_REFERS_TO_OTHER = 2,
};

/* Reasons of a REJ (IBA volume 1, table "REJ reason codes"). */
enum mad_reject {
	MAD_REJECT_NO_QP = 1,
	MAD_REJECT_NO_RESOURCES = 3,
	MAD_REJECT_TIMEOUT = 4,
	MAD_REJECT_UNSUPPORTED = 5,
	MAD_REJECT_INVALID_COMM_ID = 6,
	MAD_REJECT_INVALID_SERVICE_ID = 8,
	MAD_REJECT_INVALID_TRANSPORT = 9,
	MAD_REJECT_STALE = 10,
	MAD_REJECT_INVALID_GID = 12,
	MAD_REJECT_INVALID_MTU = 26,
	MAD_REJECT_CONSUMER = 28,
	MAD_REJECT_VENDOR_OPTION = 35,
};
/* Returns a name such as "stale connection", or "?" if the reason has none. */
const char *mad_reject_name(uint16_t reason);

enum mad_sidr_status {
	MAD_SIDR_OK = 0,
	MAD_SIDR_UNSUPPORTED = 1, /* no listener with this service id */
	MAD_SIDR_REJECT = 2,
	MAD_SIDR_NO_QP = 3,
};

struct mad_req {
	uint32_t local_id;
	uint32_t vendor_id; /* 24 bits, for enhanced connection establishment (ECE): 0 */
	uint64_t service_id;
	uint64_t ca_guid;
	uint32_t local_qkey;
	uint32_t local_qpn; /* 24 bits */
	uint8_t responder_resources;
	uint32_t local_eecn; /* 24 bits, 0 */
	uint8_t initiator_depth;
	uint32_t remote_eecn;	      /* 24 bits, 0 */
	uint8_t remote_response_time; /* time code: 4.096 us x 2^n, see cm_code_ns() */
	uint8_t transport;	      /* enum mad_transport */
	uint8_t flow_control;	      /* 1: sender reports credits (rule C19) */
	uint32_t starting_psn;	      /* 24 bits: first PSN that the sender of the REQ expects */
	uint8_t local_response_time;  /* time code */
	uint8_t retry_count;	      /* 0 to 7 */
	uint16_t pkey;
	uint8_t path_mtu; /* code: 1 is 256 bytes, 5 is 4096 */
	uint8_t rdc_exists;
	uint8_t rnr_retry; /* 0 to 7 */
	uint8_t max_cm_retries;
	uint8_t srq;
	uint8_t extended_transport;
	uint16_t primary_local_lid;
	uint16_t primary_remote_lid;
	uint8_t primary_local_gid[MAD_GID_BYTES];
	uint8_t primary_remote_gid[MAD_GID_BYTES];
	uint32_t flow_label; /* 20 bits */
	uint8_t packet_rate; /* 6 bits */
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint8_t sl; /* 4 bits */
	uint8_t subnet_local;
	uint8_t ack_timeout;   /* time code of the Local ACK Timeout, 5 bits */
	uint8_t alternate[44]; /* the same fields of the alternate path: all 0 */
	uint8_t private_data[MAD_REQ_PRIVATE];
};

struct mad_mra {
	uint32_t local_id, remote_id;
	uint8_t refers_to;    /* enum mad_refers_to */
	uint8_t service_time; /* time code */
	uint8_t private_data[MAD_MRA_PRIVATE];
};

struct mad_rej {
	uint32_t local_id, remote_id;
	uint8_t refers_to; /* enum mad_refers_to */
	uint8_t ari_length;
	uint16_t reason; /* enum mad_reject */
	uint8_t ari[MAD_ARI_BYTES];
	uint8_t private_data[MAD_REJ_PRIVATE];
};

struct mad_rep {
	uint32_t local_id, remote_id;
	uint32_t local_qkey;
	uint32_t local_qpn; /* 24 bits */
	uint8_t vendor_id_high;
	uint32_t local_eecn; /* 24 bits */
	uint8_t vendor_id_middle;
	uint32_t starting_psn; /* 24 bits: first PSN that the sender of the REP expects */
	uint8_t vendor_id_low;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t target_ack_delay; /* time code, 5 bits */
	uint8_t failover_accepted;
	uint8_t flow_control; /* 1: sender reports credits (rule C19) */
	uint8_t rnr_retry;    /* 0 to 7, for the queue pair of the active side */
	uint8_t srq;
	uint64_t ca_guid;
	uint8_t private_data[MAD_REP_PRIVATE];
};

struct mad_rtu {
	uint32_t local_id, remote_id;
	uint8_t private_data[MAD_RTU_PRIVATE];
};

struct mad_dreq {
	uint32_t local_id, remote_id;
	uint32_t remote_qpn; /* 24 bits: QPN of the receiver of the DREQ */
	uint8_t private_data[MAD_DREQ_PRIVATE];
};

struct mad_drep {
	uint32_t local_id, remote_id;
	uint8_t private_data[MAD_DREP_PRIVATE];
};

struct mad_sidr_req {
	uint32_t request_id;
	uint16_t pkey;
	uint64_t service_id;
	uint8_t private_data[MAD_SIDR_REQ_PRIVATE];
};

struct mad_sidr_rep {
	uint32_t request_id;
	uint8_t status; /* enum mad_sidr_status */
	uint8_t info_length;
	uint16_t vendor_id_high;
	uint32_t qpn; /* 24 bits */
	uint8_t vendor_id_low;
	uint64_t service_id;
	uint32_t qkey;
	uint8_t info[MAD_ARI_BYTES];
	uint8_t private_data[MAD_SIDR_REP_PRIVATE];
};

/* One message.  attr selects the member of the union. */
struct mad {
	uint16_t attr; /* enum mad_attr */
	uint16_t status;
	uint16_t class_specific;
	uint32_t attr_modifier;
	uint64_t transaction_id;
	union {
		struct mad_req req;
		struct mad_mra mra;
		struct mad_rej rej;
		struct mad_rep rep;
		struct mad_rtu rtu;
		struct mad_dreq dreq;
		struct mad_drep drep;
		struct mad_sidr_req sidr_req;
		struct mad_sidr_rep sidr_rep;
	};
};

enum mad_error {
	MAD_OK,
	MAD_BAD_LENGTH,	       /* not 256 bytes */
	MAD_BAD_BASE_VERSION,  /* not 1 */
	MAD_BAD_CLASS,	       /* not that of the connection manager (7) */
	MAD_BAD_CLASS_VERSION, /* not 2 */
	MAD_BAD_METHOD,	       /* not Send (3), which replies use as well */
	MAD_BAD_ATTRIBUTE,     /* not in enum mad_attr */
	MAD_NOT_SERVED,	       /* LAP and APR: path migration is not supported */
};

/*
 * Decodes a MAD, ignoring reserved bits.  If it returns MAD_OK all of mad is set, and the unused
 * part of the union is 0.  Reads at most length bytes and keeps no pointer.
 */
enum mad_error mad_decode(const uint8_t *bytes, size_t length, struct mad *mad);

/*
 * Encodes a MAD: writes MAD_BYTES bytes with reserved bits 0.  mad->attr must be one that
 * mad_decode() accepts, and each value must fit its field (both asserted).
 */
void mad_encode(const struct mad *mad, uint8_t *bytes);

/* One field of a message: its position on the wire and in struct mad. */
struct mad_field {
	uint16_t attr; /* message of this field; 0: the common header */
	const char *name;
	/* Offset in the message, which begins at byte MAD_HEADER_BYTES; for attr 0 in the MAD. */
	uint16_t byte;
	uint8_t bit;	 /* in that byte, 0 is the most significant */
	uint16_t width;	 /* bits; above 64: a byte array */
	uint16_t member; /* offset in struct mad */
	uint16_t size;	 /* bytes of the member in struct mad */
};
/* Returns a row of the table, or NULL after the last. */
const struct mad_field *mad_field_at(size_t row);

#endif
