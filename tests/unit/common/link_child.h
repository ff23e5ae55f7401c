/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Other processes for the tests of the link: a child opens the link and an address, serves
 * requests, forwards what belongs to other slots as progress would, and reports each datagram that
 * reaches it.
 *
 * A test datagram looks enough like a packet: the destination QPN in bytes 5 to 7, a tag in 8
 * to 11.
 */
#ifndef UROCE_TESTS_LINK_CHILD_H
#define UROCE_TESTS_LINK_CHILD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>

#include "link/link.h"

#define CHILD_NOBODY 65534

/* Time limit for an event, on a host with much other work. */
enum { CHILD_TIMEOUT_MS = 30000 };

extern const uint8_t loopback4[16]; /* 127.0.0.1 */
extern const uint8_t other4[16];    /* 127.0.0.2 */
extern const uint8_t loopback6[16]; /* ::1 */

enum child_event {
	CHILD_OPENED,	/* result of opening: error, slot, text */
	CHILD_DATAGRAM, /* one datagram for the child's own slot */
	CHILD_DONE,	/* result of an order: error */
};

/* To the child, about the address that it opened last. */
struct child_order {
	enum { CHILD_SHARE, CHILD_SEND, CHILD_ADD_SLOT } what;
	bool on; /* CHILD_SHARE: link_set_shared_memory() */
	/* CHILD_SEND: bursts of so many bytes with the tags from tag on, by a peer that stays open.
	 */
	uint32_t qpn, tag, bursts, bytes, segment;
};

struct child_report {
	enum child_event event;
	int error;
	unsigned int slot;
	char text[LINK_ERROR_TEXT];
	uint32_t qpn;
	uint32_t tag;
	unsigned int bytes;
	unsigned int segments; /* of the batch it came in */
	uint16_t src_port;
	bool forwarded;
	bool memory; /* it came through shared memory */
};

struct link_child {
	pid_t pid;
	int sock;
	unsigned int slot;
};

/* A cmocka setup function: a network namespace of its own with lo up, where that is allowed. */
int enter_new_netns(void **state);
bool in_new_netns(void);

/*
 * Forks a child of a user (0: of the caller's) that opens the address gid; *report is the result.
 * The caller's own link (or NULL) is served while the child opens.
 */
void child_start(struct link_child *child, uid_t uid, const uint8_t gid[16], struct link *own,
		 struct child_report *report);
/* The same, and it must work. */
void child_start_good(struct link_child *child, uid_t uid, const uint8_t gid[16], struct link *own);
/* Let the child open one more address; its report comes later. */
void child_open(struct link_child *child, const uint8_t gid[16]);
/* The same, and it must work. */
void child_open_good(struct link_child *child, const uint8_t gid[16], struct link *own);
/* Have an order done: the result is in the next report. */
void child_order(struct link_child *child, const struct child_order *order);
/* Let the child share memory, or not. */
void child_share(struct link_child *child, struct link *own, bool on);
/* Makes the child get a further slot.  Returns it. */
unsigned int child_add_slot(struct link_child *child, struct link *own);
/* The next report within some milliseconds: false when there is none. */
bool child_report(struct link_child *child, struct link *own, int timeout_ms,
		  struct child_report *report);
/* It must come, and be of a whole datagram in the child's own slot. */
struct child_report child_expect_datagram(struct link_child *child, struct link *own, uint32_t qpn,
					  uint32_t tag);
/* End it and wait for its end: by its own link_close() or by kill -9. */
void child_stop(struct link_child *child);
void child_kill(struct link_child *child);

/* Write a test datagram. */
void put_datagram(uint8_t *bytes, size_t length, uint32_t qpn, uint32_t tag);
uint32_t datagram_qpn(const uint8_t *bytes);
uint32_t datagram_tag(const uint8_t *bytes);
/*
 * Serve what waits; what is passed on to this link is thrown away.  Returns true if a writer of
 * shared memory has rung.
 */
bool serve(struct link *link);
/* Receive within some milliseconds; the result of link_receive(). */
int receive_wait(struct link_addr *addr, struct link_batch *batch, int timeout_ms);
/* Send one datagram of 40 bytes from source port 0xc000. */
void send_to_qpn(struct link_addr *addr, const uint8_t dst[16], uint32_t qpn, uint32_t tag);
/* Let the user be uid in this (forked) process. */
void become_user(uid_t uid);
/* Skip the test if the user is not root. */
void need_root(void);
/*
 * Waits for the end of a forked child, which must exit with 0; own (or NULL) is served in between.
 */
void await_child(pid_t child, struct link *own);
int64_t now_ms(void);
/*
 * Returns true if one of five attempts takes less than the limit: others may have the processor in
 * any of them.
 */
bool takes_less(int64_t limit_ms, int64_t (*attempt_ms)(void *arg), void *arg);
/* Number of descriptors of this process, plus a small constant. */
unsigned int count_descriptors(void);

#endif
