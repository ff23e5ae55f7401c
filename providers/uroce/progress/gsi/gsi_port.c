/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Ports of port spaces, which the broker assigns.  A struct gsi_port is a struct link_port. */
#include <errno.h>
#include <string.h>

#include "gsi_priv.h"
#include "link/broker/port.h"

int gsi_port_bind(struct gsi *gsi, uint16_t space, const struct gsi_port_address *address,
		  uint16_t *port, unsigned int flags, struct gsi_port **bound)
{
	struct link_port_name name = {
		.scope_id = address->scope_id,
		.space = space,
		.port = *port,
		.reuse = flags & GSI_PORT_REUSE,
		.af_only = flags & GSI_PORT_AF_ONLY,
	};
	struct link_port *result;
	int error;

	if (gsi->progress->forked)
		return -EOWNERDEAD;
	memcpy(name.gid, address->gid, sizeof(name.gid));
	error = link_port_bind(gsi->progress->link, &name, &result);
	if (error)
		return error;
	*port = name.port;
	*bound = (struct gsi_port *)result;
	return 0;
}

int gsi_port_listen(struct gsi_port *port)
{
	return link_port_listen((struct link_port *)port);
}

void gsi_port_close(struct gsi_port *port)
{
	link_port_end((struct link_port *)port);
}
