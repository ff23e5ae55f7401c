/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * usage: probe DEVICE [PEER]
 *
 * An ordinary libibverbs program: queries everything of a uroce device that stock libibverbs would
 * have requested from the kernel.  Prints each check that fails; exit code 1 if any did.  With the
 * IP address of a PEER it prints only the Ethernet address of the peer.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/ip.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

enum { GIDS = 256 }; /* size of the GID table of a port */

static int failures;

#define CHECK(condition)                                                                 \
	do {                                                                             \
		if (!(condition)) {                                                      \
			printf("line %d: %s (errno %d)\n", __LINE__, #condition, errno); \
			failures++;                                                      \
		}                                                                        \
	} while (0)

static struct ibv_device *find(struct ibv_device **list, const char *name)
{
	while (*list && strcmp(ibv_get_device_name(*list), name) != 0)
		list++;
	return *list;
}

static struct ibv_context *open_by_name(const char *name)
{
	struct ibv_device **first, **second;
	struct ibv_context *context;
	struct ibv_device *device;
	int count;

	first = ibv_get_device_list(&count);
	CHECK(first && count > 0 && !first[count]);
	device = first ? find(first, name) : NULL;
	if (!device) {
		printf("no device %s\n", name);
		exit(1);
	}
	/* librdmacm compares the pointers of different lists. */
	second = ibv_get_device_list(NULL);
	CHECK(second && find(second, name) == device);
	ibv_free_device_list(first);
	ibv_free_device_list(second);
	CHECK(ibv_get_device_guid(device) != 0);
	CHECK(ibv_get_device_index(device) == -1);
	CHECK(device->node_type == IBV_NODE_CA && device->transport_type == IBV_TRANSPORT_IB);
	context = ibv_open_device(device);
	CHECK(context);
	if (!context)
		exit(1);
	return context;
}

static void check_device(struct ibv_context *context)
{
	struct ibv_device_attr attr;
	struct {
		struct ibv_device_attr_ex known;
		char of_a_younger_header[64];
	} ex;
	size_t i;

	CHECK(ibv_query_device(context, &attr) == 0);
	CHECK(attr.node_guid == ibv_get_device_guid(context->device));
	CHECK(attr.vendor_id != 0 && attr.vendor_id < 0xffffff && attr.phys_port_cnt == 1);
	CHECK(strlen(attr.fw_ver) > 0 && attr.max_pkeys == 1 && attr.max_qp > 0);
	/*
	 * UCX 1.13 uses no atomics if the adapter's are reported as coherent with the processor's.
	 */
	CHECK(attr.atomic_cap == IBV_ATOMIC_HCA);
	memset(&ex, 0xee, sizeof(ex));
	CHECK(verbs_get_ctx(context)->query_device_ex(context, NULL, &ex.known, sizeof(ex)) == 0);
	CHECK(memcmp(&ex.known.orig_attr, &attr, sizeof(attr)) == 0);
	CHECK(ex.known.phys_port_cnt_ex == 1);
	for (i = 0; i < sizeof(ex.of_a_younger_header); i++)
		CHECK(ex.of_a_younger_header[i] == 0);
}

static void check_port(struct ibv_context *context)
{
	struct ibv_port_attr attr;

	CHECK(ibv_query_port(context, 1, &attr) == 0);
	CHECK(attr.state == IBV_PORT_ACTIVE && attr.phys_state == 5);
	CHECK(attr.link_layer == IBV_LINK_LAYER_ETHERNET && attr.pkey_tbl_len == 1);
	CHECK(attr.gid_tbl_len == GIDS && attr.max_mtu == IBV_MTU_4096);
	CHECK(attr.active_mtu >= IBV_MTU_256 && attr.active_mtu <= attr.max_mtu);
	CHECK(attr.flags & IBV_QPF_GRH_REQUIRED);
	CHECK(ibv_query_port(context, 0, &attr) == EINVAL);
	CHECK(ibv_query_port(context, 2, &attr) == EINVAL);
}

static void check_gids(struct ibv_context *context)
{
	static const union ibv_gid none;
	struct ibv_gid_entry table[GIDS], entry;
	union ibv_gid gid;
	ssize_t count = ibv_query_gid_table(context, table, GIDS, 0);
	int i, seen = 0;

	CHECK(count > 0);
	for (i = 0; i < GIDS; i++) {
		int error = ibv_query_gid_ex(context, 1, (uint32_t)i, &entry, 0);

		CHECK(ibv_query_gid(context, 1, i, &gid) == 0);
		CHECK(error == 0 || error == ENODATA);
		CHECK((error == ENODATA) == (memcmp(&gid, &none, sizeof(gid)) == 0));
		if (error)
			continue;
		CHECK(memcmp(&entry, &table[seen++], sizeof(entry)) == 0);
		CHECK(memcmp(&gid, &entry.gid, sizeof(gid)) == 0);
		CHECK(entry.gid_index == (uint32_t)i && entry.port_num == 1);
		CHECK(entry.gid_type == IBV_GID_TYPE_ROCE_V2 && entry.ndev_ifindex > 0);
	}
	CHECK(seen == count);
	CHECK(ibv_query_gid_table(context, table, (size_t)count - 1, 0) == -EINVAL);
	CHECK(ibv_query_gid_ex(context, 1, GIDS, &entry, 0) == EINVAL);
	CHECK(ibv_query_gid_ex(context, 2, 0, &entry, 0) == EINVAL);
	CHECK(ibv_query_gid_ex(context, 1, 0, &entry, 1) == EINVAL);
	CHECK(ibv_query_gid(context, 1, GIDS, &gid) == -1);
	CHECK(ibv_query_gid(context, 1, -1, &gid) == -1);
	CHECK(ibv_query_gid(context, 2, 0, &gid) == -1);
}

static void check_pkeys(struct ibv_context *context)
{
	__be16 pkey = 0;

	CHECK(ibv_query_pkey(context, 1, 0, &pkey) == 0 && pkey == htobe16(0xffff));
	CHECK(ibv_query_pkey(context, 1, 1, &pkey) == -1);
	CHECK(ibv_query_pkey(context, 2, 0, &pkey) == -1);
	CHECK(ibv_get_pkey_index(context, 1, htobe16(0xffff)) == 0);
	CHECK(ibv_get_pkey_index(context, 1, htobe16(0x1234)) == -1);
}

static void check_events(struct ibv_context *context)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
	struct ibv_async_event event;
	struct ibv_cq *cq;

	CHECK(channel && channel->context == context && channel->refcnt == 0);
	CHECK(fcntl(channel->fd, F_SETFL, O_NONBLOCK) == 0);
	cq = ibv_create_cq(context, 16, NULL, channel, 0);
	if (cq) {
		CHECK(ibv_destroy_comp_channel(channel) == EBUSY);
		CHECK(ibv_destroy_cq(cq) == 0);
	}
	CHECK(ibv_destroy_comp_channel(channel) == 0);
	CHECK(context->num_comp_vectors >= 1);
	CHECK(fcntl(context->async_fd, F_SETFL, O_NONBLOCK) == 0);
	errno = 0;
	CHECK(ibv_get_async_event(context, &event) == -1 && errno == EAGAIN);
}

