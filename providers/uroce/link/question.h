/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What a process asks another one of its user, and how it is answered.  Only this folder includes
 * it; link.h and visitor.h have what others call.
 */
#ifndef UROCE_LINK_QUESTION_H
#define UROCE_LINK_QUESTION_H

#include "internal.h"
#include "message.h"
#include "passing.h"
#include "visitor.h"

struct link_answer {
	struct link_message message;
	bool cut; /* descriptors were lost for lack of room */
	unsigned int fd_count;
	int fds[LINK_SLOTS]; /* the caller's from now on */
};

/*
 * Ask the process of the slot: the connection, which is the caller's to close, or -ECONNREFUSED
 * when there is none, -EPERM when it is a stranger's, -EAGAIN when many are asking it already, or
 * another negative errno.  One question at a time can be one that only the owner of this slot may
 * ask.
 */
int link_ask(const struct link *link, unsigned int slot, const void *question, size_t bytes);
/*
 * Wait for the answer, at most until some time, and answer others meanwhile.  0, -ETIMEDOUT,
 * -EPROTO when it is none that this version knows or the other side has gone, or another negative
 * errno; no descriptors are left in *answer then.
 */
int link_await_answer(struct link *link, int fd, int64_t until_ms, struct link_answer *answer);
/* Close the descriptors that have not been taken over. */
void link_drop_answer(struct link_answer *answer);

#endif
