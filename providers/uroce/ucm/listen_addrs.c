/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Local addresses at which MADs are received: those that ids need and, once a listener of the
 * wildcard address has been created, all addresses of all devices as they come and go.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ucm/addr/devices.h"
#include "id.h"
#include "ucm_core.h"
#include "verbs/log.h"

struct listen_addr {
	struct listen_addr *next;
	uint8_t gid[16];
	uint32_t scope_id;
	bool requested; /* by an id for itself, not only for a wildcard listener */
};
static struct listen_addr *listen_addrs; /* under start_lock, like the two below */
static bool listens_all;		 /* addresses of all devices, also of later ones */

/* An address that could not be opened at the last attempt */
struct failed_addr {
	struct failed_addr *next;
	uint8_t gid[16];
	uint32_t scope_id;
	int error;
};
static struct failed_addr *failed_addrs;

static bool is_entry_of(const struct listen_addr *entry, const uint8_t *gid, uint32_t scope_id)
{
	return entry->scope_id == scope_id && !memcmp(entry->gid, gid, sizeof(entry->gid));
}

/* Caller holds start_lock.  Returns 0, or a negative errno with text. */
static int add_addr(const uint8_t *gid, uint32_t scope_id, bool requested,
		    char text[PROGRESS_ERROR_TEXT])
{
	struct listen_addr *entry = listen_addrs;
	int error;

	while (entry && !is_entry_of(entry, gid, scope_id))
		entry = entry->next;
	if (entry) {
		entry->requested |= requested;
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
	entry->requested = requested;
	entry->next = listen_addrs;
	listen_addrs = entry;
	return 0;
}

static int report_error(int error, const char *text)
{
	if (error)
		uroce_err("the connection manager cannot be used: %s",
			  text[0] ? text : strerror(-error));
	return -error;
}

int ucm_listen_addr(const uint8_t *gid, uint32_t scope_id)
{
	char text[PROGRESS_ERROR_TEXT] = "";
	int error = ucm_start_and_lock(text);

	if (error)
		return report_error(error, text);
	if (gid)
		error = add_addr(gid, ucm_scope_id_of(gid, scope_id), true, text);
	ucm_start_unlock();
	return report_error(error, text);
}

struct add_result {
	bool added;
	int error;
	struct failed_addr *failed; /* replaces failed_addrs */
};

/* Returns true if the address failed for the same reason at the last attempt. */
static bool is_known_failure(const struct failed_addr *failure)
{
	const struct failed_addr *known = failed_addrs;

	while (known && (known->error != failure->error || known->scope_id != failure->scope_id ||
			 memcmp(known->gid, failure->gid, sizeof(known->gid))))
		known = known->next;
	return known;
}

/* All addresses are retried at every change; reports only new failures. */
static void add_failure(struct add_result *add_result, const struct failed_addr *failure,
			const char *text)
{
	struct failed_addr *copy;

	add_result->error = failure->error;
	if (!is_known_failure(failure))
		uroce_err("cannot listen on all addresses: %s",
			  text[0] ? text : strerror(-failure->error));
	copy = malloc(sizeof(*copy));
	if (!copy)
		return;
	*copy = *failure;
	copy->next = add_result->failed;
	add_result->failed = copy;
}

static void add_device_addr(const uint8_t *gid, uint32_t device, void *arg)
{
	struct add_result *add_result = arg;
	struct failed_addr failure = { .scope_id = ucm_scope_id_of(gid, device) };
	char text[PROGRESS_ERROR_TEXT] = "";

	failure.error = add_addr(gid, failure.scope_id, false, text);
	memcpy(failure.gid, gid, sizeof(failure.gid));
	if (failure.error)
		add_failure(add_result, &failure, text);
	else
		add_result->added = true;
}

static void free_failures(void)
{
	while (failed_addrs) {
		struct failed_addr *next = failed_addrs->next;

		free(failed_addrs);
		failed_addrs = next;
	}
}

/* Caller holds start_lock, and the connection manager has been started. */
static void add_all_addrs(struct add_result *add_result)
{
	ucm_devices_each_gid(add_device_addr, add_result);
	free_failures();
	failed_addrs = add_result->failed;
}

int ucm_listen_all(void)
{
	struct add_result add_result = { 0 };
	char text[PROGRESS_ERROR_TEXT] = "";
	int error = ucm_start_and_lock(text);

	if (error)
		return report_error(error, text);
	/* After the first success ucm_addresses_changed() adds new addresses. */
	if (!listens_all || failed_addrs)
		add_all_addrs(&add_result);
	error = add_result.added ? 0 : add_result.error;
	listens_all |= !error;
	ucm_start_unlock();
	return -error;
}

/* ---- Removed addresses ---- */

struct addr_use {
	const struct listen_addr *entry;
	bool found;
};

static void check_id(struct ucm_id *id, void *arg)
{
	struct addr_use *addr_use = arg;

	if (id->device_removed)
		return;
	/* Until the id is bound or resolved, its fields do not show which address it needs. */
	if (id->state == UCM_IDLE || id->state == UCM_ADDR_QUERY)
		addr_use->found = true;
	else if (id->device != UCM_NO_DEVICE)
		addr_use->found |= is_entry_of(addr_use->entry, id->sgid,
					       ucm_scope_id_of(id->sgid, id->device));
	else if (gid_is_loopback(id->source.ip))
		addr_use->found |= gid_is_loopback(addr_use->entry->gid);
}

/* A connection may outlive its id, and still needs its address. */
static void check_conn(void *arg, const struct cm_conn *conn)
{
	struct addr_use *addr_use = arg;
	struct cm_conn_info info;

	cm_conn_info(conn, &info);
	if (is_entry_of(addr_use->entry, info.path.sgid,
			ucm_scope_id_of(info.path.sgid, info.path.device)))
		addr_use->found |= !ucm_device_is_removed(info.path.device);
}

/*
 * An address that is missing may return, if its interface is only down or the address is being
 * moved, so it is kept as long as an id or a connection is bound to it.
 */
static bool is_addr_used(const struct listen_addr *entry)
{
	struct addr_use addr_use = { .entry = entry };

	if (!entry->requested)
		return false;
	ucm_lock();
	ucm_ids_each(check_id, &addr_use);
	cm_each_conn(ucm_cm(), check_conn, &addr_use);
	ucm_unlock();
	return addr_use.found;
}

/* Caller holds start_lock, and the connection manager has been started. */
static void drop_unused_addrs(void)
{
	struct listen_addr **place = &listen_addrs, *entry;
	unsigned int index;
	uint32_t number;

	while ((entry = *place)) {
		if (ucm_device_of_gid(entry->gid, entry->scope_id, &number, &index) ||
		    is_addr_used(entry)) {
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
	struct add_result add_result = { 0 };

	ucm_lock();
	ucm_ids_device_removed();
	if (ucm_cm())
		ucm_rearm_timer();
	ucm_unlock();
	ucm_start_lock();
	if (ucm_cm())
		drop_unused_addrs();
	if (ucm_cm() && listens_all)
		add_all_addrs(&add_result);
	ucm_start_unlock();
}

void ucm_listen_addrs_forked(void)
{
	listen_addrs = NULL;
	listens_all = false;
	failed_addrs = NULL;
}
