/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Resolves an IP address to the Ethernet address of its next hop, by the kernel's route and
 * neighbour tables (rtnetlink).
 */
#ifndef UROCE_LIBIBVERBS_NEIGHBOUR_H
#define UROCE_LIBIBVERBS_NEIGHBOUR_H

#include <stdint.h>

#include <infiniband/verbs.h>

#define NEIGHBOUR_NO_VLAN 0xffff

/*
 * Stores in mac the destination Ethernet address of packets that interface (an ifindex) sends to
 * gid.  May trigger ARP or NDP and then blocks for up to 3 s.  Returns 0 or a negative errno;
 * -EHOSTUNREACH if the neighbour does not answer.
 */
int neighbour_resolve(uint32_t interface, const union ibv_gid *gid, uint8_t mac[ETHERNET_LL_SIZE]);

/* Returns the VLAN ID of the interface, or NEIGHBOUR_NO_VLAN. */
uint16_t neighbour_vlan(uint32_t interface);

#endif
