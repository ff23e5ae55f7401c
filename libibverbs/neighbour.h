/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The Ethernet address by which an interface reaches an IP address, from the kernel's route and
 * neighbour tables by rtnetlink.
 */
#ifndef UROCE_LIBIBVERBS_NEIGHBOUR_H
#define UROCE_LIBIBVERBS_NEIGHBOUR_H

#include <stdint.h>

#include <infiniband/verbs.h>

#define NEIGHBOUR_NO_VLAN 0xffff

/*
 * What the interface would write into the Ethernet header of a packet to gid.  Asks the network if
 * need be, for up to three seconds.  0 or a negative errno: -EHOSTUNREACH when no answer comes.
 */
int neighbour_find(uint32_t interface, const union ibv_gid *gid, uint8_t mac[ETHERNET_LL_SIZE]);

/* The VLAN that the interface is of, or NEIGHBOUR_NO_VLAN. */
uint16_t neighbour_vlan(uint32_t interface);

#endif
