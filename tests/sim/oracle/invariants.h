/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#ifndef UROCE_TESTS_SIM_INVARIANTS_H
#define UROCE_TESTS_SIM_INVARIANTS_H

#include "engine/engine.h"

/* Asserts the invariants of the queue pair, which hold between two calls of the engine. */
void oracle_check_invariants(const struct eng_qp *qp);

#endif
