/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "view.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Staging directory: a device's directories are built here and then renamed to their place. */
#define STAGING "new"
#define INFINIBAND "class/infiniband"
#define VERBS "class/infiniband_verbs"
#define NODES "dev/infiniband"

int tree_remove(int directory, const char *path)
{
	int fd = openat(directory, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct dirent *entry;
	DIR *stream;

	if (fd < 0)
		return -errno;
	stream = fdopendir(fd);
	if (!stream) {
		close(fd);
		return -ENOMEM;
	}
	while ((entry = readdir(stream))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (unlinkat(fd, entry->d_name, 0) && (errno == EISDIR || errno == EPERM))
			tree_remove(fd, entry->d_name);
	}
	closedir(stream);
	return unlinkat(directory, path, AT_REMOVEDIR) ? -errno : 0;
}

int tree_create(struct tree *tree)
{
	static const char *const dirs[] = { "class", INFINIBAND, VERBS, "dev", NODES, STAGING };
	int error = 0;

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]) && !error; i++)
		error = files_mkdir(tree->root, dirs[i]);
	if (!error)
		error = files_write(tree->root, VERBS "/abi_version", "6\n");
	return error;
}

static struct tree_device *find_device(struct tree *tree, const char *name)
{
	for (unsigned int i = 0; i < tree->count; i++) {
		if (!strcmp(tree->shown[i].name, name))
			return &tree->shown[i];
	}
	return NULL;
}

/* Adds kernel devices: symbolic links to the targets of the links in from_path. */
static void link_kernel_devices(int from, const char *from_path, int root, const char *dir)
{
	char target[PATH_MAX], path[PATH_MAX], name[64];
	struct dirent *entry;
	DIR *stream;
	int fd = from < 0 ? -1 : openat(from, from_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	stream = fd < 0 ? NULL : fdopendir(fd);
	if (!stream) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(stream))) {
		/* In a nested view the uroce devices are directories there, not links. */
		if (entry->d_name[0] == '.' || !strcmp(entry->d_name, "abi_version") ||
		    (size_t)snprintf(name, sizeof(name), "%s", entry->d_name) >= sizeof(name))
			continue;
		if (!files_resolve_link(fd, name, target))
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, name);
		files_symlink(root, path, target);
	}
	closedir(stream);
}

static void link_kernel_nodes(struct tree *tree)
{
	int fd = openat(tree->devices, "infiniband", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	char target[PATH_MAX], path[PATH_MAX];
	struct dirent *entry;

	if (!stream) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(stream))) {
		if (entry->d_type != DT_CHR)
			continue;
		snprintf(target, sizeof(target), "/dev/infiniband/%s", entry->d_name);
		snprintf(path, sizeof(path), NODES "/%s", entry->d_name);
		files_symlink(tree->root, path, target);
	}
	closedir(stream);
}

static int publish_dir(struct tree *tree, const char *dir, const char *name)
{
	char from[128], to[128];

	snprintf(from, sizeof(from), STAGING "/%s/%s", strrchr(dir, '/') + 1, name);
	snprintf(to, sizeof(to), "%s/%s", dir, name);
	return renameat(tree->root, from, tree->root, to) ? -errno : 0;
}

static int add_device(struct tree *tree, const char *name, const struct uroce_device_desc *desc)
{
	char path[128];
	int error;

	error = files_mkdir(tree->root, STAGING "/infiniband");
	if (!error)
		error = files_mkdir(tree->root, STAGING "/infiniband_verbs");
	if (!error)
		error = sysfs_device(tree->root, STAGING, name, desc);
	snprintf(path, sizeof(path), NODES "/%s", name);
	if (!error)
		error = files_symlink(tree->root, path, sysfs_device_node());
	if (!error)
		error = publish_dir(tree, VERBS, name);
	if (!error)
		error = publish_dir(tree, INFINIBAND, name);
	return error;
}

struct update {
	struct tree *tree;
	int error;
};

static void show_device(const char *name, const struct uroce_device_desc *desc, void *arg)
{
	struct update *update = arg;
	struct tree *tree = update->tree;
	struct tree_device *device = find_device(tree, name);
	int error;

	if (device) {
		error = sysfs_device(tree->root, "class", name, desc);
	} else if (tree->count == TREE_DEVICES) {
		return;
	} else {
		error = add_device(tree, name, desc);
		device = &tree->shown[tree->count++];
		snprintf(device->name, sizeof(device->name), "%s", name);
	}
	device->seen = true;
	if (error && !update->error)
		update->error = error;
}

static void remove_device(struct tree *tree, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), INFINIBAND "/%s", name);
	/* Rename first, so that the device disappears atomically. */
	renameat(tree->root, path, tree->root, STAGING "/gone");
	tree_remove(tree->root, STAGING "/gone");
	snprintf(path, sizeof(path), VERBS "/%s", name);
	tree_remove(tree->root, path);
	snprintf(path, sizeof(path), NODES "/%s", name);
	unlinkat(tree->root, path, 0);
}

int tree_update(struct tree *tree)
{
	struct update update = { tree, 0 };

	for (unsigned int i = 0; i < tree->count; i++)
		tree->shown[i].seen = false;
	link_kernel_devices(tree->class, "infiniband", tree->root, INFINIBAND);
	link_kernel_devices(tree->class, "infiniband_verbs", tree->root, VERBS);
	if (tree->has_kernel_nodes)
		link_kernel_nodes(tree);
	if (!devices_each(show_device, &update))
		return -EIO;
	for (unsigned int i = 0; i < tree->count;) {
		if (tree->shown[i].seen) {
			i++;
			continue;
		}
		remove_device(tree, tree->shown[i].name);
		tree->shown[i] = tree->shown[--tree->count];
	}
	return update.error;
}

void tree_each_counters(const struct tree *tree, void (*watch)(const char *path, void *arg),
			void *arg)
{
	static const char *const dirs[] = { "counters", "hw_counters" };
	char path[PATH_MAX];

	for (unsigned int i = 0; i < tree->count; i++) {
		for (size_t j = 0; j < sizeof(dirs) / sizeof(dirs[0]); j++) {
			snprintf(path, sizeof(path),
				 "/proc/self/fd/%d/" INFINIBAND "/%s/ports/1/%s", tree->root,
				 tree->shown[i].name, dirs[j]);
			watch(path, arg);
		}
	}
}

/* Written in place, since readers may keep the file open; values never get shorter. */
int tree_write_counter(struct tree *tree, const char *device, const char *dir, const char *name,
		       uint64_t value)
{
	char path[256], text[32];
	int fd, length;

	if (!find_device(tree, device))
		return 0;
	snprintf(path, sizeof(path), INFINIBAND "/%s/ports/1/%s/%s", device, dir, name);
	fd = openat(tree->root, path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	length = snprintf(text, sizeof(text), "%llu\n", (unsigned long long)value);
	if (pwrite(fd, text, (size_t)length, 0) != length)
		length = -1;
	close(fd);
	return length < 0 ? -EIO : 0;
}
