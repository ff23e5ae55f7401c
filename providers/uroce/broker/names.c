/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "names.h"

#include <errno.h>
#include <linux/filter.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

enum {
	/* Maximum number of names that names_find_other_version() connects to: others bind them. */
	OTHER_VERSION_TRIES = 1024,
};

struct name {
	struct sockaddr_un address;
	socklen_t bytes;
};

__attribute__((format(printf, 1, 2))) static struct name make_name(const char *format, ...)
{
	struct name name = { .address.sun_family = AF_UNIX };
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(name.address.sun_path + 1, sizeof(name.address.sun_path) - 1, format,
			   arguments);
	va_end(arguments);
	name.bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
	return name;
}

static struct name broker_name(unsigned int number)
{
	return make_name(UROCE_BROKER_NAME, UROCE_BROKER_VERSION, number);
}

static int make_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : fd;
}

/*
 * SO_PASSRIGHTS exists since Linux 6.16.  On older kernels refuse_descriptors() attaches a filter
 * that drops everything.
 */
static int set_pass_rights(int fd, int on)
{
	return setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &on, sizeof(on));
}

/*
 * Has the kernel drop what the peer sends until its user has been checked: a received descriptor of
 * another user can make close() block for as long as that user likes.
 */
static int refuse_descriptors(int fd)
{
	struct sock_filter drop = { .code = BPF_RET | BPF_K, .k = 0 };
	struct sock_fprog program;

	if (!set_pass_rights(fd, 0))
		return 0;
	memset(&program, 0, sizeof(program));
	program.len = 1;
	program.filter = &drop;
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) ? -errno : 0;
}

int names_allow_descriptors(int fd)
{
	struct sock_filter pass = { .code = BPF_RET | BPF_K, .k = UINT32_MAX };
	struct sock_fprog program;
	int none = 0;

	if (!set_pass_rights(fd, 1) ||
	    !setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof(none)) || errno == ENOENT)
		return 0;
	/* qemu-user cannot detach a filter, but can replace it. */
	memset(&program, 0, sizeof(program));
	program.len = 1;
	program.filter = &pass;
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) ? -errno : 0;
}

/* Returns true if the process that called listen() or connect() at the other end is user's. */
static int is_peer_of_user(int fd, uid_t user)
{
	struct ucred peer;
	socklen_t bytes = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) && peer.uid == user;
}

/* ---- search ---- */

static int make_refusing_socket(void)
{
	int fd = make_socket();
	int error = fd < 0 ? fd : refuse_descriptors(fd);

	if (error >= 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return error;
}

/*
 * Connects fd to the broker with this number.  Returns 0, or a negative errno: -EPERM if the broker
 * belongs to another user; fd cannot be used again then.
 */
static int connect_to_name(int fd, unsigned int number, uid_t user)
{
	const struct name name = broker_name(number);

	if (connect(fd, (const struct sockaddr *)&name.address, name.bytes))
		return -errno;
	return is_peer_of_user(fd, user) ? names_allow_descriptors(fd) : -EPERM;
}

int names_search(uid_t user, unsigned int below, struct names_search_result *found)
{
	int fd = make_refusing_socket(), result = -ENOENT;

	found->free = UROCE_BROKER_NAMES;
	while (fd >= 0 && below-- > 0) {
		int error = connect_to_name(fd, below, user);

		if (!error) {
			found->number = below;
			return fd;
		}
		if (error == -ECONNREFUSED) {
			found->free = below;
			continue;
		}
		if (error != -EPERM)
			result = error;
		close(fd);
		fd = make_refusing_socket();
	}
	if (fd < 0)
		return fd;
	close(fd);
	return result;
}

/* ---- listener ---- */

int names_listen(unsigned int number)
{
	const struct name name = broker_name(number);
	int fd = make_socket(), error;

	if (fd < 0)
		return fd;
	/*
	 * Accepted sockets get this setting from the listener.  Older kernels accept descriptors;
	 * see names_accept().
	 */
	if (!secure_getenv("UROCE_TEST_OLD_KERNEL"))
		set_pass_rights(fd, 0);
	if (!bind(fd, (const struct sockaddr *)&name.address, name.bytes) &&
	    !listen(fd, NAMES_BACKLOG))
		return fd;
	error = -errno;
	close(fd);
	return error;
}

int names_accept(int listener, uid_t user, int *foreign)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return -errno;
	if (is_peer_of_user(fd, user))
		return fd;
	*foreign = fd;
	return -EPERM;
}

