/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "view.h"

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

#define PATH_BYTES 256

/* Directory of one device's files, and the first error, after which nothing more is written. */
struct device_dir {
	int root;
	char path[128];
	int error;
};

static void make_path(const struct device_dir *dir, const char *name, char path[PATH_BYTES])
{
	if (snprintf(path, PATH_BYTES, "%s/%s", dir->path, name) >= PATH_BYTES)
		path[0] = '\0'; /* fails with ENOENT */
}

static void make_dir(struct device_dir *dir, const char *name)
{
	char path[PATH_BYTES];

	make_path(dir, name, path);
	if (!dir->error)
		dir->error = files_mkdir(dir->root, path);
}

__attribute__((format(printf, 3, 4))) static void
write_file(struct device_dir *dir, const char *name, const char *format, ...)
{
	char path[PATH_BYTES], text[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	make_path(dir, name, path);
	if (!dir->error)
		dir->error = files_write(dir->root, path, "%s\n", text);
}

static bool file_exists(const struct device_dir *dir, const char *name)
{
	char path[PATH_BYTES];

	make_path(dir, name, path);
	return !faccessat(dir->root, path, F_OK, 0);
}

static void make_link(struct device_dir *dir, const char *name, const char *target)
{
	char path[PATH_BYTES];

	make_path(dir, name, path);
	if (!dir->error)
		dir->error = files_symlink(dir->root, path, target);
}

static void remove_file(struct device_dir *dir, const char *name)
{
	char path[PATH_BYTES];

	make_path(dir, name, path);
	unlinkat(dir->root, path, 0);
}

const char *sysfs_device_node(void)
{
	/* Writing to /dev/full fails, which reveals a program that uses it as an RDMA device. */
	return access("/dev/full", F_OK) ? "/dev/null" : "/dev/full";
}

static void write_guid(struct device_dir *dir, const char *name, uint64_t network_order)
{
	uint64_t guid = be64toh(network_order);

	write_file(dir, name, "%04x:%04x:%04x:%04x", (unsigned int)(guid >> 48),
		   (unsigned int)(guid >> 32 & 0xffff), (unsigned int)(guid >> 16 & 0xffff),
		   (unsigned int)(guid & 0xffff));
}

static void write_gid(struct device_dir *dir, const char *name, const union ibv_gid *gid)
{
	char text[40];

	for (int i = 0; i < 8; i++)
		snprintf(text + 5 * i, 6, "%02x%02x%s", gid->raw[2 * i], gid->raw[2 * i + 1],
			 i < 7 ? ":" : "");
	write_file(dir, name, "%s", text);
}

/* Writes the rate as the kernel does: signalling rate of all lanes in Gb/s. */
static void write_rate(struct device_dir *dir, const struct ibv_port_attr *port)
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
	write_file(dir, "ports/1/rate", "%u%s Gb/sec (%uX%s)", tenths / 10, tenths % 10 ? ".5" : "",
		   widths[width].lanes, speeds[speed].name);
}

/* Number of GID table entries that always have a file; in the kernel all entries have one. */
#define MIN_GID_FILES 16

static void write_gids(struct device_dir *dir, const struct uroce_device_desc *desc)
{
	static const union ibv_gid empty;
	char name[64];

	for (int i = 0; i < UROCE_DESC_GIDS; i++) {
		bool is_empty = !memcmp(&desc->gid[i], &empty, sizeof(empty));

		snprintf(name, sizeof(name), "ports/1/gids/%d", i);
		/* Creating all files would delay the start of a program by about 10 ms. */
		if (is_empty && i >= MIN_GID_FILES && !file_exists(dir, name))
			continue;
		write_gid(dir, name, &desc->gid[i]);
		/* For empty entries the kernel's files cannot be read. */
		snprintf(name, sizeof(name), "ports/1/gid_attrs/types/%d", i);
		if (is_empty)
			remove_file(dir, name);
		else
			write_file(dir, name, "RoCE v2");
		snprintf(name, sizeof(name), "ports/1/gid_attrs/ndevs/%d", i);
		if (is_empty)
			remove_file(dir, name);
		else
			write_file(dir, name, "%s", desc->netdev);
	}
}

