/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What is said for processes that have ended without saying it themselves: their peers would hear
 * of the end of a connection only by retries, or never.
 *
 * Each process writes the MADs down in a memory file, which costs no call.  The holder of an
 * address has the files of its members, the members that of the holder: whichever process finds the
 * other's connection closed, and holds the address then, sends what is in the file and from this
 * address. It does so several times, since no answer is waited for: the peer's answer goes to an id
 * that nothing has any more.
 *
 * A connection that is closed does not prove death.  The owner's lock on the file does: as long as
 * it is there nothing is sent.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gsi_internal.h"
#include "link/exchange.h"
#include "link/memory_file.h"

#define WILL_BYTES (UROCE_ABI_WILL_ENTRIES * sizeof(struct uroce_abi_will))

enum {
	/* Entries that are read in one call, and calls before others have their turn. */
	CHUNK = 16,
	CHUNKS_MAX = 32,
	/* Looks for the end of the owner, which closes its files one after the other. */
	WAITS_MAX = 50,
};

/* Before each round; the first one gives the owner time to end. */
static const uint64_t pause_ns[] = { 2000000, 50000000, 250000000, 1000000000 };
#define ROUNDS (sizeof(pause_ns) / sizeof(pause_ns[0]))
#define WAIT_NS UINT64_C(20000000)
/* The same where the owner stands still. */
#define PATIENT_NS UINT64_C(1000000000)

_Static_assert(UROCE_ABI_WILL_ENTRIES == GSI_WILLS, "the file has another size");
_Static_assert(sizeof(struct uroce_abi_will) == 304, "padding in the host ABI");
_Static_assert(GSI_WILLS % CHUNK == 0, "the last chunk would be cut");

/* ---- one's own ---- */

void gsi_will_open(struct gsi_own_will *will)
{
	will->fd = memory_file_make("uroce-will", WILL_BYTES);
	if (will->fd < 0)
		return;
	will->entry = memory_file_map(will->fd, WILL_BYTES, 0);
	if (!will->entry) {
		close(will->fd);
		will->fd = -1;
	}
	for (unsigned int i = 0; i < GSI_WILLS; i++)
		will->free[i] = (uint16_t)(GSI_WILLS - 1 - i);
	will->free_count = GSI_WILLS;
}

