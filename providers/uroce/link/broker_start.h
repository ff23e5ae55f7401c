/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Starting uroce-broker. */
#ifndef UROCE_LINK_BROKER_START_H
#define UROCE_LINK_BROKER_START_H

#include "link/link.h"

/*
 * Starts uroce-broker, which inherits the listener as its descriptor 3.  It is no child of this
 * process, which gets no SIGCHLD.  Returns 0 or a negative errno, of which error says more.
 */
int link_broker_start(int listener, char error[LINK_ERROR_TEXT]);

#endif
