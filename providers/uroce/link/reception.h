/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A listener where processes of this user put questions, one on each connection, and those that
 * have connected and not asked yet.  These are not waited for.  For verbs' use as well.
 */
#ifndef UROCE_LINK_RECEPTION_H
#define UROCE_LINK_RECEPTION_H

#include <sys/socket.h>
#include <sys/un.h>

#include "link/link.h"

/* So many may be slow to ask at a time; when one more comes, the oldest is closed. */
#define LINK_SEATS 16

struct link_visitor {
	int fd;			 /* -1: free */
	struct sockaddr_un from; /* the name that it connects from, if it has one */
	socklen_t from_bytes;
};

/* One thread at a time uses it. */
struct link_reception {
	int listener;
	int epoll_fd;	   /* readable when link_reception_next() has something to do */
	unsigned int next; /* seat */
	struct link_visitor seat[LINK_SEATS];
};

/* Nothing is open. */
void link_reception_init(struct link_reception *reception);
/* Listen at the abstract name that format makes of version and slot: 0 or a negative errno. */
int link_reception_open(struct link_reception *reception, const char *format, unsigned int slot);
void link_reception_close(struct link_reception *reception);
/* In a forked child: close the descriptors only; async-signal-safe. */
void link_reception_abandon(struct link_reception *reception);
/*
 * The next question, of at most room bytes: how many it has (0: the asker has gone), or -EAGAIN
 * when there is none or many strangers have come, or another negative errno.  The caller closes
 * visitor->fd and then calls link_keep_reserve().  Never waits longer than half a millisecond.
 */
int link_reception_next(struct link *link, struct link_reception *reception, void *question,
			size_t room, struct link_visitor *visitor);

#endif
