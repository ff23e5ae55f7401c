/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "path_mtu.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdatomic.h>

#include "verbs/complain.h"
#include "verbs/completion/cq_overrun.h"

#define MTU_BYTES(mtu) (128u << (mtu))
/* Headers of the first packet of a WRITE: UDP, BTH, RETH, ICRC.  The IP header is added below. */
#define PACKET_OVERHEAD (8 + 12 + 16 + 4)
#define IPV4_BYTES 20
#define IPV6_BYTES 40
/* Maximum age of a path MTU that the kernel reported, when a QP connects. */
#define CONNECT_AGE_MS 100
/* Minimum time between two messages, since many QPs may share a path. */
#define QUIET_NS 1000000000ull

static const char *text_of(const uint8_t address[16], char text[INET6_ADDRSTRLEN])
{
	if (link_gid_is_ipv4(address))
		return inet_ntop(AF_INET, address + sizeof(link_ipv4_prefix), text,
				 INET6_ADDRSTRLEN);
	return inet_ntop(AF_INET6, address, text, INET6_ADDRSTRLEN);
}

/* Returns true if there has been no message for QUIET_NS. */
static bool may_speak(void)
{
	static atomic_uint_fast64_t quiet_until;
	uint64_t now = progress_now(), until = atomic_load(&quiet_until);

	return now >= until && atomic_compare_exchange_strong(&quiet_until, &until, now + QUIET_NS);
}

static void tell(const struct uroce_qp *qp, const struct link_path *path, enum ibv_mtu path_mtu,
		 uint32_t packet, uint32_t carried)
{
	char here[INET6_ADDRSTRLEN], there[INET6_ADDRSTRLEN];

	uroce_complain("queue pair %u sends packets of up to %u bytes (path MTU %u), but the path "
		       "from %s to %s carries %u: give the queue pair a path MTU of at most %u, or "
		       "the path a larger one",
		       qp->progress.qpn, packet, MTU_BYTES(path_mtu), text_of(path->src, here),
		       text_of(path->dst, there), carried, MTU_BYTES(uroce_active_mtu(carried)));
}

static void check(struct uroce_qp *qp, enum ibv_mtu path_mtu, unsigned int max_age_ms)
{
	uint32_t carried = link_peer_mtu(qp->progress.peer, max_age_ms), packet;
	struct link_path path;

	link_peer_path(qp->progress.peer, &path);
	packet = MTU_BYTES(path_mtu) + PACKET_OVERHEAD;
	packet += link_gid_is_ipv4(path.dst) ? IPV4_BYTES : IPV6_BYTES;
	if (!carried || carried >= packet)
		return;
	progress_note(qp->progress.worker, PROGRESS_COUNT_PATH_TOO_SMALL);
	if (may_speak())
		tell(qp, &path, path_mtu, packet, carried);
}

void uroce_path_check(struct uroce_qp *qp, enum ibv_mtu path_mtu)
{
	check(qp, path_mtu, CONNECT_AGE_MS);
}

void uroce_path_suspect(struct progress_qp *progress_qp)
{
	struct uroce_qp *qp = to_uroce_qp_of_progress(progress_qp);

	qp->path_suspect = true;
	uroce_overrun_signal();
}

void uroce_path_look(struct uroce_qp *qp)
{
	if (!qp->path_suspect)
		return;
	qp->path_suspect = false;
	if (qp->progress.peer)
		check(qp, qp->attr.path_mtu, 0);
}
