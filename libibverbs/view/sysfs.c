/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "sysfs.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "counters.h"
#include "files.h"

#define PATH_BYTES 256

/* Directory of one device's files, and the first error, after which nothing more is written. */
struct place {
	int root;
	char folder[128];
	int error;
};

static void path_of(const struct place *place, const char *name, char path[PATH_BYTES])
{
	if (snprintf(path, PATH_BYTES, "%s/%s", place->folder, name) >= PATH_BYTES)
		path[0] = '\0'; /* fails with ENOENT */
}

static void folder(struct place *place, const char *name)
{
	char path[PATH_BYTES];

	path_of(place, name, path);
	if (!place->error)
		place->error = files_folder(place->root, path);
}

__attribute__((format(printf, 3, 4))) static void put(struct place *place, const char *name,
						      const char *format, ...)
{
	char path[PATH_BYTES], text[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	path_of(place, name, path);
	if (!place->error)
		place->error = files_put(place->root, path, "%s\n", text);
}

static bool exists(const struct place *place, const char *name)
{
	char path[PATH_BYTES];

	path_of(place, name, path);
	return !faccessat(place->root, path, F_OK, 0);
}

static void link_to(struct place *place, const char *name, const char *target)
{
	char path[PATH_BYTES];

	path_of(place, name, path);
	if (!place->error)
		place->error = files_link(place->root, path, target);
}

static void take_away(struct place *place, const char *name)
{
	char path[PATH_BYTES];

	path_of(place, name, path);
	unlinkat(place->root, path, 0);
}

const char *sysfs_node(void)
{
	/* Writing to /dev/full fails, which reveals a program that uses it as an RDMA device. */
	return access("/dev/full", F_OK) ? "/dev/null" : "/dev/full";
}

static void put_guid(struct place *place, const char *name, uint64_t network_order)
{
	uint64_t guid = be64toh(network_order);

	put(place, name, "%04x:%04x:%04x:%04x", (unsigned int)(guid >> 48),
	    (unsigned int)(guid >> 32 & 0xffff), (unsigned int)(guid >> 16 & 0xffff),
	    (unsigned int)(guid & 0xffff));
}

static void put_gid(struct place *place, const char *name, const union ibv_gid *gid)
{
	char text[40];

	for (int i = 0; i < 8; i++)
		snprintf(text + 5 * i, 6, "%02x%02x%s", gid->raw[2 * i], gid->raw[2 * i + 1],
			 i < 7 ? ":" : "");
	put(place, name, "%s", text);
}

/* Writes the rate as the kernel does: signalling rate of all lanes in Gb/s. */
static void put_rate(struct place *place, const struct ibv_port_attr *port)
{
	static const struct {
		uint8_t code;
		unsigned int tenths; /* rate of a lane in 0.1 Gb/s */
		const char *name;
	} speeds[] = {
		{ 1, 25, "" },	      { 2, 50, " DDR" },     { 4, 100, " QDR" },
		{ 8, 100, " FDR10" }, { 16, 140, " FDR" },   { 32, 250, " EDR" },
		{ 64, 500, " HDR" },  { 128, 1000, " NDR" },
	};
	static const struct {
		uint8_t code;
		unsigned int lanes;
	} widths[] = { { 1, 1 }, { 2, 4 }, { 4, 8 }, { 8, 12 }, { 16, 2 } };
	size_t speed = 0, width = 0;
	unsigned int tenths;

	while (speed + 1 < sizeof(speeds) / sizeof(speeds[0]) &&
	       speeds[speed].code != port->active_speed)
		speed++;
	while (width + 1 < sizeof(widths) / sizeof(widths[0]) &&
	       widths[width].code != port->active_width)
		width++;
	tenths = speeds[speed].tenths * widths[width].lanes;
	put(place, "ports/1/rate", "%u%s Gb/sec (%uX%s)", tenths / 10, tenths % 10 ? ".5" : "",
	    widths[width].lanes, speeds[speed].name);
}

/* Number of GID table entries that always have a file; in the kernel all entries have one. */
#define EMPTY_GIDS 16

static void put_gids(struct place *place, const struct uroce_device_facts *facts)
{
	static const union ibv_gid empty;
	char name[64];

	for (int i = 0; i < UROCE_FACTS_GIDS; i++) {
		bool is_empty = !memcmp(&facts->gid[i], &empty, sizeof(empty));

		snprintf(name, sizeof(name), "ports/1/gids/%d", i);
		/* Creating all files would delay the start of a program by about 10 ms. */
		if (is_empty && i >= EMPTY_GIDS && !exists(place, name))
			continue;
		put_gid(place, name, &facts->gid[i]);
		/* For empty entries the kernel's files cannot be read. */
		snprintf(name, sizeof(name), "ports/1/gid_attrs/types/%d", i);
		if (is_empty)
			take_away(place, name);
		else
			put(place, name, "RoCE v2");
		snprintf(name, sizeof(name), "ports/1/gid_attrs/ndevs/%d", i);
		if (is_empty)
			take_away(place, name);
		else
			put(place, name, "%s", facts->netdev);
	}
}

static void put_port(struct place *place, const struct uroce_device_facts *facts)
{
	const struct ibv_port_attr *port = &facts->port;
	bool active = port->state == IBV_PORT_ACTIVE;

	put(place, "ports/1/state", active ? "4: ACTIVE" : "1: DOWN");
	put(place, "ports/1/phys_state", active ? "5: LinkUp" : "3: Disabled");
	put(place, "ports/1/link_layer", "Ethernet");
	put(place, "ports/1/cap_mask", "0x%08x", port->port_cap_flags);
	put(place, "ports/1/lid", "0x%x", port->lid);
	put(place, "ports/1/lid_mask_count", "%u", port->lmc);
	put(place, "ports/1/sm_lid", "0x%x", port->sm_lid);
	put(place, "ports/1/sm_sl", "%u", port->sm_sl);
	put(place, "ports/1/pkeys/0", "0x%04x", facts->pkey);
	put_rate(place, port);
	put_gids(place, facts);
}

/*
 * Links "device" to the parent device of the netdev, from which programs read bus and NUMA node.
 * For a netdev without parent it is a directory with the entries that scripts look for.
 */
static void put_parent(struct place *place, const char *netdev)
{
	char path[PATH_BYTES], target[PATH_MAX];

	snprintf(path, sizeof(path), "/sys/class/net/%s/device", netdev);
	if (realpath(path, target)) {
		link_to(place, "device", target);
		return;
	}
	folder(place, "device");
	folder(place, "device/net");
	snprintf(path, sizeof(path), "device/net/%s", netdev);
	snprintf(target, sizeof(target), "/sys/class/net/%s", netdev);
	link_to(place, path, target);
	put(place, "device/numa_node", "-1");
}

static void make_counter(void *arg, const char *group, const char *name)
{
	struct place *place = arg;
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "ports/1/%s/%s", group, name);
	if (!exists(place, path))
		put(place, path, "0");
}

