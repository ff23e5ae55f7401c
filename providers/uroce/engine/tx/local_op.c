/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "local_op.h"

enum eng_status local_execute(struct eng_qp *qp, const struct eng_send_wqe *wqe)
{
	if (wqe->op == ENG_BIND_MW)
		return qp->ops->bind && qp->ops->bind(qp->owner, wqe) ? ENG_SUCCESS
								      : ENG_MW_BIND_ERR;
	/* LOCAL_INV: wqe->immediate is the key to invalidate. */
	return qp->ops->invalidate && qp->ops->invalidate(qp->owner, wqe->immediate)
		       ? ENG_SUCCESS
		       : ENG_LOC_PROT_ERR;
}
