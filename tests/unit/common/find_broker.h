/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#ifndef UROCE_TESTS_FIND_BROKER_H
#define UROCE_TESTS_FIND_BROKER_H

#include <sys/types.h>

/*
 * Returns the process id of the broker that new clients of this user get, and stores the number in
 * its name unless number is NULL.  Fails the test if there is no broker.
 */
pid_t find_broker(unsigned int *number);

#endif
