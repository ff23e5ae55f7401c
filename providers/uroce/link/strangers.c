/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Processes of other users (Documentation/decisions/strangers.md): they can connect to any name
 * that we listen at, and put descriptors into the connection before anybody has accepted it.  To
 * let go of such a descriptor may take as long as its sender likes (SO_LINGER of a TCP socket, for
 * one), whether it was received or not.
 */
#include <errno.h>
#include <linux/filter.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"
#include "visitor.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

enum {
	BACKLOG = 32,
	/* After so many strangers in a row there is a pause: who floods us should not keep us busy.
	 */
	STRANGERS_MAX = 16,
	PAUSE_NS = 500000,
	/* Threads that let go of what strangers sent, at a time. */
	CLOSERS_MAX = 4,
	CLOSER_STACK_BYTES = 64 << 10,
	BEGIN_TRIES = 1000,
};

/* Does the kernel (6.16 and later) keep descriptors out of what we listen at? */
static atomic_bool rights_are_refused;

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

int link_check_user(char error[LINK_ERROR_TEXT])
{
	uid_t user = geteuid();

	if (user != overflow_user() || all_users_are_mapped())
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

struct closer {
	pthread_t thread;
	bool running; /* and has not been waited for */
	int fd;
	ino_t inode; /* of fd */
	atomic_bool began;
};

static struct {
	pthread_mutex_t lock;
	unsigned int next;
	struct closer closer[CLOSERS_MAX];
} closers = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void *closer_main(void *arg)
{
	struct closer *closer = arg;

	atomic_store(&closer->began, true);
	close(closer->fd);
	return NULL;
}

static ino_t inode_of(int fd)
{
	struct stat status;

	return fstat(fd, &status) ? 0 : status.st_ino;
}

static void start_closer(struct closer *closer, int fd)
{
	pthread_attr_t attr;

	closer->fd = fd;
	closer->inode = inode_of(fd);
	atomic_store(&closer->began, false);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, CLOSER_STACK_BYTES);
	closer->running = pthread_create(&closer->thread, &attr, closer_main, closer) == 0;
	pthread_attr_destroy(&attr);
	/* There is no thread to be had: better late than never. */
	if (!closer->running)
		close(fd);
}

/*
 * A signal ends the waiting, and that of pthread_cancel() is the C library's own.  The descriptor,
 * if it was too early and that is open still, or -1.
 */
static int end_closer(struct closer *closer)
{
	for (unsigned int i = 0; i < BEGIN_TRIES && !atomic_load(&closer->began); i++)
		sched_yield();
	pthread_cancel(closer->thread);
	pthread_join(closer->thread, NULL);
	closer->running = false;
	return closer->inode && inode_of(closer->fd) == closer->inode ? closer->fd : -1;
}

void link_close_aside(int *fd)
{
	if (*fd < 0)
		return;
	pthread_mutex_lock(&closers.lock);
	while (*fd >= 0) {
		struct closer *closer = &closers.closer[closers.next++ % CLOSERS_MAX];
		int left = closer->running ? end_closer(closer) : -1;

		start_closer(closer, left < 0 ? *fd : left);
		if (left < 0)
			*fd = -1;
	}
	pthread_mutex_unlock(&closers.lock);
}

void link_close_aside_end(void)
{
	pthread_mutex_lock(&closers.lock);
	for (unsigned int i = 0; i < CLOSERS_MAX; i++) {
		struct closer *closer = &closers.closer[i];

		if (closer->running) {
			pthread_join(closer->thread, NULL);
			closer->running = false;
		}
	}
	pthread_mutex_unlock(&closers.lock);
}

/* What a stranger may have put something into. */
static void let_go(int *fd)
{
	if (atomic_load_explicit(&rights_are_refused, memory_order_relaxed))
		link_close_fd(fd);
	else
		link_close_aside(fd);
}

/* ---- listening ---- */

int link_listen(const char *format, unsigned int slot)
{
	const int off = 0;
	struct sockaddr_un name;
	socklen_t bytes = link_slot_name(format, slot, &name);
	int error, fd = link_socket(AF_UNIX, SOCK_SEQPACKET);

	if (fd < 0)
		return fd;
	/* What is accepted inherits it. */
	if (setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off)) == 0)
		atomic_store(&rights_are_refused, true);
	if (bind(fd, (struct sockaddr *)&name, bytes) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	error = -errno;
	link_close_fd(&fd);
	return error;
}

void link_stop_listening(int *fd)
{
	let_go(fd);
}

/* With the last descriptor used up nobody could be accepted, and the listener stays readable. */
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

/* ---- connecting ---- */

/*
 * Until it is known who is there, no descriptors come in: they are refused or dropped in who sends
 * them.  A filter costs more than the kernel's own switch, and kernels 6.18 have been seen to stand
 * still when too many are made and freed (Documentation/decisions/strangers.md).
 */
static int set_rights(int fd, int on)
{
	struct sock_filter drop_all = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog program;

	memset(&program, 0, sizeof(program));
	program.len = 1;
	program.filter = &drop_all;
	if (setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &on, sizeof(on)) == 0)
		return 0;
	return setsockopt(fd, SOL_SOCKET, on ? SO_DETACH_FILTER : SO_ATTACH_FILTER, &program,
			  sizeof(program))
		       ? -errno
		       : 0;
}

int link_connect(int fd, const struct sockaddr_un *name, socklen_t bytes)
{
	int error = set_rights(fd, 0);

	if (error)
		return error;
	if (connect(fd, (const struct sockaddr *)name, bytes))
		return -errno;
	return link_is_own_user(fd) ? set_rights(fd, 1) : -EPERM;
}
