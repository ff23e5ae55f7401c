/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The files that programs read of RDMA devices, as a tree of real files:
 *
 *   class/infiniband/NAME/...        as /sys/class/infiniband of a kernel's device
 *   class/infiniband_verbs/NAME/...
 *   dev/infiniband/NAME              a link to a character device that every system has
 *
 * Beside ours the kernel's devices are in it, as links.  A file changes in one step: a reader
 * sees what was or what is.  Functions return 0 or a negative errno.
 */
#ifndef UROCE_VIEW_TREE_H
#define UROCE_VIEW_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many devices the view shows at most. */
#define TREE_DEVICES 256

struct tree_device {
	char name[64];
	bool seen;
};

struct tree {
	int root;    /* the folder's descriptor */
	int devices; /* of the kernel's own /dev; -1: there is none */
	int class;   /* of the kernel's own /sys/class; -1: there is none */
	/* Also the kernel's nodes are to be links in dev/infiniband. */
	bool shows_nodes;
	struct tree_device shown[TREE_DEVICES];
	unsigned int count;
};

/* Make the folders; the first tree_update() fills them. */
int tree_create(struct tree *tree);

/* Make the tree show the devices as they are now. */
int tree_update(struct tree *tree);

/* Called by watch() with each folder of counters of each device in the tree. */
void tree_each_counters(const struct tree *tree, void (*watch)(const char *path, void *arg),
			void *arg);

/* Write value into class/infiniband/DEVICE/ports/1/FOLDER/NAME; no such device: nothing. */
int tree_put_counter(struct tree *tree, const char *device, const char *folder, const char *name,
		     uint64_t value);

/* Take away a folder below directory (a descriptor) with all that is in it. */
int tree_remove(int directory, const char *path);

#endif
