/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * uroce-check LIBRARIES: run by uroce-run in the environment of its programs.  Prints what programs
 * will find on this host as lines "name: value".  LIBRARIES is the directory of the drop-in.
 */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "capture/config.h"
#include "host.h"
#include "link/broker/guest.h"
#include "link/netlink/netdev.h"
#include "link/shm/shm.h"
#include "util/gid.h"
#include "verbs/abi/dropin_ops.h"
#include "verbs/settings_number.h"

#define PREFIX UROCE_DEVICE_PREFIX

enum {
	ADDRESSES_SHOWN = 4, /* maximum number of addresses printed for a device */
	TEXT_BYTES = 1024,
};

struct check {
	struct link *link;
	uint32_t wanted_receive;	   /* size of receive buffers that programs request */
	const struct link_addr *an_addr;   /* an open address, or NULL */
	char a_device[IBV_SYSFS_NAME_MAX]; /* name of a listed device, or empty */
	bool failed;			   /* a FAILED line has been printed */
	bool wrong_capture;		   /* no device can be opened with this UROCE_CAPTURE */
	char slow_mtu[TEXT_BYTES];	   /* names of interfaces with a small MTU, or empty */
};

__attribute__((format(printf, 2, 3))) static void line(const char *name, const char *format, ...)
{
	va_list args;

	printf("%s:%*s", name, (int)(15 - strlen(name)), "");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

__attribute__((format(printf, 2, 3))) static void append(char text[TEXT_BYTES], const char *format,
							 ...)
{
	size_t length = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + length, TEXT_BYTES - length, format, args);
	va_end(args);
}

__attribute__((format(printf, 2, 3))) static void fail(struct check *check, const char *format, ...)
{
	char text[TEXT_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	line("FAILED", "%s", text);
	check->failed = true;
}

static void show_versions(const char *libraries)
{
	char path[PATH_MAX], real[PATH_MAX];

	snprintf(path, sizeof(path), "%s/libibverbs-real.so.1", libraries);
	line("version", "uroce %s, libibverbs %s", UROCE_VERSION,
	     realpath(path, real) ? real : path);
}

/* ---- devices ---- */

/* Opens the device's addresses, as queue pairs do, and appends them to list. */
static void open_addresses(struct check *check, struct ibv_context *context, uint32_t index,
			   char list[TEXT_BYTES])
{
	static const union ibv_gid unused;
	char error[LINK_ERROR_TEXT], text[LINK_ADDRESS_TEXT];
	struct link_addr *addr;
	union ibv_gid gid;
	int i;

	for (i = 0; !ibv_query_gid(context, 1, i, &gid) && memcmp(&gid, &unused, sizeof(gid));
	     i++) {
		uint32_t scope = gid_is_link_local(gid.raw) ? index : 0;
		struct link_endpoint endpoint = link_endpoint_from_gid(gid.raw, scope);

		link_endpoint_print(&endpoint, text);
		if (i < ADDRESSES_SHOWN)
			append(list, "%s%s", i ? ", " : "", text);
		if (link_addr_open(check->link, gid.raw, scope, &addr, error))
			fail(check, "%s", error);
		else
			check->an_addr = addr;
	}
	if (i > ADDRESSES_SHOWN)
		append(list, " and %d more", i - ADDRESSES_SHOWN);
}

static uint32_t interface_mtu(const struct netdev *netdevs, unsigned int count, uint32_t index)
{
	for (unsigned int i = 0; i < count; i++)
		if (netdevs[i].index == index)
			return netdevs[i].mtu;
	return 0;
}

static void show_device(struct check *check, struct ibv_device *device,
			const struct netdev *netdevs, unsigned int count)
{
	const char *name = ibv_get_device_name(device), *interface = name + strlen(PREFIX);
	uint32_t index = if_nametoindex(interface);
	struct ibv_context *context = ibv_open_device(device);
	struct ibv_port_attr port;
	char list[TEXT_BYTES] = "";

	snprintf(check->a_device, sizeof(check->a_device), "%s", name);
	if (!context || ibv_query_port(context, 1, &port)) {
		fail(check, "%s cannot be opened: %s; the reason is on stderr", name,
		     strerror(errno));
		return;
	}
	open_addresses(check, context, index, list);
	if (128u << port.active_mtu < 4096)
		append(check->slow_mtu, " %s", interface);
	line("device", "%s: %s, port %s, RoCE MTU %u (interface %u)", name, list,
	     port.state == IBV_PORT_ACTIVE ? "active" : ibv_port_state_str(port.state),
	     128u << port.active_mtu, interface_mtu(netdevs, count, index));
	ibv_close_device(context);
}

static bool is_listed(struct ibv_device **list, const char *interface)
{
	for (; *list; list++) {
		const char *name = ibv_get_device_name(*list);

		if (!strncmp(name, PREFIX, strlen(PREFIX)) &&
		    !strcmp(name + strlen(PREFIX), interface))
			return true;
	}
	return false;
}

static void show_other_interfaces(struct ibv_device **list, const struct netdev *netdevs,
				  unsigned int count)
{
	char others[TEXT_BYTES] = "";

	for (unsigned int i = 0; i < count; i++) {
		if (is_listed(list, netdevs[i].name))
			continue;
		append(others, "%s%s (%s)", *others ? ", " : "", netdevs[i].name,
		       !netdevs[i].up		   ? "down"
		       : !netdevs[i].address_count ? "no address"
						   : "UROCE_LOOPBACK=off");
	}
	if (*others)
		line("no device", "%s", others);
}

static void show_devices(struct check *check)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct netdev *netdevs = NULL;
	unsigned int count = 0;
	int error = netdev_list(&netdevs, &count);

	if (!list || error) {
		fail(check, "interfaces and devices cannot be listed: %s",
		     strerror(error ? -error : errno));
		return;
	}
	for (unsigned int i = 0; list[i]; i++)
		if (!strncmp(ibv_get_device_name(list[i]), PREFIX, strlen(PREFIX)))
			show_device(check, list[i], netdevs, count);
	show_other_interfaces(list, netdevs, count);
	if (!*check->a_device)
		fail(check, "no interface is up and has an address: ip link set dev NAME up; "
			    "ip address add ADDRESS/24 dev NAME");
	ibv_free_device_list(list);
	free(netdevs);
}

