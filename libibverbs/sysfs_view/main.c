/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * uroce-view MODE LIBRARIES PROGRAM [ARGUMENT ...]: run by uroce-run to execute the program with
 * the view.  MODE is a name in modes[]; LIBRARIES is the directory of the drop-in.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "view.h"

#define PRELOAD_LIBRARY "liburoce-view.so"

static bool log_is_off(void)
{
	const char *log = getenv("UROCE_LOG");

	return log && !strcmp(log, "off");
}

static bool view_by_namespace(struct tree *tree, const char **step)
{
	int error = mounts_enter(tree, step);

	if (!error) {
		*step = "creating the tree";
		error = tree_create(tree);
	}
	if (!error)
		error = tree_update(tree);
	if (!error)
		error = mounts_show(tree, step);
	if (!error) {
		*step = "starting the process that updates the tree";
		error = updater_start(tree, NULL);
	}
	if (error)
		mounts_leave(tree);
	errno = -error;
	return !error;
}

/* Creates a private temporary directory; returns its path (static), or NULL with errno. */
static const char *make_private_dir(void)
{
	const char *parents[] = { getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp", "/dev/shm",
				  "/var/tmp" };
	static char dir[PATH_MAX];

	for (size_t i = 0; i < sizeof(parents) / sizeof(parents[0]); i++) {
		if (!parents[i] || parents[i][0] != '/' ||
		    snprintf(dir, sizeof(dir), "%s/uroce-view-XXXXXX", parents[i]) >=
			    (int)sizeof(dir) - 256)
			continue;
		if (mkdtemp(dir))
			return dir;
	}
	return NULL;
}

static bool set_ld_preload(const char *libraries)
{
	const char *before = getenv("LD_PRELOAD"), *options = getenv("ASAN_OPTIONS");
	char value[2 * PATH_MAX];

	/* AddressSanitizer insists on being first in LD_PRELOAD, which is not necessary here. */
	if (snprintf(value, sizeof(value), "%s%sverify_asan_link_order=0", options ? options : "",
		     options && *options ? ":" : "") < (int)sizeof(value))
		setenv("ASAN_OPTIONS", value, 1);
	if (snprintf(value, sizeof(value), "%s/" PRELOAD_LIBRARY "%s%s", libraries,
		     before && *before ? ":" : "", before ? before : "") >= (int)sizeof(value)) {
		errno = ENAMETOOLONG;
		return false;
	}
	return !setenv("LD_PRELOAD", value, 1);
}

static bool view_by_preload(struct tree *tree, const char *libraries, const char **step)
{
	const char *dir = make_private_dir();
	int error;

	*step = "creating a directory in XDG_RUNTIME_DIR, TMPDIR, /tmp, /dev/shm or /var/tmp";
	if (!dir)
		return false;
	tree->root = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	tree->class = open("/sys/class", O_PATH | O_DIRECTORY | O_CLOEXEC);
	tree->devices = open("/dev", O_PATH | O_DIRECTORY | O_CLOEXEC);
	tree->has_kernel_nodes = true;
	*step = "creating the tree";
	error = tree->root < 0 ? -errno : tree_create(tree);
	if (!error)
		error = tree_update(tree);
	*step = "starting the process that updates the tree";
	if (!error)
		error = updater_start(tree, dir);
	if (error)
		tree_remove(AT_FDCWD, dir);
	errno = -error;
	return !error && !setenv(TREE_VARIABLE, dir, 1) && set_ld_preload(libraries);
}

enum mode {
	MODE_AUTO,
	MODE_NAMESPACE,
	MODE_CALLS,
	MODE_NONE,
	MODE_COUNT,
};

static const char *const modes[] = {
	[MODE_AUTO] = "auto",
	[MODE_NAMESPACE] = "namespace",
	[MODE_CALLS] = "calls",
	[MODE_NONE] = "none",
};

/* Returns the mode in use, or MODE_COUNT after printing the reason of the failure to stderr. */
static enum mode make_view(enum mode mode, const char *libraries)
{
	static struct tree tree = { .root = -1, .class = -1, .devices = -1 };
	const char *step;

	if (mode == MODE_NONE || !devices_load())
		return mode == MODE_AUTO || mode == MODE_NONE ? MODE_NONE : MODE_COUNT;
	if (mode != MODE_CALLS) {
		if (view_by_namespace(&tree, &step))
			return MODE_NAMESPACE;
		if (mode == MODE_NAMESPACE || !log_is_off())
			fprintf(stderr, "uroce-run: no namespaces here (%s: %s)%s\n", step,
				strerror(errno),
				mode == MODE_AUTO ? ": /sys/class/infiniband and /dev/infiniband "
						    "are shown by redirected calls"
						  : "");
		if (mode == MODE_NAMESPACE)
			return MODE_COUNT;
	}
	if (view_by_preload(&tree, libraries, &step))
		return MODE_CALLS;
	fprintf(stderr, "uroce-run: /sys/class/infiniband cannot be shown (%s: %s)\n", step,
		strerror(errno));
	return mode == MODE_AUTO ? MODE_NONE : MODE_COUNT;
}

int main(int argc, char **argv)
{
	enum mode mode = MODE_AUTO, taken;
	const char *log = getenv("UROCE_LOG");

	while (argc > 3 && mode < MODE_COUNT && strcmp(modes[mode], argv[1]))
		mode++;
	if (argc <= 3 || mode == MODE_COUNT) {
		fputs("uroce-view: must be started by uroce-run\n", stderr);
		return 2;
	}
	taken = make_view(mode, argv[2]);
	if (taken == MODE_COUNT)
		return 125;
	if (log && !strcmp(log, "debug"))
		fprintf(stderr, "uroce-run: view: %s\n", modes[taken]);
	if (taken != MODE_NONE && supervisor_needed())
		supervisor_fork();
	execvp(argv[3], argv + 3);
	fprintf(stderr, "uroce-run: %s: %s\n", argv[3], strerror(errno));
	return errno == ENOENT ? 127 : 126;
}
