/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Memory that a process shares with others by passing a descriptor.  Its size is sealed, because
 * access to a truncated file would end the processes that have mapped it.  The owner holds a lock
 * on it until it exits.
 */
#ifndef UROCE_LINK_SHM_MEMFD_H
#define UROCE_LINK_SHM_MEMFD_H

#include <stdbool.h>
#include <stddef.h>

/* Creates a zeroed memory file of this process.  Returns a descriptor or a negative errno. */
int memfd_make(const char *name, size_t bytes);

/* Returns true if fd is a memory file of this size whose size is sealed. */
bool memfd_verify(int fd, size_t bytes);

/* Returns 1 if the owner is alive, 0 if it has exited or closed fd, or a negative errno. */
int memfd_owner_alive(int fd);

/*
 * Maps the file, readable and writable.  Forked children and core files do not get the mapping.
 * Returns NULL on failure.
 */
void *memfd_map(int fd, size_t bytes, size_t offset);

#endif
