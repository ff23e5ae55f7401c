/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device.h"
#include "verbs/abi/dropin_ops.h"
#include "verbs/fork.h"

static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;
static struct uroce_device *devices; /* in the order of creation */
static struct uroce_context *contexts;
static const struct verbs_device_ops *device_ops;

void uroce_devices_set_ops(const struct verbs_device_ops *ops)
{
	device_ops = ops;
}

/* A deleted interface never returns: a new one with its index or name is another interface. */
static struct uroce_device *find_device(uint32_t netdev_index)
{
	struct uroce_device *device = devices;

	while (device && !(device->exists && device->netdev.index == netdev_index))
		device = device->next;
	return device;
}

/* VLANs and other upper devices have the MAC address of their parent, but need another GUID. */
static uint64_t unique_guid(const struct netdev *netdev)
{
	uint64_t guid = uroce_node_guid(netdev);
	const struct uroce_device *device;

	for (device = devices; device; device = device->next) {
		if (device->exists && device->node_guid == guid)
			return uroce_local_guid(netdev);
	}
	return guid;
}

/* The program may read the names at the same time; the final NUL of each is never overwritten. */
static void set_names(struct ibv_device *public, const char *netdev_name)
{
	snprintf(public->name, sizeof(public->name), UROCE_DEVICE_PREFIX "%s", netdev_name);
	/* Programs look for these paths, as for those of kernel devices; they need not exist. */
	snprintf(public->dev_name, sizeof(public->dev_name), "%s", public->name);
	snprintf(public->dev_path, sizeof(public->dev_path), "/sys/class/infiniband_verbs/%s",
		 public->name);
	snprintf(public->ibdev_path, sizeof(public->ibdev_path), "/sys/class/infiniband/%s",
		 public->name);
}

static struct uroce_device *create_device(const struct netdev *netdev)
{
	struct uroce_device *device = uroce_device_alloc(sizeof(*device));
	struct uroce_device **end = &devices;
	struct ibv_device *public;

	if (!device)
		return NULL;
	public = &device->base.device;
	public->node_type = IBV_NODE_CA;
	public->transport_type = IBV_TRANSPORT_IB;
	set_names(public, netdev->name);
	device->base.ops = device_ops;
	/* One reference is never dropped, so the pointer stays valid while the process runs. */
	atomic_init(&device->base.refcount, 1);
	device->index = (int)netdev->index;
	device->node_guid = unique_guid(netdev);
	pthread_mutex_init(&device->port_lock, NULL);
	while (*end)
		end = &(*end)->next;
	*end = device;
	return device;
}

static void raise_event(struct uroce_device *device, enum ibv_event_type type, unsigned int port)
{
	struct uroce_context *context;

	for (context = contexts; context; context = context->next) {
		if (context->device == device)
			uroce_async_event(context, type, (void *)(uintptr_t)port);
	}
}

static bool has_contexts(const struct uroce_device *device)
{
	const struct uroce_context *context = contexts;

	while (context && context->device != device)
		context = context->next;
	return context;
}

/* Reports addresses without GIDs once, and again only after all addresses have had GIDs. */
static void report_left_out(struct uroce_device *device, unsigned int left_out)
{
	if (left_out && !device->left_out_reported)
		uroce_err("%s has more than %u addresses: %u of them have no GID and cannot be "
			  "bound to or listened on",
			  device->netdev.name, UROCE_GID_TABLE, left_out);
	device->left_out_reported = left_out;
}

