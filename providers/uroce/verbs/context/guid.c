/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Node GUIDs.  A GUID is the EUI-64 that IPv6 derives from the MAC address.  An interface without
 * one (loopback, tunnels) gets a locally administered number that is computed from the host, the
 * network namespace and the name of the interface, so it is the same each time.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device.h"

#define GUID_LOCAL_BIT (UINT64_C(2) << 56) /* set in an EUI-64 of IPv6: globally unique */
#define GUID_GROUP_BIT (UINT64_C(1) << 56)

#define FNV64_OFFSET UINT64_C(0xcbf29ce484222325)
#define FNV64_PRIME UINT64_C(0x100000001b3)

static uint64_t hash_bytes(uint64_t state, const void *bytes, size_t count)
{
	const uint8_t *byte = bytes;
	size_t i;

	for (i = 0; i < count; i++)
		state = (state ^ byte[i]) * FNV64_PRIME;
	return state;
}

/* The upper bits of FNV differ little between names that differ in one letter, so mix them. */
static uint64_t mix_hash(uint64_t state)
{
	state ^= state >> 32;
	state *= UINT64_C(0xd6e8feb86659fd93);
	state ^= state >> 32;
	return state;
}

static uint64_t hash_host(uint64_t state)
{
	char text[256];
	size_t count = 0;
	FILE *file = fopen("/etc/machine-id", "re");
	struct stat net;

	if (file) {
		count = fread(text, 1, sizeof(text), file);
		fclose(file);
	}
	state = hash_bytes(state, text, count);
	memset(text, 0, sizeof(text));
	if (count == 0 && gethostname(text, sizeof(text) - 1) == 0)
		state = hash_bytes(state, text, strlen(text));
	/* Containers on a host may share its machine-id, but not the network namespace. */
	if (stat("/proc/self/ns/net", &net) == 0)
		state = hash_bytes(state, &net.st_ino, sizeof(net.st_ino));
	return state;
}

uint64_t uroce_local_guid(const struct netdev *netdev)
{
	uint64_t guid;

	guid = mix_hash(hash_bytes(hash_host(FNV64_OFFSET), netdev->name, strlen(netdev->name)));
	guid &= ~(GUID_LOCAL_BIT | GUID_GROUP_BIT);
	return guid ? guid : 1;
}

uint64_t uroce_node_guid(const struct netdev *netdev)
{
	static const uint8_t none[6];
	const uint8_t *mac = netdev->mac;
	uint64_t guid = 0;

	if (memcmp(mac, none, sizeof(none)) == 0)
		return uroce_local_guid(netdev);
	guid = (uint64_t)mac[0] << 56 | (uint64_t)mac[1] << 48 | (uint64_t)mac[2] << 40 |
	       UINT64_C(0xfffe) << 24 | (uint64_t)mac[3] << 16 | (uint64_t)mac[4] << 8 | mac[5];
	return guid ^ GUID_LOCAL_BIT;
}
