/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * rdma_cm over an interface that is made again under the same name while the program runs, and over
 * two interfaces that swap their names: a listener on INADDR_ANY accepts requests to the new ones.
 * Also the device and the path MTU of an id, and devices that are added and removed.
 */
#include "rdmacm_end.h"

#include <arpa/inet.h>
#include <limits.h>
#include <net/if.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "own_network.h"

#define PORT 7197

static struct cm_end listener;
static FILE *caught; /* Holds the lines that the library writes to stderr. */
static int real_stderr;

static void resolve_address(struct cm_end *end, const char *address)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(PORT) };

	assert_int_equal(inet_pton(AF_INET, address, &to.sin_addr), 1);
	end->channel = rdma_create_event_channel();
	assert_non_null(end->channel);
	assert_return_code(rdma_create_id(end->channel, &end->id, NULL, RDMA_PS_TCP), errno);
	assert_return_code(rdma_resolve_addr(end->id, NULL, (struct sockaddr *)&to, PATIENCE_MS),
			   errno);
	expect(end->channel, RDMA_CM_EVENT_ADDR_RESOLVED);
}

static void resolve(struct cm_end *end, const char *address)
{
	resolve_address(end, address);
	assert_return_code(rdma_resolve_route(end->id, PATIENCE_MS), errno);
	expect(end->channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static void assert_device(const struct rdma_cm_id *id, const char *netdev)
{
	struct ibv_gid_entry entry;

	assert_non_null(id->verbs);
	assert_string_equal(ibv_get_device_name(id->verbs->device) + strlen("uroce_"), netdev);
	assert_int_equal(ibv_query_gid_ex(id->verbs, 1, 0, &entry, 0), 0);
	assert_int_equal(entry.ndev_ifindex, if_nametoindex(netdev));
}

static void close_end(struct cm_end *end)
{
	assert_return_code(rdma_destroy_id(end->id), errno);
	rdma_destroy_event_channel(end->channel);
}

/* Connects to the address from the same address; its interface must be up. */
static void connect_over(const char *netdev, const char *address)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };
	struct rdma_cm_event *event;
	struct rdma_cm_id *passive;
	struct cm_end end;

	resolve(&end, address);
	assert_device(end.id, netdev);
	assert_return_code(rdma_create_qp(end.id, NULL, &init), errno);
	assert_return_code(rdma_connect(end.id, &param), errno);
	event = next(listener.channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	passive = event->id;
	rdma_ack_cm_event(event);
	assert_device(passive, netdev);
	assert_return_code(rdma_create_qp(passive, NULL, &init), errno);
	assert_return_code(rdma_accept(passive, &param), errno);
	expect(end.channel, RDMA_CM_EVENT_ESTABLISHED);
	expect(listener.channel, RDMA_CM_EVENT_ESTABLISHED);
	assert_return_code(rdma_disconnect(end.id), errno);
	expect(listener.channel, RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_qp(passive);
	assert_return_code(rdma_destroy_id(passive), errno);
	rdma_destroy_qp(end.id);
	close_end(&end);
}

static void an_interface_is_made_again(void **state)
{
	static const unsigned int indexes[] = { 800, 801, 800 };

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		add_veth("agA", indexes[i], "agB");
		ip("address add 192.0.2.1/24 dev agA");
		await_device("agA");
		connect_over("agA", "192.0.2.1");
		ip("link delete agA");
	}
}

static void two_interfaces_swap_names(void **state)
{
	(void)state;
	add_veth("swA", 0, "swC");
	add_veth("swB", 0, "swD");
	ip("address add 192.0.2.1/24 dev swA");
	ip("address add 198.51.100.1/24 dev swB");
	await_device("swA");
	await_device("swB");
	connect_over("swA", "192.0.2.1");
	connect_over("swB", "198.51.100.1");
	ip("link set swA down");
	ip("link set swB down");
	ip("link set swA name swX");
	ip("link set swB name swA");
	ip("link set swX name swB");
	ip("link set swA up");
	ip("link set swB up");
	await_device("swA");
	await_device("swB");
	connect_over("swB", "192.0.2.1");
	connect_over("swA", "198.51.100.1");
}

/*
 * Makes the interface mnA with the addresses 10.7.0.1 and following.  They are added while it is
 * down, so that the library never sees a part of them.  The kernel must not add a link-local
 * address: it would take one of the GIDs that the tests count, at a time that varies.
 */
static void add_interface_with(int addresses)
{
	FILE *batch;

	add_veth("mnA", 0, "mnB");
	ip("link set mnA down addrgenmode none");
	batch = popen("LD_LIBRARY_PATH= ip -batch -", "we");
	assert_non_null(batch);
	for (int i = 1; i <= addresses; i++)
		fprintf(batch, "address add 10.7.%d.%d/16 dev mnA\n", i / 256, i % 256);
	fprintf(batch, "link set mnA up\n");
	assert_int_equal(pclose(batch), 0);
	await_device("mnA");
}

/* A device with 250 IPv4 addresses: a listener on INADDR_ANY accepts requests to each of them. */
static void an_interface_has_many_addresses(void **state)
{
	(void)state;
	add_interface_with(250);
	ip("address add 2001:db8::1/64 dev mnA nodad");
	connect_over("mnA", "10.7.0.17");
	connect_over("mnA", "10.7.0.250");
	ip("link delete mnA");
}

/* The library writes one line on stderr, however often it reads the interfaces. */
static void an_interface_has_too_many_addresses(void **state)
{
	static const char line[] = "uroce: mnA has more than 256 addresses: 44 of them have no "
				   "GID and cannot be bound to or listened on\n";
	char written[1024] = "";

	(void)state;
	add_interface_with(300);
	connect_over("mnA", "10.7.0.17");
	ip("address add 10.7.2.1/16 dev mnA");
	await_device("mnA");
	connect_over("mnA", "10.7.1.0");
	assert_return_code(pread(fileno(caught), written, sizeof(written) - 1, 0), errno);
	ip("link delete mnA");
	assert_string_equal(written, line);
}

/* A service has its address on the loopback interface and sends through another interface. */
static void the_route_limits_the_path_mtu(void **state)
{
	struct rdma_cm_event *event;
	struct cm_end end;

	(void)state;
	add_veth("rtA", 0, "rtB");
	ip("address add 203.0.113.1/24 dev rtA");
	await_device("rtA");
	ip("address add 10.8.0.1/32 dev lo");
	ip("neighbour add 203.0.113.9 lladdr 02:00:00:00:00:09 dev rtA");
	ip("route add 10.8.0.2/32 via 203.0.113.9 src 10.8.0.1");
	resolve(&end, "10.8.0.2");
	assert_device(end.id, "lo");
	assert_int_equal(end.id->route.path_rec->mtu, IBV_MTU_1024);
	close_end(&end);
	/* Not even a MAD can be sent. */
	ip("link set rtA mtu 300");
	resolve_address(&end, "10.8.0.2");
	assert_return_code(rdma_resolve_route(end.id, PATIENCE_MS), errno);
	event = next(end.channel, RDMA_CM_EVENT_ROUTE_ERROR);
	assert_int_equal(event->status, -EMSGSIZE);
	rdma_ack_cm_event(event);
	close_end(&end);
	ip("link delete rtA");
}

/* SPDK, librpma and pyverbs use the device of the address that they have bound. */
static void a_loopback_address_has_its_device(void **state)
{
	static const char *const addresses[] = { "127.0.0.1", "127.1.2.3", "::1" };
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP };

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		struct rdma_addrinfo *info;
		struct rdma_cm_id *id;

		assert_return_code(rdma_getaddrinfo(addresses[i], NULL, &hints, &info), errno);
		assert_return_code(rdma_create_id(listener.channel, &id, NULL, RDMA_PS_TCP), errno);
		assert_return_code(rdma_bind_addr(id, info->ai_src_addr), errno);
		assert_device(id, "lo");
		assert_return_code(rdma_listen(id, 1), errno);
		assert_return_code(rdma_destroy_id(id), errno);
		rdma_freeaddrinfo(info);
	}
}

