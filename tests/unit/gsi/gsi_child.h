/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Other processes for the tests of queue pair 1: each opens the instance, executes orders, and
 * reports received MADs.
 */
#ifndef UROCE_TESTS_GSI_CHILD_H
#define UROCE_TESTS_GSI_CHILD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>

#include "progress/gsi/gsi.h"

#define SPACE_TCP 0x0106
#define SPACE_UDP 0x0111

/* Fields of a MAD that matter to the tests; tag is in the transaction id. */
struct mad_spec {
	uint16_t attribute;
	uint32_t tag;
	uint32_t local_id, remote_id;
	uint64_t service_id; /* of a REQ or SIDR_REQ */
	uint8_t ipv4[4];     /* destination, in the private data; zeros: none */
	uint64_t guid;	     /* of a REQ, or a REJ with reason 4 */
};
void mad_make(uint8_t mad[MAD_BYTES], const struct mad_spec *spec);
uint32_t mad_tag(const uint8_t mad[MAD_BYTES]);

struct gsi_order {
	enum {
		GSI_ADDR_GET,
		GSI_ADDR_PUT,
		GSI_BIND,   /* the result has the port and a handle */
		GSI_LISTEN, /* handle */
		GSI_CLOSE,  /* handle */
		GSI_SEND,
		GSI_COUNT, /* the result has the counter's value */
		GSI_DEADLINE,
		GSI_LAST_MESSAGE_SET,  /* the result has a handle */
		GSI_LAST_MESSAGE_DROP, /* handle */
		GSI_FORK, /* fork a child that stays; value: its pid, error: result of its calls */
		GSI_POLL, /* start a thread that polls from now on */
		GSI_HOLD, /* the next callback does not return until GSI_RELEASE */
		GSI_RECEIVE, /* receive MADs, while the progress thread is in the callback */
		GSI_RELEASE, /* reports of MADs may precede the result */
	} what;
	uint8_t gid[16]; /* an address; source address of a MAD */
	uint8_t dgid[16];
	uint32_t scope_id;
	uint16_t space, port;
	unsigned int flags, handle;
	struct mad_spec mad;
	enum progress_counter counter;
	uint64_t delay_ns;
};

struct gsi_report {
	enum { GSI_DONE, GSI_MAD, GSI_EXPIRED } what;
	int error;
	unsigned int handle;
	uint16_t port;
	uint64_t value;
	struct gsi_mad mad;
	char text[PROGRESS_ERROR_TEXT];
};

#define CHILD_KEPT 64
struct gsi_child {
	pid_t pid;
	int sock;
	unsigned int slot;
	/* Reports of MADs and expiries that arrived while a result was awaited. */
	struct gsi_report kept[CHILD_KEPT];
	unsigned int kept_count;
};

/* Forks a child of user uid (0: the caller's) that receives at gid, unless gid is NULL. */
void gsi_child_start(struct gsi_child *child, uid_t uid, const uint8_t gid[16]);
void gsi_child_kill(struct gsi_child *child);
/* Makes the child exit and waits until it has.  Fails unless it exits with status 0. */
void gsi_child_stop(struct gsi_child *child);
struct gsi_report gsi_child_do(struct gsi_child *child, const struct gsi_order *order);
/* The two steps of gsi_child_do(): sending the order and waiting for its result. */
void gsi_child_tell(struct gsi_child *child, const struct gsi_order *order);
struct gsi_report gsi_child_await(struct gsi_child *child);
uint64_t gsi_child_count(struct gsi_child *child, enum progress_counter counter);
/*
 * Binds *port (0: any) and, if listen is true, listens.  Stores the port and its handle (if not
 * NULL).  Returns 0 or a negative errno.
 */
int gsi_child_bind(struct gsi_child *child, const uint8_t gid[16], uint16_t *port,
		   unsigned int flags, bool listen, unsigned int *handle);
int gsi_child_send(struct gsi_child *child, const uint8_t sgid[16], const uint8_t dgid[16],
		   const struct mad_spec *mad);
/* Gets the next report of a MAD or expiry.  Returns false if there is none within timeout_ms. */
bool gsi_child_next(struct gsi_child *child, int timeout_ms, struct gsi_report *report);
/* Expects that the next report is of a MAD with this tag and reason.  Returns the MAD. */
struct gsi_mad gsi_child_expect(struct gsi_child *child, uint32_t tag, enum gsi_match reason);
/* Fails the test because the MAD with this tag has not arrived; the message names the broker. */
void gsi_fail_lost(uint32_t tag);

#endif
