/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* A GID is an IPv6 address, or an IPv4 address as ::ffff:a.b.c.d. */
#ifndef UROCE_LINK_GID_H
#define UROCE_LINK_GID_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Prefix of a GID that is an IPv4 address, whose four bytes follow */
static const uint8_t link_ipv4_prefix[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

static inline bool link_gid_is_ipv4(const uint8_t gid[16])
{
	return memcmp(gid, link_ipv4_prefix, sizeof(link_ipv4_prefix)) == 0;
}

/* Returns true for GIDs in ff00::/8 or ::ffff:224.0.0.0/100. */
static inline bool link_gid_is_multicast(const uint8_t gid[16])
{
	return link_gid_is_ipv4(gid) ? (gid[12] & 0xf0) == 0xe0 : gid[0] == 0xff;
}

/* Returns true for GIDs in fe80::/10, which are unique on one interface only. */
static inline bool link_gid_is_link_local(const uint8_t gid[16])
{
	return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

#endif
