/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* A GID is an IPv6 address, or an IPv4 address as ::ffff:a.b.c.d. */
#ifndef UROCE_UTIL_GID_H
#define UROCE_UTIL_GID_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Prefix of a GID that is an IPv4 address, whose four bytes follow. */
static const uint8_t gid_ipv4_prefix[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

static inline bool gid_is_ipv4(const uint8_t gid[16])
{
	return memcmp(gid, gid_ipv4_prefix, sizeof(gid_ipv4_prefix)) == 0;
}

/* Stores the GID of the IPv4 address whose four bytes are at address. */
static inline void gid_from_ipv4(uint8_t gid[16], const void *address)
{
	memcpy(gid, gid_ipv4_prefix, sizeof(gid_ipv4_prefix));
	memcpy(gid + sizeof(gid_ipv4_prefix), address, 4);
}

/* Returns true for 0.0.0.0 and ::. */
static inline bool gid_is_any(const uint8_t gid[16])
{
	static const uint8_t zero[16];

	return gid_is_ipv4(gid) ? !memcmp(gid + 12, zero, 4) : !memcmp(gid, zero, 16);
}

/* Returns true for GIDs in ::ffff:127.0.0.0/104, and for ::1. */
static inline bool gid_is_loopback(const uint8_t gid[16])
{
	static const uint8_t one[16] = { [15] = 1 };

	return gid_is_ipv4(gid) ? gid[12] == 127 : !memcmp(gid, one, 16);
}

/* Returns true for GIDs in ff00::/8 or ::ffff:224.0.0.0/100. */
static inline bool gid_is_multicast(const uint8_t gid[16])
{
	return gid_is_ipv4(gid) ? (gid[12] & 0xf0) == 0xe0 : gid[0] == 0xff;
}

/* Returns true for GIDs in fe80::/10, which are unique on one interface only. */
static inline bool gid_is_link_local(const uint8_t gid[16])
{
	return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

#endif
