/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Start of uroce-broker */
#ifndef UROCE_LINK_BROKER_START_H
#define UROCE_LINK_BROKER_START_H

#include "link/link.h"

/*
 * Starts uroce-broker, which gets the listener as its descriptor 3.  The broker is not a child of
 * this process, which gets no SIGCHLD.  Returns 0 or a negative errno, usually with a message in
 * error.
 */
int link_broker_start(int listener, char error[LINK_ERROR_TEXT]);

#endif
