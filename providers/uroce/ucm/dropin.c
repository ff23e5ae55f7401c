/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Functions that replace the system calls of librdmacm, for the drop-in. */
#include <errno.h>
#include <unistd.h>

#include "channel.h"
#include "ucm/cmd/command.h"
#include "ucm_core.h"
#include "verbs/stats/stats.h"

/* Closes the channel of a reused descriptor, which the application has closed unnoticed. */
static void close_reused_fd(int fd)
{
	struct ucm_channel *old = ucm_channel_find(fd);

	if (!old)
		return;
	ucm_ids_destroy(old);
	ucm_channel_close(old, false);
}

static int open_channel(void)
{
	struct ucm_channel *channel;
	int error;

	ucm_api_lock();
	error = ucm_install_handlers();
	channel = error ? NULL : ucm_channel_open(close_reused_fd);
	if (!error && !channel)
		error = errno;
	ucm_api_unlock();
	if (channel)
		return channel->fd;
	errno = error;
	return -1;
}

static bool is_channel(int fd)
{
	bool ours;

	ucm_api_lock();
	ours = ucm_channel_find(fd);
	ucm_api_unlock();
	return ours;
}

/*
 * Returns true if a command is written to a channel of the parent process.  librdmacm also writes
 * to eventfds of its own, one of which may have the same number; but only eight bytes, and commands
 * are longer.
 */
static bool is_for_parent(int fd, size_t length)
{
	return length > sizeof(uint64_t) && ucm_channel_is_placeholder(fd);
}

static bool write_command(int fd, const void *bytes, size_t length, ssize_t *result)
{
	struct ucm_channel *channel;
	bool ours = true;

	ucm_api_lock();
	channel = ucm_channel_find(fd);
	if (channel) {
		ucm_channel_hold(channel);
		*result = ucm_execute_command(channel, bytes, length);
		ucm_channel_release(channel);
	} else if (is_for_parent(fd, length)) {
		*result = -EBADF;
	} else {
		ours = false;
		ucm_block_until_exit();
	}
	ucm_api_unlock();
	if (ours && *result < 0) {
		errno = (int)-*result;
		*result = -1;
	}
	return ours;
}

static bool close_channel(int fd)
{
	struct ucm_channel *channel;

	ucm_api_lock();
	channel = ucm_channel_find(fd);
	if (channel) {
		ucm_ids_destroy(channel);
		ucm_channel_close(channel, true);
	} else {
		ucm_channel_fd_closed(fd);
	}
	ucm_api_unlock();
	return channel;
}

const struct uroce_cm_dev_ops ucm_channels = {
	.open = open_channel,
	.owns = is_channel,
	.write = write_command,
	.close = close_channel,
};

__attribute__((constructor)) static void register_channels(void)
{
	uroce_register_cm_dev(&ucm_channels);
	uroce_stats_extend(ucm_stat_write);
}
