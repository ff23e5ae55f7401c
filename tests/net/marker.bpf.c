/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Functions of the bottleneck's router for which the host's kernel may have no queueing discipline:
 * ECN marks and losses.  bottleneck.py compiles this with clang and attaches it to an interface's
 * clsact, where it sees every packet before the queue does.  Marks are those of a virtual queue,
 * which drains slightly slower than the link.  Senders that react to marks keep the virtual queue
 * near MARK_ABOVE, and so the real queue empty.  Packets on the two processors may race for the
 * variables; at worst a mark is missing or added.
 * - MARK_RATE: bytes per second that leave the virtual queue; 0: no marks
 * - MARK_ABOVE: bytes in the virtual queue above which ECT packets become CE
 * - QUEUE_MAX: limit of the virtual queue, bytes, which is that of the real queue
 * - LOSS: number of packets in 2^32 that are lost: RoCEv2, and TCP at LOSS_PORT
 * - LOSS_PORT: TCP port of a measured flow; other TCP is the out-of-band connection of programs
 * - SEED: seed of the random numbers, so that a run can be repeated
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#define SECTION(name) __attribute__((section(name), used))
#define NSEC_PER_SEC 1000000000ull
#define ROCEV2_PORT 4791
#define ETHER_BYTES 14
#define IPV6_BYTES 40
#define IPPROTO_TCP 6
#define IPPROTO_UDP 17

static unsigned long long (*now_ns)(void) = (void *)BPF_FUNC_ktime_get_ns;
static long (*set_ce)(struct __sk_buff *skb) = (void *)BPF_FUNC_skb_ecn_set_ce;
static long (*load_bytes)(const void *skb, unsigned int offset, void *to,
			  unsigned int bytes) = (void *)BPF_FUNC_skb_load_bytes;

static unsigned long long virtual_queue, last_ns;
static unsigned long long random_state = SEED;

/* Returns true for packets of a measured flow. */
static int is_measured(struct __sk_buff *skb)
{
	unsigned char version, protocol, ports[4];
	unsigned int header, source, destination;

	if (load_bytes(skb, ETHER_BYTES, &version, 1) < 0)
		return 0;
	header = version >> 4 == 4 ? (version & 0xfu) * 4 : IPV6_BYTES;
	if (load_bytes(skb, ETHER_BYTES + (version >> 4 == 4 ? 9 : 6), &protocol, 1) < 0 ||
	    load_bytes(skb, ETHER_BYTES + header, ports, sizeof(ports)) < 0)
		return 0;
	source = ports[0] << 8 | ports[1];
	destination = ports[2] << 8 | ports[3];
	if (protocol == IPPROTO_UDP)
		return destination == ROCEV2_PORT;
	return protocol == IPPROTO_TCP && (source == LOSS_PORT || destination == LOSS_PORT);
}

/* Knuth's linear congruential generator; its high bits are random enough for losses. */
static unsigned int random_number(void)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned int)(random_state >> 32);
}

static void mark(struct __sk_buff *skb)
{
	unsigned long long now = now_ns(), drained;

	drained = now > last_ns ? (now - last_ns) * MARK_RATE / NSEC_PER_SEC : 0;
	last_ns = now;
	virtual_queue = (virtual_queue > drained ? virtual_queue - drained : 0) + skb->len;
	if (virtual_queue > QUEUE_MAX)
		virtual_queue = QUEUE_MAX;
	if (virtual_queue > MARK_ABOVE)
		set_ce(skb);
}

SECTION("tc") int marker(struct __sk_buff *skb)
{
	if (LOSS && is_measured(skb) && random_number() < LOSS)
		return TC_ACT_SHOT;
	if (MARK_RATE)
		mark(skb);
	return TC_ACT_OK;
}

char licence[] SECTION("license") = "Dual BSD/GPL";