/* ---- the host ---- */

/* Opens the link, which starts a broker if none is running. */
static void show_broker(struct check *check)
{
	char error[LINK_ERROR_TEXT];
	struct link_guest guest;
	bool was_running = !link_guest_open(&guest);

	if (was_running)
		link_guest_close(&guest);
	if (!link_open_further(&check->link, error)) {
		link_set_receive_buffer(check->link, check->wanted_receive);
		line("broker", "%s, user %u", was_running ? "running" : "started by this check",
		     geteuid());
	} else {
		fail(check, "%s", error);
	}
}

static void show_buffer(const char *name, uint32_t granted, uint32_t wanted, const char *limit)
{
	line(name, "%u bytes of %u%s%s", granted, wanted, granted < wanted ? ", limited by " : "",
	     granted < wanted ? limit : "");
}

static void show_steering(const struct check *check)
{
	if (check->an_addr && check->an_addr->unsteered)
		line("steering", "not by the kernel (SO_ATTACH_REUSEPORT_CBPF): processes share a "
				 "socket and forward packets, which is slower");
	else if (check->an_addr)
		line("steering", "by the kernel, to the socket of each process");
}

static void show_shared_memory(void)
{
	const char *failed = host_share_memory(), *setting = getenv("UROCE_SHM");

	if (failed)
		line("shared memory", "not possible: %s: %s", failed, strerror(errno));
	else
		line("shared memory", "works between processes, %s",
		     setting && !strcmp(setting, "on")
			     ? "used (UROCE_SHM=on)"
			     : "not used; UROCE_SHM=on is faster, but tcpdump and firewalls do not "
			       "see the packets");
}

/* uroce-run has made the view, if it could. */
static void show_view(const struct check *check)
{
	char path[NAME_MAX];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s", check->a_device);
	if (getenv("UROCE_VIEW"))
		line("view", "calls: LD_PRELOAD shows the devices in /sys and /dev");
	else if (*check->a_device && !access(path, F_OK))
		line("view", "namespace: a mount namespace shows the devices in /sys and /dev");
	else
		line("view", "none: only libibverbs lists the devices; UCX and NCCL find none");
}

static void show_remedies(const struct check *check, uint32_t receive, uint32_t send)
{
	char sysctl[TEXT_BYTES] = "";

	if (receive < check->wanted_receive)
		append(sysctl, " net.core.rmem_max=%u", check->wanted_receive);
	if (send < LINK_SOCKET_BUFFER)
		append(sysctl, " net.core.wmem_max=%u", LINK_SOCKET_BUFFER);
	if (*sysctl)
		line("faster", "sudo sysctl -w%s", sysctl);
	if (*check->slow_mtu)
		line("faster", "an MTU of 4200 or more, if the network carries it, of%s",
		     check->slow_mtu);
	if (!*sysctl && !*check->slow_mtu)
		line("faster", "nothing to change");
}

/* Checks UROCE_CAPTURE without opening the file, which may have the packets of a program. */
static void check_capture(struct check *check)
{
	const char *text = getenv("UROCE_CAPTURE");
	struct capture_config config;
	char error[CAPTURE_ERROR_TEXT];

	if (text && capture_config_parse(&config, text, error)) {
		fail(check, "UROCE_CAPTURE: %s", error);
		check->wrong_capture = true;
	}
	unsetenv("UROCE_CAPTURE");
}

int main(int argc, char **argv)
{
	const char *buffer = getenv("UROCE_RECEIVE_BUFFER"), *log = getenv("UROCE_LOG");
	struct check check = { .wanted_receive = RECEIVE_BUFFER_DEFAULT };
	uint32_t receive, send;

	if (argc != 2) {
		fputs("uroce-check: must be started by uroce-run\n", stderr);
		return 2;
	}
	/* The reason why a device cannot be opened is wanted here. */
	if (log && !strcmp(log, "off"))
		unsetenv("UROCE_LOG");
	/* An invalid value is reported when a device is opened. */
	if (buffer)
		settings_parse_receive_buffer(buffer, &check.wanted_receive);
	setvbuf(stdout, NULL, _IOLBF, 0);
	show_versions(argv[1]);
	check_capture(&check);
	show_broker(&check);
	if (check.link)
		show_devices(&check);
	receive = host_socket_buffer(SO_RCVBUF, check.wanted_receive);
	send = host_socket_buffer(SO_SNDBUF, LINK_SOCKET_BUFFER);
	show_buffer("receive buffer", receive, check.wanted_receive, "net.core.rmem_max");
	show_buffer("send buffer", send, LINK_SOCKET_BUFFER, "net.core.wmem_max");
	show_steering(&check);
	show_shared_memory();
	show_view(&check);
	show_remedies(&check, receive, send);
	if (check.failed)
		line("result", "programs cannot use %s: see the lines FAILED",
		     check.an_addr && !check.wrong_capture ? "all addresses" : "uroce");
	else
		line("result", "works: uroce-run ibv_devinfo");
	return check.failed;
}
