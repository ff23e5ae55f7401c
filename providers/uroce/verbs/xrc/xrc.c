/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "xrc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/fork.h"
#include "verbs/abi/ops.h"

enum {
	INITIAL_TABLE_SIZE = 64,
	MAX_SRQN = 0xffffff,
};

static pthread_mutex_t domains_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, xrc_domain) domains;

/*
 * The XRC SRQs of the process by number, which is the index in srqs plus 1.  Numbers are assigned
 * cyclically, so that a stale number of a peer stays invalid for a while.
 */
static struct {
	pthread_rwlock_t lock;
	struct uroce_srq **srqs;
	uint32_t size; /* a power of two, or 0 */
	uint32_t next; /* index to be tried first */
	uint32_t used;
} table = { .lock = PTHREAD_RWLOCK_INITIALIZER };

static void prepare_fork(void)
{
	pthread_mutex_lock(&domains_lock);
}

static void finish_fork_in_parent(void)
{
	pthread_mutex_unlock(&domains_lock);
}

static void finish_fork_in_child(void)
{
	static const pthread_rwlock_t fresh = PTHREAD_RWLOCK_INITIALIZER;

	/* Readers that do not exist may hold it.  Writers hold domains_lock, so there are none. */
	table.lock = fresh;
	pthread_mutex_unlock(&domains_lock);
}

void xrc_domains_lock(void)
{
	pthread_mutex_lock(&domains_lock);
}

void xrc_domains_unlock(void)
{
	pthread_mutex_unlock(&domains_lock);
}

/* Called with domains_lock held. */
static struct xrc_domain *find_domain(struct uroce_device *device, const struct stat *file)
{
	struct xrc_domain *domain;

	LIST_FOREACH(domain, &domains, link)
		if (domain->shared && domain->device == device &&
		    domain->file.st_dev == file->st_dev && domain->file.st_ino == file->st_ino)
			break;
	return domain;
}

/* Called with domains_lock held. */
static struct xrc_domain *new_domain(struct uroce_device *device, const struct stat *file)
{
	struct xrc_domain *domain = calloc(1, sizeof(*domain));

	if (!domain)
		return NULL;
	domain->device = device;
	domain->shared = file;
	if (file)
		domain->file = *file;
	LIST_INSERT_HEAD(&domains, domain, link);
	return domain;
}

/* Called with domains_lock held.  O_CREAT and O_EXCL have the meaning of open(2). */
static int get_domain(struct uroce_device *device, int fd, int flags, struct xrc_domain **domain)
{
	struct stat file;

	*domain = NULL;
	if (fd != -1) {
		if (fstat(fd, &file))
			return EBADF;
		*domain = find_domain(device, &file);
		if (*domain && (flags & O_EXCL))
			return EINVAL;
	}
	if (!*domain && !(flags & O_CREAT))
		return fd == -1 ? EINVAL : EAGAIN;
	if (!*domain)
		*domain = new_domain(device, fd == -1 ? NULL : &file);
	if (!*domain)
		return ENOMEM;
	(*domain)->users++;
	return 0;
}

/* Called with domains_lock held. */
static void put_domain(struct xrc_domain *domain)
{
	if (--domain->users)
		return;
	LIST_REMOVE(domain, link);
	free(domain);
}

struct ibv_xrcd *uroce_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	const uint32_t needed = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	struct uroce_xrcd *xrcd = NULL;
	int error = uroce_fork_init();

	if (!error && (attr->comp_mask != needed || (attr->oflags & ~(O_CREAT | O_EXCL))))
		error = EINVAL;
	if (!error) {
		xrcd = calloc(1, sizeof(*xrcd));
		error = ENOMEM;
	}
	if (xrcd) {
		pthread_mutex_lock(&domains_lock);
		error = get_domain(to_uroce_context(context)->device, attr->fd, attr->oflags,
				   &xrcd->domain);
		pthread_mutex_unlock(&domains_lock);
	}
	if (error) {
		free(xrcd);
		errno = error;
		return NULL;
	}
	xrcd->base.xrcd.context = context;
	uroce_context_hold(context);
	return &xrcd->base.xrcd;
}

