/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Fork handlers of the provider. */
#ifndef UROCE_VERBS_FORKED_H
#define UROCE_VERBS_FORKED_H

/*
 * Returns 0 if the fork handlers are installed, else ENOMEM.  Called before the first object is
 * created.
 */
int uroce_watch_forks(void);

#endif
