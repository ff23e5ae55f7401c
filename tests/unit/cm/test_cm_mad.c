/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Messages of the connection manager: the position of each field, rejected MADs, and encoding and
 * decoding as inverse functions.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cm/msg/ip_header.h"
#include "cm/msg/mad.h"
#include "util/gid.h"

/*
 * The table of fields, derived independently.  A field begins at high_bit of first_byte and ends at
 * low_bit of last_byte; bytes count from the start of the message, and bit 7 is the most
 * significant one, as in the figures of IBA and the macros of the kernel.
 */
static const struct {
	uint16_t attr;
	const char *name;
	unsigned int first_byte, high_bit, last_byte, low_bit;
} layout[] = {
	{ MAD_REQ, "local_id", 0, 7, 3, 0 },
	{ MAD_REQ, "vendor_id", 5, 7, 7, 0 },
	{ MAD_REQ, "service_id", 8, 7, 15, 0 },
	{ MAD_REQ, "ca_guid", 16, 7, 23, 0 },
	{ MAD_REQ, "local_qkey", 28, 7, 31, 0 },
	{ MAD_REQ, "local_qpn", 32, 7, 34, 0 },
	{ MAD_REQ, "responder_resources", 35, 7, 35, 0 },
	{ MAD_REQ, "local_eecn", 36, 7, 38, 0 },
	{ MAD_REQ, "initiator_depth", 39, 7, 39, 0 },
	{ MAD_REQ, "remote_eecn", 40, 7, 42, 0 },
	{ MAD_REQ, "remote_response_time", 43, 7, 43, 3 },
	{ MAD_REQ, "transport", 43, 2, 43, 1 },
	{ MAD_REQ, "flow_control", 43, 0, 43, 0 },
	{ MAD_REQ, "starting_psn", 44, 7, 46, 0 },
	{ MAD_REQ, "local_response_time", 47, 7, 47, 3 },
	{ MAD_REQ, "retry_count", 47, 2, 47, 0 },
	{ MAD_REQ, "pkey", 48, 7, 49, 0 },
	{ MAD_REQ, "path_mtu", 50, 7, 50, 4 },
	{ MAD_REQ, "rdc_exists", 50, 3, 50, 3 },
	{ MAD_REQ, "rnr_retry", 50, 2, 50, 0 },
	{ MAD_REQ, "max_cm_retries", 51, 7, 51, 4 },
	{ MAD_REQ, "srq", 51, 3, 51, 3 },
	{ MAD_REQ, "extended_transport", 51, 2, 51, 0 },
	{ MAD_REQ, "primary_local_lid", 52, 7, 53, 0 },
	{ MAD_REQ, "primary_remote_lid", 54, 7, 55, 0 },
	{ MAD_REQ, "primary_local_gid", 56, 7, 71, 0 },
	{ MAD_REQ, "primary_remote_gid", 72, 7, 87, 0 },
	{ MAD_REQ, "flow_label", 88, 7, 90, 4 },
	{ MAD_REQ, "packet_rate", 91, 5, 91, 0 },
	{ MAD_REQ, "traffic_class", 92, 7, 92, 0 },
	{ MAD_REQ, "hop_limit", 93, 7, 93, 0 },
	{ MAD_REQ, "sl", 94, 7, 94, 4 },
	{ MAD_REQ, "subnet_local", 94, 3, 94, 3 },
	{ MAD_REQ, "ack_timeout", 95, 7, 95, 3 },
	{ MAD_REQ, "alternate", 96, 7, 139, 0 },
	{ MAD_REQ, "private_data", 140, 7, 231, 0 },
	{ MAD_MRA, "local_id", 0, 7, 3, 0 },
	{ MAD_MRA, "remote_id", 4, 7, 7, 0 },
	{ MAD_MRA, "refers_to", 8, 7, 8, 6 },
	{ MAD_MRA, "service_time", 9, 7, 9, 3 },
	{ MAD_MRA, "private_data", 10, 7, 231, 0 },
	{ MAD_REJ, "local_id", 0, 7, 3, 0 },
	{ MAD_REJ, "remote_id", 4, 7, 7, 0 },
	{ MAD_REJ, "refers_to", 8, 7, 8, 6 },
	{ MAD_REJ, "ari_length", 9, 7, 9, 1 },
	{ MAD_REJ, "reason", 10, 7, 11, 0 },
	{ MAD_REJ, "ari", 12, 7, 83, 0 },
	{ MAD_REJ, "private_data", 84, 7, 231, 0 },
	{ MAD_REP, "local_id", 0, 7, 3, 0 },
	{ MAD_REP, "remote_id", 4, 7, 7, 0 },
	{ MAD_REP, "local_qkey", 8, 7, 11, 0 },
	{ MAD_REP, "local_qpn", 12, 7, 14, 0 },
	{ MAD_REP, "vendor_id_high", 15, 7, 15, 0 },
	{ MAD_REP, "local_eecn", 16, 7, 18, 0 },
	{ MAD_REP, "vendor_id_middle", 19, 7, 19, 0 },
	{ MAD_REP, "starting_psn", 20, 7, 22, 0 },
	{ MAD_REP, "vendor_id_low", 23, 7, 23, 0 },
	{ MAD_REP, "responder_resources", 24, 7, 24, 0 },
	{ MAD_REP, "initiator_depth", 25, 7, 25, 0 },
	{ MAD_REP, "target_ack_delay", 26, 7, 26, 3 },
	{ MAD_REP, "failover_accepted", 26, 2, 26, 1 },
	{ MAD_REP, "flow_control", 26, 0, 26, 0 },
	{ MAD_REP, "rnr_retry", 27, 7, 27, 5 },
	{ MAD_REP, "srq", 27, 4, 27, 4 },
	{ MAD_REP, "ca_guid", 28, 7, 35, 0 },
	{ MAD_REP, "private_data", 36, 7, 231, 0 },
	{ MAD_RTU, "local_id", 0, 7, 3, 0 },
	{ MAD_RTU, "remote_id", 4, 7, 7, 0 },
	{ MAD_RTU, "private_data", 8, 7, 231, 0 },
	{ MAD_DREQ, "local_id", 0, 7, 3, 0 },
	{ MAD_DREQ, "remote_id", 4, 7, 7, 0 },
	{ MAD_DREQ, "remote_qpn", 8, 7, 10, 0 },
	{ MAD_DREQ, "private_data", 12, 7, 231, 0 },
	{ MAD_DREP, "local_id", 0, 7, 3, 0 },
	{ MAD_DREP, "remote_id", 4, 7, 7, 0 },
	{ MAD_DREP, "private_data", 8, 7, 231, 0 },
	{ MAD_SIDR_REQ, "request_id", 0, 7, 3, 0 },
	{ MAD_SIDR_REQ, "pkey", 4, 7, 5, 0 },
	{ MAD_SIDR_REQ, "service_id", 8, 7, 15, 0 },
	{ MAD_SIDR_REQ, "private_data", 16, 7, 231, 0 },
	{ MAD_SIDR_REP, "request_id", 0, 7, 3, 0 },
	{ MAD_SIDR_REP, "status", 4, 7, 4, 0 },
	{ MAD_SIDR_REP, "info_length", 5, 7, 5, 0 },
	{ MAD_SIDR_REP, "vendor_id_high", 6, 7, 7, 0 },
	{ MAD_SIDR_REP, "qpn", 8, 7, 10, 0 },
	{ MAD_SIDR_REP, "vendor_id_low", 11, 7, 11, 0 },
	{ MAD_SIDR_REP, "service_id", 12, 7, 19, 0 },
	{ MAD_SIDR_REP, "qkey", 20, 7, 23, 0 },
	{ MAD_SIDR_REP, "info", 24, 7, 95, 0 },
	{ MAD_SIDR_REP, "private_data", 96, 7, 231, 0 },
};
#define LAYOUT (sizeof(layout) / sizeof(layout[0]))

