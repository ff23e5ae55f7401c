/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#ifndef UROCE_TESTS_UNIT_UCM_MEMORY_H
#define UROCE_TESTS_UNIT_UCM_MEMORY_H

/* The allocation of this number from now on fails, 1 being the next; 0: none. */
void fail_allocation(unsigned int number);

#endif
