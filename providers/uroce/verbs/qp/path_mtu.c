/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "qp.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdatomic.h>

#include "verbs/log.h"
#include "verbs/cq/cq.h"

#define MTU_BYTES(mtu) (128u << (mtu))
/* Headers of the first packet of a WRITE after the IP header: UDP, BTH, RETH, ICRC. */
#define PACKET_OVERHEAD (8 + 12 + 16 + 4)
/* Maximum age of a path MTU that the kernel reported, when a QP connects. */
#define CONNECT_MAX_AGE_MS 100
/* Minimum time between two messages, since many QPs may share a path. */
#define MESSAGE_INTERVAL_NS 1000000000ull

static const char *address_text(const uint8_t address[16], char text[INET6_ADDRSTRLEN])
{
	if (gid_is_ipv4(address))
		return inet_ntop(AF_INET, address + sizeof(gid_ipv4_prefix), text,
				 INET6_ADDRSTRLEN);
	return inet_ntop(AF_INET6, address, text, INET6_ADDRSTRLEN);
}

/* Returns true if there has been no message for MESSAGE_INTERVAL_NS. */
static bool message_allowed(void)
{
	static atomic_uint_fast64_t next_message_time;
	uint64_t now = progress_now(), until = atomic_load(&next_message_time);

	return now >= until && atomic_compare_exchange_strong(&next_message_time, &until,
							      now + MESSAGE_INTERVAL_NS);
}

static void report(const struct uroce_qp *qp, const struct link_path *path, enum ibv_mtu path_mtu,
		   uint32_t packet, uint32_t actual_mtu)
{
	char src[INET6_ADDRSTRLEN], dst[INET6_ADDRSTRLEN];

	uroce_err("queue pair %u sends packets of up to %u bytes (path MTU %u), but the path "
		  "from %s to %s carries %u: give the queue pair a path MTU of at most %u, or "
		  "the path a larger one",
		  qp->progress.qpn, packet, MTU_BYTES(path_mtu), address_text(path->src, src),
		  address_text(path->dst, dst), actual_mtu,
		  MTU_BYTES(uroce_active_mtu(actual_mtu)));
}

static void check_path(struct uroce_qp *qp, enum ibv_mtu path_mtu, unsigned int max_age_ms)
{
	uint32_t actual_mtu = link_peer_mtu(qp->progress.peer, max_age_ms), packet;
	struct link_path path;

	link_peer_path(qp->progress.peer, &path);
	packet = MTU_BYTES(path_mtu) + PACKET_OVERHEAD;
	packet += gid_is_ipv4(path.dst) ? WIRE_IPV4_BYTES : WIRE_IPV6_BYTES;
	if (!actual_mtu || actual_mtu >= packet)
		return;
	progress_count_event(qp->progress.worker, PROGRESS_COUNT_PATH_TOO_SMALL);
	if (message_allowed())
		report(qp, &path, path_mtu, packet, actual_mtu);
}

void uroce_path_mtu_check(struct uroce_qp *qp, enum ibv_mtu path_mtu)
{
	check_path(qp, path_mtu, CONNECT_MAX_AGE_MS);
}

void uroce_path_mtu_schedule_check(struct progress_qp *progress_qp)
{
	struct uroce_qp *qp = to_uroce_qp_of_progress(progress_qp);

	qp->path_mtu_check_pending = true;
	uroce_qp_work_schedule();
}

void uroce_path_mtu_run_scheduled(struct uroce_qp *qp)
{
	if (!qp->path_mtu_check_pending)
		return;
	qp->path_mtu_check_pending = false;
	if (qp->progress.peer)
		check_path(qp, qp->attr.path_mtu, 0);
}
