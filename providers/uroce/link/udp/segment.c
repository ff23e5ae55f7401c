/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>

#include "link/link_priv.h"

size_t link_put_udp_segment(uint8_t *control, uint16_t bytes)
{
	struct cmsghdr *cmsg = (struct cmsghdr *)(void *)control;

	memset(cmsg, 0, LINK_SEGMENT_BYTES);
	cmsg->cmsg_level = IPPROTO_UDP;
	cmsg->cmsg_type = UDP_SEGMENT;
	cmsg->cmsg_len = CMSG_LEN(sizeof(bytes));
	memcpy(CMSG_DATA(cmsg), &bytes, sizeof(bytes));
	return LINK_SEGMENT_BYTES;
}
