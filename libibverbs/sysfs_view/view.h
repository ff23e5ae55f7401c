/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Directory tree with the sysfs files and device nodes of RDMA devices:
 *
 *   class/infiniband/NAME/...        like /sys/class/infiniband of a kernel device
 *   class/infiniband_verbs/NAME/...
 *   dev/infiniband/NAME              symbolic link to a character device (sysfs_device_node())
 *
 * Kernel devices are included as symbolic links.  Files are replaced atomically, except counters.
 * Functions return 0 or a negative errno.
 */
#ifndef UROCE_VIEW_VIEW_H
#define UROCE_VIEW_VIEW_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "verbs/abi/dropin_ops.h"

/* ---- tree.c ---- */

/* Environment variable of programs with preloaded functions (preload.c): path of the tree. */
#define TREE_VARIABLE "UROCE_VIEW"
/* Maximum number of uroce devices in the tree. */
#define TREE_DEVICES 256

struct tree_device {
	char name[64];
	bool seen;
};

struct tree {
	int root;	       /* directory fd of the tree */
	int devices;	       /* directory fd of the kernel's /dev, or -1 */
	int class;	       /* directory fd of the kernel's /sys/class, or -1 */
	bool has_kernel_nodes; /* dev/infiniband gets links to the kernel's device nodes */
	struct tree_device shown[TREE_DEVICES];
	unsigned int count;
};

/* Creates the directories; the first tree_update() fills them. */
int tree_create(struct tree *tree);

/* Adds, updates and removes devices according to the provider's current list. */
int tree_update(struct tree *tree);

/* Calls watch() with the path of each counter directory of each device in the tree. */
void tree_each_counters(const struct tree *tree, void (*watch)(const char *path, void *arg),
			void *arg);

/*
 * Writes value to class/infiniband/DEVICE/ports/1/DIR/NAME.  Returns 0 if the device is not in
 * the tree.
 */
int tree_write_counter(struct tree *tree, const char *device, const char *dir, const char *name,
		       uint64_t value);

/* Removes a directory with its contents; path is relative to the fd directory. */
int tree_remove(int directory, const char *path);

/* ---- files.c ---- */

/* Files and symbolic links relative to a directory fd.  Functions return 0 or a negative errno. */

/* Creates a directory; succeeds if it exists. */
int files_mkdir(int directory, const char *path);

/* Sets the file's contents atomically.  A file that has them already is not replaced. */
__attribute__((format(printf, 3, 4))) int files_write(int directory, const char *path,
						      const char *format, ...);

/* Makes path a symbolic link to target, atomically. */
int files_symlink(int directory, const char *path, const char *target);

/*
 * Resolves the symbolic link name to an absolute path.  Returns false if it is not a symbolic link
 * or is dangling.
 */
bool files_resolve_link(int directory, const char *name, char target[PATH_MAX]);

/* ---- devices.c ---- */

/*
 * The devices that the view shows.  They are listed by the provider plug-in in this program's
 * directory, which the programs use as well.
 */

/* Loads the provider.  Returns false after printing the reason to stderr. */
bool devices_load(void);

/*
 * Calls visit() for each device that has been listed since the start and whose netdev still exists,
 * up or down.  Returns false if the devices cannot be listed.
 */
bool devices_each(void (*visit)(const char *name, const struct uroce_device_desc *desc, void *arg),
		  void *arg);

/* ---- sysfs.c ---- */

/*
 * The sysfs directories of one device, with the file names and contents of the kernel's infiniband
 * core.
 */

/*
 * Writes the files of the device below BASE/infiniband/NAME and BASE/infiniband_verbs/NAME.
 * Counter files are created with value 0 unless they exist.  Returns 0 or a negative errno.
 */
int sysfs_device(int root, const char *base, const char *name,
		 const struct uroce_device_desc *desc);

/*
 * Returns the path of the character device that represents uroce devices in /dev/infiniband; no
 * program should write to it.
 */
const char *sysfs_device_node(void);

/* ---- counters.c ---- */

/*
 * Device counters: the sum over this user's uroce processes, as uroce-stat prints them, including
 * processes that have exited since the view started.
 */

/*
 * Calls visit() for each counter.  group is the directory: "counters" (names of the kernel) or
 * "hw_counters" (names of the provider).
 */
void counters_each(void (*visit)(void *arg, const char *group, const char *name), void *arg);

/* Queries all processes and writes the counter files of all devices. */
void counters_update(struct tree *tree);

/* ---- mounts.c ---- */

/*
 * The view by mounts: this process enters a new mount namespace, together with a new user namespace
 * if it lacks CAP_SYS_ADMIN.  In it /sys/class and /dev are replaced by directories that bind all
 * original entries except those of RDMA devices.
 */

/*
 * Enters the namespaces and mounts a tmpfs for the tree; sets the fds in tree, those of the covered
 * directories included.  This is tried first in a child process, so that a failure has no effect on
 * the caller.  Returns 0, or a negative errno and the name of the failed step in *step.
 */
int mounts_enter(struct tree *tree, const char **step);

/* Mounts the tree where programs look for it.  To be called after the first tree_update(). */
int mounts_show(const struct tree *tree, const char **step);

/*
 * Undoes mounts_enter() and mounts_show() after a failure, so that another kind of view is possible
 * in this process, which stays in the namespaces.
 */
void mounts_leave(struct tree *tree);

/* ---- updater.c ---- */

/*
 * The process that updates the tree while the program runs.  It is a child of the program without
 * an exit signal, so the program's wait() does not return it.
 */

/*
 * Starts the process; it exits when the calling process does, and then removes the directory dir
 * unless that is NULL.  Returns 0 or a negative errno.
 */
int updater_start(struct tree *tree, const char *dir);

/* Kills and reaps the process.  May only be called in the process that has started it. */
void updater_stop(void);

/*
 * Closes all fds except the count ones in keep, opens /dev/null as 0 to 2 and changes the working
 * directory to /, so that this process does not keep the program's files and mounts in use.
 * Returns 0 or -1.
 */
int updater_detach(const int *keep, size_t count);

/* ---- supervisor.c ---- */

/*
 * In containers, process 1 often does not reap orphans.  The updater process outlives the program,
 * so it would remain a zombie after each run.  In that case the program runs as a child of a
 * supervisor, which reaps both.  Otherwise the program is executed in the calling process.
 */

/* Returns true if process 1 neither blocks, ignores nor catches SIGCHLD. */
bool supervisor_needed(void);

/*
 * Forks and returns in the child, which is to execute the program.  The parent forwards signals to
 * it, stops the updater process after it has exited, and exits with the same status or signal.  If
 * fork() fails, returns in the calling process.
 */
void supervisor_fork(void);

#endif
