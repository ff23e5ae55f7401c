/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "tmpdir.h"

#include <stdio.h>
#include <stdlib.h>

static char folder[] = "/tmp/uroce-test-XXXXXX";

int tmpdir_create(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

int tmpdir_remove(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

const char *tmpdir_file(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}
