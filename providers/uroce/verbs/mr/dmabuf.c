/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Memory regions of dma-bufs, by mapping them: requests access the mapping as they access memory of
 * the application.  Exporters that cannot be mapped (memory of most graphics processors) are not
 * supported.
 *
 * DMA_BUF_IOCTL_SYNC is not called around accesses: it would be two system calls for each packet.
 * Exporters of memory that is coherent with the processor's caches do not need it, and an
 * application that shares the buffer with another device must call it itself, as for its own
 * accesses to the mapping.
 */
#include "mr.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verbs/abi/ops.h"

/* Flags for memory that may be unmapped, for addresses from 0, and for storage that persists. */
#define NOT_DMABUF (IBV_ACCESS_ON_DEMAND | IBV_ACCESS_ZERO_BASED | ABI_ACCESS_FLUSH_PERSISTENT)

/* Parameters of ibv_reg_dmabuf_mr(). */
struct range {
	uint64_t offset;
	size_t length;
	uint64_t iova;
	int access;
};

/* Returns 0 or EINVAL. */
static int check_parameters(const struct range *range, uint64_t page_mask)
{
	if (range->access & NOT_DMABUF)
		return EINVAL;
	if (!range->length || range->length > UROCE_MAX_MR_BYTES ||
	    range->offset > INT64_MAX - range->length ||
	    range->iova > UINT64_MAX - (range->length - 1))
		return EINVAL;
	/* ibv_reg_mr(3): both have the same offset within a page. */
	if ((range->offset ^ range->iova) & page_mask)
		return EINVAL;
	return uroce_mr_check_access(range->access);
}

/* Returns the error for a failed mmap() of a descriptor. */
static int mmap_error(int error)
{
	switch (error) {
	case EBADF:
	case EACCES: /* not open for reading, or for writing */
	case EPERM:  /* sealed against writing */
	case EAGAIN: /* RLIMIT_MEMLOCK */
	case ENOMEM:
		return error;
	default:
		return EOPNOTSUPP;
	}
}

/* Maps the range of fd, and the bytes before it in its first page.  Returns 0 or errno. */
static int map_range(struct uroce_mapping *mapping, int fd, const struct range *range,
		     uint64_t in_page)
{
	int protection = PROT_READ | (range->access & IBV_ACCESS_LOCAL_WRITE ? PROT_WRITE : 0);
	struct stat stat;
	void *memory;
	int error = 0;

	if (fstat(fd, &stat))
		return errno;
	mapping->bytes = range->length + in_page;
	/* Populated, as pinning would, so that the first packets cause no page faults. */
	memory = mmap(NULL, mapping->bytes, protection, MAP_SHARED | MAP_POPULATE, fd,
		      (off_t)(range->offset - in_page));
	if (memory == MAP_FAILED)
		error = mmap_error(errno);
	/*
	 * A dma-buf has its size in its inode since Linux 5.3 and refuses to be mapped beyond it; a
	 * file does not refuse.  What cannot be mapped at all has no size.
	 */
	if ((!error || stat.st_size) && range->offset + range->length > (uint64_t)stat.st_size)
		error = EINVAL;
	if (!error) {
		mapping->memory = memory;
		return 0;
	}
	if (memory != MAP_FAILED)
		munmap(memory, mapping->bytes);
	return error;
}

struct ibv_mr *uroce_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				   int fd, int access)
{
	const struct range range = { offset, length, iova, access };
	uint64_t page_mask = (uint64_t)sysconf(_SC_PAGESIZE) - 1;
	struct uroce_mapping mapping;
	struct uroce_mr *mr;
	int error = check_parameters(&range, page_mask);

	if (!error)
		error = map_range(&mapping, fd, &range, offset & page_mask);
	if (error) {
		errno = error;
		return NULL;
	}
	mr = uroce_mr_create(pd,
			     &(struct mkey_entry){
				     .start = iova,
				     .length = length,
				     .memory = (uint8_t *)mapping.memory + (offset & page_mask),
				     .kind = MKEY_PINNED,
			     },
			     access, ABI_MR_TYPE_DMABUF_MR);
	if (!mr) {
		error = errno;
		munmap(mapping.memory, mapping.bytes);
		errno = error;
		return NULL;
	}
	mr->mapping = mapping;
	mr->base.ibv_mr.length = length;
	return &mr->base.ibv_mr;
}
