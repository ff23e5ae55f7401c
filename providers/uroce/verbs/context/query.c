/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/aeth.h"
#include "engine/base/wqe.h"
#include "device.h"
#include "verbs/abi/ops.h"
#include "wire/packet.h"

#define PAGE_SIZES 0xfffff000u /* 4096 and all larger powers of two */

#define CLOCK_KHZ UINT64_C(1000000)
/* enum ib_uverbs_device_cap_flags of later kernel headers. */
#define CAP_FLUSH_GLOBAL (UINT64_C(1) << 38)
#define CAP_FLUSH_PERSISTENT (UINT64_C(1) << 39)
#define CAP_ATOMIC_WRITE (UINT64_C(1) << 40)

/* enum ibv_odp_transport_cap_bits of later headers. */
enum {
	ODP_SUPPORT_FLUSH = 1 << 6,
	ODP_SUPPORT_ATOMIC_WRITE = 1 << 7,
};

enum port_phys_state {
	PHYS_DISABLED = 3,
	PHYS_LINK_UP = 5,
};

/* Encodings of libibverbs: number of lanes, and signalling rate of a lane. */
struct rate {
	uint32_t mbps;
	uint8_t width;
	uint8_t speed;
};

static const struct rate rates[] = {
	{ 2500, 1, 1 },	    /* SDR */
	{ 5000, 1, 2 },	    /* DDR */
	{ 10000, 1, 8 },    /* FDR10 */
	{ 14000, 1, 16 },   /* FDR */
	{ 25000, 1, 32 },   /* EDR */
	{ 40000, 2, 8 },    /* 4 x FDR10 */
	{ 50000, 1, 64 },   /* HDR */
	{ 100000, 2, 32 },  /* 4 x EDR */
	{ 200000, 2, 64 },  /* 4 x HDR */
	{ 400000, 2, 128 }, /* 4 x NDR */
};
/* Speed if the driver reports none; programs use it to choose between devices. */
#define UNKNOWN_MBPS 10000
#define LOOPBACK_MBPS 40000

static uint32_t netdev_mbps(const struct netdev *netdev)
{
	if (netdev->speed_mbps)
		return netdev->speed_mbps;
	return netdev->loopback ? LOOPBACK_MBPS : UNKNOWN_MBPS;
}

/* Returns the fastest rate that does not exceed the link's, or else the slowest. */
static const struct rate *netdev_rate(const struct netdev *netdev)
{
	uint32_t mbps = netdev_mbps(netdev);
	size_t i = sizeof(rates) / sizeof(rates[0]) - 1;

	while (i > 0 && rates[i].mbps > mbps)
		i--;
	return &rates[i];
}

