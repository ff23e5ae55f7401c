/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "view.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "link/fd.h"

#define CLASS "/sys/class"
#define DEV "/dev"
#define NODES "/dev/infiniband"
#define FLAGS (MS_NOSUID | MS_NODEV | MS_NOEXEC)

/* Paths that have been covered, in this order: by the tmpfs, and by directories of the tree. */
static const char *covered_paths[3];
static unsigned int covered_count;

/* Mounts source over path and records that.  Returns 0 or a negative errno. */
static int cover(const char *source, const char *path, const char *type, unsigned long flags)
{
	if (mount(source, path, type, flags, type ? "mode=755" : NULL))
		return -errno;
	covered_paths[covered_count++] = path;
	return 0;
}

void mounts_leave(struct tree *tree)
{
	while (covered_count > 0)
		umount2(covered_paths[--covered_count], MNT_DETACH);
	link_close_fd(&tree->root);
	link_close_fd(&tree->class);
	link_close_fd(&tree->devices);
	tree->count = 0;
}

static int fail_step(const char **step, const char *what)
{
	*step = what;
	return -errno;
}

static int write_map(const char *path, const char *format, unsigned int id)
{
	char text[64];
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int length = snprintf(text, sizeof(text), format, id, id);
	bool written;

	if (fd < 0)
		return -errno;
	written = write(fd, text, (size_t)length) == length;
	return close(fd) || !written ? -errno : 0;
}

/* Maps only our own user and group ID into the new user namespace, unchanged. */
static int map_own_ids(uid_t user, gid_t group, const char **step)
{
	*step = "mapping the IDs of a user namespace";
	/* Kernels before 3.19 do not have this file and do not require the write. */
	write_map("/proc/self/setgroups", "deny", 0);
	if (write_map("/proc/self/gid_map", "%u %u 1\n", group))
		return -errno;
	return write_map("/proc/self/uid_map", "%u %u 1\n", user);
}

/*
 * Returns true if the process has capabilities, as root in a container.  In a new user namespace
 * they would not apply to anything outside it.
 */
static bool has_privileges(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	return !syscall(SYS_capget, &header, data) && (data[0].permitted || data[1].permitted);
}

static int unshare_namespaces(const char **step)
{
	uid_t user = geteuid();
	gid_t group = getegid();

	if (!unshare(CLONE_NEWNS))
		return 0;
	if (errno != EPERM)
		return fail_step(step, "unshare");
	if (has_privileges()) {
		errno = EPERM;
		return fail_step(step, "a user namespace would take privileges away");
	}
	/* Other users' processes could not be distinguished from our own (link_check_userns()). */
	if (user == link_overflow_uid()) {
		errno = EPERM;
		return fail_step(step, "in a user namespace this user stands for all others");
	}
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		return fail_step(step, "unshare");
	return map_own_ids(user, group, step);
}

