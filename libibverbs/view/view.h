/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* What uroce-view and the library of redirected calls agree on. */
#ifndef UROCE_VIEW_VIEW_H
#define UROCE_VIEW_VIEW_H

/* The folder that holds the tree (tree.h). */
#define VIEW_VARIABLE "UROCE_VIEW"
#define VIEW_LIBRARY "liburoce-view.so"

#endif
