/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Connections between processes of one user, for one question each, and how strangers are kept from
 * them.  For verbs' and the tools' use as well.
 */
#ifndef UROCE_LINK_VISITOR_H
#define UROCE_LINK_VISITOR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "link/link.h"

/* The abstract name that format makes of version and slot. */
socklen_t link_slot_name(const char *format, unsigned int slot, struct sockaddr_un *name);

/* A non-blocking SEQPACKET listener with that name; or a negative errno. */
int link_listen(const char *format, unsigned int slot);
/* The same with any abstract name. */
int link_listen_at(const struct sockaddr_un *name, socklen_t bytes);
/* Close it.  Strangers may be in its queue, with anything. */
void link_stop_listening(int *fd);
/*
 * The next connection of this user, and the name that it comes from if it has one (*bytes: room
 * and result).  Strangers are turned away; -EAGAIN when no connection is left, or when there have
 * been many strangers.  Never waits longer than half a millisecond.  When the caller has closed
 * what it got, link_keep_reserve().
 */
int link_accept(struct link *link, int listener, struct sockaddr_un *from, socklen_t *bytes);
void link_keep_reserve(struct link *link);
/*
 * Connect a SEQPACKET socket, blocking or not, to a listener of this user.  -EPERM when it is
 * another one's: nothing that the listener has sent is then in the socket, so it can be closed.
 */
int link_connect(int fd, const struct sockaddr_un *name, socklen_t bytes);
/* The two halves of it: a socket that was refused may try another name by the second one. */
int link_connect_prepare(int fd);
int link_connect_prepared(int fd, const struct sockaddr_un *name, socklen_t bytes);

/*
 * Have an abstract name, to keep others out: the descriptor, or a negative errno.  Closing it never
 * takes long.  Where the kernel keeps descriptors out of it, it listens, so that others can see
 * whose it is; nothing is ever accepted.
 */
int link_hold_name(const struct sockaddr_un *name, socklen_t bytes);
/* Where the kernel can, keep descriptors out of a socket of whatever kind. */
void link_refuse_rights(int fd);
/* From now on let descriptors in on a connection that has been accepted. */
void link_take_rights(int fd);

/* Is it a process of this user that fd is connected with? */
bool link_is_own_user(int fd);

#endif
