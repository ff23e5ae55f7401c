/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* The way in: what the drop-in leads librdmacm's system calls to. */
#include <errno.h>
#include <unistd.h>

#include "channel.h"
#include "command.h"
#include "manager.h"
#include "stat.h"
#include "verbs/device/stat.h"
#include "way_in.h"

/* A descriptor may come again that the application has closed without our knowing. */
static void bury(int fd)
{
	struct ucm_channel *old = ucm_channel_of(fd);

	if (!old)
		return;
	ucm_ids_destroy(old);
	ucm_channel_close(old, false);
}

static int open_channel(void)
{
	struct ucm_channel *channel;
	int error;

	ucm_enter();
	error = ucm_watch();
	channel = error ? NULL : ucm_channel_open(bury);
	if (!error && !channel)
		error = errno;
	ucm_leave();
	if (channel)
		return channel->fd;
	errno = error;
	return -1;
}

static bool owns(int fd)
{
	bool ours;

	ucm_enter();
	ours = ucm_channel_of(fd);
	ucm_leave();
	return ours;
}

static bool write_command(int fd, const void *bytes, size_t length, ssize_t *result)
{
	struct ucm_channel *channel;

	ucm_enter();
	channel = ucm_channel_of(fd);
	if (channel) {
		ucm_channel_hold(channel);
		*result = ucm_command(channel, bytes, length);
		ucm_channel_release(channel);
	} else {
		ucm_wait_for_end();
	}
	ucm_leave();
	if (channel && *result < 0) {
		errno = (int)-*result;
		*result = -1;
	}
	return channel;
}

static bool close_channel(int fd)
{
	struct ucm_channel *channel;

	ucm_enter();
	channel = ucm_channel_of(fd);
	if (channel) {
		ucm_ids_destroy(channel);
		ucm_channel_close(channel, true);
	}
	ucm_leave();
	return channel;
}

const struct uroce_channels ucm_channels = {
	.open = open_channel,
	.owns = owns,
	.write = write_command,
	.close = close_channel,
};

__attribute__((constructor)) static void serve(void)
{
	uroce_serve_channels(&ucm_channels);
	uroce_stat_extend(ucm_stat_write);
}
