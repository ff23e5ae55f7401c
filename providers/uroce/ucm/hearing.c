/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Local addresses at which MADs are received: those that ids need and, once a listener of the
 * wildcard address has been created, all addresses of all devices as they come and go.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "devices.h"
#include "id.h"
#include "manager.h"
#include "verbs/complain.h"

struct heard {
	struct heard *next;
	uint8_t gid[16];
	uint32_t scope_id;
	bool asked; /* by an id for itself, not only for a wildcard listener */
};
static struct heard *heard;  /* under start_lock, like the two below */
static bool hears_all;	     /* addresses of all devices, also of later ones */
static unsigned int unheard; /* number of addresses that failed at the last attempt */

static bool is_at(const struct heard *entry, const uint8_t *gid, uint32_t scope_id)
{
	return entry->scope_id == scope_id && !memcmp(entry->gid, gid, sizeof(entry->gid));
}

/* Caller holds start_lock.  Returns 0, or a negative errno with text. */
static int hear(const uint8_t *gid, uint32_t scope_id, bool asked, char text[PROGRESS_ERROR_TEXT])
{
	struct heard *entry = heard;
	int error;

	while (entry && !is_at(entry, gid, scope_id))
		entry = entry->next;
	if (entry) {
		entry->asked |= asked;
		return 0;
	}
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	error = gsi_addr_get(ucm_gsi(), gid, scope_id, text);
	if (error) {
		free(entry);
		return error;
	}
	memcpy(entry->gid, gid, 16);
	entry->scope_id = scope_id;
	entry->asked = asked;
	entry->next = heard;
	heard = entry;
	return 0;
}

static int told(int error, const char *text)
{
	if (error)
		uroce_complain("the connection manager cannot be used: %s",
			       text[0] ? text : strerror(-error));
	return -error;
}

int ucm_hear(const uint8_t *gid, uint32_t scope_id)
{
	char text[PROGRESS_ERROR_TEXT] = "";
	int error = ucm_start_and_lock(text);

	if (error)
		return told(error, text);
	if (gid)
		error = hear(gid, ucm_scope_of(gid, scope_id), true, text);
	ucm_start_unlock();
	return told(error, text);
}

struct all {
	unsigned int heard, failed;
	int error;
	char text[PROGRESS_ERROR_TEXT];
};

static void hear_one(const uint8_t *gid, uint32_t device, void *arg)
{
	struct all *all = arg;
	int error = hear(gid, ucm_scope_of(gid, device), false, all->text);

	if (error) {
		all->error = error;
		all->failed++;
	} else {
		all->heard++;
	}
}

/* Caller holds start_lock, and the connection manager has been started. */
static void hear_each(struct all *all)
{
	ucm_devices_each_gid(hear_one, all);
	/* All addresses are retried at every change; report only new failures. */
	if (all->failed > unheard)
		uroce_complain("cannot listen on all addresses: %s",
			       all->text[0] ? all->text : strerror(-all->error));
	unheard = all->failed;
}

int ucm_hear_all(void)
{
	struct all all = { 0 };
	int error = ucm_start_and_lock(all.text);

	if (error)
		return told(error, all.text);
	/* After the first success ucm_addresses_changed() adds new addresses. */
	if (!hears_all || unheard)
		hear_each(&all);
	error = all.heard ? 0 : all.error;
	hears_all |= !error;
	ucm_start_unlock();
	return -error;
}

/* ---- Removed addresses ---- */

struct need {
	const struct heard *entry;
	bool found;
};

static bool is_loopback(const uint8_t *gid)
{
	struct ucm_address address = { .family = AF_UNSPEC };

	memcpy(address.ip, gid, sizeof(address.ip));
	return ucm_address_is_loopback(&address);
}

static void look_at_id(struct ucm_id *id, void *arg)
{
	struct need *need = arg;

	/* Until the id is bound or resolved, its fields do not show which address it needs. */
	if (id->state == UCM_IDLE || id->state == UCM_ADDR_QUERY)
		need->found = true;
	else if (id->removed)
		return;
	else if (id->device != UCM_NO_DEVICE)
		need->found |= is_at(need->entry, id->sgid, ucm_scope_of(id->sgid, id->device));
	else if (ucm_address_is_loopback(&id->source))
		need->found |= is_loopback(need->entry->gid);
}

/* A connection may outlive its id. */
static void look_at_conn(void *arg, const struct cm_conn *conn)
{
	struct need *need = arg;
	struct cm_conn_info info;

	cm_conn_info(conn, &info);
	if (is_at(need->entry, info.path.sgid, ucm_scope_of(info.path.sgid, info.path.device)))
		need->found |= !ucm_device_is_gone(info.path.device);
}

/*
 * An address that is missing may return, if its interface is only down or the address is being
 * moved, so it is kept as long as an id or a connection is bound to it.
 */
static bool is_needed(const struct heard *entry)
{
	struct need need = { .entry = entry };

	if (!entry->asked)
		return false;
	ucm_lock();
	ucm_ids_each(look_at_id, &need);
	cm_each_conn(ucm_cm(), look_at_conn, &need);
	ucm_unlock();
	return need.found;
}

/* Caller holds start_lock, and the connection manager has been started. */
static void let_go(void)
{
	struct heard **place = &heard, *entry;
	unsigned int index;
	uint32_t number;

	while ((entry = *place)) {
		if (ucm_device_of_gid(entry->gid, entry->scope_id, &number, &index) ||
		    is_needed(entry)) {
			place = &entry->next;
			continue;
		}
		*place = entry->next;
		gsi_addr_put(ucm_gsi(), entry->gid, entry->scope_id);
		free(entry);
	}
}

void ucm_addresses_changed(void)
{
	struct all all = { 0 };

	ucm_lock();
	ucm_ids_lose_devices();
	if (ucm_cm())
		ucm_time_changed();
	ucm_unlock();
	ucm_start_lock();
	if (ucm_cm())
		let_go();
	if (ucm_cm() && hears_all)
		hear_each(&all);
	ucm_start_unlock();
}

void ucm_hearing_forked(void)
{
	heard = NULL;
	hears_all = false;
	unheard = 0;
}
