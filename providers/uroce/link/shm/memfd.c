/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Lock that is held until the process closes the file or exits, in whatever way */
static const struct flock owner_lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };

int memfd_make(const char *name, size_t bytes)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	struct rlimit size;
	int fd;

	/* Beyond this limit ftruncate(2) raises SIGXFSZ, which ends the program. */
	if (getrlimit(RLIMIT_FSIZE, &size) || size.rlim_cur < bytes)
		return -EFBIG;
	fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)bytes) || fcntl(fd, F_ADD_SEALS, seals) ||
	    fcntl(fd, F_SETLK, &owner_lock)) {
		int error = -errno;

		close(fd);
		return error;
	}
	return fd;
}

bool memfd_verify(int fd, size_t bytes)
{
	struct stat status;
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & F_SEAL_SHRINK) && fstat(fd, &status) == 0 &&
	       status.st_size == (off_t)bytes;
}

int memfd_owner_alive(int fd)
{
	struct flock found = owner_lock;

	if (fcntl(fd, F_GETLK, &found))
		return -errno;
	return found.l_type != F_UNLCK;
}

void *memfd_map(int fd, size_t bytes, size_t offset)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);

	if (memory == MAP_FAILED)
		return NULL;
	/* A forked child must not write to memory that its parent writes to. */
	madvise(memory, bytes, MADV_DONTFORK);
	/* To write a core file the kernel would allocate all of it: 4.25 GiB for each region. */
	madvise(memory, bytes, MADV_DONTDUMP);
	return memory;
}
