/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* What happens to the provider around fork(2). */
#ifndef UROCE_VERBS_FORKED_H
#define UROCE_VERBS_FORKED_H

/* Are forks noticed?  Asked by whatever makes the first object; 0 or ENOMEM. */
int uroce_watch_forks(void);

#endif
