/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Child processes for the tests of the link.  A child opens the link and an address, executes the
 * orders of the test, forwards datagrams for other slots as progress would, and reports each
 * datagram for its own slot.
 *
 * A test datagram resembles a packet only in the destination QPN, in bytes 5 to 7; bytes 8 to 11
 * are a tag.
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

/* Order to the child.  CHILD_SEND uses the address that the child opened last. */
struct child_order {
	enum { CHILD_SHARE, CHILD_SEND, CHILD_ADD_SLOT } what;
	bool on; /* CHILD_SHARE: link_set_shared_memory() */
	/*
	 * CHILD_SEND: number of bursts and bytes per burst; the first burst has this tag, the next
	 * one tag + 1 and so on.  The peer stays open for the next order.
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
	unsigned int segments; /* number of segments of its batch */
	uint16_t src_port;
	bool forwarded;
	bool memory; /* received through shared memory */
};

struct link_child {
	pid_t pid;
	int sock;
	unsigned int slot;
};

/* cmocka setup function: enters a new network namespace with lo up, if permitted. */
int enter_new_netns(void **state);
bool in_new_netns(void);

/*
 * Forks a child that runs as the user uid (0: as the caller's user) and opens the address gid;
 * *report is the result.  The caller's own link (or NULL) is served while the child opens.
 */
void child_start(struct link_child *child, uid_t uid, const uint8_t gid[16], struct link *own,
		 struct child_report *report);
/* child_start() that must succeed. */
void child_start_good(struct link_child *child, uid_t uid, const uint8_t gid[16], struct link *own);
/* Lets the child open one more address; the child reports the result later. */
void child_open(struct link_child *child, const uint8_t gid[16]);
/* child_open() that must succeed; receives the report as well. */
void child_open_good(struct link_child *child, const uint8_t gid[16], struct link *own);
/* Sends an order to the child, which reports the result. */
void child_order(struct link_child *child, const struct child_order *order);
/* Turns the child's use of shared memory on or off. */
void child_share(struct link_child *child, struct link *own, bool on);
/* Lets the child add a slot.  Returns the slot. */
unsigned int child_add_slot(struct link_child *child, struct link *own);
/* Receives the child's next report.  Returns false if none arrives within timeout_ms. */
bool child_report(struct link_child *child, struct link *own, int timeout_ms,
		  struct child_report *report);
/*
 * Receives the next report, which must be that of an intact datagram for the child's own slot, with
 * this QPN and tag.
 */
struct child_report child_expect_datagram(struct link_child *child, struct link *own, uint32_t qpn,
					  uint32_t tag);
/* Ends the child, by its own link_close() or by SIGKILL, and waits for its end. */
void child_stop(struct link_child *child);
void child_kill(struct link_child *child);

/* Write a test datagram. */
void put_datagram(uint8_t *bytes, size_t length, uint32_t qpn, uint32_t tag);
uint32_t datagram_qpn(const uint8_t *bytes);
uint32_t datagram_tag(const uint8_t *bytes);
/*
 * Handles pending messages of the link, and discards datagrams that other processes have forwarded
 * to it.  Returns true if a doorbell of shared memory was received.
 */
bool serve(struct link *link);
/* Receives, waiting for at most timeout_ms.  Returns the result of link_receive(). */
int receive_wait(struct link_addr *addr, struct link_batch *batch, int timeout_ms);
/* Send one datagram of 40 bytes from source port 0xc000. */
void send_to_qpn(struct link_addr *addr, const uint8_t dst[16], uint32_t qpn, uint32_t tag);
/* Changes the user of this (forked) process to uid. */
void become_user(uid_t uid);
/* Skip the test if the user is not root. */
void need_root(void);
/*
 * Waits for the end of a forked child, which must exit with 0; own (or NULL) is served in between.
 */
void await_child(pid_t child, struct link *own);
/* Kills a forked child and waits for its end.  Fails if the child has ended by itself before. */
void kill_child(pid_t child);
int64_t now_ms(void);
/*
 * Returns true if one of five attempts takes less than the limit: other processes may occupy the
 * processor during any of them.
 */
bool takes_less(int64_t limit_ms, int64_t (*attempt_ms)(void *arg), void *arg);
/* Number of descriptors of this process, plus a small constant. */
unsigned int count_descriptors(void);

#endif