static void check_descriptor(struct ibv_context *context)
{
	int copy = dup(context->cmd_fd), pipes[2];
	struct ibv_context *import;

	CHECK(copy >= 0);
	CHECK(write(copy, "x", 1) == -1 && errno == EBADF);
	import = ibv_import_device(copy);
	CHECK(import && import != context && import->device == context->device);
	/* The imported context owns the copy. */
	CHECK(import->cmd_fd == copy && ibv_close_device(import) == 0);
	CHECK(fcntl(copy, F_GETFD) == -1 && errno == EBADF);
	CHECK(pipe(pipes) == 0);
	errno = 0;
	CHECK(!ibv_import_device(pipes[0]) && errno == EOPNOTSUPP);
	close(pipes[0]);
	close(pipes[1]);
}

static void set_ipv4_header(struct ibv_grh *grh, const union ibv_gid *to)
{
	struct iphdr header = { .version = 4,
				.ihl = 5,
				.tos = 0x20,
				.ttl = 63,
				.protocol = IPPROTO_UDP,
				.saddr = htobe32(0xc0000263) };
	uint16_t words[10];
	uint32_t sum = 0;
	size_t i;

	memcpy(&header.daddr, to->raw + 12, 4);
	memcpy(words, &header, sizeof(words));
	for (i = 0; i < 10; i++)
		sum += words[i];
	sum = (sum & 0xffff) + (sum >> 16);
	header.check = (uint16_t) ~(sum + (sum >> 16));
	memcpy((char *)grh + 20, &header, sizeof(header));
}

