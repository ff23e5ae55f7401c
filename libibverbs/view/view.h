/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Names shared by uroce-view and the preloaded library (calls.c). */
#ifndef UROCE_VIEW_VIEW_H
#define UROCE_VIEW_VIEW_H

/* Environment variable: path of the tree (tree.h). */
#define VIEW_VARIABLE "UROCE_VIEW"
#define VIEW_LIBRARY "liburoce-view.so"

#endif
