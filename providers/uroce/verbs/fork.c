/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "fork.h"

unsigned int uroce_generation = 1;
