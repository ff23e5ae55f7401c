/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Abstract UNIX names of brokers and slots.  Other users may have bound any of them; what they
 * send is never received (Documentation/decisions/strangers.md).
 *
 * Functions return a descriptor, close-on-exec and non-blocking, or a negative errno.
 */
#ifndef UROCE_BROKER_NAMES_H
#define UROCE_BROKER_NAMES_H

#include <stdbool.h>
#include <sys/types.h>

#include <rdma/uroce-broker.h>

struct names_found {
	unsigned int number; /* of the name that was connected to */
	unsigned int free;   /* the lowest above it that nobody has, or UROCE_BROKER_NAMES */
};

/*
 * A connection to the user's broker, that is the highest name at which this user listens below
 * the number below (UROCE_BROKER_NAMES: any).  -ENOENT: there is none.  -EAGAIN: none was seen, but
 * a listener had no room for a connection.  found->free is set in both cases as well.
 */
int names_search(uid_t user, unsigned int below, struct names_found *found);
/*
 * A listener at the name that a search has found free.  It elects the process that starts the
 * broker, which inherits the listener.  -EADDRINUSE: another process was faster, search again.
 */
int names_listen(unsigned int number);
/*
 * The next connection of the user to the listener.  -EAGAIN: there is none; -EPERM: it was another
 * user's, and *stranger is its descriptor, which may take long to close.
 */
int names_accept(int listener, uid_t user, int *stranger);
/* Returns true if the listener has the name of the number. */
bool names_is_bound_to(int listener, unsigned int number);
/* From now on descriptors may come with what the other end sends. */
int names_admit_descriptors(int fd);

/* A socket that holds the name of the slot.  -EADDRINUSE: another one does. */
int names_lock_slot(unsigned int slot);
/*
 * Stores whether the name of each slot is bound, by whatever user.  Returns false if the kernel
 * does not show the names (no /proc).
 */
bool names_bound_slots(bool bound[UROCE_BROKER_SLOTS]);

#endif
