/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The end of a QP's way to its peer; the beginning is progress_qp_connect().
 */
#ifndef UROCE_PROGRESS_ROUTE_H
#define UROCE_PROGRESS_ROUTE_H

#include "instance.h"

/* Control.  No turn knows qp any more. */
void route_close(struct progress *progress, struct progress_qp *qp);

#endif