/* Does the work of mounts_enter() in the calling process. */
static int enter_namespaces(struct tree *tree, const char **step)
{
	int error = unshare_namespaces(step);

	if (error)
		return error;
	/* Later mounts outside propagate into the namespace, but not the reverse. */
	if (mount("none", "/", NULL, MS_REC | MS_SLAVE, NULL))
		return fail_step(step, "mount");
	/* Opened before they are covered, and in the new namespace, since bind mounts need that. */
	tree->class = open(CLASS, O_PATH | O_DIRECTORY | O_CLOEXEC);
	tree->devices = open(DEV, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (tree->class < 0 || tree->devices < 0)
		return fail_step(step, "opening /sys/class and /dev");
	error = cover("uroce", CLASS, "tmpfs", FLAGS);
	if (error) {
		*step = "mount";
		return error;
	}
	tree->root = open(CLASS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return tree->root < 0 ? fail_step(step, "opening the tree") : 0;
}

int mounts_enter(struct tree *tree, const char **step)
{
	static struct {
		int error;
		char step[128];
	} result;
	int status, pipes[2];
	pid_t child;

	if (pipe2(pipes, O_CLOEXEC))
		return fail_step(step, "pipe");
	child = fork();
	if (child < 0) {
		int error = fail_step(step, "fork");

		close(pipes[0]);
		close(pipes[1]);
		return error;
	}
	if (child == 0) {
		result.error = enter_namespaces(tree, step);
		if (result.error)
			snprintf(result.step, sizeof(result.step), "%s", *step);
		_exit(write(pipes[1], &result, sizeof(result)) != sizeof(result));
	}
	close(pipes[1]);
	if (read(pipes[0], &result, sizeof(result)) != sizeof(result)) {
		/* A seccomp filter may kill the process instead of returning an error. */
		result.error = -EPERM;
		snprintf(result.step, sizeof(result.step), "unshare");
	}
	close(pipes[0]);
	waitpid(child, &status, 0);
	*step = result.step;
	return result.error ? result.error : enter_namespaces(tree, step);
}

/* Builds the path of a file in a directory given by its fd, for calls that take only a path. */
static void fd_path(int directory, const char *name, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "/proc/self/fd/%d/%s", directory, name);
}

/* Creates the mount point for an entry of the covered directory: directory, symlink or file. */
static int make_mount_point(int directory, const char *name, const struct stat *status, int from)
{
	char target[PATH_MAX];
	ssize_t length;
	int fd;

	if (S_ISDIR(status->st_mode))
		return files_mkdir(directory, name);
	if (S_ISLNK(status->st_mode)) {
		length = readlinkat(from, name, target, sizeof(target) - 1);
		if (length < 0)
			return -errno;
		target[length] = '\0';
		return files_symlink(directory, name, target);
	}
	fd = openat(directory, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0444);
	return fd < 0 ? -errno : close(fd);
}

/*
 * Binds every entry of the covered directory into the one mounted over it at path, except entries
 * that exist there already.  Entries that cannot be bound are left out.
 */
static int bind_entries(int covered, int over, const char *path)
{
	int error = 0, fd = openat(covered, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	char from[PATH_MAX], to[PATH_MAX];
	struct dirent *entry;
	struct stat status;

	if (!stream)
		return -errno;
	while ((entry = readdir(stream)) && !error) {
		const char *name = entry->d_name;

		if (!strcmp(name, ".") || !strcmp(name, "..") ||
		    !faccessat(over, name, F_OK, AT_SYMLINK_NOFOLLOW) ||
		    fstatat(covered, name, &status, AT_SYMLINK_NOFOLLOW))
			continue;
		error = make_mount_point(over, name, &status, covered);
		if (error || S_ISLNK(status.st_mode))
			continue;
		fd_path(covered, name, from);
		snprintf(to, sizeof(to), "%s/%s", path, name);
		if (mount(from, to, NULL, MS_BIND | MS_REC, NULL))
			unlinkat(over, name, S_ISDIR(status.st_mode) ? AT_REMOVEDIR : 0);
	}
	closedir(stream);
	return error;
}

/* Mounts a directory of the tree over path, and binds the original entries of path into it. */
static int mount_over(const struct tree *tree, const char *dir, const char *path, int covered,
		      const char **step)
{
	int error, over = openat(tree->root, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char from[PATH_MAX];

	if (over < 0)
		return fail_step(step, "opening the tree");
	fd_path(tree->root, dir, from);
	*step = "mount";
	error = cover(from, path, NULL, MS_BIND);
	if (!error)
		error = bind_entries(covered, over, path);
	/* Only this mount becomes read-only; updates go through tree->root. */
	if (!error && mount(NULL, path, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | FLAGS, NULL))
		error = -errno;
	close(over);
	return error;
}

int mounts_show(const struct tree *tree, const char **step)
{
	int error, nodes;

	error = mount_over(tree, "class", CLASS, tree->class, step);
	if (error)
		return error;
	/* If the kernel has RDMA devices, /dev/infiniband exists and /dev need not be covered. */
	nodes = openat(tree->devices, "infiniband", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (nodes < 0)
		return mount_over(tree, "dev", DEV, tree->devices, step);
	error = mount_over(tree, "dev/infiniband", NODES, nodes, step);
	close(nodes);
	return error;
}
