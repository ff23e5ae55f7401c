/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Abilities of the host's kernel, and its limits */
#ifndef UROCE_CHECK_HOST_H
#define UROCE_CHECK_HOST_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Returns the size of a send or receive buffer (SO_SNDBUF, SO_RCVBUF) that a UDP socket gets when
 * it requests this many bytes, or 0 if there is no such socket.
 */
uint32_t host_socket_buffer(int option, uint32_t requested);

/*
 * Returns NULL if another process can write to this process's memory file, of the size that workers
 * use; else the name of the step that failed, with errno.
 */
const char *host_share_memory(void);

#endif
