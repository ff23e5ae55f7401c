/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <errno.h>
#include <stdlib.h>

#include "forked.h"
#include "ops.h"
#include "uroce.h"

struct ibv_pd *uroce_alloc_pd(struct ibv_context *context)
{
	int error = uroce_watch_forks();
	struct uroce_pd *pd = NULL;

	(void)context;
	if (!error) {
		pd = calloc(1, sizeof(*pd));
		error = ENOMEM;
	}
	if (!pd) {
		errno = error;
		return NULL;
	}
	atomic_init(&pd->users, 0);
	return &pd->base;
}

int uroce_dealloc_pd(struct ibv_pd *ibv_pd)
{
	struct uroce_pd *pd = to_uroce_pd(ibv_pd);

	if (atomic_load(&pd->users))
		return EBUSY;
	free(pd);
	return 0;
}
