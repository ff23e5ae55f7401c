/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* ibv_attach_mcast() and ibv_detach_mcast(): multicast groups of UD QPs, and their limits. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ah.h"
#include "ud.h"
#include "verbs/context/device.h"
#include "verbs/fork.h"
#include "verbs/abi/ops.h"

struct membership {
	struct membership *next;
	struct uroce_qp *qp;
	union ibv_gid gid;
	uint32_t interface; /* index of the device's interface when the QP was attached */
};

static pthread_mutex_t members_lock = PTHREAD_MUTEX_INITIALIZER;
static struct membership *members;

static void finish_fork_in_child(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	members_lock = fresh;
	/* Memberships stay with the parent. */
	members = NULL;
}

/* Called with members_lock held. */
static struct membership **find_membership(const struct uroce_qp *qp, const union ibv_gid *gid)
{
	struct membership **link = &members;

	while (*link && ((*link)->qp != qp || memcmp((*link)->gid.raw, gid->raw, 16)))
		link = &(*link)->next;
	return link;
}

/* Enforces the limits that the device reports (rule U1).  Called with members_lock held. */
static int check_limits(const union ibv_gid *gid, uint32_t interface)
{
	unsigned int in_group = 0, groups = 0;

	for (const struct membership *member = members; member; member = member->next) {
		const struct membership *other = members;

		in_group +=
			member->interface == interface && !memcmp(member->gid.raw, gid->raw, 16);
		/* Count each group once, at its first member. */
		while (other->interface != member->interface ||
		       memcmp(other->gid.raw, member->gid.raw, 16))
			other = other->next;
		groups += other == member;
	}
	if (in_group >= UROCE_MAX_MCAST_QP || (!in_group && groups >= UROCE_MAX_MCAST_GROUPS))
		return ENOMEM;
	return 0;
}

/* Called with members_lock held. */
static int add_membership(struct uroce_qp *qp, const union ibv_gid *gid)
{
	struct progress *progress = qp->progress.worker;
	char text[PROGRESS_ERROR_TEXT] = "";
	struct membership *member;
	struct netdev netdev;
	int error;

	if (!uroce_device_netdev(qp->context->device, &netdev))
		return ENODEV;
	error = check_limits(gid, netdev.index);
	if (error)
		return error;
	member = calloc(1, sizeof(*member));
	if (!member)
		return ENOMEM;
	member->qp = qp;
	member->gid = *gid;
	member->interface = netdev.index;
	error = -progress_group_join(progress, &qp->progress, gid->raw, netdev.index, text);
	if (error) {
		if (text[0])
			uroce_err("%s", text);
		free(member);
		return error;
	}
	member->next = members;
	members = member;
	return 0;
}

static bool is_joinable(const struct ibv_qp *qp, const union ibv_gid *gid)
{
	return qp->qp_type == IBV_QPT_UD && gid_is_multicast(gid->raw);
}

int uroce_attach_mcast(struct ibv_qp *ibv_qp, const union ibv_gid *gid, uint16_t lid)
{
	struct uroce_qp *qp;
	int error = 0;

	(void)lid; /* RoCE has no LIDs */
	if (!is_joinable(ibv_qp, gid))
		return EINVAL;
	qp = to_uroce_qp(ibv_qp);
	if (uroce_is_stale(qp->generation))
		return EIO;
	pthread_mutex_lock(&members_lock);
	/* Attaching twice is not an error. */
	if (!*find_membership(qp, gid))
		error = add_membership(qp, gid);
	pthread_mutex_unlock(&members_lock);
	return error;
}

/* Called with members_lock held. */
static void remove_membership(struct membership **link)
{
	struct membership *member = *link;

	*link = member->next;
	progress_group_leave(member->qp->progress.worker, &member->qp->progress, member->gid.raw,
			     member->interface);
	free(member);
}

int uroce_detach_mcast(struct ibv_qp *ibv_qp, const union ibv_gid *gid, uint16_t lid)
{
	struct membership **link;
	bool found;

	(void)lid;
	if (!is_joinable(ibv_qp, gid))
		return EINVAL;
	pthread_mutex_lock(&members_lock);
	link = find_membership(to_uroce_qp(ibv_qp), gid);
	found = *link;
	if (found)
		remove_membership(link);
	pthread_mutex_unlock(&members_lock);
	return found ? 0 : EINVAL;
}

void uroce_mcast_detach_all(struct uroce_qp *qp)
{
	struct membership **link = &members;

	if (qp->type != ENG_UD)
		return;
	pthread_mutex_lock(&members_lock);
	while (*link) {
		if ((*link)->qp == qp)
			remove_membership(link);
		else
			link = &(*link)->next;
	}
	pthread_mutex_unlock(&members_lock);
}

bool uroce_mcast_is_member(struct uroce_qp *qp)
{
	const struct membership *member;

	if (qp->type != ENG_UD || uroce_is_stale(qp->generation))
		return false;
	pthread_mutex_lock(&members_lock);
	for (member = members; member && member->qp != qp;)
		member = member->next;
	pthread_mutex_unlock(&members_lock);
	return member;
}

UROCE_FORK_HANDLERS(UROCE_FORK_MCAST, .child = finish_fork_in_child)
