/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A simulated host without network for tests of providers/uroce/ucm: two devices, queue pair 1
 * whose MADs return to this process when world_deliver() is called, and a clock that only
 * world_pass() advances.  Replaces the functions of progress/gsi/gsi.h, of ucm/addr/devices.h, and
 * those of verbs that ucm calls.
 */
#ifndef UROCE_TESTS_UNIT_UCM_WORLD_H
#define UROCE_TESTS_UNIT_UCM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Device numbers: the first device has address 127.0.0.1, the other one 10.0.0.1. */
#define WORLD_LOOPBACK 1
#define WORLD_DEVICE 2
#define WORLD_GUID UINT64_C(0x0200000000000001)

/*
 * Delivers pending messages, and those sent in response, until none is left.  Returns their number.
 */
unsigned int world_deliver(void);
void world_deliver_one(void);
/* Drops all pending messages.  Returns their number. */
unsigned int world_lose(void);
/* Advances the clock; timers that are due expire. */
void world_pass(uint64_t nanoseconds);
/* Number of last messages, which the broker would send if this process were killed. */
unsigned int world_last_messages(void);
/*
 * Reports that the peer of this QP does not report credits.  Returns true, once per QP, if the peer
 * has promised them (rule C19).
 */
bool world_credits_hidden(uint32_t qpn);
/* Reports that this QP has received its first request. */
void world_first_request(uint32_t qpn);
/* Number of connections of the CM protocol, whether or not an id refers to them. */
unsigned int world_connections(void);
/* Number of bound ports. */
unsigned int world_ports(void);
/* Sets the code of the path MTU of both devices, initially 5. */
void world_set_mtu(uint8_t code);
/* Has the effect of UROCE_LOOPBACK=off: no list of devices contains the loopback device. */
void world_hide_loopback(bool hide);
/* Removes this device (0: none); all others are present. */
void world_remove_device(uint32_t number);
/* From now on no neighbour is resolved (hold), or all are. */
void world_hold_neighbours(bool hold);
/* Runs the work that was scheduled last, in place of its thread. */
void world_run_work(void);
/* Makes the next gsi_addr_get() fail with this errno. */
void world_refuse(int error);

/* Entry points, as librdmacm calls them. */
int world_open(void);
bool world_close(int fd);
/* Writes a command, header and body.  Returns 0 or an errno. */
int world_call(int fd, unsigned int command, const void *body, size_t in, size_t out);

#endif
