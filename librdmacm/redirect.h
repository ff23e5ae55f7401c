/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * How stock librdmacm comes to talk to our connection manager: it speaks to the kernel by write()
 * on descriptors of /dev/infiniband/rdma_cm and by nothing else, so its own calls of open, fstat,
 * write and close are led to us, in that one library (Documentation/decisions/way-in.md).  What is
 * not about the connection manager goes on to the C library.
 */
#ifndef UROCE_LIBRDMACM_REDIRECT_H
#define UROCE_LIBRDMACM_REDIRECT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * If the code at address is a loaded librdmacm's, redirect its calls.  Called whenever that library
 * asks for the list of devices, which it does before it opens its first channel; repeated calls
 * change nothing, and a library that was loaded anew is redirected anew.
 *
 * Only the library that calls is looked at: it has been relocated, whereas the loader may be at
 * work on another one in another thread.
 */
void redirect_if_librdmacm(const void *address);

/* Returns true if the code at address is a loaded librdmacm's. */
bool redirect_is_librdmacm(const void *address);

/*
 * librspreload makes rsockets of all sockets of its process, ours too: the UDP socket under an
 * rsocket would be an rsocket again.  Lead what the library of ours at address calls to the C
 * library, past librspreload where that is loaded.
 */
void redirect_past_preload(const void *address);

/* Returns the address of our function for a call of that name, or 0: the call stays as it is. */
typedef uintptr_t (*replacement_fn)(const char *name);

/* Redirect the calls of the library at address. */
void redirect_calls(const void *address, replacement_fn replacement);

#endif
