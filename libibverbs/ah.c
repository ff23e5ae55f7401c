/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Address handles created from a received datagram, and the Ethernet address of a GID.  The real
 * functions cannot be used: in some distributions' builds they call the library's own GID functions
 * directly, so that the drop-in's are not called.
 */
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <stdbool.h>
#include <string.h>

#include "dropin.h"

/* Bytes before the IPv4 header in the 40-byte GRH area. */
#define GRH_PAD_BYTES 20
#define FLOW_LABEL_MASK 0xfffffu

static bool ipv4_checksum_ok(const struct iphdr *header)
{
	uint16_t words[sizeof(*header) / 2];
	uint32_t sum = 0;
	size_t i;

	memcpy(words, header, sizeof(*header));
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		sum += words[i];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff;
}

/*
 * Returns 4, 6, or 0 if the GRH area has neither header.  The bytes before an IPv4 header are
 * undefined and may look like an IPv6 header.
 */
static int ip_version(const struct ibv_grh *grh, const struct iphdr *ipv4)
{
	bool may_be_6 = be32toh(grh->version_tclass_flow) >> 28 == 6;
	bool may_be_4 = ipv4->version == 4 && ipv4->ihl == 5;

	if (may_be_4 && (!may_be_6 || ipv4_checksum_ok(ipv4)))
		return 4;
	return may_be_6 ? 6 : 0;
}

static void ipv4_to_gid(uint32_t address, union ibv_gid *gid)
{
	memset(gid->raw, 0, 10);
	memset(gid->raw + 10, 0xff, 2);
	memcpy(gid->raw + 12, &address, sizeof(address));
}

static int init_from_ipv4(const struct iphdr *header, union ibv_gid *local,
			  struct ibv_global_route *route)
{
	if (IN_MULTICAST(be32toh(header->daddr)))
		return EINVAL;
	ipv4_to_gid(header->daddr, local);
	ipv4_to_gid(header->saddr, &route->dgid);
	route->hop_limit = header->ttl;
	route->traffic_class = header->tos;
	return 0;
}

static int init_from_ipv6(const struct ibv_grh *grh, union ibv_gid *local,
			  struct ibv_global_route *route)
{
	if (IN6_IS_ADDR_MULTICAST((const struct in6_addr *)grh->dgid.raw))
		return EINVAL;
	if (grh->next_hdr != IPPROTO_UDP)
		return EPROTONOSUPPORT;
	*local = grh->dgid;
	route->dgid = grh->sgid;
	route->hop_limit = grh->hop_limit;
	route->traffic_class = (uint8_t)(be32toh(grh->version_tclass_flow) >> 20);
	return 0;
}

static int init_ah_attr(struct ibv_context *context, uint8_t port, const struct ibv_wc *wc,
			const struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	struct iphdr ipv4;
	union ibv_gid local;
	int error, index;

	memset(attr, 0, sizeof(*attr));
	attr->dlid = wc->slid;
	attr->sl = wc->sl;
	attr->src_path_bits = wc->dlid_path_bits;
	attr->port_num = port;
	if (!(wc->wc_flags & IBV_WC_GRH))
		return 0;
	attr->is_global = 1;
	attr->grh.flow_label = be32toh(grh->version_tclass_flow) & FLOW_LABEL_MASK;
	memcpy(&ipv4, (const char *)grh + GRH_PAD_BYTES, sizeof(ipv4));
	switch (ip_version(grh, &ipv4)) {
	case 4:
		error = init_from_ipv4(&ipv4, &local, &attr->grh);
		break;
	case 6:
		error = init_from_ipv6(grh, &local, &attr->grh);
		break;
	default:
		error = EPROTONOSUPPORT;
	}
	if (error) {
		errno = error;
		return -1;
	}
	index = dropin_find_gid(dropin_provider_of(context->device), context, port, &local);
	if (index < 0)
		return -1;
	attr->grh.sgid_index = (uint8_t)index;
	return 0;
}

DROPIN_EXPORT int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port, struct ibv_wc *wc,
				      struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	const struct uroce_dropin_ops *provider = dropin_provider_of(context->device);
	__typeof__(&ibv_init_ah_from_wc) real;

	if (provider)
		return init_ah_attr(context, port, wc, grh, attr);
	real = DROPIN_REAL(ibv_init_ah_from_wc, "IBVERBS_1.1");
	return real ? real(context, port, wc, grh, attr) : -1;
}

DROPIN_EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc,
						   struct ibv_grh *grh, uint8_t port)
{
	const struct uroce_dropin_ops *provider = dropin_provider_of(pd->context->device);
	__typeof__(&ibv_create_ah_from_wc) real;
	__typeof__(&ibv_create_ah) create;
	struct ibv_ah_attr attr;

	if (!provider) {
		real = DROPIN_REAL(ibv_create_ah_from_wc, "IBVERBS_1.1");
		return real ? real(pd, wc, grh, port) : NULL;
	}
	if (init_ah_attr(pd->context, port, wc, grh, &attr))
		return NULL;
	create = DROPIN_REAL(ibv_create_ah, "IBVERBS_1.1");
	return create ? create(pd, &attr) : NULL;
}

/* Returns 0 or a negative errno, as the real function does. */
DROPIN_EXPORT int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
					      uint8_t mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	const struct uroce_dropin_ops *provider = dropin_provider_of(context->device);
	__typeof__(&ibv_resolve_eth_l2_from_gid) real;
	struct ibv_gid_entry local;
	uint16_t vlan;
	int error;

	if (!provider) {
		real = DROPIN_REAL(ibv_resolve_eth_l2_from_gid, "IBVERBS_1.1");
		return real ? real(context, attr, mac, vid) : -ENOSYS;
	}
	error = provider->query_gid_entry(context, attr->port_num, attr->grh.sgid_index, &local);
	error = error ? -error
		      : provider->resolve_mac(local.ndev_ifindex, attr->grh.dgid.raw, mac, &vlan);
	if (error)
		errno = -error;
	else if (vid)
		*vid = vlan;
	return error;
}