/* Parses a line of /proc/net/unix.  Returns false unless it has the name of a broker. */
static bool parse_broker_line(const char *line, unsigned int *version, unsigned int *number)
{
	const char *at = strrchr(line, '@');
	char more;

	return at && sscanf(at + 1, UROCE_BROKER_NAME "%c", version, number, &more) == 3 &&
	       more == '\n';
}

/* Returns true if the user's broker listens at the name, and stores its process id. */
static bool is_broker_of_user(const struct name *name, uid_t user, pid_t *pid)
{
	struct ucred peer = { .uid = (uid_t)-1 };
	socklen_t bytes = sizeof(peer);
	int fd = make_refusing_socket();
	bool found = fd >= 0 &&
		     !connect(fd, (const struct sockaddr *)&name->address, name->bytes) &&
		     !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) && peer.uid == user;

	*pid = peer.pid;
	if (fd >= 0)
		close(fd);
	return found;
}

static void print_other_version(unsigned int version, pid_t pid,
				char text[NAMES_OTHER_VERSION_TEXT])
{
	char process[32] = "";

	/* 0: in another PID namespace */
	if (pid)
		snprintf(process, sizeof(process), " (process %d)", (int)pid);
	snprintf(text, NAMES_OTHER_VERSION_TEXT,
		 "another uroce-broker%s is running, with protocol version %u, and this uroce has "
		 "%u",
		 process, version, UROCE_BROKER_VERSION);
}

bool names_find_other_version(uid_t user, char text[NAMES_OTHER_VERSION_TEXT])
{
	FILE *file = fopen("/proc/net/unix", "re");
	char line[sizeof(struct sockaddr_un) + 128];
	unsigned int version, number, tries = 0;
	bool found = false;
	pid_t pid;

	if (!file)
		return false;
	while (!found && tries < OTHER_VERSION_TRIES && fgets(line, sizeof(line), file)) {
		struct name name;

		if (!parse_broker_line(line, &version, &number) || version == UROCE_BROKER_VERSION)
			continue;
		tries++;
		name = make_name(UROCE_BROKER_NAME, version, number);
		found = is_broker_of_user(&name, user, &pid);
	}
	fclose(file);
	if (found)
		print_other_version(version, pid, text);
	return found;
}

bool names_is_bound_to(int listener, unsigned int number)
{
	const struct name wanted = broker_name(number);
	struct sockaddr_un found;
	socklen_t bytes = sizeof(found);

	memset(&found, 0, sizeof(found));
	return !getsockname(listener, (struct sockaddr *)&found, &bytes) && bytes == wanted.bytes &&
	       !memcmp(&found, &wanted.address, bytes);
}

/* ---- slots ---- */

int names_lock_slot(unsigned int slot)
{
	const struct name name = make_name(UROCE_BROKER_SLOT_NAME, UROCE_BROKER_VERSION, slot);
	int fd = make_socket(), error;

	if (fd < 0 || !bind(fd, (const struct sockaddr *)&name.address, name.bytes))
		return fd;
	error = -errno;
	close(fd);
	return error;
}

/* Returns the slot whose name is in this line of /proc/net/unix, or UROCE_BROKER_SLOTS. */
static unsigned int slot_in_line(const char *line)
{
	const char *at = strrchr(line, '@');
	unsigned int version, slot;
	char more;

	if (!at || sscanf(at + 1, UROCE_BROKER_SLOT_NAME "%c", &version, &slot, &more) != 3 ||
	    more != '\n' || version != UROCE_BROKER_VERSION || slot >= UROCE_BROKER_SLOTS)
		return UROCE_BROKER_SLOTS;
	return slot;
}

bool names_read_bound_slots(bool bound[UROCE_BROKER_SLOTS])
{
	FILE *file = fopen("/proc/net/unix", "re");
	char line[sizeof(struct sockaddr_un) + 128];

	memset(bound, 0, UROCE_BROKER_SLOTS * sizeof(bound[0]));
	if (!file)
		return false;
	while (fgets(line, sizeof(line), file)) {
		unsigned int slot = slot_in_line(line);

		if (slot < UROCE_BROKER_SLOTS)
			bound[slot] = true;
	}
	fclose(file);
	return true;
}