/* rule U1 */
static void fill_device(struct ibv_device_attr *attr, const struct uroce_device *device)
{
	uint64_t guid = htobe64(device->node_guid);

	snprintf(attr->fw_ver, sizeof(attr->fw_ver), "%s", UROCE_VERSION);
	attr->node_guid = guid;
	attr->sys_image_guid = guid;
	attr->max_mr_size = UROCE_MAX_MR_BYTES;
	attr->page_size_cap = PAGE_SIZES;
	attr->vendor_id = UROCE_VENDOR_ID;
	attr->vendor_part_id = UROCE_VENDOR_PART_ID;
	attr->hw_ver = 1;
	attr->max_qp = UROCE_MAX_QP;
	attr->max_qp_wr = UROCE_MAX_QP_WR;
	attr->device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_PORT_ACTIVE_EVENT |
				 IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN |
				 IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_UD_AV_PORT_ENFORCE |
				 IBV_DEVICE_XRC | IBV_DEVICE_MEM_WINDOW |
				 IBV_DEVICE_MEM_WINDOW_TYPE_2B |
				 /* with fast registration, which user space lacks */
				 IBV_DEVICE_MEM_MGT_EXTENSIONS;
	attr->max_sge = UROCE_MAX_SGE;
	attr->max_sge_rd = UROCE_MAX_SGE;
	attr->max_cq = UROCE_MAX_CQ;
	attr->max_cqe = UROCE_MAX_CQE;
	attr->max_mr = UROCE_MAX_MR;
	attr->max_mw = UROCE_MAX_MW;
	attr->max_pd = UROCE_MAX_PD;
	attr->max_qp_rd_atom = UROCE_MAX_RD_ATOMIC;
	attr->max_res_rd_atom = UROCE_MAX_RD_ATOMIC * UROCE_MAX_QP;
	attr->max_qp_init_rd_atom = UROCE_MAX_RD_ATOMIC;
	/*
	 * Atomics are atomic with respect to the processor as well, which would be IBV_ATOMIC_GLOB;
	 * but UCX up to 1.13 does not use atomics if it reads that value.
	 */
	attr->atomic_cap = IBV_ATOMIC_HCA;
	attr->max_ah = UROCE_MAX_AH;
	attr->max_srq = UROCE_MAX_SRQ;
	attr->max_srq_wr = UROCE_MAX_SRQ_WR;
	attr->max_srq_sge = UROCE_MAX_SGE;
	attr->max_mcast_grp = UROCE_MAX_MCAST_GROUPS;
	attr->max_mcast_qp_attach = UROCE_MAX_MCAST_QP;
	attr->max_total_mcast_qp_attach = UROCE_MAX_MCAST_GROUPS * UROCE_MAX_MCAST_QP;
	attr->max_pkeys = 1;
	attr->local_ca_ack_delay = ACK_DELAY_CODE;
	attr->phys_port_cnt = 1;
}

/* The processor handles page faults, so every operation that accesses memory supports ODP. */
static void fill_odp(struct ibv_device_attr_ex *attr)
{
	const uint32_t datagrams = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV,
		       connected = datagrams | IBV_ODP_SUPPORT_WRITE,
		       reliable = connected | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC |
				  ODP_SUPPORT_ATOMIC_WRITE;

	attr->odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
	attr->odp_caps.per_transport_caps.rc_odp_caps =
		reliable | ODP_SUPPORT_FLUSH | IBV_ODP_SUPPORT_SRQ_RECV;
	attr->odp_caps.per_transport_caps.uc_odp_caps = connected | IBV_ODP_SUPPORT_SRQ_RECV;
	attr->odp_caps.per_transport_caps.ud_odp_caps = datagrams | IBV_ODP_SUPPORT_SRQ_RECV;
	/* XRC receives only from SRQs. */
	attr->xrc_odp_caps =
		(reliable & ~(uint32_t)IBV_ODP_SUPPORT_RECV) | IBV_ODP_SUPPORT_SRQ_RECV;
}

int uroce_query_device_ex(struct ibv_context *context,
			  const struct ibv_query_device_ex_input *input,
			  struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct ibv_device_attr_ex all = { 0 };

	if (input && input->comp_mask)
		return EINVAL;
	if (attr_size < sizeof(attr->orig_attr))
		return EINVAL;
	fill_device(&all.orig_attr, to_uroce_context(context)->device);
	all.device_cap_flags_ex = all.orig_attr.device_cap_flags | CAP_FLUSH_GLOBAL |
				  CAP_FLUSH_PERSISTENT | CAP_ATOMIC_WRITE;
	fill_odp(&all);
	/* Completion timestamps are those of the monotonic clock, in nanoseconds. */
	all.completion_timestamp_mask = UINT64_MAX;
	all.hca_core_clock = CLOCK_KHZ;
	all.cq_mod_caps.max_cq_count = UINT16_MAX;
	all.cq_mod_caps.max_cq_period = UINT16_MAX;
	all.max_dm_size = UROCE_MAX_DM;
	all.phys_port_cnt_ex = 1;
	/* With a newer header the caller's structure is larger: its further fields are 0. */
	memset(attr, 0, attr_size);
	memcpy(attr, &all, attr_size < sizeof(all) ? attr_size : sizeof(all));
	return 0;
}

