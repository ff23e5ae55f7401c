/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Processes of other users (Documentation/decisions/strangers.md): they can connect to any name
 * that we listen at, and put descriptors into the connection before it is accepted.  To release
 * such a descriptor may take as long as its sender likes (SO_LINGER of a TCP socket, for one),
 * whether it was received or not.
 */
#include <errno.h>
#include <linux/filter.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "closer.h"
#include "internal.h"
#include "visitor.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

enum {
	BACKLOG = 32,
	/*
	 * After so many strangers in a row there is a pause: a flood should not keep us busy.
	 */
	STRANGERS_MAX = 16,
	PAUSE_NS = 500000,
};

/* Does the kernel (6.16 and later) keep descriptors out of what we listen at? */
static atomic_bool rights_are_refused;

static bool is_old_kernel;

static void read_environment(void)
{
	is_old_kernel = getenv("UROCE_TEST_OLD_KERNEL");
}

/*
 * Whether what is sent to the socket may have descriptors with it: 0, or -1 and errno where the
 * kernel does not know that, or a test looks at what happens there.
 */
static int pass_rights(int fd, int on)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_environment);
	if (!is_old_kernel)
		return setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &on, sizeof(on));
	errno = ENOPROTOOPT;
	return -1;
}

static void pause_shortly(void)
{
	const struct timespec time = { .tv_nsec = PAUSE_NS };

	nanosleep(&time, NULL);
}

/* ---- whose is it? ---- */

static bool all_users_are_mapped(void)
{
	unsigned long inside, outside, count, sum = 0;
	FILE *map = fopen("/proc/self/uid_map", "re");

	/* A kernel without user namespaces. */
	if (!map)
		return true;
	while (fscanf(map, "%lu %lu %lu", &inside, &outside, &count) == 3)
		sum += count;
	fclose(map);
	return sum >= UINT32_MAX;
}

static uid_t overflow_user(void)
{
	unsigned int user = 65534;
	FILE *file = fopen("/proc/sys/kernel/overflowuid", "re");

	if (!file)
		return user;
	if (fscanf(file, "%u", &user) != 1)
		user = 65534;
	fclose(file);
	return user;
}

bool link_user_is_known(uid_t user)
{
	return user != overflow_user() || all_users_are_mapped();
}

int link_check_user(char error[LINK_ERROR_TEXT])
{
	uid_t user = geteuid();

	if (link_user_is_known(user))
		return 0;
	link_explain(error,
		     "user %u of this user namespace stands for all users that it does not map, so "
		     "that other users' programs could not be told from one's own: map the user "
		     "(unshare --map-root-user), or run as another one",
		     user);
	return -EPERM;
}

bool link_is_own_user(int fd)
{
	struct ucred peer;
	socklen_t bytes = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == geteuid();
}

/* ---- letting go ---- */

/* What a stranger may have put something into. */
static void let_go(int *fd)
{
	if (atomic_load_explicit(&rights_are_refused, memory_order_relaxed))
		link_close_fd(fd);
	else
		link_close_aside(fd);
}

/* ---- listening ---- */

