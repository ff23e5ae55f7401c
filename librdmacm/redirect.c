/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "redirect.h"

#include <dlfcn.h>
#include <elf.h>
#include <gnu/lib-names.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "calls.h"

#define LIBRARY "librdmacm.so"
#define PRELOAD "librspreload.so"

/* Relocation types of imported functions. */
#if defined(__x86_64__)
#define IS_IMPORT(type) ((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT)
#elif defined(__aarch64__)
#define IS_IMPORT(type) ((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT)
#elif defined(__powerpc64__)
#define IS_IMPORT(type) ((type) == R_PPC64_JMP_SLOT || (type) == R_PPC64_GLOB_DAT)
#elif defined(__riscv)
#define IS_IMPORT(type) ((type) == R_RISCV_JUMP_SLOT || (type) == R_RISCV_64)
#elif defined(__s390x__)
#define IS_IMPORT(type) ((type) == R_390_JMP_SLOT || (type) == R_390_GLOB_DAT)
#else
#define IS_IMPORT(type) ((void)(type), false)
#endif

struct image {
	uintptr_t base;
	const char *strings;
	const ElfW(Sym) * symbols;
	/* pages that the loader has made read-only */
	uintptr_t relro_start, relro_end;
	const ElfW(Dyn) * dynamic;
	bool is_librdmacm, is_preload;
};

static pthread_mutex_t patch_lock = PTHREAD_MUTEX_INITIALIZER;

/* On some architectures the loader relocates the addresses in the dynamic section. */
static const void *located(const struct image *image, ElfW(Addr) address)
{
	return (const void *)(address < image->base ? image->base + address : address);
}

static bool may_write(const struct image *image, uintptr_t page, int protection, size_t bytes)
{
	if (page < image->relro_start || page >= image->relro_end)
		return true;
	return !mprotect((void *)page, bytes, protection);
}

/* Other threads may be calling through the slot, so it is changed by one atomic store. */
static void set_slot(const struct image *image, uintptr_t place, uintptr_t value)
{
	uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t page = place & ~(page_bytes - 1);
	uintptr_t *slot = (uintptr_t *)place;

	if (__atomic_load_n(slot, __ATOMIC_RELAXED) == value)
		return;
	if (!may_write(image, page, PROT_READ | PROT_WRITE, page_bytes))
		return;
	__atomic_store_n(slot, value, __ATOMIC_RELEASE);
	may_write(image, page, PROT_READ, page_bytes);
}

static void patch(const struct image *image, replacement_fn replacement,
		  const ElfW(Rela) * relocation, size_t bytes)
{
	const ElfW(Rela) *end = relocation + bytes / sizeof(*relocation);

	for (; relocation < end; relocation++) {
		const char *name;
		uintptr_t ours;

		if (!IS_IMPORT(ELF64_R_TYPE(relocation->r_info)))
			continue;
		name = image->strings + image->symbols[ELF64_R_SYM(relocation->r_info)].st_name;
		ours = replacement(name);
		if (ours)
			set_slot(image, image->base + relocation->r_offset, ours);
	}
}

static void patch_image(struct image *image, replacement_fn replacement)
{
	const ElfW(Dyn) *dynamic = image->dynamic;
	const void *plt = NULL, *other = NULL;
	size_t plt_bytes = 0, other_bytes = 0;

	for (; dynamic->d_tag != DT_NULL; dynamic++) {
		switch (dynamic->d_tag) {
		case DT_STRTAB:
			image->strings = located(image, dynamic->d_un.d_ptr);
			break;
		case DT_SYMTAB:
			image->symbols = located(image, dynamic->d_un.d_ptr);
			break;
		case DT_JMPREL:
			plt = located(image, dynamic->d_un.d_ptr);
			break;
		case DT_PLTRELSZ:
			plt_bytes = dynamic->d_un.d_val;
			break;
		case DT_RELA:
			other = located(image, dynamic->d_un.d_ptr);
			break;
		case DT_RELASZ:
			other_bytes = dynamic->d_un.d_val;
			break;
		}
	}
	if (!image->strings || !image->symbols)
		return;
	if (plt)
		patch(image, replacement, plt, plt_bytes);
	if (other)
		patch(image, replacement, other, other_bytes);
}

static bool is_named(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');

	return !strncmp(slash ? slash + 1 : path, name, strlen(name));
}

static bool holds(const struct dl_phdr_info *info, uintptr_t address)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (segment->p_type == PT_LOAD &&
		    address - info->dlpi_addr - segment->p_vaddr < segment->p_memsz)
			return true;
	}
	return false;
}

struct search {
	uintptr_t address;
	struct image image;
};

static int look_at(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
	struct search *search = arg;
	struct image *image = &search->image;

	(void)bytes;
	if (!info->dlpi_name || !holds(info, search->address))
		return 0;
	image->base = info->dlpi_addr;
	image->is_librdmacm = is_named(info->dlpi_name, LIBRARY);
	image->is_preload = is_named(info->dlpi_name, PRELOAD);
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type == PT_DYNAMIC)
			image->dynamic = (const void *)start;
		if (segment->p_type == PT_GNU_RELRO) {
			/* The loader protects whole pages only, rounding both ends down. */
			image->relro_start = start & ~(page_bytes - 1);
			image->relro_end = (start + segment->p_memsz) & ~(page_bytes - 1);
		}
	}
	return 1;
}

static bool find_image(const void *address, struct image *image)
{
	struct search search = { .address = (uintptr_t)address };

	if (!dl_iterate_phdr(look_at, &search))
		return false;
	*image = search.image;
	return image->dynamic;
}

bool redirect_is_librdmacm(const void *address)
{
	struct image image;

	return find_image(address, &image) && image.is_librdmacm;
}

/* The library cannot be unloaded meanwhile, since it is the caller. */
void redirect_if_librdmacm(const void *address)
{
	struct image image;

	pthread_mutex_lock(&patch_lock);
	if (find_image(address, &image) && image.is_librdmacm)
		patch_image(&image, calls_replacement);
	pthread_mutex_unlock(&patch_lock);
}

static uintptr_t past_preload(const char *name)
{
	void *function = dlsym(RTLD_DEFAULT, name);
	struct image image;
	uintptr_t real;
	void *libc;

	if (!function || !find_image(function, &image) || !image.is_preload)
		return 0;
	libc = dlopen(LIBC_SO, RTLD_LAZY | RTLD_NOLOAD);
	real = libc ? (uintptr_t)dlsym(libc, name) : 0;
	if (libc)
		dlclose(libc);
	return real;
}

void redirect_past_preload(const void *address)
{
	if (dlsym(RTLD_DEFAULT, "rsocket"))
		redirect_calls(address, past_preload);
}

void redirect_calls(const void *address, replacement_fn replacement)
{
	struct image image;

	pthread_mutex_lock(&patch_lock);
	if (find_image(address, &image))
		patch_image(&image, replacement);
	pthread_mutex_unlock(&patch_lock);
}
