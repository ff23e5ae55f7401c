/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "own_folder.h"

#include <stdio.h>
#include <stdlib.h>

static char folder[] = "/tmp/uroce-test-XXXXXX";

int own_folder_make(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

int own_folder_remove(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

const char *own_file(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}