int link_listen_at(const struct sockaddr_un *name, socklen_t bytes)
{
	int error, fd = link_socket(AF_UNIX, SOCK_SEQPACKET);

	if (fd < 0)
		return fd;
	/* What is accepted inherits it. */
	if (pass_rights(fd, 0) == 0)
		atomic_store(&rights_are_refused, true);
	else
		link_closer_get_ready();
	if (bind(fd, (const struct sockaddr *)name, bytes) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	error = -errno;
	link_close_fd(&fd);
	return error;
}

int link_listen(const char *format, unsigned int slot)
{
	struct sockaddr_un name;
	socklen_t bytes = link_slot_name(format, slot, &name);

	return link_listen_at(&name, bytes);
}

void link_stop_listening(int *fd)
{
	let_go(fd);
}

/*
 * With the last descriptor used up no connection could be accepted, and the listener stays
 * readable.
 */
static int accept_by_reserve(struct link *link, int listener, struct sockaddr_un *from,
			     socklen_t *bytes)
{
	int reserve = atomic_exchange(&link->reserve_fd, -1), fd;

	if (reserve < 0) {
		link_keep_reserve(link);
		pause_shortly();
		return -EMFILE;
	}
	close(reserve);
	fd = accept4(listener, (struct sockaddr *)from, bytes, SOCK_CLOEXEC | SOCK_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

void link_keep_reserve(struct link *link)
{
	int fd;

	if (atomic_load(&link->reserve_fd) >= 0)
		return;
	fd = atomic_exchange(&link->reserve_fd, eventfd(0, EFD_CLOEXEC));
	link_close_fd(&fd);
}

int link_accept(struct link *link, int listener, struct sockaddr_un *from, socklen_t *bytes)
{
	/* There have been many strangers.  If one of them is next, there is nowhere to go with it.
	 */
	if (!link_closer_has_room()) {
		pause_shortly();
		return -EAGAIN;
	}
	for (unsigned int strangers = 0; strangers < STRANGERS_MAX; strangers++) {
		socklen_t room = *bytes;
		int fd = accept4(listener, (struct sockaddr *)from, &room,
				 SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0 && (errno == EMFILE || errno == ENFILE))
			fd = accept_by_reserve(link, listener, from, &room);
		else if (fd < 0)
			fd = -errno;
		if (fd < 0)
			return fd;
		if (link_is_own_user(fd)) {
			*bytes = room;
			return fd;
		}
		atomic_fetch_add_explicit(&link->foreign_credentials, 1, memory_order_relaxed);
		let_go(&fd);
		link_keep_reserve(link);
	}
	pause_shortly();
	return -EAGAIN;
}

int link_hold_name(const struct sockaddr_un *name, socklen_t bytes)
{
	int error, fd = link_socket(AF_UNIX, SOCK_SEQPACKET);

	if (fd < 0)
		return fd;
	if (bind(fd, (const struct sockaddr *)name, bytes) == 0 &&
	    (pass_rights(fd, 0) || listen(fd, BACKLOG) == 0))
		return fd;
	error = -errno;
	link_close_fd(&fd);
	return error;
}

void link_refuse_rights(int fd)
{
	pass_rights(fd, 0);
}

void link_take_rights(int fd)
{
	/* Where the kernel does not know this switch they are let in anyway. */
	pass_rights(fd, 1);
}

/* ---- connecting ---- */

/*
 * Until the other end's user is known no descriptors come in: they are refused or dropped in the
 * sender.  A filter costs more than the kernel's own switch, and kernels 6.18 have been seen to
 * stand still when too many are made and freed (Documentation/decisions/strangers.md).
 */
static int set_rights(int fd, int on)
{
	/* So many bytes of each datagram come in. */
	struct sock_filter pass = BPF_STMT(BPF_RET | BPF_K, on ? UINT32_MAX : 0);
	struct sock_fprog program;

	memset(&program, 0, sizeof(program));
	program.len = 1;
	program.filter = &pass;
	if (pass_rights(fd, on) == 0)
		return 0;
	/* qemu-user knows how to put one in another's place, and not how to take one away. */
	if (on && setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &program, sizeof(program)) == 0)
		return 0;
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) ? -errno : 0;
}

int link_connect_prepare(int fd)
{
	return set_rights(fd, 0);
}

int link_connect(int fd, const struct sockaddr_un *name, socklen_t bytes)
{
	int error = link_connect_prepare(fd);

	return error ? error : link_connect_prepared(fd, name, bytes);
}

int link_connect_prepared(int fd, const struct sockaddr_un *name, socklen_t bytes)
{
	if (connect(fd, (const struct sockaddr *)name, bytes))
		return -errno;
	return link_is_own_user(fd) ? set_rights(fd, 1) : -EPERM;
}
