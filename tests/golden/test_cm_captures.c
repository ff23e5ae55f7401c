/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Every message of the kernel's connection manager in the captures is understood completely: it is
 * decoded and encoded again to the same bytes, and so is the IP header in its private data.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <pcap/pcap.h>

#include "cm/msg/ip_header.h"
#include "cm/msg/mad.h"
#include "util/gid.h"
#include "wire/bytes.h"
#include "wire/packet.h"

#define ETHERNET_BYTES 14
#define ETHERTYPE_IPV6 0x86dd
#define IPV4_BYTES 20
#define IPV6_BYTES 40
#define UDP_BYTES 8

/* Number of messages of each kind, counted by another program (tshark). */
static const struct {
	const char *name;
	unsigned int count[MAD_ATTRS];
} captures[] = {
	/* REQ, MRA, REJ, REP, RTU, DREQ, DREP, SIDR_REQ, SIDR_REP */
	{ "cm_rping", { 1, 0, 0, 1, 1, 1, 1 } },
	{ "cm_ucmatose", { 1, 0, 0, 1, 1, 1, 1 } },
	{ "cm_udaddy", { 0, 0, 0, 0, 0, 0, 0, 1, 1 } },
	{ "cm_rdma_client", { 1, 0, 0, 1, 1, 1, 1 } },
	{ "cm_write_bw", { 2, 0, 0, 2, 2, 3, 3 } },
	{ "cm_rstream", { 1, 0, 0, 1, 1, 2, 2 } },
	{ "cm_ipv6", { 1, 0, 0, 1, 1, 1, 1 } },
	{ "cm_mckey", { 0 } },
	{ "cm_reject", { 1, 0, 1 } },
};
#define CAPTURES (sizeof(captures) / sizeof(captures[0]))

struct seen {
	unsigned int count[MAD_ATTRS];
	struct mad first[MAD_ATTRS];
};

static void check_ip_header(const struct mad *mad)
{
	const uint8_t *data =
		mad->attr == MAD_REQ ? mad->req.private_data : mad->sidr_req.private_data;
	uint8_t again[CM_IP_HEADER_BYTES];
	struct cm_ip_header header;

	if (mad->attr != MAD_REQ && mad->attr != MAD_SIDR_REQ)
		return;
	assert_true(cm_ip_header_get(data, &header));
	cm_ip_header_put(&header, again);
	assert_memory_equal(again, data, sizeof(again));
	assert_int_equal(gid_is_ipv4(header.source), header.family == 4);
	assert_int_equal(gid_is_ipv4(header.destination), header.family == 4);
	if (mad->attr != MAD_REQ)
		return;
	assert_memory_equal(header.source, mad->req.primary_local_gid, MAD_GID_BYTES);
	assert_memory_equal(header.destination, mad->req.primary_remote_gid, MAD_GID_BYTES);
}

static void check_mad(const struct wire_packet *packet, struct seen *seen)
{
	uint8_t again[MAD_BYTES];
	struct mad mad, twice;

	assert_int_equal(packet->qkey, MAD_QKEY);
	assert_int_equal(packet->src_qpn, MAD_QPN);
	assert_int_equal(mad_decode(packet->payload, packet->payload_length, &mad), MAD_OK);
	mad_encode(&mad, again);
	assert_memory_equal(again, packet->payload, MAD_BYTES);
	assert_int_equal(mad_decode(again, MAD_BYTES, &twice), MAD_OK);
	assert_memory_equal(&twice, &mad, sizeof(mad));
	check_ip_header(&mad);
	if (seen->count[mad.attr - MAD_ATTR_FIRST]++ == 0)
		seen->first[mad.attr - MAD_ATTR_FIRST] = mad;
}

static void read_capture(const char *name, struct seen *seen)
{
	char path[512], error[PCAP_ERRBUF_SIZE];
	struct pcap_pkthdr *header;
	struct wire_packet packet;
	const uint8_t *frame;
	pcap_t *capture;

	memset(seen, 0, sizeof(*seen));
	snprintf(path, sizeof(path), "%s/%s.pcap", UROCE_CAPTURES, name);
	capture = pcap_open_offline(path, error);
	if (!capture)
		fail_msg("%s", error);
	while (pcap_next_ex(capture, &header, &frame) == 1) {
		bool ipv6 = wire_get_be16(frame + 12) == ETHERTYPE_IPV6;
		size_t skip = ETHERNET_BYTES + (ipv6 ? IPV6_BYTES : IPV4_BYTES) + UDP_BYTES;
		size_t length = wire_get_be16(frame + skip - 4) - (size_t)UDP_BYTES;

		assert_int_equal(wire_parse(frame + skip, length, &packet), WIRE_OK);
		if (packet.dest_qpn == MAD_QPN)
			check_mad(&packet, seen);
	}
	pcap_close(capture);
}

