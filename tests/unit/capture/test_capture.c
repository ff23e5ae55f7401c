/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* The capture: valid settings, and packets in the file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/capture.h"
#include "tmpdir.h"
#include "pcapng_reader.h"
#include "wire/icrc.h"

enum {
	ETHERNET = 14,
};

static char error[CAPTURE_ERROR_TEXT];
static const struct pcapng_file *file;

/* ---- the setting ---- */

static void test_refused(void **state)
{
	static const struct {
		const char *text, *part;
	} wrong[] = {
		{ "", "the name of a file" },
		{ ",snaplen=128", "the name of a file" },
		{ "x,", "a comma with no option" },
		{ "x,snaplen=128,", "a comma with no option" },
		{ "x,,snaplen=128", "the options are" },
		{ "x,snaplen", "the options are" },
		{ "x,snaplen=", "80 to 65535" },
		{ "x,snaplen=79", "80 to 65535" },
		{ "x,snaplen=65536", "80 to 65535" },
		{ "x,snaplen=128k", "80 to 65535" },
		{ "x,snaplen=-1", "80 to 65535" },
		{ "x,ring=1x1M", "has to be a number of files" },
		{ "x,ring=10000x1M", "has to be a number of files" },
		{ "x,ring=2x1k", "has to be a number of files" },
		{ "x,ring=2x1T", "has to be a number of files" },
		{ "x,ring=2x1MM", "has to be a number of files" },
		{ "x,ring=2", "has to be a number of files" },
		{ "-,ring=2x1M", "not standard output" },
		{ "x,filter=0x11", "qpn:NUMBER or peer:ADDRESS" },
		{ "x,filter=qpn:", "qpn:NUMBER or peer:ADDRESS" },
		{ "x,filter=qpn:0x1000000", "qpn:NUMBER or peer:ADDRESS" },
		{ "x,filter=qpn:1 ", "qpn:NUMBER or peer:ADDRESS" },
		{ "x,filter=peer:localhost", "qpn:NUMBER or peer:ADDRESS" },
		{ "x%d", "%p stands for" },
		{ "x%", "%p stands for" },
		{ "x%,snaplen=128", "%p stands for" },
	};
	struct capture_config config;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		error[0] = '\0';
		assert_int_equal(capture_config_parse(&config, wrong[i].text, error), -EINVAL);
		if (!strstr(error, wrong[i].part))
			fail_msg("%s: %s", wrong[i].text, error);
	}
}

static void test_names(void **state)
{
	static const struct {
		const char *text, *first, *third;
	} names[] = {
		{ "/tmp/a.pcapng", "/tmp/a.pcapng", "/tmp/a_00003.pcapng" },
		{ "/tmp/a.d/b", "/tmp/a.d/b", "/tmp/a.d/b_00003" },
		{ "%p", "@", "@_00003" },
		{ "x.%p.pcapng", "x.@.pcapng", "x.@_00003.pcapng" },
		{ "100%%.%p,snaplen=100", "100%.@", "100%_00003.@" },
	};
	struct capture_config config;
	char name[CAPTURE_NAME_BYTES], expected[64];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(capture_config_parse(&config, names[i].text, error), 0);
		for (unsigned int number = 0; number <= 3; number += 3) {
			const char *from = number ? names[i].third : names[i].first;
			size_t before = strcspn(from, "@");

			if (from[before])
				snprintf(expected, sizeof(expected), "%.*s%d%s", (int)before, from,
					 (int)getpid(), from + before + 1);
			else
				snprintf(expected, sizeof(expected), "%s", from);
			assert_true(capture_config_name(&config, (int)getpid(), number, name));
			assert_string_equal(name, expected);
		}
	}
	memset(config.name, 'p', sizeof(config.name) - 1);
	for (size_t i = 0; i + 1 < sizeof(config.name); i += 2)
		config.name[i] = '%';
	assert_false(capture_config_name(&config, 100000, 0, name));
}

/* ---- what is captured ---- */

static const struct capture_path paths[2] = {
	{ .src = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1 },
	  .dst = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2 },
	  .src_port = 50000 },
	{ .src = { 0xfd, [15] = 1 }, .dst = { 0xfd, [15] = 2 }, .src_port = 50001, .ipv6 = true },
};

static void start(const char *text)
{
	struct capture_config config;

	assert_int_equal(capture_config_parse(&config, text, error), 0);
	config.report_error = NULL;
	if (capture_start(&config, -1, error))
		fail_msg("%s", error);
	assert_non_null(capture_running());
}

