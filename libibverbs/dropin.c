/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dropin.h"
#include "redirect.h"
#include "verbs/log_line.h"

/* DT_NEEDED name of the real library; a symbolic link in the drop-in's directory. */
#define REAL_NAME "libibverbs-real.so.1"
#define PROVIDER_FILE "liburoce-rdmav34.so" /* in the drop-in's directory */

/* Lets the plug-in detect the drop-in: UROCE_DROPIN_SYMBOL. */
DROPIN_EXPORT const int uroce_dropin = 1;

static pthread_once_t provider_once = PTHREAD_ONCE_INIT;
static _Atomic(const struct uroce_dropin_ops *) provider;

static void *get_real_library(void)
{
	static _Atomic(void *) library;
	void *found = atomic_load(&library);

	if (!found) {
		found = dlopen(REAL_NAME, RTLD_LAZY | RTLD_NOLOAD);
		atomic_store(&library, found);
	}
	return found;
}

void *dropin_real(const char *symbol, const char *node)
{
	void *library = get_real_library();
	void *found = library ? dlvsym(library, symbol, node) : NULL;

	if (!found)
		errno = ENOSYS;
	return found;
}

static void report_error(const char *what, const char *why)
{
	const char *log = getenv("UROCE_LOG");
	char line[PATH_MAX + 256];

	if (log && !strcmp(log, "off"))
		return;
	snprintf(line, sizeof(line), "%s: %s; the uroce devices are left out", what, why);
	uroce_stderr_line(line);
}

/*
 * Opens a library in the drop-in's own directory, which the loader reports independently of the
 * path used to load it and of the working directory.  "$ORIGIN/..." would resolve to the wrong
 * directory if a sanitizer or debugging tool wraps dlopen().
 */
static void *open_in_own_dir(const char *name)
{
	char path[PATH_MAX + NAME_MAX];
	struct link_map *own;
	Dl_info info;

	/* In glibc the handle of a library is its struct link_map. */
	if (!dladdr1(&uroce_dropin, &info, (void **)&own, RTLD_DL_LINKMAP) ||
	    dlinfo(own, RTLD_DI_ORIGIN, path))
		return NULL;
	strcat(path, "/");
	strcat(path, name);
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static void load_provider(void)
{
	const struct uroce_dropin_ops *(*entry)(void);
	const struct uroce_dropin_ops *table;
	void *plugin;

	if (!get_real_library()) {
		report_error(REAL_NAME, "the library is not loaded");
		return;
	}
	plugin = open_in_own_dir(PROVIDER_FILE);
	if (!plugin) {
		report_error("the provider cannot be loaded", dlerror());
		return;
	}
	entry = (__typeof__(entry))dlsym(plugin, UROCE_DROPIN_OPS_SYMBOL);
	table = entry ? entry() : NULL;
	if (!table || table->version != UROCE_DROPIN_OPS_VERSION) {
		report_error("the provider",
			     "it is from another release than the drop-in libibverbs");
		return;
	}
	fork_redirect_madvise();
	redirect_past_preload(table);
	redirect_past_preload(&uroce_dropin);
	if (table->load(get_real_library()))
		atomic_store(&provider, table);
}

const struct uroce_dropin_ops *dropin_provider(void)
{
	pthread_once(&provider_once, load_provider);
	return atomic_load(&provider);
}

const struct uroce_dropin_ops *dropin_provider_of(const struct ibv_device *device)
{
	const struct uroce_dropin_ops *table = atomic_load(&provider);

	return table && table->owns_device(device) ? table : NULL;
}
