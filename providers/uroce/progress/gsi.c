/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "gsi.h"

#include <errno.h>
#include <stdio.h>

static const char *const for_names[] = {
	[GSI_FOR_YOU] = "you",
	[GSI_FOR_ANYBODY] = "anybody",
	[GSI_FOR_NOBODY] = "nobody",
};

const char *gsi_for_name(enum gsi_for reason)
{
	return reason < sizeof(for_names) / sizeof(for_names[0]) ? for_names[reason] : "unknown";
}

int gsi_get(struct progress *progress, const struct gsi_hooks *hooks, struct gsi **gsi,
	    char error[PROGRESS_ERROR_TEXT])
{
	(void)progress, (void)hooks, (void)gsi;
	snprintf(error, PROGRESS_ERROR_TEXT, "queue pair 1 is not served yet");
	return -ENOSYS;
}

void gsi_put(struct gsi *gsi)
{
	(void)gsi;
}

unsigned int gsi_slot(const struct gsi *gsi)
{
	(void)gsi;
	return 0;
}

int gsi_addr_get(struct gsi *gsi, const uint8_t gid[16], uint32_t scope_id,
		 char error[PROGRESS_ERROR_TEXT])
{
	(void)gsi, (void)gid, (void)scope_id, (void)error;
	return -ENOSYS;
}

void gsi_addr_put(struct gsi *gsi, const uint8_t gid[16], uint32_t scope_id)
{
	(void)gsi, (void)gid, (void)scope_id;
}

int gsi_send(struct gsi *gsi, const struct gsi_path *path, const uint8_t mad[GSI_MAD_BYTES])
{
	(void)gsi, (void)path, (void)mad;
	return -ENOSYS;
}

void gsi_deadline(struct gsi *gsi, uint64_t when)
{
	(void)gsi, (void)when;
}

int gsi_port_bind(struct gsi *gsi, uint16_t space, const struct gsi_port_address *address,
		  uint16_t *port, unsigned int flags, struct gsi_port **bound)
{
	(void)gsi, (void)space, (void)address, (void)port, (void)flags, (void)bound;
	return -ENOSYS;
}

int gsi_port_listen(struct gsi_port *port)
{
	(void)port;
	return -ENOSYS;
}

void gsi_port_close(struct gsi_port *port)
{
	(void)port;
}
