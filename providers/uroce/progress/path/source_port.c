/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "source_port.h"

/* The dynamic ports, which RoCEv2 senders should use. */
#define FIRST_PORT 0xc000u
#define PORT_MASK 0x3fffu
#define FLOW_LABEL_MASK 0xfffffu
/* 2^32 divided by the golden ratio: the usual multiplicative hash. */
#define HASH_FACTOR 0x61c88647u

uint16_t source_port_from_flow_label(uint32_t flow_label)
{
	flow_label &= FLOW_LABEL_MASK;
	return (uint16_t)(FIRST_PORT | ((flow_label & PORT_MASK) ^ (flow_label >> 14)));
}

uint16_t source_port_connected(uint32_t qpn, uint32_t dest_qpn)
{
	uint64_t v = (uint64_t)qpn * dest_qpn;

	v ^= v >> 20;
	v ^= v >> 40;
	return source_port_from_flow_label((uint32_t)(v & FLOW_LABEL_MASK));
}

uint16_t source_port_datagram(uint32_t qpn)
{
	return (uint16_t)(FIRST_PORT | (qpn * HASH_FACTOR) >> 18);
}
