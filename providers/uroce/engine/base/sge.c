/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "sge.h"

#include <string.h>

/*
 * Returns the index of the element that contains offset, or count if none does, and sets *offset to
 * the offset in that element.  Skips elements of length 0.
 */
static uint32_t find(const struct eng_sge *list, uint32_t count, uint32_t *offset)
{
	uint32_t i = 0;

	while (i < count && *offset >= list[i].length)
		*offset -= list[i++].length;
	return i;
}

bool sge_scatter(struct eng_qp *qp, const struct eng_sge *list, uint32_t count, uint32_t offset,
		 const uint8_t *bytes, uint32_t length)
{
	enum eng_use use = list == qp->recv_sge ? ENG_USE_RECEIVE : ENG_USE_RESULT;
	uint32_t i;

	for (i = find(list, count, &offset); length > 0; i++, offset = 0) {
		uint32_t n;
		void *to;

		if (i >= count)
			return false;
		n = list[i].length - offset;
		if (n > length)
			n = length;
		if (n == 0)
			continue;
		to = qp->ops->map_local(qp->owner, list[i].lkey, list[i].addr + offset, n, use);
		if (!to)
			return false;
		memcpy(to, bytes, n);
		bytes += n;
		length -= n;
	}
	return true;
}

const uint8_t *sge_piece(struct eng_qp *qp, const struct eng_sge *list, uint32_t count,
			 uint32_t offset, uint32_t length, uint32_t *piece)
{
	uint32_t i = find(list, count, &offset);

	if (i >= count)
		return NULL;
	*piece = list[i].length - offset;
	if (*piece > length)
		*piece = length;
	return qp->ops->map_local(qp->owner, list[i].lkey, list[i].addr + offset, *piece,
				  ENG_USE_SEND);
}

bool sge_usable(struct eng_qp *qp, const struct eng_sge *list, uint32_t count, enum eng_use use)
{
	for (uint32_t i = 0; i < count; i++)
		if (list[i].length > 0 &&
		    !qp->ops->map_local(qp->owner, list[i].lkey, list[i].addr, list[i].length, use))
			return false;
	return true;
}
