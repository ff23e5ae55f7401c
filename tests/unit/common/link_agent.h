/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Other processes for the tests of the link: an agent opens the link and an address, serves
 * requests, forwards what belongs to other slots as progress would, and reports each datagram that
 * reaches it.
 *
 * A test datagram looks enough like a packet: the destination QPN in bytes 5 to 7, a tag in 8
 * to 11.
 */
#ifndef UROCE_TESTS_LINK_AGENT_H
#define UROCE_TESTS_LINK_AGENT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>

#include "link/link.h"

#define AGENT_NOBODY 65534

/* Time limit for an event, on a host with much other work. */
enum { AGENT_PATIENCE_MS = 10000 };

extern const uint8_t loopback4[16]; /* 127.0.0.1 */
extern const uint8_t other4[16];    /* 127.0.0.2 */
extern const uint8_t loopback6[16]; /* ::1 */

enum agent_event {
	AGENT_OPENED,	/* result of opening: error, slot, text */
	AGENT_DATAGRAM, /* one datagram for the agent's own slot */
	AGENT_DONE,	/* result of an order: error */
};

/* To the agent, about the address that it opened last. */
struct agent_order {
	enum { AGENT_SHARE, AGENT_SEND } what;
	bool on; /* AGENT_SHARE: link_set_shared_memory() */
	/* AGENT_SEND: bursts of so many bytes with the tags from tag on, by a peer that stays open.
	 */
	uint32_t qpn, tag, bursts, bytes, segment;
};

struct agent_report {
	enum agent_event event;
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

struct agent {
	pid_t pid;
	int sock;
	unsigned int slot;
};

/* A cmocka setup function: a network namespace of its own with lo up, where that is allowed. */
int fresh_network(void **state);
bool network_is_fresh(void);

/*
 * Forks an agent of a user (0: of the caller's) that opens the address gid; *report is the result.
 * The caller's own link (or NULL) is served while the agent opens.
 */
void agent_start(struct agent *agent, uid_t uid, const uint8_t gid[16], struct link *own,
		 struct agent_report *report);
/* The same, and it must work. */
void agent_start_good(struct agent *agent, uid_t uid, const uint8_t gid[16], struct link *own);
/* Let the agent open one more address; its report comes later. */
void agent_open(struct agent *agent, const uint8_t gid[16]);
/* The same, and it must work. */
void agent_open_good(struct agent *agent, const uint8_t gid[16], struct link *own);
/* Have an order done: the result is in the next report. */
void agent_order(struct agent *agent, const struct agent_order *order);
/* Let the agent share memory, or not. */
void agent_share(struct agent *agent, struct link *own, bool on);
/* The next report within some milliseconds: false when there is none. */
bool agent_report(struct agent *agent, struct link *own, int timeout_ms,
		  struct agent_report *report);
/* It must come, and be of a whole datagram in the agent's own slot. */
struct agent_report agent_expect_datagram(struct agent *agent, struct link *own, uint32_t qpn,
					  uint32_t tag);
/* End it and wait for its end: by its own link_close() or by kill -9. */
void agent_stop(struct agent *agent);
void agent_kill(struct agent *agent);

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