static const struct mad_field *find(uint16_t attr, const char *name)
{
	const struct mad_field *field;

	for (size_t row = 0; (field = mad_field_at(row)) != NULL; row++)
		if (field->attr == attr && strcmp(field->name, name) == 0)
			return field;
	return NULL;
}

/* The table of fields equals the independent one, row by row, and has no other rows. */
static void test_layout(void **state)
{
	size_t rows = 0, of_header = 0;
	const struct mad_field *f;

	(void)state;
	for (size_t i = 0; i < LAYOUT; i++) {
		unsigned int bits = 8 * (layout[i].last_byte - layout[i].first_byte) +
				    layout[i].high_bit - layout[i].low_bit + 1;

		f = find(layout[i].attr, layout[i].name);
		if (!f)
			fail_msg("%s.%s", mad_attr_name(layout[i].attr), layout[i].name);
		if (f->byte != layout[i].first_byte || f->bit != 7 - layout[i].high_bit ||
		    f->width != bits)
			fail_msg("%s.%s is elsewhere", mad_attr_name(layout[i].attr), f->name);
	}
	while ((f = mad_field_at(rows)) != NULL) {
		rows++;
		of_header += f->attr == 0;
	}
	assert_int_equal(rows - of_header, LAYOUT);
	assert_int_equal(of_header, 4);
}