/* netdev is NULL if the interface no longer exists.  Caller holds devices_lock. */
static void update_device(struct uroce_device *device, const struct netdev *netdev)
{
	bool was_up = device->netdev.up;
	bool is_up = netdev && netdev->up;
	bool gids_changed;

	if (netdev && strcmp(netdev->name, device->netdev.name))
		set_names(&device->base.device, netdev->name);
	pthread_mutex_lock(&device->port_lock);
	gids_changed = uroce_gid_table_update(&device->gids, netdev, has_contexts(device));
	if (netdev)
		device->netdev = *netdev;
	else
		device->netdev.up = false;
	/* The addresses belong to the caller's list; the GID table has a copy. */
	device->netdev.address = NULL;
	device->netdev.address_count = 0;
	device->exists = netdev;
	pthread_mutex_unlock(&device->port_lock);

	device->is_listed = is_up && netdev->address_count > 0;
	report_left_out(device, netdev ? netdev->left_out : 0);
	if (gids_changed)
		raise_event(device, IBV_EVENT_GID_CHANGE, UROCE_PORT);
	if (is_up != was_up)
		raise_event(device, is_up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR, UROCE_PORT);
	if (!netdev)
		raise_event(device, IBV_EVENT_DEVICE_FATAL, 0);
}

static int compare_netdevs(const void *left, const void *right)
{
	const struct netdev *a = left, *b = right;

	if (a->loopback != b->loopback)
		return a->loopback ? 1 : -1;
	return a->index < b->index ? -1 : a->index > b->index;
}

/*
 * Applies UROCE_LOOPBACK to the loopback interface, on which all of 127.0.0.0/8 is usable in any
 * case.  If the setting names an address, it is stored in gid.
 */
static void apply_loopback_setting(struct netdev *netdev, uint8_t gid[1][16])
{
	if (!netdev->loopback || !uroce_settings_loopback_address(gid[0]))
		return;
	netdev->address = (const uint8_t(*)[16])gid;
	netdev->address_count = 1;
	netdev->left_out = 0;
}

static const struct netdev *find_netdev(const struct netdev *list, unsigned int count,
					uint32_t index)
{
	for (unsigned int i = 0; i < count; i++) {
		if (list[i].index == index)
			return &list[i];
	}
	return NULL;
}

/* Caller holds devices_lock. */
static int refresh_devices(void)
{
	struct uroce_device *device;
	struct netdev *list = NULL;
	unsigned int count = 0, i;
	uint8_t chosen[1][16];
	int error = netdev_list(&list, &count);

	if (error)
		return -error;
	/* Programs use the first device of the list by default, so the loopback device is last. */
	if (count)
		qsort(list, count, sizeof(*list), compare_netdevs);
	for (i = 0; i < count; i++)
		apply_loopback_setting(&list[i], chosen);
	for (device = devices; device; device = device->next) {
		if (device->exists)
			update_device(device, find_netdev(list, count, device->netdev.index));
	}
	for (i = 0; i < count; i++) {
		if (!list[i].up || !list[i].address_count || find_device(list[i].index))
			continue;
		device = create_device(&list[i]);
		if (device)
			update_device(device, &list[i]);
	}
	free(list);
	return 0;
}

int uroce_devices_refresh(void)
{
	int error;

	pthread_mutex_lock(&devices_lock);
	error = refresh_devices();
	pthread_mutex_unlock(&devices_lock);
	return error;
}

int uroce_list_devices(struct ibv_device ***list, unsigned int *count)
{
	struct uroce_device *device;
	unsigned int loopback, n = 0;
	int error;

	pthread_mutex_lock(&devices_lock);
	error = refresh_devices();
	if (error) {
		uroce_err("cannot read the network interfaces, so there are no uroce devices: %s",
			  strerror(error));
		goto unlock;
	}
	for (device = devices; device; device = device->next)
		n++;
	*list = calloc(n + 1, sizeof(**list));
	if (!*list) {
		error = ENOMEM;
		goto unlock;
	}
	n = 0;
	for (loopback = 0; loopback <= uroce_settings_loopback_enabled(); loopback++) {
		for (device = devices; device; device = device->next) {
			if (!device->is_listed || device->netdev.loopback != loopback)
				continue;
			atomic_fetch_add(&device->base.refcount, 1);
			(*list)[n++] = &device->base.device;
		}
	}
	*count = n;
unlock:
	pthread_mutex_unlock(&devices_lock);
	return error;
}