static int put_verbs(int root, const char *base, const char *name)
{
	struct place place = { .root = root };
	struct stat node;

	snprintf(place.folder, sizeof(place.folder), "%s/infiniband_verbs/%s", base, name);
	folder(&place, "");
	put(&place, "ibdev", "%s", name);
	put(&place, "abi_version", "1");
	if (!stat(sysfs_node(), &node))
		put(&place, "dev", "%u:%u", major(node.st_rdev), minor(node.st_rdev));
	return place.error;
}

int sysfs_device(int root, const char *base, const char *name,
		 const struct uroce_device_facts *facts)
{
	static const char *const folders[] = {
		"",
		"ports",
		"ports/1",
		"ports/1/gids",
		"ports/1/gid_attrs",
		"ports/1/gid_attrs/types",
		"ports/1/gid_attrs/ndevs",
		"ports/1/pkeys",
		"ports/1/counters",
		"ports/1/hw_counters",
	};
	struct place place = { .root = root };
	char host[65] = "";

	snprintf(place.folder, sizeof(place.folder), "%s/infiniband/%s", base, name);
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		folder(&place, folders[i]);
	gethostname(host, sizeof(host) - 1);
	put(&place, "node_type", "1: CA");
	put(&place, "node_desc", "%s %s", host, name);
	put(&place, "fw_ver", "%s", facts->device.fw_ver);
	put(&place, "hw_rev", "%x", facts->device.hw_ver);
	put(&place, "hca_type", "uroce");
	put_guid(&place, "node_guid", facts->device.node_guid);
	put_guid(&place, "sys_image_guid", facts->device.sys_image_guid);
	put_parent(&place, facts->netdev);
	put_port(&place, facts);
	counters_each(make_counter, &place);
	return place.error ? place.error : put_verbs(root, base, name);
}