/* No two fields share a bit, and each number's member is just wide enough. */
static void test_fields_do_not_overlap(void **state)
{
	const struct mad_field *f;

	(void)state;
	for (uint16_t attr = MAD_REQ; attr <= MAD_SIDR_REP; attr++) {
		uint8_t used[MAD_MESSAGE_BYTES * 8] = { 0 };

		for (size_t row = 0; (f = mad_field_at(row)) != NULL; row++) {
			if (f->attr != attr)
				continue;
			assert_true(f->width <= 8u * f->size && 2u * f->width > 8u * f->size - 8u);
			for (unsigned int bit = 0; bit < f->width; bit++)
				assert_int_equal(used[8 * f->byte + f->bit + bit]++, 0);
		}
	}
}

static void set_random(struct mad *mad, const struct mad_field *f)
{
	uint64_t value = 0;

	for (unsigned int i = 0; i < 8; i++)
		value = value << 8 | (rand() & 0xff);
	if (f->width > 64) {
		for (unsigned int i = 0; i < f->size; i++)
			((uint8_t *)mad)[f->member + i] = (uint8_t)rand();
		return;
	}
	value >>= 64 - f->width;
	/* Independent of the byte order of the machine: these are the low bytes of the number. */
	if (f->size == 1)
		memcpy((uint8_t *)mad + f->member, &(uint8_t){ (uint8_t)value }, 1);
	else if (f->size == 2)
		memcpy((uint8_t *)mad + f->member, &(uint16_t){ (uint16_t)value }, 2);
	else if (f->size == 4)
		memcpy((uint8_t *)mad + f->member, &(uint32_t){ (uint32_t)value }, 4);
	else
		memcpy((uint8_t *)mad + f->member, &value, 8);
}

static struct mad random_mad(uint16_t attr)
{
	const struct mad_field *f;
	struct mad mad;

	memset(&mad, 0, sizeof(mad));
	mad.attr = attr;
	for (size_t row = 0; (f = mad_field_at(row)) != NULL; row++)
		if (f->attr == 0 || f->attr == attr)
			set_random(&mad, f);
	return mad;
}

/* Any message is the same after encoding and decoding. */
static void test_decode_inverts_encode(void **state)
{
	uint8_t bytes[MAD_BYTES], again[MAD_BYTES];

	(void)state;
	srand(1);
	for (unsigned int i = 0; i < 9000; i++) {
		struct mad mad = random_mad((uint16_t)(MAD_REQ + i % 9)), seen;

		mad_encode(&mad, bytes);
		assert_int_equal(mad_decode(bytes, sizeof(bytes), &seen), MAD_OK);
		assert_memory_equal(&seen, &mad, sizeof(mad));
		mad_encode(&seen, again);
		assert_memory_equal(again, bytes, sizeof(bytes));
	}
}