static void write_port(struct device_dir *dir, const struct uroce_device_desc *desc)
{
	const struct ibv_port_attr *port = &desc->port;
	bool active = port->state == IBV_PORT_ACTIVE;

	write_file(dir, "ports/1/state", active ? "4: ACTIVE" : "1: DOWN");
	write_file(dir, "ports/1/phys_state", active ? "5: LinkUp" : "3: Disabled");
	write_file(dir, "ports/1/link_layer", "Ethernet");
	write_file(dir, "ports/1/cap_mask", "0x%08x", port->port_cap_flags);
	write_file(dir, "ports/1/lid", "0x%x", port->lid);
	write_file(dir, "ports/1/lid_mask_count", "%u", port->lmc);
	write_file(dir, "ports/1/sm_lid", "0x%x", port->sm_lid);
	write_file(dir, "ports/1/sm_sl", "%u", port->sm_sl);
	write_file(dir, "ports/1/pkeys/0", "0x%04x", desc->pkey);
	write_rate(dir, port);
	write_gids(dir, desc);
}

/*
 * Links "device" to the parent device of the netdev, from which programs read bus and NUMA node.
 * For a netdev without parent it is a directory with the entries that scripts look for.
 */
static void write_parent_device(struct device_dir *dir, const char *netdev)
{
	char path[PATH_BYTES], target[PATH_MAX];

	snprintf(path, sizeof(path), "/sys/class/net/%s/device", netdev);
	if (realpath(path, target)) {
		make_link(dir, "device", target);
		return;
	}
	make_dir(dir, "device");
	make_dir(dir, "device/net");
	snprintf(path, sizeof(path), "device/net/%s", netdev);
	snprintf(target, sizeof(target), "/sys/class/net/%s", netdev);
	make_link(dir, path, target);
	write_file(dir, "device/numa_node", "-1");
}

static void make_counter(void *arg, const char *group, const char *name)
{
	struct device_dir *dir = arg;
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "ports/1/%s/%s", group, name);
	if (!file_exists(dir, path))
		write_file(dir, path, "0");
}

static int write_verbs_device(int root, const char *base, const char *name)
{
	struct device_dir dir = { .root = root };
	struct stat node;

	snprintf(dir.path, sizeof(dir.path), "%s/infiniband_verbs/%s", base, name);
	make_dir(&dir, "");
	write_file(&dir, "ibdev", "%s", name);
	write_file(&dir, "abi_version", "1");
	if (!stat(sysfs_device_node(), &node))
		write_file(&dir, "dev", "%u:%u", major(node.st_rdev), minor(node.st_rdev));
	return dir.error;
}

int sysfs_device(int root, const char *base, const char *name, const struct uroce_device_desc *desc)
{
	static const char *const dirs[] = {
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
	struct device_dir dir = { .root = root };
	char host[65] = "";

	snprintf(dir.path, sizeof(dir.path), "%s/infiniband/%s", base, name);
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		make_dir(&dir, dirs[i]);
	gethostname(host, sizeof(host) - 1);
	write_file(&dir, "node_type", "1: CA");
	write_file(&dir, "node_desc", "%s %s", host, name);
	write_file(&dir, "fw_ver", "%s", desc->device.fw_ver);
	write_file(&dir, "hw_rev", "%x", desc->device.hw_ver);
	write_file(&dir, "hca_type", "uroce");
	write_guid(&dir, "node_guid", desc->device.node_guid);
	write_guid(&dir, "sys_image_guid", desc->device.sys_image_guid);
	write_parent_device(&dir, desc->netdev);
	write_port(&dir, desc);
	counters_each(make_counter, &dir);
	return dir.error ? dir.error : write_verbs_device(root, base, name);
}
