/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A host without network for tests of providers/uroce/ucm: two devices, queue pair 1 whose messages
 * come back to this process when world_deliver() is called, and a clock that stands still.  It
 * takes the place of progress/gsi/gsi.h, of ucm/addr/devices.h, and of what ucm needs of verbs.
 */
#ifndef UROCE_TESTS_UNIT_UCM_WORLD_H
#define UROCE_TESTS_UNIT_UCM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* 127.0.0.1 on it; the other device has 10.0.0.1. */
#define WORLD_LOOPBACK 1
#define WORLD_DEVICE 2
#define WORLD_GUID UINT64_C(0x0200000000000001)

/* Messages that wait are received, and those that come of it, until none is left; how many. */
unsigned int world_deliver(void);
void world_deliver_one(void);
/* Messages that wait are lost; how many. */
unsigned int world_lose(void);
/* Time passes; what is due happens. */
void world_pass(uint64_t nanoseconds);
/* Messages that lie ready for the case that this process dies. */
unsigned int world_last_messages(void);
/* The peer of this queue pair hides its credits: has it promised them? */
bool world_credits_hidden(uint32_t qpn);
/* The first request has come to this queue pair. */
void world_first_request(uint32_t qpn);
/* Connections of the protocol, whatever knows of them. */
unsigned int world_connections(void);
/* Ports that are bound now. */
unsigned int world_ports(void);
/* From now on the devices' path MTU has this code (5). */
void world_set_mtu(uint8_t code);
/* As UROCE_LOOPBACK=off does: no list of devices has the loopback one. */
void world_hide_loopback(bool hide);
/* This device is gone, and all others are there. */
void world_remove_device(uint32_t number);
/* From now on no neighbour is resolved, or all are. */
void world_hold_neighbours(bool hold);
/* Runs the work that was scheduled last, in place of its thread. */
void world_run_work(void);
/* Errno for the next gsi_addr_get(). */
void world_refuse(int error);

/* The way in, as librdmacm uses it. */
int world_open(void);
bool world_close(int fd);
/* write() of a command: header and body.  0 or an errno. */
int world_call(int fd, unsigned int command, const void *body, size_t in, size_t out);

#endif
