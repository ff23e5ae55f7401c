/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Abstract UNIX socket names of brokers and slots.  Other users may have bound any of them, so
 * nothing is received from a peer before its user has been checked
 * (Documentation/decisions/strangers.md).
 *
 * Functions that return int return a descriptor (close-on-exec, non-blocking) or a negative errno.
 */
#ifndef UROCE_BROKER_NAMES_H
#define UROCE_BROKER_NAMES_H

#include <stdbool.h>
#include <sys/types.h>

#include <rdma/uroce-broker.h>

enum {
	NAMES_BACKLOG = 65535, /* limited by the kernel to net.core.somaxconn */
};

struct names_search_result {
	unsigned int number; /* number of the name that the search connected to */
	unsigned int free;   /* lowest unbound name above number, or UROCE_BROKER_NAMES */
};

/*
 * Connects to the user's broker: the listener of this user with the highest number less than below
 * (UROCE_BROKER_NAMES: any number).  Returns -ENOENT if there is none, or -EAGAIN if none was found
 * but the backlog of a listener was full; found->free is set in both cases.
 */
int names_search(uid_t user, unsigned int below, struct names_search_result *found);
/*
 * Listens at a name that a search found free.  Of several processes that try this, one succeeds and
 * starts the broker, to which it passes the listener.  Returns -EADDRINUSE if another process was
 * faster; search again then.
 */
int names_listen(unsigned int number);
/*
 * Accepts the next connection of the user.  Returns -EAGAIN if there is none, or -EPERM if the
 * connection is another user's; *foreign then gets its descriptor, whose close() may block.
 */
int names_accept(int listener, uid_t user, int *foreign);
/*
 * Returns true if a broker of the user with another version of the protocol is running, and writes
 * a clause with both versions to text.  Returns false if there is none, or if the kernel does not
 * list the names (no /proc).
 */
#define NAMES_OTHER_VERSION_TEXT 128
bool names_find_other_version(uid_t user, char text[NAMES_OTHER_VERSION_TEXT]);
/* Returns true if the listener is bound to the broker name with this number. */
bool names_is_bound_to(int listener, unsigned int number);
/* Lets the connection receive descriptors from now on.  Returns 0 or a negative errno. */
int names_allow_descriptors(int fd);

/*
 * Binds the name of the slot and returns the socket, which holds it until it is closed.  Returns
 * -EADDRINUSE if the name is bound already.
 */
int names_lock_slot(unsigned int slot);
/*
 * Stores for each slot whether its name is bound, by any user.  Returns false if the kernel does
 * not list the names (no /proc).
 */
bool names_read_bound_slots(bool bound[UROCE_BROKER_SLOTS]);

#endif
