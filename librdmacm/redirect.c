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

struct elf_image {
	uintptr_t base;
	const char *strings;
	const ElfW(Sym) * symbols;
	/* pages that the loader has made read-only */
	uintptr_t relro_start, relro_end;
	const ElfW(Dyn) * dynamic;
	bool is_librdmacm, is_preload;
};

static pthread_mutex_t patch_lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * Returns the pointer for an address in the dynamic section, which the loader relocates on some
 * architectures.
 */
static const void *dynamic_address(const struct elf_image *image, ElfW(Addr) address)
{
	return (const void *)(address < image->base ? image->base + address : address);
}

static bool protect_relro(const struct elf_image *image, uintptr_t page, int protection,
			  size_t bytes)
{
	if (page < image->relro_start || page >= image->relro_end)
		return true;
	return !mprotect((void *)page, bytes, protection);
}

/* Other threads may be calling through the slot, so it is changed by one atomic store. */
static void set_got_entry(const struct elf_image *image, uintptr_t place, uintptr_t value)
{
	uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t page = place & ~(page_bytes - 1);
	uintptr_t *entry = (uintptr_t *)place;

	if (__atomic_load_n(entry, __ATOMIC_RELAXED) == value)
		return;
	if (!protect_relro(image, page, PROT_READ | PROT_WRITE, page_bytes))
		return;
	__atomic_store_n(entry, value, __ATOMIC_RELEASE);
	protect_relro(image, page, PROT_READ, page_bytes);
}

static void patch_relocations(const struct elf_image *image, replacement_fn replacement,
			      const ElfW(Rela) * relocation, size_t bytes)
{
	const ElfW(Rela) *end = relocation + bytes / sizeof(*relocation);

	for (; relocation < end; relocation++) {
		const char *name;
		uintptr_t value;

		if (!IS_IMPORT(ELF64_R_TYPE(relocation->r_info)))
			continue;
		name = image->strings + image->symbols[ELF64_R_SYM(relocation->r_info)].st_name;
		value = replacement(name);
		if (value)
			set_got_entry(image, image->base + relocation->r_offset, value);
	}
}

static void patch_image(struct elf_image *image, replacement_fn replacement)
{
	const ElfW(Dyn) *dynamic = image->dynamic;
	const void *plt = NULL, *other = NULL;
	size_t plt_bytes = 0, other_bytes = 0;

	for (; dynamic->d_tag != DT_NULL; dynamic++) {
		switch (dynamic->d_tag) {
		case DT_STRTAB:
			image->strings = dynamic_address(image, dynamic->d_un.d_ptr);
			break;
		case DT_SYMTAB:
			image->symbols = dynamic_address(image, dynamic->d_un.d_ptr);
			break;
		case DT_JMPREL:
			plt = dynamic_address(image, dynamic->d_un.d_ptr);
			break;
		case DT_PLTRELSZ:
			plt_bytes = dynamic->d_un.d_val;
			break;
		case DT_RELA:
			other = dynamic_address(image, dynamic->d_un.d_ptr);
			break;
		case DT_RELASZ:
			other_bytes = dynamic->d_un.d_val;
			break;
		}
	}
	if (!image->strings || !image->symbols)
		return;
	if (plt)
		patch_relocations(image, replacement, plt, plt_bytes);
	if (other)
		patch_relocations(image, replacement, other, other_bytes);
}

static bool is_named(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');

	return !strncmp(slash ? slash + 1 : path, name, strlen(name));
}

static bool contains_address(const struct dl_phdr_info *info, uintptr_t address)
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
	struct elf_image image;
};

static int match_image(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
	struct search *search = arg;
	struct elf_image *image = &search->image;

	(void)bytes;
	if (!info->dlpi_name || !contains_address(info, search->address))
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

static bool find_image(const void *address, struct elf_image *image)
{
	struct search search = { .address = (uintptr_t)address };

	if (!dl_iterate_phdr(match_image, &search))
		return false;
	*image = search.image;
	return image->dynamic;
}

bool redirect_is_librdmacm(const void *address)
{
	struct elf_image image;

	return find_image(address, &image) && image.is_librdmacm;
}

/* The library cannot be unloaded during the call, since it is the caller. */
void redirect_if_librdmacm(const void *address)
{
	struct elf_image image;

	pthread_mutex_lock(&patch_lock);
	if (find_image(address, &image) && image.is_librdmacm)
		patch_image(&image, redirect_find_hook);
	pthread_mutex_unlock(&patch_lock);
}

static uintptr_t find_libc_function(const char *name)
{
	void *function = dlsym(RTLD_DEFAULT, name);
	struct elf_image image;
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
		redirect_calls(address, find_libc_function);
}

void redirect_calls(const void *address, replacement_fn replacement)
{
	struct elf_image image;

	pthread_mutex_lock(&patch_lock);
	if (find_image(address, &image))
		patch_image(&image, replacement);
	pthread_mutex_unlock(&patch_lock);
}