/* Builds a datagram for a queue pair, filled with its length, with the right ICRC. */
static void build(uint8_t *bytes, size_t length, uint32_t qpn, const struct capture_path *path,
		  uint16_t identification)
{
	struct wire_path wire = { .src_port = path->src_port, .ipv6 = path->ipv6 };

	memcpy(wire.src, path->src, 16);
	memcpy(wire.dst, path->dst, 16);
	memset(bytes, (int)length & 0xff, length);
	bytes[5] = (uint8_t)(qpn >> 16);
	bytes[6] = (uint8_t)(qpn >> 8);
	bytes[7] = (uint8_t)qpn;
	wire_icrc_put(&wire, identification, bytes, length);
}

/* Sends a burst of packets of 100 bytes, the last of 40, in pieces of odd lengths. */
static void send_burst(uint32_t qpn, uint32_t dest_qpn, const struct capture_path *path,
		       unsigned int count, bool keep)
{
	uint8_t bytes[20 * 100];
	struct iovec pieces[3];
	size_t length = (count - 1) * 100 + 40;
	struct capture_packets packets = { .path = path,
					   .pieces = pieces,
					   .count = 3,
					   .bytes = length,
					   .segment = 100,
					   .identification = 7,
					   .outbound = true,
					   .qpn = qpn };
	struct capture_record *record;

	for (unsigned int i = 0; i < count; i++)
		build(bytes + i * 100, i + 1 < count ? 100 : 40, dest_qpn, path, (uint16_t)(7 + i));
	pieces[0] = (struct iovec){ bytes, 13 };
	pieces[1] = (struct iovec){ bytes + 13, length - 20 };
	pieces[2] = (struct iovec){ bytes + length - 7, 7 };
	record = capture_begin(capture_running(), &packets);
	if (record)
		capture_end(record, keep);
}

static void receive(uint32_t dest_qpn, const struct capture_path *path, size_t length,
		    const char *comment)
{
	static uint8_t bytes[65507];
	const struct iovec piece = { bytes, length };
	const struct capture_packets packets = {
		.path = path, .pieces = &piece, .count = 1, .bytes = length, .comment = comment
	};

	/* An empty datagram has no ICRC. */
	if (length)
		build(bytes, length, dest_qpn, path, 0);
	capture_put(capture_running(), &packets);
}

