/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "responder.h"

#include <string.h>

#include "resp_res.h"

/* Stores eight bytes in one access; acknowledged as a READ of zero bytes is. */
enum request_error execute_atomic_write(struct eng_qp *qp, const struct wire_packet *packet)
{
	uint64_t value, *target = qp->ops->map_remote(qp->owner, packet->rkey, packet->va,
						      sizeof(*target), ENG_REMOTE_WRITE);

	if (!target)
		return REQUEST_REMOTE_ACCESS;
	if ((uintptr_t)target % sizeof(*target))
		return REQUEST_INVALID;
	memcpy(&value, packet->payload, sizeof(value));
	__atomic_store_n(target, value, __ATOMIC_SEQ_CST);
	resp_res_new(qp, packet->psn, 1);
	return REQUEST_RIGHT;
}

/* Acknowledged as a READ of zero bytes is. */
enum request_error execute_flush(struct eng_qp *qp, const struct wire_packet *packet)
{
	const struct eng_flush flush = {
		.addr = packet->va,
		.length = packet->dma_length,
		.rkey = packet->rkey,
		.need = flush_rights(packet),
		.whole_region = packet->flush & WIRE_FLUSH_MR,
	};

	if (!qp->ops->flush || !qp->ops->flush(qp->owner, &flush))
		return REQUEST_REMOTE_ACCESS;
	resp_res_new(qp, packet->psn, 1);
	return REQUEST_RIGHT;
}

/*
 * Executes the Atomic and returns the value before it.  Also atomic with respect to other threads
 * of this host that use atomic instructions.
 */
static uint64_t atomic_apply(uint64_t *target, const struct wire_packet *packet)
{
	uint64_t expected = packet->compare;

	if ((packet->opcode & WIRE_OPERATION_MASK) == WIRE_FETCH_ADD)
		return __atomic_fetch_add(target, packet->swap_add, __ATOMIC_SEQ_CST);
	__atomic_compare_exchange_n(target, &expected, packet->swap_add, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_SEQ_CST);
	return expected;
}

enum request_error execute_atomic(struct eng_qp *qp, const struct wire_packet *packet)
{
	uint64_t *target = qp->ops->map_remote(qp->owner, packet->rkey, packet->va, sizeof(*target),
					       ENG_REMOTE_ATOMIC);
	struct resp_res *entry;

	if (!target)
		return REQUEST_REMOTE_ACCESS;
	if ((uintptr_t)target % sizeof(*target))
		return REQUEST_INVALID;
	entry = resp_res_new(qp, packet->psn, 1);
	entry->kind = RESP_RES_ATOMIC;
	entry->original = atomic_apply(target, packet);
	return REQUEST_RIGHT;
}
