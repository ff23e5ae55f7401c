/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What the holder of queue pair 1 reads from a MAD, and what it remembers.
 */
#include "gsi_agent.h"

#include <string.h>

#include "link_agent.h"
#include "progress/gsi_target.h"

static const uint8_t any4[16] = { [10] = 0xff, [11] = 0xff };
static const uint8_t any6[16];

static struct gsi_target target_of(const struct mad_spec *spec)
{
	uint8_t mad[MAD_BYTES];

	mad_make(mad, spec);
	return gsi_target_of(mad);
}

/* Every message of the connection manager says which process it is for, in its own way. */
static void test_targets(void **state)
{
	static const uint16_t by_remote[] = { 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x19, 0x1a };
	struct gsi_target target;

	(void)state;
	for (size_t i = 0; i < sizeof(by_remote) / sizeof(by_remote[0]); i++) {
		for (uint32_t slot = 0; slot < LINK_SLOTS; slot++) {
			target = target_of(
				&(struct mad_spec){ .attribute = by_remote[i],
						    .local_id = UINT32_MAX,
						    .remote_id = slot << GSI_ID_SHIFT | 1 });
			assert_int_equal(target.kind, GSI_TARGET_SLOT);
			assert_int_equal(target.slot, slot);
		}
		if (by_remote[i] == MAD_REJ)
			continue;
		target = target_of(&(struct mad_spec){ .attribute = by_remote[i], .local_id = 5 });
		assert_int_equal(target.kind, GSI_TARGET_NOBODY);
	}
	target = target_of(&(struct mad_spec){ .attribute = MAD_SIDR_REP, .local_id = 7u << 26 });
	assert_int_equal(target.kind, GSI_TARGET_SLOT);
	assert_int_equal(target.slot, 7);
	target =
		target_of(&(struct mad_spec){ .attribute = MAD_SIDR_REQ, .service_id = 0x1110007 });
	assert_int_equal(target.kind, GSI_TARGET_SERVICE);
	assert_int_equal(target.service_id, 0x1110007);
	target = target_of(&(struct mad_spec){
		.attribute = MAD_REQ, .service_id = 0x1061234, .guid = 9, .local_id = 4 });
	assert_int_equal(target.kind, GSI_TARGET_REQUEST);
	assert_int_equal(target.service_id, 0x1061234);
	assert_true(target.guid == 9 && target.id == 4);
	target = target_of(&(struct mad_spec){ .attribute = MAD_REJ, .local_id = 4, .guid = 9 });
	assert_int_equal(target.kind, GSI_TARGET_SENDER);
	assert_true(target.guid == 9 && target.id == 4);
	/* Of no time-out, so there is no GUID in it. */
	target = target_of(&(struct mad_spec){ .attribute = MAD_REJ, .local_id = 4 });
	assert_int_equal(target.kind, GSI_TARGET_SENDER);
	assert_true(target.guid == 0);
	target = target_of(&(struct mad_spec){ .attribute = 1, .remote_id = 4 });
	assert_int_equal(target.kind, GSI_TARGET_NOBODY);
}

static struct link_service service_of(uint64_t id, const uint8_t gid[16])
{
	struct link_service service = { .id = id };

	memcpy(service.gid, gid, sizeof(service.gid));
	return service;
}

/* The address itself goes before any, IPv4 and IPv6 are apart, and a process that goes takes all
 * its own along. */
static void test_services(void **state)
{
	struct gsi_services services = { 0 };
	struct link_service exact = service_of(1, loopback4), any = service_of(1, any4);
	struct link_service any_v6 = service_of(2, any6);

	(void)state;
	assert_int_equal(gsi_services_find(&services, 1, loopback4, 0), LINK_SLOTS);
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(gsi_services_add(&services, &any, 3), 0);
		assert_int_equal(gsi_services_add(&services, &exact, 4), 0);
		assert_int_equal(gsi_services_add(&services, &any_v6, 5), 0);
	}
	assert_int_equal(services.count, 3);
	assert_int_equal(gsi_services_find(&services, 1, loopback4, 0), 4);
	assert_int_equal(gsi_services_find(&services, 1, other4, 0), 3);
	assert_int_equal(gsi_services_find(&services, 1, loopback6, 0), LINK_SLOTS);
	assert_int_equal(gsi_services_find(&services, 2, loopback6, 0), 5);
	assert_int_equal(gsi_services_find(&services, 2, loopback6, 7), 5);
	assert_int_equal(gsi_services_find(&services, 2, loopback4, 0), LINK_SLOTS);
	/* Not another one's. */
	gsi_services_remove(&services, &exact, 3);
	assert_int_equal(gsi_services_find(&services, 1, loopback4, 0), 4);
	gsi_services_forget(&services, 4);
	assert_int_equal(gsi_services_find(&services, 1, loopback4, 0), 3);
	gsi_services_remove(&services, &any, 3);
	assert_int_equal(gsi_services_find(&services, 1, loopback4, 0), LINK_SLOTS);
	for (uint64_t id = 10; id < 10 + GSI_SERVICES_MAX - 1; id++) {
		exact.id = id;
		assert_int_equal(gsi_services_add(&services, &exact, (unsigned int)id % 64), 0);
	}
	exact.id = 9;
	assert_int_not_equal(gsi_services_add(&services, &exact, 1), 0);
	assert_int_equal(gsi_services_find(&services, 10 + 77, loopback4, 0), (10 + 77) % 64);
	gsi_services_free(&services);
}

/* A request is remembered for its time, by both of its names, and never for a process that is gone.
 */
static void test_requests(void **state)
{
	static struct gsi_requests requests;
	struct gsi_target target = { .guid = 5, .id = 6 }, other = { .guid = 5, .id = 7 };

	(void)state;
	assert_int_equal(gsi_requests_find(&requests, &target, 1), LINK_SLOTS);
	gsi_requests_add(&requests, &target, 9, 1000);
	assert_int_equal(gsi_requests_find(&requests, &target, 1000 + GSI_REQUEST_NS - 1), 9);
	assert_int_equal(gsi_requests_find(&requests, &target, 1000 + GSI_REQUEST_NS), LINK_SLOTS);
	assert_int_equal(gsi_requests_find(&requests, &other, 1000), LINK_SLOTS);
	gsi_requests_forget(&requests, 8);
	assert_int_equal(gsi_requests_find(&requests, &target, 1000), 9);
	gsi_requests_forget(&requests, 9);
	assert_int_equal(gsi_requests_find(&requests, &target, 1000), LINK_SLOTS);
	/* Many: the newest are all there, or have given way to one that is newer still. */
	for (uint32_t id = 0; id < 4 * GSI_REQUESTS; id++) {
		target.id = id;
		gsi_requests_add(&requests, &target, id % LINK_SLOTS, 1000);
		assert_int_equal(gsi_requests_find(&requests, &target, 1000), id % LINK_SLOTS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_targets),
		cmocka_unit_test(test_services),
		cmocka_unit_test(test_requests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
