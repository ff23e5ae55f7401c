/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "world.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_user_cm.h>

#include "link/netlink/neighbour.h"
#include "progress/base/work.h"
#include "progress/gsi/gsi.h"
#include "ucm/addr/devices.h"
#include "ucm/ucm_core.h"
#include "ucm/addr/address.h"
#include "verbs/log.h"
#include "verbs/context/context.h"
#include "verbs/stats/stats.h"
#include "verbs/fork.h"

static const struct gsi_hooks *hooks;
static uint64_t now = 1, due = UINT64_MAX;
static void (*change_hook)(void);
static uint32_t gone;
static int refusal;
static uint8_t mtu = 5;

#define MAX_WAITING 1024
static struct gsi_mad waiting[MAX_WAITING];
static unsigned int first, count;

/* ---- verbs ---- */

void uroce_register_cm_dev(const struct uroce_cm_dev_ops *served)
{
	(void)served;
}

int uroce_fork_init(void)
{
	return 0;
}

void uroce_set_address_hook(void (*hook)(void))
{
	change_hook = hook;
}

int uroce_provider_start(struct progress **progress, struct uroce_settings *settings,
			 char error[PROGRESS_ERROR_TEXT])
{
	(void)error;
	*progress = NULL;
	memset(settings, 0, sizeof(*settings));
	return 0;
}

void uroce_stats_extend(void (*more)(struct json_writer *json))
{
	(void)more;
}

void uroce_provider_stop(struct progress *progress)
{
	(void)progress;
}

void uroce_err(const char *format, ...)
{
	(void)format;
}

void uroce_debug(const char *format, ...)
{
	(void)format;
}

uint64_t progress_now(void)
{
	return now;
}

/* ---- devices ---- */

