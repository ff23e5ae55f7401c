/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "mad.h"

#include <assert.h>
#include <string.h>

#define HEADER_ATTR 0 /* attribute of the rows of the common header */

#define AT(path) offsetof(struct mad, path), sizeof(((struct mad *)0)->path)
#define INTEGER(attr, message, field, byte, bit, width) \
	{ attr, #field, byte, bit, width, AT(message.field) },
#define BYTES(attr, message, field, byte) \
	{ attr, #field, byte, 0, 8 * sizeof(((struct mad *)0)->message.field), AT(message.field) },

/*
 * Columns: name, byte in the message, bit in the byte (0 is the most significant), width in bits.
 * In the order of the tables of IBA.
 */
/* clang-format off */
#define REQ(field, byte, bit, width) INTEGER(MAD_REQ, req, field, byte, bit, width)
#define MRA(field, byte, bit, width) INTEGER(MAD_MRA, mra, field, byte, bit, width)
#define REJ(field, byte, bit, width) INTEGER(MAD_REJ, rej, field, byte, bit, width)
#define REP(field, byte, bit, width) INTEGER(MAD_REP, rep, field, byte, bit, width)
#define RTU(field, byte, bit, width) INTEGER(MAD_RTU, rtu, field, byte, bit, width)
#define DREQ(field, byte, bit, width) INTEGER(MAD_DREQ, dreq, field, byte, bit, width)
#define DREP(field, byte, bit, width) INTEGER(MAD_DREP, drep, field, byte, bit, width)
#define SIDR_REQ(field, byte, bit, width) INTEGER(MAD_SIDR_REQ, sidr_req, field, byte, bit, width)
#define SIDR_REP(field, byte, bit, width) INTEGER(MAD_SIDR_REP, sidr_rep, field, byte, bit, width)

static const struct mad_field fields[] = {
	{ HEADER_ATTR, "status", 4, 0, 16, AT(status) },
	{ HEADER_ATTR, "class_specific", 6, 0, 16, AT(class_specific) },
	{ HEADER_ATTR, "transaction_id", 8, 0, 64, AT(transaction_id) },
	{ HEADER_ATTR, "attr_modifier", 20, 0, 32, AT(attr_modifier) },

	REQ(local_id, 0, 0, 32)
	REQ(vendor_id, 5, 0, 24)
	REQ(service_id, 8, 0, 64)
	REQ(ca_guid, 16, 0, 64)
	REQ(local_qkey, 28, 0, 32)
	REQ(local_qpn, 32, 0, 24)
	REQ(responder_resources, 35, 0, 8)
	REQ(local_eecn, 36, 0, 24)
	REQ(initiator_depth, 39, 0, 8)
	REQ(remote_eecn, 40, 0, 24)
	REQ(remote_response_time, 43, 0, 5)
	REQ(transport, 43, 5, 2)
	REQ(flow_control, 43, 7, 1)
	REQ(starting_psn, 44, 0, 24)
	REQ(local_response_time, 47, 0, 5)
	REQ(retry_count, 47, 5, 3)
	REQ(pkey, 48, 0, 16)
	REQ(path_mtu, 50, 0, 4)
	REQ(rdc_exists, 50, 4, 1)
	REQ(rnr_retry, 50, 5, 3)
	REQ(max_cm_retries, 51, 0, 4)
	REQ(srq, 51, 4, 1)
	REQ(extended_transport, 51, 5, 3)
	REQ(primary_local_lid, 52, 0, 16)
	REQ(primary_remote_lid, 54, 0, 16)
	BYTES(MAD_REQ, req, primary_local_gid, 56)
	BYTES(MAD_REQ, req, primary_remote_gid, 72)
	REQ(flow_label, 88, 0, 20)
	REQ(packet_rate, 91, 2, 6)
	REQ(traffic_class, 92, 0, 8)
	REQ(hop_limit, 93, 0, 8)
	REQ(sl, 94, 0, 4)
	REQ(subnet_local, 94, 4, 1)
	REQ(ack_timeout, 95, 0, 5)
	BYTES(MAD_REQ, req, alternate, 96)
	BYTES(MAD_REQ, req, private_data, 140)

	MRA(local_id, 0, 0, 32)
	MRA(remote_id, 4, 0, 32)
	MRA(refers_to, 8, 0, 2)
	MRA(service_time, 9, 0, 5)
	BYTES(MAD_MRA, mra, private_data, 10)

	REJ(local_id, 0, 0, 32)
	REJ(remote_id, 4, 0, 32)
	REJ(refers_to, 8, 0, 2)
	REJ(ari_length, 9, 0, 7)
	REJ(reason, 10, 0, 16)
	BYTES(MAD_REJ, rej, ari, 12)
	BYTES(MAD_REJ, rej, private_data, 84)

	REP(local_id, 0, 0, 32)
	REP(remote_id, 4, 0, 32)
	REP(local_qkey, 8, 0, 32)
	REP(local_qpn, 12, 0, 24)
	REP(vendor_id_high, 15, 0, 8)
	REP(local_eecn, 16, 0, 24)
	REP(vendor_id_middle, 19, 0, 8)
	REP(starting_psn, 20, 0, 24)
	REP(vendor_id_low, 23, 0, 8)
	REP(responder_resources, 24, 0, 8)
	REP(initiator_depth, 25, 0, 8)
	REP(target_ack_delay, 26, 0, 5)
	REP(failover_accepted, 26, 5, 2)
	REP(flow_control, 26, 7, 1)
	REP(rnr_retry, 27, 0, 3)
	REP(srq, 27, 3, 1)
	REP(ca_guid, 28, 0, 64)
	BYTES(MAD_REP, rep, private_data, 36)

	RTU(local_id, 0, 0, 32)
	RTU(remote_id, 4, 0, 32)
	BYTES(MAD_RTU, rtu, private_data, 8)

	DREQ(local_id, 0, 0, 32)
	DREQ(remote_id, 4, 0, 32)
	DREQ(remote_qpn, 8, 0, 24)
	BYTES(MAD_DREQ, dreq, private_data, 12)

	DREP(local_id, 0, 0, 32)
	DREP(remote_id, 4, 0, 32)
	BYTES(MAD_DREP, drep, private_data, 8)

	SIDR_REQ(request_id, 0, 0, 32)
	SIDR_REQ(pkey, 4, 0, 16)
	SIDR_REQ(service_id, 8, 0, 64)
	BYTES(MAD_SIDR_REQ, sidr_req, private_data, 16)

	SIDR_REP(request_id, 0, 0, 32)
	SIDR_REP(status, 4, 0, 8)
	SIDR_REP(info_length, 5, 0, 8)
	SIDR_REP(vendor_id_high, 6, 0, 16)
	SIDR_REP(qpn, 8, 0, 24)
	SIDR_REP(vendor_id_low, 11, 0, 8)
	SIDR_REP(service_id, 12, 0, 64)
	SIDR_REP(qkey, 20, 0, 32)
	BYTES(MAD_SIDR_REP, sidr_rep, info, 24)
	BYTES(MAD_SIDR_REP, sidr_rep, private_data, 96)
};
/* clang-format on */
#define FIELDS (sizeof(fields) / sizeof(fields[0]))
#define MAX_INTEGER_BITS 64

const struct mad_field *mad_field_at(size_t row)
{
	return row < FIELDS ? &fields[row] : NULL;
}

static uint64_t get_bits(const uint8_t *bytes, unsigned int bit, unsigned int width)
{
	uint64_t value = 0;

	for (; width > 0; width--, bit++)
		value = value << 1 | ((uint32_t)bytes[bit / 8] >> (7 - bit % 8) & 1);
	return value;
}

static void put_bits(uint8_t *bytes, unsigned int bit, unsigned int width, uint64_t value)
{
	for (; width > 0; width--, bit++)
		bytes[bit / 8] |= (uint8_t)((value >> (width - 1) & 1u) << (7 - bit % 8));
}

/* Members are unsigned integers of 1, 2, 4 or 8 bytes in host order. */
static void set_member(struct mad *mad, const struct mad_field *f, uint64_t value)
{
	uint8_t *at = (uint8_t *)mad + f->member;

	if (f->size == sizeof(uint8_t))
		*at = (uint8_t)value;
	else if (f->size == sizeof(uint16_t))
		memcpy(at, &(uint16_t){ (uint16_t)value }, sizeof(uint16_t));
	else if (f->size == sizeof(uint32_t))
		memcpy(at, &(uint32_t){ (uint32_t)value }, sizeof(uint32_t));
	else
		memcpy(at, &value, sizeof(value));
}

static uint64_t get_member(const struct mad *mad, const struct mad_field *f)
{
	const uint8_t *at = (const uint8_t *)mad + f->member;
	uint64_t value = 0;
	uint32_t four;
	uint16_t two;

	if (f->size == sizeof(uint8_t))
		return *at;
	if (f->size == sizeof(two)) {
		memcpy(&two, at, sizeof(two));
		return two;
	}
	if (f->size == sizeof(four)) {
		memcpy(&four, at, sizeof(four));
		return four;
	}
	memcpy(&value, at, sizeof(value));
	return value;
}

static enum mad_error check_header(const uint8_t *bytes, size_t length, uint16_t *attr)
{
	if (length != MAD_BYTES)
		return MAD_BAD_LENGTH;
	if (bytes[MAD_AT_BASE_VERSION] != MAD_BASE_VERSION)
		return MAD_BAD_BASE_VERSION;
	if (bytes[MAD_AT_CLASS] != MAD_CLASS_CM)
		return MAD_BAD_CLASS;
	if (bytes[MAD_AT_CLASS_VERSION] != MAD_CLASS_VERSION)
		return MAD_BAD_CLASS_VERSION;
	if (bytes[MAD_AT_METHOD] != MAD_METHOD_SEND)
		return MAD_BAD_METHOD;
	*attr = (uint16_t)get_bits(bytes + MAD_AT_ATTRIBUTE, 0, 16);
	if (*attr == MAD_LAP || *attr == MAD_APR)
		return MAD_NOT_SERVED;
	return *attr >= MAD_REQ && *attr <= MAD_SIDR_REP ? MAD_OK : MAD_BAD_ATTRIBUTE;
}

enum mad_error mad_decode(const uint8_t *bytes, size_t length, struct mad *mad)
{
	const uint8_t *message = bytes + MAD_HEADER_BYTES;
	enum mad_error error;
	uint16_t attr;

	error = check_header(bytes, length, &attr);
	if (error != MAD_OK)
		return error;
	memset(mad, 0, sizeof(*mad));
	mad->attr = attr;
	for (const struct mad_field *f = fields; f < fields + FIELDS; f++) {
		const uint8_t *from = (f->attr == HEADER_ATTR ? bytes : message) + f->byte;

		if (f->attr != HEADER_ATTR && f->attr != attr)
			continue;
		if (f->width > MAX_INTEGER_BITS)
			memcpy((uint8_t *)mad + f->member, from, f->size);
		else
			set_member(mad, f, get_bits(from, f->bit, f->width));
	}
	return MAD_OK;
}

void mad_encode(const struct mad *mad, uint8_t *bytes)
{
	uint8_t *message = bytes + MAD_HEADER_BYTES;

	assert(mad->attr >= MAD_REQ && mad->attr <= MAD_SIDR_REP);
	memset(bytes, 0, MAD_BYTES);
	bytes[MAD_AT_BASE_VERSION] = MAD_BASE_VERSION;
	bytes[MAD_AT_CLASS] = MAD_CLASS_CM;
	bytes[MAD_AT_CLASS_VERSION] = MAD_CLASS_VERSION;
	bytes[MAD_AT_METHOD] = MAD_METHOD_SEND;
	put_bits(bytes + MAD_AT_ATTRIBUTE, 0, 16, mad->attr);
	for (const struct mad_field *f = fields; f < fields + FIELDS; f++) {
		uint8_t *to = (f->attr == HEADER_ATTR ? bytes : message) + f->byte;

		if (f->attr != HEADER_ATTR && f->attr != mad->attr)
			continue;
		if (f->width > MAX_INTEGER_BITS) {
			memcpy(to, (const uint8_t *)mad + f->member, f->size);
			continue;
		}
		assert(f->width == MAX_INTEGER_BITS || get_member(mad, f) >> f->width == 0);
		put_bits(to, f->bit, f->width, get_member(mad, f));
	}
}

const char *mad_attr_name(uint16_t attr)
{
	static const char *const names[MAD_ATTRS] = { "REQ",	  "MRA",  "REJ",  "REP",
						      "RTU",	  "DREQ", "DREP", "SIDR_REQ",
						      "SIDR_REP", "LAP",  "APR" };

	return attr >= MAD_ATTR_FIRST && attr < MAD_ATTR_FIRST + MAD_ATTRS
		       ? names[attr - MAD_ATTR_FIRST]
		       : "?";
}

const char *mad_reject_name(uint16_t reason)
{
	static const char *const names[] = {
		[MAD_REJECT_NO_QP] = "no queue pair",
		[MAD_REJECT_NO_RESOURCES] = "no resources",
		[MAD_REJECT_TIMEOUT] = "timeout",
		[MAD_REJECT_UNSUPPORTED] = "unsupported request",
		[MAD_REJECT_INVALID_COMM_ID] = "invalid communication id",
		[MAD_REJECT_INVALID_SERVICE_ID] = "no listener",
		[MAD_REJECT_INVALID_TRANSPORT] = "invalid transport",
		[MAD_REJECT_STALE] = "stale connection",
		[MAD_REJECT_INVALID_GID] = "invalid GID",
		[MAD_REJECT_INVALID_MTU] = "invalid MTU",
		[MAD_REJECT_CONSUMER] = "by the application",
		[MAD_REJECT_VENDOR_OPTION] = "vendor option",
	};

	return reason < sizeof(names) / sizeof(names[0]) && names[reason] ? names[reason] : "?";
}
