/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What valgrind's helgrind is told: it knows locks, but not C11 atomics, and on x86 it takes their
 * loads and stores for those of plain variables.
 *
 * The request is a few instructions without effect outside valgrind, so it belongs where a variable
 * is made, never on the way of a message.  With it helgrind leaves the variable alone until its
 * memory is freed; the thread sanitizer, which does know atomics, still judges it.
 */
#ifndef UROCE_PROGRESS_HELGRIND_H
#define UROCE_PROGRESS_HELGRIND_H

#if defined(__has_include)
#if __has_include(<valgrind/helgrind.h>)
#include <valgrind/helgrind.h>
#endif
#endif

/* The variable (or array) is atomic, or in the care of one that is: the comment there says how. */
#ifdef VALGRIND_HG_DISABLE_CHECKING
#define HELGRIND_IS_ATOMIC(variable) VALGRIND_HG_DISABLE_CHECKING(&(variable), sizeof(variable))
#else
#define HELGRIND_IS_ATOMIC(variable) ((void)(variable))
#endif

#endif
