/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Annotations for valgrind's helgrind, which knows locks but not C11 atomics: on x86 it takes their
 * loads and stores for those of plain variables.
 *
 * The annotation executes a few instructions without effect outside valgrind, so it must be placed
 * where a variable is initialized, never on the data path.  Helgrind then ignores the variable
 * until its memory is freed; the thread sanitizer, which understands atomics, still checks it.
 */
#ifndef UROCE_PROGRESS_BASE_HELGRIND_H
#define UROCE_PROGRESS_BASE_HELGRIND_H

#if defined(__has_include)
#if __has_include(<valgrind/helgrind.h>)
#include <valgrind/helgrind.h>
#endif
#endif

/*
 * Declares that a variable or array is atomic, or protected by an atomic one as its comment
 * explains.
 */
#ifdef VALGRIND_HG_DISABLE_CHECKING
#define HELGRIND_IS_ATOMIC(variable) VALGRIND_HG_DISABLE_CHECKING(&(variable), sizeof(variable))
#else
#define HELGRIND_IS_ATOMIC(variable) ((void)(variable))
#endif

#endif
