/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "counts.h"

#include <stddef.h>

const struct count_row count_rows[] = {
#define ROW(field, words, kind)                            \
	{ .name = #field,                                  \
	  .label = (words),                                \
	  .offset = offsetof(struct stream_counts, field), \
	  .unit = COUNT_##kind },
	STREAM_COUNTS(ROW)
#undef ROW
		{ 0 },
};