static uint32_t ones_complement(uint32_t sum, const uint8_t *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		sum += i % 2 ? bytes[i] : (uint32_t)bytes[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* The headers are right, and so are the checksum and the ICRC if the whole packet was captured. */
static void check_frame(const struct pcapng_seen *seen, const struct capture_path *path,
			uint16_t identification, size_t payload)
{
	const uint8_t *ip = seen->bytes + ETHERNET, *udp = ip + (path->ipv6 ? 40 : 20);
	struct wire_path wire = { .src_port = path->src_port, .ipv6 = path->ipv6 };
	uint16_t expected = identification;

	assert_int_equal(seen->original, ETHERNET + (path->ipv6 ? 40 : 20) + 8 + payload);
	assert_int_equal(seen->bytes[12] << 8 | seen->bytes[13], path->ipv6 ? 0x86dd : 0x0800);
	assert_int_equal(udp[0] << 8 | udp[1], path->src_port);
	assert_int_equal(udp[2] << 8 | udp[3], 4791);
	assert_int_equal(udp[4] << 8 | udp[5], 8 + payload);
	if (path->ipv6) {
		assert_memory_equal(ip + 8, path->src, 16);
		assert_memory_equal(ip + 24, path->dst, 16);
	} else {
		assert_int_equal(ip[0], 0x45);
		assert_int_equal(ip[2] << 8 | ip[3], 28 + payload);
		assert_int_equal(ip[4] << 8 | ip[5], identification);
		assert_int_equal(ones_complement(0, ip, 20), 0xffff);
		assert_memory_equal(ip + 12, path->src + 12, 4);
		assert_memory_equal(ip + 16, path->dst + 12, 4);
	}
	if (seen->captured != seen->original || seen->captured > sizeof(seen->bytes))
		return;
	if (path->ipv6)
		assert_int_equal(
			ones_complement(ones_complement((uint32_t)(8 + payload) + 17, ip + 8, 32),
					udp, 8 + payload),
			0xffff);
	memcpy(wire.src, path->src, 16);
	memcpy(wire.dst, path->dst, 16);
	assert_int_equal(wire_icrc_check(&wire, &expected, udp + 8, payload), WIRE_ICRC_OK);
}

static void test_packets(void **state)
{
	const char *name = tmpdir_file("packets.pcapng");
	struct capture_counts counts;

	(void)state;
	start(name);
	send_burst(1, 2, &paths[0], 5, true);
	send_burst(1, 2, &paths[0], 3, false); /* in the end not sent */
	send_burst(1, 2, &paths[1], 4, true);
	receive(3, &paths[0], 61, "refused: for a test");
	receive(3, &paths[1], 0, NULL);
	capture_stop(&counts);
	assert_null(capture_running());
	file = pcapng_read(name);
	assert_int_equal(file->packets, 11);
	assert_int_equal(counts.packets, 11);
	assert_int_equal(counts.lost, 0);
	assert_int_equal(file->statistics, 1);
	assert_int_equal(file->received, 11);
	assert_int_equal(file->dropped, 0);
	assert_int_equal(file->fillers, 0);
	for (unsigned int i = 0; i < 9; i++) {
		unsigned int place = i < 5 ? i : i - 5;
		bool last = i == 4 || i == 8;

		check_frame(&file->packet[i], &paths[i >= 5], (uint16_t)(7 + place),
			    last ? 40 : 100);
		assert_int_equal(file->packet[i].flags & 3, 2);
		assert_string_equal(file->packet[i].comment, "");
	}
	check_frame(&file->packet[9], &paths[0], 0, 61);
	assert_int_equal(file->packet[9].flags & 3, 1);
	assert_string_equal(file->packet[9].comment, "refused: for a test");
	assert_int_equal(file->packet[10].original, ETHERNET + 48);
}

static void test_snaplen(void **state)
{
	char text[256];

	(void)state;
	snprintf(text, sizeof(text), "%s,snaplen=100", tmpdir_file("snaplen.pcapng"));
	start(text);
	send_burst(1, 2, &paths[0], 3, true);
	receive(1, &paths[1], 4000, NULL);
	capture_stop(NULL);
	file = pcapng_read(tmpdir_file("snaplen.pcapng"));
	assert_int_equal(file->packets, 4);
	assert_int_equal(file->snaplen, 100);
	assert_int_equal(file->packet[0].captured, 100);
	assert_int_equal(file->packet[2].captured, 82);
	assert_int_equal(file->packet[3].captured, 100);
	check_frame(&file->packet[0], &paths[0], 7, 100);
	check_frame(&file->packet[3], &paths[1], 0, 4000);
}

static void test_filter(void **state)
{
	char text[256];

	(void)state;
	snprintf(text, sizeof(text), "%s,filter=qpn:0x11,filter=peer:fd00::1",
		 tmpdir_file("filter.pcapng"));
	start(text);
	send_burst(0x11, 0x22, &paths[0], 1, true);
	send_burst(0x22, 0x11, &paths[0], 2, true);
	send_burst(0x22, 0x33, &paths[0], 4, true); /* not wanted */
	send_burst(0x22, 0x33, &paths[1], 4, true); /* to another peer */
	receive(0x11, &paths[0], 50, NULL);
	receive(0x22, &paths[0], 50, NULL); /* not wanted */
	receive(0x22, &paths[1], 50, NULL);
	capture_stop(NULL);
	file = pcapng_read(tmpdir_file("filter.pcapng"));
	assert_int_equal(file->packets, 5);
	assert_string_equal(file->filter, "qpn:0x11 or peer:fd00::1");
}

/* The newest files are there, each of them complete and within the size limit. */
static void test_ring_of_files(void **state)
{
	uint64_t last = 0, first = UINT64_MAX, total = 0;
	char text[256], name[32];
	struct stat status;

	(void)state;
	snprintf(text, sizeof(text), "%s,ring=3x64k", tmpdir_file("ring.pcapng"));
	start(text);
	for (int i = 0; i < 400; i++)
		receive(1, &paths[0], 1000, NULL);
	/* While they are written, they exceed the limit by a page at most. */
	for (int i = 0; i < 50; i++) {
		snprintf(name, sizeof(name), "ring_%05d.pcapng", i % 3 + 1);
		if (stat(tmpdir_file(name), &status) == 0)
			assert_uint_in_range(status.st_size, 0, 65536 + 4096);
		usleep(1000);
	}
	capture_stop(NULL);
	for (int i = 1; i <= 3; i++) {
		snprintf(name, sizeof(name), "ring_%05d.pcapng", i);
		assert_int_equal(stat(tmpdir_file(name), &status), 0);
		assert_uint_in_range(status.st_size, 1000, 65536);
		file = pcapng_read(tmpdir_file(name));
		assert_true(file->packets > 0);
		assert_int_equal(file->statistics, 1);
		total += file->packets;
		if (file->packet[0].time < first)
			first = file->packet[0].time;
		if (file->packet[file->packets - 1].time > last)
			last = file->packet[file->packets - 1].time;
	}
	assert_true(total > 65 && total < 190);
	assert_true(last > first);
	assert_int_equal(access(tmpdir_file("ring.pcapng"), F_OK), -1);
	assert_int_equal(access(tmpdir_file("ring_00004.pcapng"), F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused), cmocka_unit_test(test_names),
		cmocka_unit_test(test_packets), cmocka_unit_test(test_snaplen),
		cmocka_unit_test(test_filter),	cmocka_unit_test(test_ring_of_files),
	};

	return cmocka_run_group_tests(tests, tmpdir_create, tmpdir_remove);
}
