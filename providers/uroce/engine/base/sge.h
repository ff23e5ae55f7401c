/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A message's bytes as they lie in memory: lists of scatter/gather elements, walked by offset.
 */
#ifndef UROCE_ENGINE_BASE_SGE_H
#define UROCE_ENGINE_BASE_SGE_H

#include "engine/qp_priv.h"

/* Copy length bytes into the list, from offset on.  False when memory cannot be used. */
bool sge_scatter(struct eng_qp *qp, const struct eng_sge *list, uint32_t count, uint32_t offset,
		 const uint8_t *bytes, uint32_t length);

/*
 * The longest piece of the list that starts at offset and has at most length bytes; NULL when
 * its memory cannot be used.  *piece gets its length.
 */
const uint8_t *sge_piece(struct eng_qp *qp, const struct eng_sge *list, uint32_t count,
			 uint32_t offset, uint32_t length, uint32_t *piece);

/* Returns true if all memory of the list allows that use. */
bool sge_usable(struct eng_qp *qp, const struct eng_sge *list, uint32_t count, enum eng_use use);

#endif
