/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "host.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "link/shm/memfd.h"
#include "link/shm/shm.h"

uint32_t host_socket_buffer(int option, uint32_t requested)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), granted = 0;
	socklen_t bytes = sizeof(granted);

	setsockopt(fd, SOL_SOCKET, option, &requested, sizeof(requested));
	getsockopt(fd, SOL_SOCKET, option, &granted, &bytes);
	close(fd);
	/* The kernel doubles the size, to account for its bookkeeping. */
	return (uint32_t)granted / 2;
}

/* Writes to the memory file in a child process, which maps it, as memfd_map() demands. */
static bool write_in_child(int fd)
{
	int status = -1;
	pid_t child = fork();

	if (child == 0) {
		uint8_t *memory = memfd_map(fd, LINK_REGION_BYTES, 0);

		if (memory)
			memory[LINK_REGION_BYTES - 1] = 1;
		_exit(memfd_owner_alive(fd) == 1 ? 0 : 1);
	}
	return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

const char *host_share_memory(void)
{
	const char *failed = NULL;
	int fd = memfd_make("uroce-check", LINK_REGION_BYTES);
	uint8_t *memory;

	if (fd < 0) {
		errno = -fd;
		return "creating a memory file";
	}
	memory = memfd_map(fd, LINK_REGION_BYTES, 0);
	if (!memory)
		failed = "mapping 4.3 GiB of address space (ulimit -v)";
	else if (!write_in_child(fd) || memory[LINK_REGION_BYTES - 1] != 1)
		failed = "writing from another process";
	if (memory)
		munmap(memory, LINK_REGION_BYTES);
	close(fd);
	return failed;
}
