/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/capture.h"
#include "verbs/stats/stats.h"
#include "verbs/cq/cq_workers.h"
#include "context.h"
#include "device.h"
#include "verbs/fork.h"
#include "verbs/mr/mkey_table.h"
#include "verbs/abi/ops.h"
#include "verbs/qp/qp.h"

static const struct progress_hooks hooks = {
	.enter = mkey_read_lock,
	.leave = mkey_read_unlock,
	.cycle_done = uroce_channel_flush_deferred,
	.timed_out = uroce_path_mtu_schedule_check,
};

/*
 * Returns a descriptor for cmd_fd, or -1 with errno.  Programs duplicate cmd_fd and pass it on, so
 * it must be a real descriptor that identifies its file; if there is no such file, it is that of
 * the root directory, and the context has no imports.  All system calls of libibverbs on it must
 * fail as if there were no descriptor (EBADF), which O_PATH provides.
 */
static int open_cmd_fd(void)
{
	char path[32];
	int memory = memfd_create("uroce", MFD_CLOEXEC);
	int fd;

	if (memory < 0)
		return open("/", O_PATH | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", memory);
	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0) /* without /proc */
		fd = open("/", O_PATH | O_CLOEXEC);
	close(memory);
	return fd;
}

/*
 * Identifies the file of cmd_fd, unless it is the fallback of open_cmd_fd(), which would be the
 * file of all contexts.
 */
static void read_file(struct uroce_context *context, int cmd_fd)
{
	struct stat status;

	if (fstat(cmd_fd, &status) || S_ISDIR(status.st_mode))
		return;
	context->file = status.st_ino;
	context->file_system = status.st_dev;
}

/* import_fd is the cmd_fd of an import, or -1. */
static struct uroce_context *alloc_raw_context(struct ibv_device *device, int import_fd)
{
	size_t offset =
		offsetof(struct uroce_context, base.context) - uroce_abi.layout->context_offset;
	int cmd_fd = import_fd >= 0 ? import_fd : open_cmd_fd();
	struct uroce_context *context;

	if (cmd_fd < 0)
		return NULL;
	/* Takes ownership of cmd_fd, also on failure. */
	context = uroce_abi.init_and_alloc_context(device, cmd_fd, sizeof(struct uroce_context),
						   (void *)offset, 0);
	if (context)
		read_file(context, cmd_fd);
	return context;
}

/* Returns 0, or a negative errno with one line in text. */
static int start_capture(char text[PROGRESS_ERROR_TEXT])
{
	struct capture_config config;
	char why[CAPTURE_ERROR_TEXT];
	int error = uroce_settings_read_capture(&config, text);

	if (error || !*config.name)
		return error;
	config.report_error = uroce_err;
	error = capture_start_once(&config, why);
	if (error)
		snprintf(text, PROGRESS_ERROR_TEXT, "UROCE_CAPTURE: %.200s", why);
	return error;
}

/* As with an adapter, what was received is acknowledged even if the process exits. */
static void register_exit_handler(void)
{
	/* If it fails, ACKs that are delayed when the process exits are lost. */
	(void)atexit(progress_exit_flush);
}

/*
 * Initialises what all users of progress share, and takes a reference to it.  Returns 0, or a
 * negative errno with one line in text.
 */
static int get_progress(struct progress **progress, struct uroce_settings *settings,
			char text[PROGRESS_ERROR_TEXT])
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int error;

	pthread_once(&once, register_exit_handler);
	uroce_env_warn_unknown();
	error = uroce_settings_read(settings, text);
	if (!error)
		error = progress_get(progress, &hooks, text);
	if (error)
		return error;
	/* A child after fork() opens a file of its own, with its PID in the name. */
	error = start_capture(text);
	if (error) {
		progress_put(*progress);
		return error;
	}
	uroce_settings_apply(settings, *progress);
	return 0;
}

int uroce_provider_start(struct progress **progress, struct uroce_settings *settings,
			 char error[PROGRESS_ERROR_TEXT])
{
	int failed = get_progress(progress, settings, error);

	if (failed)
		return failed;
	uroce_netdev_events_get(*progress);
	uroce_stats_get(*progress);
	uroce_devices_refresh();
	return 0;
}

void uroce_provider_stop(struct progress *progress)
{
	uroce_stats_put(progress);
	uroce_netdev_events_put(progress);
	progress_put(progress);
}

void *uroce_alloc_context(struct ibv_device *device, const struct abi_ops *ops, void *private_data)
{
	char text[PROGRESS_ERROR_TEXT];
	struct progress *progress;
	struct uroce_settings settings;
	struct uroce_context *context;
	int error;

	error = uroce_fork_init();
	if (error) {
		errno = error;
		return NULL;
	}
	error = get_progress(&progress, &settings, text);
	if (error) {
		uroce_err("%s cannot be opened: %s", device->name, text);
		errno = -error;
		return NULL;
	}
	context = alloc_raw_context(device, private_data ? *(const int *)private_data : -1);
	if (!context) {
		error = errno;
		goto put_progress;
	}
	context->progress = progress;
	context->device = to_uroce_device(device);
	context->settings = settings;
	context->generation = uroce_generation;
	atomic_init(&context->refs, 1);
	error = uroce_async_open(context);
	if (error)
		goto uninit_context;
	abi_set_ops(&context->base, ops);
	context->base.context.num_comp_vectors = (int)uroce_workers_max(&settings);
	uroce_netdev_events_get(progress);
	uroce_stats_get(progress);
	/* Read again now that notification is active, so that no change is missed. */
	uroce_devices_refresh();
	if (!uroce_devices_add_context(context)) {
		error = ENODEV;
		goto stop;
	}
	return abi_verbs_context(&context->base);

stop:
	uroce_stats_put(progress);
	uroce_netdev_events_put(progress);
	uroce_async_close(context);
uninit_context:
	uroce_abi.uninit_context(abi_verbs_context(&context->base));
	free(context);
put_progress:
	progress_put(progress);
	uroce_err("%s cannot be opened: %s", device->name, strerror(error));
	errno = error;
	return NULL;
}

struct ibv_context *uroce_import_device(int cmd_fd)
{
	struct ibv_device *device;
	struct stat status;

	if (fstat(cmd_fd, &status)) {
		errno = EBADF;
		return NULL;
	}
	device = uroce_devices_find_by_file(status.st_dev, status.st_ino);
	if (!device) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return uroce_abi.open_device(device, &cmd_fd);
}

void uroce_free_context(struct ibv_context *public)
{
	struct uroce_context *context = to_uroce_context(public);
	bool stale = uroce_is_stale(context->generation);
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	uroce_devices_remove_context(context);
	/* A forked child counts only its own contexts. */
	if (!stale) {
		uroce_stats_put(context->progress);
		uroce_netdev_events_put(context->progress);
	}
	uroce_async_close(context);
	/* libibverbs would close cmd_fd only when the memory is freed, which may be much later. */
	close(public->cmd_fd);
	public->cmd_fd = -1;
	context->closed = true;
	/* The parent stops its objects; a forked child does not. */
	if (!stale)
		uroce_context_close(context);
	uroce_context_release(public);
	pthread_setcancelstate(cancel_state, NULL);
}