static void test_all_messages(void **state)
{
	struct seen seen;

	(void)state;
	for (size_t i = 0; i < CAPTURES; i++) {
		read_capture(captures[i].name, &seen);
		for (size_t attr = 0; attr < MAD_ATTRS; attr++)
			if (seen.count[attr] != captures[i].count[attr])
				fail_msg("%s: %u times %s", captures[i].name, seen.count[attr],
					 mad_attr_name((uint16_t)(MAD_ATTR_FIRST + attr)));
	}
}

/* Fields of rping's REQ and REP, read by eye from the capture. */
static void test_values(void **state)
{
	struct cm_ip_header header;
	struct mad_req *req;
	struct mad_rep *rep;
	struct seen seen;

	(void)state;
	read_capture("cm_rping", &seen);
	req = &seen.first[MAD_REQ - MAD_ATTR_FIRST].req;
	rep = &seen.first[MAD_REP - MAD_ATTR_FIRST].rep;
	assert_int_equal(req->local_id, 0xa2f27cb8);
	assert_int_equal(req->service_id, cm_service_id(CM_PS_TCP, 0x1c06));
	assert_true(req->ca_guid == 0x505400fffe770002);
	assert_int_equal(req->local_qpn, 0x2d);
	assert_int_equal(req->responder_resources, 1);
	assert_int_equal(req->initiator_depth, 1);
	assert_int_equal(req->remote_response_time, 20);
	assert_int_equal(req->transport, MAD_TRANSPORT_RC);
	assert_int_equal(req->starting_psn, 0x44565);
	assert_int_equal(req->local_response_time, 20);
	assert_int_equal(req->retry_count, 7);
	assert_int_equal(req->pkey, 0xffff);
	assert_int_equal(req->path_mtu, 3);
	assert_int_equal(req->rnr_retry, 7);
	assert_int_equal(req->max_cm_retries, 15);
	assert_int_equal(req->srq, 0);
	assert_int_equal(req->primary_local_lid, 0xffff);
	assert_int_equal(req->hop_limit, 64);
	assert_int_equal(req->ack_timeout, 19);
	assert_int_equal(rep->remote_id, req->local_id);
	assert_int_equal(rep->target_ack_delay, 15);
	/* The kernel computes the flow label from both ports. */
	assert_true(cm_ip_header_get(req->private_data, &header));
	assert_int_equal(header.source_port, 0xb444);
	assert_int_equal(req->flow_label, (0xb444u * 31 + 0x1c06) & 0xfffff);
	assert_int_equal(seen.first[MAD_REP - MAD_ATTR_FIRST].transaction_id,
			 seen.first[MAD_REQ - MAD_ATTR_FIRST].transaction_id);
}

/* The REJ from a port without a listener, and the SIDR_REP to a SIDR_REQ. */
static void test_answers(void **state)
{
	struct mad_sidr_rep *rep;
	struct mad_rej *rej;
	struct seen seen;

	(void)state;
	read_capture("cm_reject", &seen);
	rej = &seen.first[MAD_REJ - MAD_ATTR_FIRST].rej;
	assert_int_equal(rej->reason, MAD_REJECT_INVALID_SERVICE_ID);
	assert_int_equal(rej->refers_to, MAD_REFERS_TO_REQ);
	assert_int_equal(rej->local_id, 0);
	assert_int_equal(rej->remote_id, seen.first[MAD_REQ - MAD_ATTR_FIRST].req.local_id);
	read_capture("cm_udaddy", &seen);
	rep = &seen.first[MAD_SIDR_REP - MAD_ATTR_FIRST].sidr_rep;
	assert_int_equal(rep->request_id,
			 seen.first[MAD_SIDR_REQ - MAD_ATTR_FIRST].sidr_req.request_id);
	assert_int_equal(rep->status, MAD_SIDR_OK);
	assert_int_equal(rep->qkey, 0x01234567);
	assert_int_equal(rep->service_id >> 16, CM_PS_UDP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_messages),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