static void *await_device_there(void *name)
{
	await_device(name);
	return NULL;
}

/* librdmacm sorts devices by the difference of their addresses, which it converts to int. */
static void assert_devices_are_near(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	assert_non_null(list);
	for (int i = 1; list[i]; i++)
		assert_true(labs((char *)list[i] - (char *)list[0]) <= INT_MAX);
	ibv_free_device_list(list);
}

/*
 * If devices were allocated in memory of several threads, far from each other, librdmacm would
 * sometimes lose lo.
 */
static void the_others_stay_when_one_goes(void **state)
{
	struct cm_end end;
	pthread_t thread;

	(void)state;
	add_veth("thA", 0, "thC");
	ip("address add 198.18.0.1/24 dev thA");
	assert_int_equal(pthread_create(&thread, NULL, await_device_there, "thA"), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	resolve(&end, "198.18.0.1");
	assert_device(end.id, "thA");
	assert_devices_are_near();
	close_end(&end);
	ip("link delete thA");
	add_veth("thB", 0, "thD");
	ip("address add 198.18.0.1/24 dev thB");
	await_device("thB");
	resolve(&end, "198.18.0.1");
	assert_device(end.id, "thB");
	close_end(&end);
	resolve(&end, "127.0.0.1");
	assert_device(end.id, "lo");
	close_end(&end);
	ip("link delete thB");
}

static int catch_stderr(void **state)
{
	(void)state;
	caught = tmpfile();
	real_stderr = dup(STDERR_FILENO);
	return caught && dup2(fileno(caught), STDERR_FILENO) >= 0 ? 0 : -1;
}

static int give_stderr_back(void **state)
{
	(void)state;
	dup2(real_stderr, STDERR_FILENO);
	close(real_stderr);
	fclose(caught);
	return 0;
}

static int set_up(void **state)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(PORT) };

	(void)state;
	set_up_network();
	listener.channel = rdma_create_event_channel();
	assert_non_null(listener.channel);
	assert_return_code(rdma_create_id(listener.channel, &listener.id, NULL, RDMA_PS_TCP),
			   errno);
	assert_return_code(rdma_bind_addr(listener.id, (struct sockaddr *)&any), errno);
	assert_return_code(rdma_listen(listener.id, 8), errno);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_interface_is_made_again),
		cmocka_unit_test(two_interfaces_swap_names),
		cmocka_unit_test(an_interface_has_many_addresses),
		cmocka_unit_test_setup_teardown(an_interface_has_too_many_addresses, catch_stderr,
						give_stderr_back),
		cmocka_unit_test(the_route_limits_the_path_mtu),
		cmocka_unit_test(a_loopback_address_has_its_device),
		cmocka_unit_test(the_others_stay_when_one_goes),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