int uroce_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	uint64_t now = progress_now();

	(void)context;
	if (values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
		return EINVAL;
	/* In units of the device's clock without carry to tv_sec, as the drivers of adapters do. */
	if (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK)
		values->raw_clock = (struct timespec){ .tv_nsec = (long)now };
	return 0;
}

/* attr is zeroed by the caller.  Returns false if the interface no longer exists. */
static bool fill_port(struct ibv_port_attr *attr, struct uroce_device *device)
{
	struct netdev netdev;
	bool exists = uroce_device_netdev(device, &netdev);
	const struct rate *rate = netdev_rate(&netdev);
	bool up = exists && netdev.up;

	attr->state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
	attr->phys_state = up ? PHYS_LINK_UP : PHYS_DISABLED;
	attr->max_mtu = IBV_MTU_4096;
	attr->active_mtu = uroce_active_mtu(netdev.mtu);
	attr->gid_tbl_len = UROCE_GID_TABLE;
	attr->port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
	attr->max_msg_sz = ENG_MAX_MESSAGE;
	attr->pkey_tbl_len = 1;
	attr->max_vl_num = 1;
	attr->active_width = rate->width;
	attr->active_speed = rate->speed;
	attr->link_layer = IBV_LINK_LAYER_ETHERNET;
	attr->flags = IBV_QPF_GRH_REQUIRED;
	return exists;
}

int uroce_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr)
{
	if (port != UROCE_PORT)
		return EINVAL;
	/* The caller's structure may be smaller than that of our header. */
	memset(attr, 0,
	       uroce_abi.layout->port_attr_bytes < sizeof(*attr) ? uroce_abi.layout->port_attr_bytes
								 : sizeof(*attr));
	fill_port(attr, to_uroce_context(context)->device);
	return 0;
}

_Static_assert(UROCE_DESC_GIDS == UROCE_GID_TABLE, "the whole table is described");

int uroce_describe_device(struct ibv_device *device, struct uroce_device_desc *desc)
{
	struct uroce_device *ours = to_uroce_device(device);
	struct netdev netdev;
	unsigned int i;

	memset(desc, 0, sizeof(*desc));
	fill_device(&desc->device, ours);
	if (!fill_port(&desc->port, ours))
		return ENODEV;
	uroce_device_netdev(ours, &netdev);
	memcpy(desc->netdev, netdev.name, sizeof(desc->netdev));
	desc->netdev_index = netdev.index;
	for (i = 0; i < UROCE_GID_TABLE; i++)
		uroce_gid(ours, i, &desc->gid[i]);
	desc->pkey = WIRE_DEFAULT_PKEY;
	return 0;
}

/* In units of 100 Mb/s: the speed of the link itself, which may be none of the rates above. */
int uroce_query_port_speed(struct ibv_context *context, uint32_t port, uint64_t *speed)
{
	struct netdev netdev;

	if (port != UROCE_PORT)
		return EINVAL;
	uroce_device_netdev(to_uroce_context(context)->device, &netdev);
	*speed = netdev_mbps(&netdev) / 100;
	return 0;
}

int uroce_query_gid_entry(struct ibv_context *context, uint32_t port, uint32_t index,
			  struct ibv_gid_entry *entry)
{
	struct uroce_device *device = to_uroce_context(context)->device;
	struct netdev netdev;

	memset(entry, 0, sizeof(*entry));
	if (port != UROCE_PORT || index >= UROCE_GID_TABLE)
		return EINVAL;
	if (!uroce_gid(device, index, &entry->gid))
		return ENODATA;
	uroce_device_netdev(device, &netdev);
	entry->gid_index = index;
	entry->port_num = port;
	entry->gid_type = IBV_GID_TYPE_ROCE_V2;
	entry->ndev_ifindex = netdev.index;
	return 0;
}

int uroce_query_pkey(struct ibv_context *context, uint32_t port, int index, __be16 *pkey)
{
	(void)context;
	if (port != UROCE_PORT || index != 0)
		return EINVAL;
	*pkey = htobe16(WIRE_DEFAULT_PKEY);
	return 0;
}
