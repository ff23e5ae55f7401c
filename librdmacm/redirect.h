/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Connects an unmodified librdmacm to uroce's connection manager.  librdmacm reaches the kernel
 * only by write() on /dev/infiniband/rdma_cm, so the GOT entries of open, openat, fstat, write and
 * close, and of their variants (calls.c), are replaced in that one library
 * (Documentation/decisions/way-in.md).  Calls for other files are forwarded to the C library.
 */
#ifndef UROCE_LIBRDMACM_REDIRECT_H
#define UROCE_LIBRDMACM_REDIRECT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Redirects the calls of librdmacm, if the code at address belongs to it.  Called whenever a
 * library lists devices, which librdmacm does before it opens its first channel.  Repeated calls
 * have no effect, except after the library has been unloaded and loaded again.
 *
 * Only the calling library is examined: its relocation is complete, whereas the loader may be
 * relocating others in another thread.
 */
void redirect_if_librdmacm(const void *address);

/* Returns true if the code at address belongs to librdmacm. */
bool redirect_is_librdmacm(const void *address);

/*
 * librspreload turns all sockets of a process into rsockets; the UDP sockets under an rsocket would
 * be rsockets themselves.  If it is loaded, the calls of the library at address are redirected from
 * librspreload to the C library.
 */
void redirect_past_preload(const void *address);

/* Returns the address that replaces the imported function name, or 0 to leave it unchanged. */
typedef uintptr_t (*replacement_fn)(const char *name);

/* Replaces the imported functions of the library that contains address. */
void redirect_calls(const void *address, replacement_fn replacement);

/* Returns the function of calls.c that replaces the function name in librdmacm, or 0. */
uintptr_t redirect_find_hook(const char *name);

#endif
