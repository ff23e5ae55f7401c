/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "capture_file.h"

#include <pcap/pcap.h>
#include <stdio.h>

#include "frame.h"

#define NS_PER_SECOND 1000000000u

static int read_frames(pcap_t *pcap, struct pcapng_meta *reader,
		       void (*each)(void *context, const struct capture_frame *frame),
		       void *context)
{
	struct capture_frame frame = { .link_type = pcap_datalink(pcap) };
	struct pcap_pkthdr *header;
	int result;

	while ((result = pcap_next_ex(pcap, &header, &frame.bytes)) == 1) {
		/* With nanosecond precision tv_usec holds nanoseconds. */
		frame.time_ns =
			(uint64_t)header->ts.tv_sec * NS_PER_SECOND + (uint64_t)header->ts.tv_usec;
		frame.number++;
		frame.captured = header->caplen;
		frame.length = header->len;
		frame.meta = pcapng_meta_next(reader);
		each(context, &frame);
	}
	return result == PCAP_ERROR_BREAK ? 0 : -1;
}

int capture_read(const char *path, void (*each)(void *context, const struct capture_frame *frame),
		 void *context, char *error, size_t error_size)
{
	char why[PCAP_ERRBUF_SIZE] = "";
	struct pcapng_meta reader;
	pcap_t *pcap;
	int result = -1;

	pcap = pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, why);
	if (!pcap) {
		snprintf(error, error_size, "%s", why);
		return -1;
	}
	if (!frame_link_known(pcap_datalink(pcap))) {
		snprintf(error, error_size,
			 "its link type %d is none that is understood (Ethernet, Linux cooked, "
			 "loopback, raw IP)",
			 pcap_datalink(pcap));
	} else {
		pcapng_meta_open(&reader, path);
		result = read_frames(pcap, &reader, each, context);
		pcapng_meta_close(&reader);
		if (result < 0)
			snprintf(error, error_size, "%s", pcap_geterr(pcap));
	}
	pcap_close(pcap);
	return result;
}
