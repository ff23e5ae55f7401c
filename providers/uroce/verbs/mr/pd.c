/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "pd.h"

#include <errno.h>
#include <stdlib.h>

#include "verbs/fork.h"
#include "verbs/abi/ops.h"

static struct uroce_pd *pd_of_importable(struct uroce_importable *object)
{
	return container_of(object, struct uroce_pd, importable);
}

struct ibv_pd *uroce_alloc_pd(struct ibv_context *context)
{
	int error = uroce_fork_init();
	struct uroce_pd *pd = NULL;

	if (!error)
		error = uroce_object_add(context, UROCE_OBJECT_PD);
	if (error)
		goto err;
	pd = calloc(1, sizeof(*pd));
	error = ENOMEM;
	if (!pd)
		goto err_remove;
	pd->real = pd;
	pd->domain = pd;
	atomic_init(&pd->users, 0);
	uroce_import_add(&pd->importable, IMPORT_PD, context ? to_uroce_context(context) : NULL);
	pd->base.handle = pd->importable.handle;
	pd->base.context = context;
	uroce_context_hold(context);
	return &pd->base;

err_remove:
	uroce_object_remove(context, UROCE_OBJECT_PD);
err:
	errno = error;
	return NULL;
}

struct ibv_pd *uroce_import_pd(struct ibv_context *context, uint32_t handle)
{
	struct uroce_importable *object;
	struct uroce_pd *import =
		uroce_import_create(IMPORT_PD, context, handle, sizeof(*import), &object);

	if (!import)
		return NULL;
	import->real = pd_of_importable(object);
	import->base.context = context;
	import->base.handle = handle;
	return &import->base;
}

void uroce_pd_get(struct uroce_pd *pd)
{
	if (!pd->extended)
		uroce_import_hold(&pd->importable);
	atomic_fetch_add(&pd->users, 1);
}

void uroce_pd_put(struct uroce_pd *pd)
{
	atomic_fetch_sub(&pd->users, 1);
	if (!pd->extended && uroce_import_put(&pd->importable))
		free(pd);
}

/*
 * Frees the application's object, and the PD if it has been destroyed and this was the last
 * reference.  Objects that an import creates in a destroyed PD have references, too.
 */
static void put_pd(struct uroce_pd *held)
{
	struct ibv_context *context = held->base.context;
	struct uroce_pd *pd = held->real;

	if (held != pd)
		free(held);
	if (uroce_import_put(&pd->importable))
		free(pd);
	uroce_context_release(context);
}

void uroce_unimport_pd(struct ibv_pd *ibv_pd)
{
	put_pd((struct uroce_pd *)ibv_pd);
}

static int dealloc_parent_domain(struct uroce_pd *pd)
{
	struct ibv_context *context = pd->base.context;

	if (pd->td)
		atomic_fetch_sub(&pd->td->users, 1);
	uroce_pd_put(pd->extended);
	free(pd);
	uroce_context_release(context);
	return 0;
}

int uroce_dealloc_pd(struct ibv_pd *ibv_pd)
{
	struct uroce_pd *pd = to_uroce_pd(ibv_pd);

	if (atomic_load(&pd->users))
		return EBUSY;
	if (pd->extended)
		return dealloc_parent_domain(pd);
	/* Freed through another import: this one must be unimported, ibv_import_pd(3). */
	if (!uroce_import_destroy(&pd->importable))
		return EINVAL;
	uroce_object_remove(pd->base.context, UROCE_OBJECT_PD);
	put_pd((struct uroce_pd *)ibv_pd);
	return 0;
}
