/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The insides of an XRC domain: what is behind all ibv_xrcd of one device that were opened with the
 * same file, or behind one that was opened without.
 */
#ifndef UROCE_VERBS_XRC_DOMAIN_H
#define UROCE_VERBS_XRC_DOMAIN_H

#include <sys/stat.h>

#include "xrc.h"

struct xrc_domain {
	struct uroce_device *device; /* constant */
	bool shared;		     /* constant: by file */
	struct stat file;	     /* constant */
	/* Under the domains' lock. */
	struct xrc_domain *next, **link;
	unsigned int users; /* ibv_xrcd's */
};

/* Only in control calls, with no other lock held. */
void xrc_domains_lock(void);
void xrc_domains_unlock(void);

#endif