int uroce_close_xrcd(struct ibv_xrcd *ibv_xrcd)
{
	struct uroce_xrcd *xrcd = to_uroce_xrcd(ibv_xrcd);
	struct ibv_context *context = ibv_xrcd->context;

	if (atomic_load(&xrcd->users))
		return EBUSY;
	pthread_mutex_lock(&domains_lock);
	put_domain(xrcd->domain);
	pthread_mutex_unlock(&domains_lock);
	free(xrcd);
	uroce_context_release(context);
	return 0;
}

/* Grows a full table; numbers do not change.  Called with table.lock held for writing. */
static int grow_table(void)
{
	uint32_t size = table.size ? 2 * table.size : INITIAL_TABLE_SIZE;
	struct uroce_srq **grown;

	if (table.used < table.size)
		return 0;
	if (size > MAX_SRQN)
		return ENOMEM;
	grown = realloc(table.srqs, size * sizeof(struct uroce_srq *));
	if (!grown)
		return ENOMEM;
	memset(grown + table.size, 0, (size - table.size) * sizeof(*grown));
	table.next = table.size;
	table.srqs = grown;
	table.size = size;
	return 0;
}

static int assign_srqn(struct uroce_srq *srq)
{
	int error;

	pthread_mutex_lock(&domains_lock);
	pthread_rwlock_wrlock(&table.lock);
	error = grow_table();
	if (!error) {
		while (table.srqs[table.next & (table.size - 1)])
			table.next++;
		table.next &= table.size - 1;
		table.srqs[table.next++] = srq;
		srq->base.srq_num = table.next;
		table.used++;
	}
	pthread_rwlock_unlock(&table.lock);
	pthread_mutex_unlock(&domains_lock);
	return error;
}

int uroce_xrc_add_srq(struct uroce_srq *srq, struct ibv_xrcd *ibv_xrcd, struct ibv_cq *cq)
{
	struct uroce_xrcd *xrcd = to_uroce_xrcd(ibv_xrcd);
	int error;

	if (xrcd->domain->device != srq->context->device)
		return EINVAL;
	srq->cq = to_uroce_cq(cq);
	srq->xrcd = xrcd;
	srq->xrc_domain = xrcd->domain;
	srq->base.xrcd = &xrcd->base;
	srq->base.cq = cq;
	error = assign_srqn(srq);
	if (error)
		return error;
	atomic_fetch_add(&srq->cq->users, 1);
	/* XRC targets belong to worker 0. */
	uroce_cq_attach(srq->cq, srq->context->progress);
	atomic_fetch_add(&xrcd->users, 1);
	return 0;
}

void uroce_xrc_unlink_srq(struct uroce_srq *srq)
{
	uint32_t index = srq->base.srq_num - 1;

	pthread_mutex_lock(&domains_lock);
	pthread_rwlock_wrlock(&table.lock);
	if (table.srqs[index] == srq) {
		table.srqs[index] = NULL;
		table.used--;
	}
	pthread_rwlock_unlock(&table.lock);
	pthread_mutex_unlock(&domains_lock);
}

void uroce_xrc_remove_srq(struct uroce_srq *srq)
{
	uroce_xrc_unlink_srq(srq);
	if (!uroce_is_stale(srq->generation)) {
		uroce_cq_clean_srq(srq->cq, srq->base.srq_num);
		uroce_cq_detach(srq->cq, srq->context->progress);
	}
	atomic_fetch_sub(&srq->cq->users, 1);
	atomic_fetch_sub(&srq->xrcd->users, 1);
}

struct uroce_srq *uroce_xrc_srq_get(const struct uroce_qp *qp, uint32_t srqn)
{
	struct uroce_srq *srq;

	pthread_rwlock_rdlock(&table.lock);
	srq = srqn - 1 < table.size ? table.srqs[srqn - 1] : NULL;
	return srq && srq->xrc_domain == qp->xrc_domain ? srq : NULL;
}

void uroce_xrc_srq_put(void)
{
	pthread_rwlock_unlock(&table.lock);
}

UROCE_FORK_HANDLERS(UROCE_FORK_XRC, prepare_fork, finish_fork_in_parent, finish_fork_in_child)