/* Each reason why 256 bytes are no message of the connection manager has its own error. */
static void test_refused(void **state)
{
	static const struct {
		size_t byte;
		uint8_t value;
		enum mad_error error;
	} damage[] = {
		{ 0, 2, MAD_BAD_BASE_VERSION },	 { 1, 3, MAD_BAD_CLASS },
		{ 2, 1, MAD_BAD_CLASS_VERSION }, { 3, 0x81, MAD_BAD_METHOD },
		{ 3, 1, MAD_BAD_METHOD },	 { 17, 0x0f, MAD_BAD_ATTRIBUTE },
		{ 17, 0x19, MAD_NOT_SERVED },	 { 17, 0x1a, MAD_NOT_SERVED },
		{ 17, 0x1b, MAD_BAD_ATTRIBUTE }, { 16, 1, MAD_BAD_ATTRIBUTE },
	};
	struct mad mad = random_mad(MAD_REQ);
	uint8_t bytes[MAD_BYTES + 1] = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(damage) / sizeof(damage[0]); i++) {
		mad_encode(&mad, bytes);
		bytes[damage[i].byte] = damage[i].value;
		assert_int_equal(mad_decode(bytes, MAD_BYTES, &mad), damage[i].error);
	}
	mad_encode(&mad, bytes);
	assert_int_equal(mad_decode(bytes, MAD_BYTES - 1, &mad), MAD_BAD_LENGTH);
	assert_int_equal(mad_decode(bytes, MAD_BYTES + 1, &mad), MAD_BAD_LENGTH);
	assert_int_equal(mad_decode(bytes, 0, &mad), MAD_BAD_LENGTH);
}

/*
 * Version, family in the upper half of a byte, port, and IPv4 addresses in the last 4 of 16 bytes.
 */
static void test_ip_header(void **state)
{
	static const uint8_t ipv4[CM_IP_HEADER_BYTES] = {
		[1] = 0x40, 0x12, 0x34, [16] = 10, 0, 0, 1, [32] = 10, 0, 0, 2,
	};
	uint8_t bytes[CM_IP_HEADER_BYTES] = { 0 }, again[CM_IP_HEADER_BYTES];
	struct cm_ip_header h;

	(void)state;
	assert_true(cm_ip_header_get(ipv4, &h));
	assert_int_equal(h.family, 4);
	assert_int_equal(h.source_port, 0x1234);
	assert_true(gid_is_ipv4(h.source) && gid_is_ipv4(h.destination));
	assert_int_equal(h.source[15], 1);
	assert_int_equal(h.destination[15], 2);
	cm_ip_header_put(&h, again);
	assert_memory_equal(again, ipv4, sizeof(again));

	bytes[1] = 0x60;
	bytes[4] = 0xfe;
	assert_true(cm_ip_header_get(bytes, &h));
	assert_false(gid_is_ipv4(h.source));
	assert_int_equal(h.source[0], 0xfe);
	bytes[0] = 1;
	assert_false(cm_ip_header_get(bytes, &h));
	bytes[0] = 0;
	bytes[1] = 0x50;
	assert_false(cm_ip_header_get(bytes, &h));
}

/* Service ids, with values from captures. */
static void test_service_ids(void **state)
{
	uint64_t id = cm_service_id(CM_PS_TCP, 7174);

	(void)state;
	assert_true(id == 0x01061c06);
	assert_true(cm_service_id(CM_PS_UDP, 1) == 0x01110001);
	assert_true(cm_service_id(CM_PS_IB, 0xffff) == 0x013fffff);
	assert_true(cm_service_id(CM_PS_IPOIB, 1) == 0x00020001);
	assert_string_equal(cm_port_space_name(CM_PS_IPOIB), "IPoIB");
	assert_string_equal(cm_port_space_name(3), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_fields_do_not_overlap),
		cmocka_unit_test(test_decode_inverts_encode),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_ip_header),
		cmocka_unit_test(test_service_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