static bool is_ipv4(const union ibv_gid *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(gid, mapped, sizeof(mapped)) == 0;
}

static void check_ah_of_datagram(struct ibv_context *context)
{
	struct ibv_wc wc = { .wc_flags = IBV_WC_GRH, .sl = 3 };
	struct ibv_gid_entry table[GIDS];
	ssize_t count = ibv_query_gid_table(context, table, GIDS, 0);
	struct ibv_ah_attr attr;
	struct ibv_grh grh;

	for (ssize_t i = 0; i < count; i++) {
		bool ipv4 = is_ipv4(&table[i].gid);

		memset(&grh, 0, sizeof(grh));
		if (ipv4) {
			/*
			 * The bytes before the IPv4 header are undefined, and may look like IPv6.
			 */
			grh.version_tclass_flow = htobe32(6u << 28);
			set_ipv4_header(&grh, &table[i].gid);
		} else {
			grh.version_tclass_flow = htobe32(6u << 28 | 0x20u << 20 | 0x12345);
			grh.next_hdr = IPPROTO_UDP;
			grh.hop_limit = 63;
			grh.dgid = table[i].gid;
			grh.sgid.raw[15] = 9;
		}
		CHECK(ibv_init_ah_from_wc(context, 1, &wc, &grh, &attr) == 0);
		CHECK(attr.is_global && attr.grh.sgid_index == table[i].gid_index);
		CHECK(attr.grh.hop_limit == 63 && attr.grh.traffic_class == 0x20);
		CHECK(attr.sl == 3 && attr.port_num == 1 && is_ipv4(&attr.grh.dgid) == ipv4);
		CHECK(attr.grh.dgid.raw[15] == (ipv4 ? 0x63 : 9));
	}
	memset(&grh, 0, sizeof(grh));
	CHECK(ibv_init_ah_from_wc(context, 1, &wc, &grh, &attr) == -1);
	/* The destination is no address of this host. */
	grh.version_tclass_flow = htobe32(6u << 28);
	grh.next_hdr = IPPROTO_UDP;
	grh.dgid.raw[0] = 0x20;
	CHECK(ibv_init_ah_from_wc(context, 1, &wc, &grh, &attr) == -1);
}

static void check_ethernet_address(struct ibv_context *context)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };
	uint8_t mac[6];
	uint16_t vlan;

	/* The device's own address, which needs no reply from a neighbor. */
	CHECK(ibv_query_gid(context, 1, 0, &attr.grh.dgid) == 0);
	CHECK(ibv_resolve_eth_l2_from_gid(context, &attr, mac, &vlan) == 0);
	attr.grh.sgid_index = GIDS - 1;
	CHECK(ibv_resolve_eth_l2_from_gid(context, &attr, mac, &vlan) != 0);
}

static int print_ethernet_address(struct ibv_context *context, const char *peer)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };
	char text[64];
	uint8_t mac[6];
	uint16_t vlan;
	int error;

	snprintf(text, sizeof(text), strchr(peer, ':') ? "%s" : "::ffff:%s", peer);
	if (inet_pton(AF_INET6, text, attr.grh.dgid.raw) != 1)
		return 2;
	error = ibv_resolve_eth_l2_from_gid(context, &attr, mac, &vlan);
	if (error)
		printf("error %d\n", error);
	else
		printf("%02x:%02x:%02x:%02x:%02x:%02x vlan %#x\n", mac[0], mac[1], mac[2], mac[3],
		       mac[4], mac[5], vlan);
	return ibv_close_device(context);
}

int main(int argc, char **argv)
{
	struct ibv_context *context;

	if (argc != 2 && argc != 3)
		return 2;
	context = open_by_name(argv[1]);
	if (argc == 3)
		return print_ethernet_address(context, argv[2]);
	check_device(context);
	check_port(context);
	check_gids(context);
	check_pkeys(context);
	check_events(context);
	check_descriptor(context);
	check_ah_of_datagram(context);
	check_ethernet_address(context);
	CHECK(ibv_close_device(context) == 0);
	return failures ? 1 : 0;
}
