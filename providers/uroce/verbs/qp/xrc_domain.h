/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * XRC domain: shared by all ibv_xrcd of a device that were opened with the same file, or private to
 * one that was opened without a file.
 */
#ifndef UROCE_VERBS_XRC_DOMAIN_H
#define UROCE_VERBS_XRC_DOMAIN_H

#include <sys/stat.h>

#include "xrc.h"

struct xrc_domain {
	struct uroce_device *device; /* constant */
	bool shared;		     /* opened with a file; constant */
	struct stat file;	     /* constant */
	/* Under the domains' lock. */
	struct xrc_domain *next, **link;
	unsigned int users; /* number of ibv_xrcd */
};

/* The domains' lock.  For control calls, with no other lock held. */
void xrc_domains_lock(void);
void xrc_domains_unlock(void);

#endif