int gsi_will_set(struct gsi *gsi, const struct gsi_path *path, const uint8_t mad[MAD_BYTES],
		 unsigned int *number)
{
	struct gsi_own_will *will = &gsi->will;
	struct uroce_abi_will *entry = NULL;

	if (gsi->progress->dead)
		return -EOWNERDEAD;
	if (will->fd < 0)
		return -EFBIG;
	pthread_mutex_lock(&gsi->lock);
	if (will->free_count) {
		*number = will->free[--will->free_count];
		entry = &will->entry[*number];
		entry->scope_id = path->scope_id;
		entry->traffic_class = path->traffic_class;
		memcpy(entry->sgid, path->sgid, sizeof(entry->sgid));
		memcpy(entry->dgid, path->dgid, sizeof(entry->dgid));
		memcpy(entry->mad, mad, sizeof(entry->mad));
		__atomic_store_n(&entry->valid, 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&gsi->lock);
	return entry ? 0 : -ENOSPC;
}

void gsi_will_drop(struct gsi *gsi, unsigned int number)
{
	if (gsi->progress->dead)
		return;
	pthread_mutex_lock(&gsi->lock);
	__atomic_store_n(&gsi->will.entry[number].valid, 0, __ATOMIC_RELEASE);
	gsi->will.free[gsi->will.free_count++] = (uint16_t)number;
	pthread_mutex_unlock(&gsi->lock);
}

/* ---- those of others ---- */

void gsi_will_inherit(struct gsi_address *address, int *fd, bool patient)
{
	struct gsi *gsi = address->gsi;
	struct gsi_heir *heir =
		*fd >= 0 && memory_file_is(*fd, WILL_BYTES) ? calloc(1, sizeof(*heir)) : NULL;

	if (heir) {
		heir->fd = *fd;
		heir->patient = patient;
		memcpy(heir->gid, address->gid, sizeof(heir->gid));
		heir->due = progress_now() + pause_ns[0];
		heir->next = gsi->heirs;
		gsi->heirs = heir;
		gsi_set_deadline(gsi);
	} else if (*fd >= 0) {
		close(*fd);
	}
	*fd = -1;
}

static bool is_same_file(int one, int other)
{
	struct stat a, b;

	return !fstat(one, &a) && !fstat(other, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

void gsi_will_return(const struct gsi_address *address, int fd)
{
	struct gsi_heir **from = &address->gsi->heirs, *heir;

	while ((heir = *from)) {
		if (!heir->patient || memcmp(heir->gid, address->gid, 16) != 0 ||
		    !is_same_file(heir->fd, fd)) {
			from = &heir->next;
			continue;
		}
		*from = heir->next;
		close(heir->fd);
		free(heir);
	}
}

static void send_entry(struct gsi *gsi, struct gsi_heir *heir, const struct uroce_abi_will *entry)
{
	struct gsi_path path = { .scope_id = entry->scope_id,
				 .traffic_class = entry->traffic_class };

	if (!entry->valid || memcmp(entry->sgid, heir->gid, sizeof(heir->gid)) != 0)
		return;
	heir->found = true;
	memcpy(path.sgid, entry->sgid, sizeof(path.sgid));
	memcpy(path.dgid, entry->dgid, sizeof(path.dgid));
	/* What fails now may go next time. */
	gsi_send_locked(gsi, &path, entry->mad);
	count_anywhere(gsi->progress, PROGRESS_COUNT_MAD_FOR_DEAD);
}

/* True when all of this round has been sent. */
static bool send_some(struct gsi *gsi, struct gsi_heir *heir)
{
	struct uroce_abi_will entry[CHUNK];

	for (unsigned int i = 0; i < CHUNKS_MAX && heir->position < GSI_WILLS; i++) {
		off_t at = (off_t)(heir->position * sizeof(entry[0]));

		if (pread(heir->fd, entry, sizeof(entry), at) != (ssize_t)sizeof(entry))
			return true;
		for (unsigned int j = 0; j < CHUNK; j++)
			send_entry(gsi, heir, &entry[j]);
		heir->position += CHUNK;
	}
	return heir->position >= GSI_WILLS;
}

/* Go on with it; true when all has been done. */
static bool execute_one(struct gsi *gsi, struct gsi_heir *heir, uint64_t now)
{
	if (heir->due > now)
		return false;
	if (memory_file_owner_lives(heir->fd) != 0) {
		heir->due = now + (heir->patient ? PATIENT_NS : WAIT_NS);
		return !heir->patient && ++heir->waits == WAITS_MAX;
	}
	if (!send_some(gsi, heir)) {
		heir->due = now;
		return false;
	}
	if (!heir->found || ++heir->round == ROUNDS)
		return true;
	heir->position = 0;
	heir->found = false;
	heir->due = now + pause_ns[heir->round];
	return false;
}

/* What comes for the dead process waits for the first round. */
static bool has_first_word(const struct gsi_heir *heir)
{
	return heir->round == 0 && !heir->patient;
}

bool gsi_will_is_due(const struct gsi_address *address)
{
	const struct gsi_heir *heir = address->gsi->heirs;

	while (heir && (!has_first_word(heir) || memcmp(heir->gid, address->gid, 16) != 0))
		heir = heir->next;
	return heir != NULL;
}

void gsi_will_execute(struct gsi *gsi, uint64_t now)
{
	struct gsi_heir **from = &gsi->heirs, *heir;
	bool spoken = false;

	while ((heir = *from)) {
		bool first = has_first_word(heir), over = execute_one(gsi, heir, now);

		spoken |= first && (over || !has_first_word(heir));
		if (!over) {
			from = &heir->next;
			continue;
		}
		*from = heir->next;
		close(heir->fd);
		free(heir);
	}
	if (spoken)
		gsi_take_kept(gsi, now);
}

uint64_t gsi_will_deadline(const struct gsi *gsi)
{
	uint64_t deadline = ENG_NEVER;

	for (const struct gsi_heir *heir = gsi->heirs; heir; heir = heir->next)
		if (heir->due < deadline)
			deadline = heir->due;
	return deadline;
}

/* ---- the end ---- */

void gsi_will_abandon(struct gsi *gsi)
{
	for (struct gsi_heir *heir = gsi->heirs; heir; heir = heir->next)
		close(heir->fd);
	if (gsi->will.fd >= 0)
		close(gsi->will.fd);
}

void gsi_will_close(struct gsi *gsi)
{
	struct gsi_heir *heir;

	while ((heir = gsi->heirs)) {
		gsi->heirs = heir->next;
		close(heir->fd);
		free(heir);
	}
	if (gsi->will.fd < 0)
		return;
	munmap(gsi->will.entry, WILL_BYTES);
	close(gsi->will.fd);
}
