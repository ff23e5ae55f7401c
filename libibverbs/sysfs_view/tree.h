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
#ifndef UROCE_VIEW_TREE_H
#define UROCE_VIEW_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
