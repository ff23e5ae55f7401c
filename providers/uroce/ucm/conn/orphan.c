/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <string.h>

#include "cm/msg/mad.h"
#include "connection.h"

/* Pauses between checks: a peer that exits, or is killed later, still has its slot at first. */
#define PAUSE_FIRST_NS UINT64_C(500000000)
#define PAUSE_LAST_NS UINT64_C(16000000000)

static uint64_t next_check = UINT64_MAX, pause_ns;

/* Connections must not change while they are visited, so orphans are collected first. */
enum { ORPHANS_AT_ONCE = 64 };

struct orphan_search {
	struct cm_conn_info orphan[ORPHANS_AT_ONCE];
	unsigned int found;
};

/* Checks only connections of an address with itself, as most within a host are. */
static void collect_orphan(void *arg, const struct cm_conn *conn)
{
	struct orphan_search *search = arg;
	struct cm_conn_info *info = &search->orphan[search->found];

	if (search->found == ORPHANS_AT_ONCE)
		return;
	cm_conn_info(conn, info);
	search->found += info->state == CM_ESTABLISHED &&
			 memcmp(info->path.sgid, info->path.dgid, sizeof(info->path.sgid)) == 0 &&
			 gsi_is_orphan(info->remote_qpn);
}

static void inject_dreq(struct cm *cm, const struct cm_conn_info *orphan, uint64_t now)
{
	const struct mad dreq = {
		.attr = MAD_DREQ,
		.transaction_id = (uint64_t)MAD_DREQ << 32 | orphan->remote_id,
		.dreq = { .local_id = orphan->remote_id,
			  .remote_id = orphan->local_id,
			  .remote_qpn = orphan->local_qpn },
	};
	uint8_t bytes[MAD_BYTES];

	mad_encode(&dreq, bytes);
	cm_receive(cm, &orphan->path, bytes, sizeof(bytes), now);
}

void ucm_orphans_start_checks(uint64_t now)
{
	pause_ns = PAUSE_FIRST_NS;
	next_check = now + pause_ns;
}

uint64_t ucm_orphans_deadline(void)
{
	return next_check;
}

void ucm_orphans_check(struct cm *cm, uint64_t now)
{
	struct orphan_search search;

	if (now < next_check)
		return;
	pause_ns *= 2;
	next_check = pause_ns <= PAUSE_LAST_NS ? now + pause_ns : UINT64_MAX;
	do {
		search.found = 0;
		cm_each_conn(cm, collect_orphan, &search);
		for (unsigned int i = 0; i < search.found; i++)
			inject_dreq(cm, &search.orphan[i], now);
	} while (search.found == ORPHANS_AT_ONCE);
}
