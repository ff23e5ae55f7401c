/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#ifndef UROCE_TESTS_UNIT_UCM_MEMORY_H
#define UROCE_TESTS_UNIT_UCM_MEMORY_H

/* Makes the allocation with this number fail, 1 being the next one; 0: none. */
void fail_allocation(unsigned int number);

#endif
