/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <errno.h>

#include "verbs/abi/abi.h"
#include "verbs/abi/ops.h"

/* Since v59: reg_mr or reg_dmabuf_mr with a structure.  Its DMA handles are not supported. */
struct ibv_mr *uroce_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *init_attr)
{
	const struct abi_mr_init_attr *attr = (const void *)init_attr;

	switch (attr->comp_mask) {
	case ABI_MR_INIT_ADDR:
		return uroce_reg_mr(pd, attr->addr, attr->length, (uintptr_t)attr->addr,
				    attr->access);
	case ABI_MR_INIT_ADDR | ABI_MR_INIT_IOVA:
		return uroce_reg_mr(pd, attr->addr, attr->length, attr->iova, attr->access);
	case ABI_MR_INIT_FD | ABI_MR_INIT_FD_OFFSET | ABI_MR_INIT_IOVA:
		return uroce_reg_dmabuf_mr(pd, attr->fd_offset, attr->length, attr->iova, attr->fd,
					   attr->access);
	default:
		errno = attr->comp_mask & ~(uint64_t)ABI_MR_INIT_ALL ? EOPNOTSUPP : EINVAL;
		return NULL;
	}
}
