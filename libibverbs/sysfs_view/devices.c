/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "view.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct uroce_dropin_ops *provider;
/*
 * Devices are never freed while the process runs, so these pointers stay valid
 * (Documentation/decisions/way-in.md).
 */
static struct ibv_device **known_devices;
static unsigned int known_count;

static void *open_in_own_dir(const char *name)
{
	char path[PATH_MAX + NAME_MAX];
	ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);
	char *slash;
	void *library;

	if (length < 0 || length == PATH_MAX) {
		fputs("uroce-run: /proc/self/exe cannot be read\n", stderr);
		return NULL;
	}
	path[length] = '\0';
	slash = strrchr(path, '/');
	strcpy(slash + 1, name);
	library = dlopen(path, RTLD_NOW);
	if (!library)
		fprintf(stderr, "uroce-run: %s\n", dlerror());
	return library;
}

bool devices_load(void)
{
	const struct uroce_dropin_ops *(*entry)(void);
	void *real, *plugin;

	real = open_in_own_dir("libibverbs.so.1") ? open_in_own_dir("libibverbs-real.so.1") : NULL;
	plugin = real ? open_in_own_dir("liburoce-rdmav34.so") : NULL;
	if (!plugin)
		return false;
	entry = (__typeof__(entry))dlsym(plugin, UROCE_DROPIN_OPS_SYMBOL);
	provider = entry ? entry() : NULL;
	if (!provider || provider->version != UROCE_DROPIN_OPS_VERSION) {
		fputs("uroce-run: the provider is from another release\n", stderr);
		return false;
	}
	return provider->load(real);
}

static bool is_known(const struct ibv_device *device)
{
	unsigned int i = 0;

	while (i < known_count && known_devices[i] != device)
		i++;
	return i < known_count;
}

static bool remember_devices(struct ibv_device **list, unsigned int count)
{
	struct ibv_device **grown =
		realloc(known_devices, sizeof(*known_devices) * (known_count + count));

	if (!grown && known_count + count)
		return false;
	known_devices = grown;
	for (unsigned int i = 0; i < count; i++) {
		if (!is_known(list[i]))
			known_devices[known_count++] = list[i];
	}
	return true;
}

bool devices_each(void (*visit)(const char *name, const struct uroce_device_desc *desc, void *arg),
		  void *arg)
{
	struct uroce_device_desc desc;
	struct ibv_device **list;
	unsigned int count;
	bool ok;

	if (provider->list_devices(&list, &count))
		return false;
	ok = remember_devices(list, count);
	free(list);
	for (unsigned int i = 0; ok && i < known_count; i++) {
		if (!provider->describe_device(known_devices[i], &desc))
			visit(known_devices[i]->name, &desc, arg);
	}
	return ok;
}
