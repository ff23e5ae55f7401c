/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Memory that a process shares with others by a descriptor.  Its size is sealed, for a file that is
 * made smaller kills those that read it; and its owner holds a lock on it as long as it lives.
 */
#ifndef UROCE_LINK_MEMORY_FILE_H
#define UROCE_LINK_MEMORY_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* A new one of zeros: a descriptor, or a negative errno. */
int memory_file_make(const char *name, size_t bytes);

/* Has another process made fd like this, of this size? */
bool memory_file_is(int fd, size_t bytes);

/* 1, 0 when the owner has ended or closed it, or a negative errno. */
int memory_file_owner_lives(int fd);

/* Readable, writable and not inherited by forked children; NULL when that cannot be. */
void *memory_file_map(int fd, size_t bytes, size_t offset);

#endif
