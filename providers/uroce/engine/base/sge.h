/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Lists of scatter/gather elements, accessed by offset. */
#ifndef UROCE_ENGINE_BASE_SGE_H
#define UROCE_ENGINE_BASE_SGE_H

#include "engine/qp_priv.h"

/* Copies length bytes into the list, from offset on.  Returns false if memory cannot be used. */
bool sge_scatter(struct eng_qp *qp, const struct eng_sge *list, uint32_t count, uint32_t offset,
		 const uint8_t *bytes, uint32_t length);

/*
 * Returns the longest contiguous range that starts at offset, of at most length bytes, and sets
 * *piece to its length; NULL if its memory cannot be used.
 */
const uint8_t *sge_piece(struct eng_qp *qp, const struct eng_sge *list, uint32_t count,
			 uint32_t offset, uint32_t length, uint32_t *piece);

/* Returns true if all memory of the list passes the L_Key and bounds check for this use. */
bool sge_usable(struct eng_qp *qp, const struct eng_sge *list, uint32_t count, enum eng_use use);

#endif