static const uint8_t addresses[2][16] = {
	{ [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 },
	{ [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1 },
};

bool ucm_device_of_gid(const uint8_t gid[16], uint32_t scope_id, uint32_t *number,
		       unsigned int *index)
{
	(void)scope_id;
	for (uint32_t i = 0; i < 2; i++) {
		if (memcmp(addresses[i], gid, 16))
			continue;
		*number = i + 1;
		*index = 0;
		return true;
	}
	return false;
}

bool ucm_device(uint32_t number, struct ucm_device *device)
{
	memset(device, 0, sizeof(*device));
	if ((number != WORLD_LOOPBACK && number != WORLD_DEVICE) || number == gone)
		return false;
	device->number = number;
	device->guid = WORLD_GUID + number - 1;
	device->mtu = mtu;
	device->loopback = number == WORLD_LOOPBACK;
	memcpy(device->gid, addresses[number - 1], 16);
	return true;
}

static bool loopback_is_hidden;

void world_hide_loopback(bool hide)
{
	loopback_is_hidden = hide;
}

bool uroce_settings_loopback_enabled(void)
{
	return !loopback_is_hidden;
}

bool ucm_device_is_removed(uint32_t number)
{
	return number == gone;
}

void world_remove_device(uint32_t number)
{
	gone = number;
	change_hook();
}

uint32_t ucm_device_loopback(void)
{
	return WORLD_LOOPBACK;
}

void ucm_devices_each_gid(void (*visit)(const uint8_t *gid, uint32_t device, void *arg), void *arg)
{
	for (uint32_t i = 0; i < 2; i++)
		visit(addresses[i], i + 1, arg);
}

bool ucm_route_is_local(const struct ucm_address *address)
{
	return address->ip[12] == 127;
}

uint32_t ucm_route_mtu(const uint8_t from[16], const uint8_t to[16], uint32_t scope_id)
{
	(void)from;
	(void)to;
	(void)scope_id;
	return 0;
}

enum ibv_mtu uroce_active_mtu(uint32_t netdev_mtu)
{
	(void)netdev_mtu;
	return IBV_MTU_4096;
}

/* The source address is the bound address or 10.0.0.1; 10.9.0.0/16 is unreachable. */
int ucm_route_source(const struct ucm_address *destination, const struct ucm_address *bound,
		     struct ucm_address *source)
{
	if (destination->ip[12] == 10 && destination->ip[13] == 9)
		return ENETUNREACH;
	*source = *destination;
	memcpy(source->ip, gid_is_any(bound->ip) ? addresses[1] : bound->ip, 16);
	source->port = 0;
	return 0;
}

static bool neighbours_held;

void world_hold_neighbours(bool hold)
{
	neighbours_held = hold;
}

bool neighbour_find(const uint8_t sgid[16], const uint8_t dgid[16], uint32_t interface,
		    struct neighbour *next_hop)
{
	(void)sgid;
	(void)dgid;
	(void)interface;
	(void)next_hop;
	return neighbours_held;
}

bool neighbour_is_resolved(const struct neighbour *neighbour)
{
	(void)neighbour;
	return !neighbours_held;
}

void neighbour_probe(const uint8_t sgid[16], const uint8_t dgid[16], uint32_t interface)
{
	(void)sgid;
	(void)dgid;
	(void)interface;
}

static struct work *scheduled;

void work_schedule(struct work *work)
{
	scheduled = work;
}

void work_reset_in_child(struct work *work)
{
	(void)work;
}

void world_run_work(void)
{
	scheduled->run();
}

/* ---- queue pair 1 ---- */

int gsi_get(struct progress *progress, const struct gsi_hooks *new_hooks, struct gsi **gsi,
	    char error[PROGRESS_ERROR_TEXT])
{
	static int dummy;

	(void)progress;
	(void)error;
	hooks = new_hooks;
	*gsi = (struct gsi *)&dummy;
	return 0;
}

void gsi_put(struct gsi *gsi)
{
	(void)gsi;
}

unsigned int gsi_slot(const struct gsi *gsi)
{
	(void)gsi;
	return 5;
}

void world_set_mtu(uint8_t code)
{
	mtu = code;
}

void world_refuse(int error)
{
	refusal = error;
}

int gsi_addr_get(struct gsi *gsi, const uint8_t gid[16], uint32_t scope_id,
		 char error[PROGRESS_ERROR_TEXT])
{
	int answer = -refusal;

	(void)gsi;
	(void)gid;
	(void)scope_id;
	(void)error;
	refusal = 0;
	return answer;
}

void gsi_addr_put(struct gsi *gsi, const uint8_t gid[16], uint32_t scope_id)
{
	(void)gsi;
	(void)gid;
	(void)scope_id;
}

/* Last messages by number: true if stored.  Only a stored one may be dropped. */
static bool last_messages[64];

int gsi_last_message_set(struct gsi *gsi, const struct gsi_path *path, const uint8_t mad[MAD_BYTES],
			 unsigned int *last_message)
{
	(void)gsi;
	(void)path;
	(void)mad;
	for (*last_message = 0; *last_message < sizeof(last_messages); ++*last_message)
		if (!last_messages[*last_message])
			break;
	if (*last_message == sizeof(last_messages))
		return -ENOSPC;
	last_messages[*last_message] = true;
	return 0;
}

bool gsi_is_orphan(uint32_t qpn)
{
	(void)qpn;
	return false;
}

void gsi_last_message_drop(struct gsi *gsi, unsigned int last_message)
{
	(void)gsi;
	assert(last_messages[last_message]);
	last_messages[last_message] = false;
}

unsigned int world_last_messages(void)
{
	unsigned int left = 0;

	for (size_t i = 0; i < sizeof(last_messages); i++)
		left += last_messages[i];
	return left;
}

int gsi_send(struct gsi *gsi, const struct gsi_path *path, const uint8_t mad[MAD_BYTES])
{
	struct gsi_mad *place = &waiting[(first + count) % MAX_WAITING];

	(void)gsi;
	if (count == MAX_WAITING)
		return -ENOBUFS;
	memset(place, 0, sizeof(*place));
	memcpy(place->bytes, mad, MAD_BYTES);
	memcpy(place->src, path->sgid, 16);
	memcpy(place->dst, path->dgid, 16);
	place->when = now;
	count++;
	return 0;
}

void world_deliver_one(void)
{
	struct gsi_mad mad = waiting[first];

	assert(count);
	first = (first + 1) % MAX_WAITING;
	count--;
	hooks->receive(hooks->arg, &mad);
}

unsigned int world_deliver(void)
{
	unsigned int delivered = 0;

	for (; count && delivered < 10000; delivered++)
		world_deliver_one();
	return delivered;
}

unsigned int world_lose(void)
{
	unsigned int lost = count;

	count = 0;
	return lost;
}

bool world_credits_hidden(uint32_t qpn)
{
	return hooks->credits_hidden(hooks->arg, qpn);
}

void world_first_request(uint32_t qpn)
{
	hooks->first_request(hooks->arg, qpn);
}

void gsi_deadline(struct gsi *gsi, uint64_t when)
{
	(void)gsi;
	due = when;
}

void world_pass(uint64_t nanoseconds)
{
	uint64_t end = now + nanoseconds;

	while (due <= end) {
		now = due > now ? due : now + 1;
		due = UINT64_MAX;
		hooks->expire(hooks->arg, now);
	}
	now = end;
}

static void count_connection(void *arg, const struct cm_conn *conn)
{
	(void)conn;
	++*(unsigned int *)arg;
}

unsigned int world_connections(void)
{
	unsigned int connections = 0;

	cm_each_conn(ucm_cm(), count_connection, &connections);
	return connections;
}

/* ---- ports: identified by number and family, regardless of the address ---- */

struct gsi_port {
	struct gsi_port *next;
	uint16_t space, port;
	bool ipv4, ipv6; /* receives requests of this family */
	unsigned int flags;
};
static struct gsi_port *ports;
static uint16_t next_port = 40000;

unsigned int world_ports(void)
{
	unsigned int n = 0;

	for (const struct gsi_port *port = ports; port; port = port->next)
		n++;
	return n;
}

int gsi_port_bind(struct gsi *gsi, uint16_t space, const struct gsi_port_address *address,
		  uint16_t *port, unsigned int flags, struct gsi_port **bound)
{
	static const uint8_t any_ipv6[16], mapped[12] = { [10] = 0xff, [11] = 0xff };
	bool is_ipv4 = !memcmp(address->gid, mapped, sizeof(mapped));
	bool is_dual = !memcmp(address->gid, any_ipv6, 16) && !(flags & GSI_PORT_AF_ONLY);

	(void)gsi;
	for (struct gsi_port *p = ports; p; p = p->next) {
		if (p->space != space || p->port != *port || (p->flags & flags & GSI_PORT_REUSE))
			continue;
		if ((p->ipv4 && (is_ipv4 || is_dual)) || (p->ipv6 && !is_ipv4))
			return -EADDRINUSE;
	}
	*bound = calloc(1, sizeof(**bound));
	if (!*bound)
		return -ENOMEM;
	if (!*port)
		*port = next_port++;
	(*bound)->space = space;
	(*bound)->port = *port;
	(*bound)->flags = flags;
	(*bound)->ipv4 = is_ipv4 || is_dual;
	(*bound)->ipv6 = !is_ipv4;
	(*bound)->next = ports;
	ports = *bound;
	return 0;
}

int gsi_port_listen(struct gsi_port *port)
{
	(void)port;
	return 0;
}

void gsi_port_close(struct gsi_port *port)
{
	struct gsi_port **place = &ports;

	while (*place != port)
		place = &(*place)->next;
	*place = port->next;
	free(port);
}

/* ---- librdmacm ---- */

int world_open(void)
{
	return ucm_channels.open();
}

bool world_close(int fd)
{
	return ucm_channels.close(fd);
}

int world_call(int fd, unsigned int command, const void *body, size_t in, size_t out)
{
	struct {
		struct rdma_ucm_cmd_hdr header;
		uint8_t body[1024];
	} message = { .header = { .cmd = command, .in = (__u16)in, .out = (__u16)out } };
	ssize_t written;

	memcpy(message.body, body, in);
	if (!ucm_channels.write(fd, &message, sizeof(message.header) + in, &written))
		return EBADF;
	return written < 0 ? errno : 0;
}