bool uroce_devices_add_context(struct uroce_context *context)
{
	bool exists;

	pthread_mutex_lock(&devices_lock);
	exists = context->device->exists;
	if (exists) {
		context->next = contexts;
		contexts = context;
	}
	pthread_mutex_unlock(&devices_lock);
	return exists;
}

void uroce_devices_remove_context(struct uroce_context *context)
{
	struct uroce_context **link = &contexts;

	pthread_mutex_lock(&devices_lock);
	while (*link && *link != context)
		link = &(*link)->next;
	if (*link)
		*link = context->next;
	pthread_mutex_unlock(&devices_lock);
}

struct ibv_device *uroce_devices_find_by_file(dev_t file_system, uint64_t file)
{
	struct ibv_device *device = NULL;

	pthread_mutex_lock(&devices_lock);
	for (const struct uroce_context *c = contexts; c && !device; c = c->next) {
		if (c->file == file && c->file_system == file_system)
			device = &c->device->base.device;
	}
	pthread_mutex_unlock(&devices_lock);
	return device;
}

bool uroce_devices_find(bool (*matches)(struct uroce_device *device, void *arg), void *arg)
{
	struct uroce_device *device;

	pthread_mutex_lock(&devices_lock);
	device = devices;
	while (device && !(device->is_listed && matches(device, arg)))
		device = device->next;
	pthread_mutex_unlock(&devices_lock);
	return device;
}

bool uroce_devices_has_netdev(uint32_t netdev_index)
{
	bool found;

	pthread_mutex_lock(&devices_lock);
	found = find_device(netdev_index);
	pthread_mutex_unlock(&devices_lock);
	return found;
}

void uroce_devices_visit_open(void (*visit)(struct uroce_device *device, unsigned int open,
					    void *arg),
			      void *arg)
{
	pthread_mutex_lock(&devices_lock);
	for (struct uroce_device *device = devices; device; device = device->next) {
		unsigned int open = 0;

		for (const struct uroce_context *c = contexts; c; c = c->next)
			open += c->device == device;
		if (open > 0)
			visit(device, open, arg);
	}
	pthread_mutex_unlock(&devices_lock);
}

static void prepare_fork(void)
{
	pthread_mutex_lock(&devices_lock);
}

static void finish_fork_in_parent(void)
{
	pthread_mutex_unlock(&devices_lock);
}

static void finish_fork_in_child(void)
{
	struct uroce_context *context;
	struct uroce_device *device;

	/* The child does not have the threads that may hold the other locks. */
	for (device = devices; device; device = device->next)
		pthread_mutex_init(&device->port_lock, NULL);
	for (context = contexts; context; context = context->next)
		pthread_mutex_init(&context->async_lock, NULL);
	/* The pipes of these contexts are the parent's, which would receive the events. */
	contexts = NULL;
	pthread_mutex_unlock(&devices_lock);
}

UROCE_FORK_HANDLERS(UROCE_FORK_DEVICES, prepare_fork, finish_fork_in_parent, finish_fork_in_child)

/*
 * Memory for devices, at increasing addresses that are less than 2 GiB apart.  Until 2024,
 * librdmacm sorted devices by the difference of their addresses, converted to int, and then
 * compared that list with the previous one as if it were in the order of the addresses.  calloc()
 * in different threads returns addresses so far apart that the orders can differ; librdmacm then
 * drops existing devices when another one disappears, and does not find them again.
 */

/* Address space for some thousand devices; it takes no memory until it is used. */
#define DEVICE_MEMORY_BYTES (64u << 20)

static char *device_memory;
static size_t device_memory_used;

void *uroce_device_alloc(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (bytes + page - 1) / page * page;
	char *place;

	if (!device_memory) {
		device_memory = mmap(NULL, DEVICE_MEMORY_BYTES, PROT_NONE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (device_memory == MAP_FAILED)
			device_memory = NULL;
	}
	place = device_memory + device_memory_used;
	if (!device_memory || size > DEVICE_MEMORY_BYTES - device_memory_used ||
	    mprotect(place, size, PROT_READ | PROT_WRITE))
		return calloc(1, bytes);
	device_memory_used += size;
	return place;
}
