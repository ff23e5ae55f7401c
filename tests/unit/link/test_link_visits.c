/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Connections that the broker makes between two clients, one of which violates the protocol.  That
 * client, the liar, is a second link of the test's process.
 */
#include "link_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link/scm_rights.h"

static struct link *liar;

static int set_up(void **state)
{
	char error[LINK_ERROR_TEXT];

	return shm_set_up_alone(state) || link_open(&liar, error);
}

static int tear_down(void **state)
{
	link_close(liar);
	return link_tear_down(state);
}

static struct uroce_abi_shm shm_message(uint32_t kind, const uint8_t gid[16], unsigned int slot)
{
	struct uroce_abi_shm message = {
		.header = { kind, UROCE_ABI_VERSION, 0 },
		.slot = slot,
	};

	memcpy(message.address, gid, sizeof(message.address));
	return message;
}

static int make_file(off_t bytes, int seals)
{
	int fd = memfd_create("lie", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_return_code(ftruncate(fd, bytes), errno);
	assert_return_code(fcntl(fd, F_ADD_SEALS, seals), errno);
	return fd;
}

/* Reply of the liar to requests */
struct answer {
	const struct uroce_abi_shm *reply; /* NULL: no reply */
	size_t bytes;			   /* size of the reply; 0: whole */
	const int *fds;
	size_t count;
	atomic_uint requests; /* number of requests received */
};

/*
 * Accepts the connection that waits, if there is one.  Returns true if the liar has any connection.
 */
static bool take_visit(void)
{
	static uint8_t room[LINK_MAX_BYTES + 1];
	struct link_batch batch = { .buffer = room, .buffer_bytes = sizeof(room) };

	link_delivery_receive(liar, &batch);
	return liar->writers.first;
}

static atomic_bool is_over;

static void *lie(void *arg)
{
	struct answer *answer = arg;
	struct uroce_abi_shm request;

	while (!atomic_load(&is_over)) {
		struct pollfd wait = { .fd = link_writers_fd(liar), .events = POLLIN };
		struct epoll_event event;
		int fd;

		if (!take_visit() || poll(&wait, 1, 1) <= 0) {
			usleep(100);
			continue;
		}
		if (epoll_wait(liar->writers.epoll_fd, &event, 1, 0) != 1)
			continue;
		fd = ((const struct link_client_conn *)event.data.ptr)->fd;
		if (recv(fd, &request, sizeof(request), MSG_DONTWAIT) != sizeof(request)) {
			/* The other end has been closed; ours is closed with the link. */
			epoll_ctl(liar->writers.epoll_fd, EPOLL_CTL_DEL, fd, NULL);
			continue;
		}
		answer->requests += request.header.message == UROCE_ABI_SHM_REQUEST;
		if (answer->reply)
			link_send_with_fds(fd, answer->reply,
					   answer->bytes ? answer->bytes : sizeof(*answer->reply),
					   answer->fds, answer->count);
	}
	return NULL;
}

static pthread_t begin_to_lie(struct answer *answer)
{
	pthread_t thread;

	atomic_store(&is_over, false);
	assert_int_equal(pthread_create(&thread, NULL, lie, answer), 0);
	return thread;
}

static void end_lying(pthread_t thread)
{
	atomic_store(&is_over, true);
	pthread_join(thread, NULL);
}

static struct link_peer *open_to_liar(struct link_fixture *fixture, struct answer *answer)
{
	pthread_t thread = begin_to_lie(answer);
	struct link_peer *peer;

	/* Allow a new request at once, even if an earlier one was refused. */
	fixture->addr->next_request_ms[link_slot(liar)] = 0;
	peer = shm_open_own(fixture, link_slot(liar) << LINK_SLOT_SHIFT | 5);
	end_lying(thread);
	return peer;
}

enum { TRIES = 10 };

/*
 * Returns true if this reply makes a peer use shared memory.  On a busy host the liar's thread may
 * not be scheduled before the request times out, hence several attempts.
 */
static bool is_taken(struct link_fixture *fixture, const struct uroce_abi_shm *reply,
		     const int *fds, size_t count)
{
	struct answer answer = { .reply = reply, .fds = fds, .count = count };
	bool taken = false;

	for (int tries = 0; tries < TRIES && answer.requests == 0; tries++) {
		struct link_peer *peer = open_to_liar(fixture, &answer);

		taken = link_peer_transport(peer) == LINK_SHARED_MEMORY;
		link_peer_close(peer);
	}
	/* The request of an earlier attempt may arrive late. */
	assert_uint_in_range(answer.requests, 1, TRIES);
	return taken;
}

/* As is_taken(), for a valid reply, which may also arrive too late. */
static bool is_taken_in_time(struct link_fixture *fixture, const struct uroce_abi_shm *reply,
			     int fd)
{
	bool taken = false;

	for (int tries = 0; tries < TRIES && !taken; tries++)
		taken = is_taken(fixture, reply, &fd, 1);
	return taken;
}

/* Replies without a valid region are not accepted. */
static void test_bad_replies(void **state)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	struct link_fixture *fixture = *state;
	unsigned int slot = link_slot(liar);
	struct uroce_abi_shm reply = shm_message(UROCE_ABI_SHM_REPLY, loopback4, slot);
	struct uroce_abi_shm other = shm_message(UROCE_ABI_SHM_REPLY, other4, slot);
	struct uroce_abi_shm refused = shm_message(UROCE_ABI_SHM_REFUSED, loopback4, slot);
	struct uroce_abi_shm request = shm_message(UROCE_ABI_SHM_REQUEST, loopback4, slot);
	struct uroce_abi_shm version = reply;
	int good = make_file(LINK_REGION_BYTES, seals), pair[2] = { good, good };
	int bad[] = {
		make_file(LINK_REGION_BYTES, F_SEAL_GROW),
		make_file(LINK_REGION_BYTES - 1, seals),
		make_file(LINK_REGION_BYTES + 4096, seals),
		make_file(0, seals),
		make_file(LINK_REGION_BYTES, seals | F_SEAL_WRITE),
		open("/dev/zero", O_RDWR | O_CLOEXEC),
		socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0),
	};

	version.header.version++;
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(is_taken(fixture, &reply, &bad[i], 1));
	assert_false(is_taken(fixture, &reply, NULL, 0));
	assert_false(is_taken(fixture, &reply, pair, 2));
	assert_false(is_taken(fixture, &other, &good, 1));
	assert_false(is_taken(fixture, &refused, &good, 1));
	assert_false(is_taken(fixture, &request, &good, 1));
	assert_false(is_taken(fixture, &version, &good, 1));
	/* A valid reply is accepted. */
	assert_true(is_taken_in_time(fixture, &reply, good));
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		close(bad[i]);
	close(good);
}

/*
 * A process that does not reply causes one timeout, and is not asked again by each queue pair that
 * connects.
 */
static void test_silent_process(void **state)
{
	enum { QPS = 50, PATIENCE_MS = 100 };
	struct link_fixture *fixture = *state;
	struct answer answer = { .reply = NULL };
	struct link_peer *peers[QPS];
	pthread_t thread = begin_to_lie(&answer);
	int64_t begin = now_ms(), took;

	for (unsigned int i = 0; i < QPS; i++)
		peers[i] = shm_open_own(fixture, link_slot(liar) << LINK_SLOT_SHIFT | i);
	took = now_ms() - begin;
	for (unsigned int i = 0; i < CHILD_TIMEOUT_MS && answer.requests == 0; i++)
		usleep(1000);
	end_lying(thread);
	/* A new request is allowed after a second. */
	assert_uint_in_range(answer.requests, 1, 1 + took / 1000);
	assert_true(took >= PATIENCE_MS);
	assert_null(fixture->addr->channel[link_slot(liar)]);
	for (unsigned int i = 0; i < QPS; i++) {
		assert_int_equal(link_peer_transport(peers[i]), LINK_SOCKET);
		link_peer_close(peers[i]);
	}
}

static int64_t open_to_other_version(void *arg)
{
	struct uroce_abi_shm refused = shm_message(UROCE_ABI_SHM_REFUSED, loopback4, 0);
	struct answer answer = { .reply = &refused, .bytes = sizeof(refused.header) };
	struct link_fixture *fixture = arg;
	int64_t begin = now_ms(), took;
	struct link_peer *peer;

	refused.header.version++;
	peer = open_to_liar(fixture, &answer);
	took = now_ms() - begin;
	assert_int_equal(link_peer_transport(peer), LINK_SOCKET);
	link_peer_close(peer);
	return answer.requests ? took : INT64_MAX;
}

/* A process of another version refuses without a timeout, and its version becomes known. */
static void test_refused_by_another_version(void **state)
{
	struct link_fixture *fixture = *state;
	struct uroce_abi_shm refused =
		shm_message(UROCE_ABI_SHM_REFUSED, loopback4, link_slot(liar));

	/* A process of this version that forbids shared memory */
	assert_false(is_taken(fixture, &refused, NULL, 0));
	assert_int_equal(link_shm_refused_version(fixture->link), 0);
	assert_true(takes_less(50, open_to_other_version, fixture));
	assert_int_equal(link_shm_refused_version(fixture->link), UROCE_ABI_VERSION + 1);
}

static int64_t open_with_nobody_there(void *arg)
{
	struct link_fixture *fixture = arg;
	struct link_peer *peer;
	int64_t begin = now_ms(), took;

	fixture->addr->next_request_ms[99] = 0;
	peer = shm_open_own(fixture, 99 << LINK_SLOT_SHIFT | 5);
	took = now_ms() - begin;
	assert_int_equal(link_peer_transport(peer), LINK_SOCKET);
	link_peer_close(peer);
	return took;
}

/* If no process has the slot, opening a peer does not wait. */
static void test_nobody_there(void **state)
{
	assert_true(takes_less(50, open_with_nobody_there, *state));
}

/* Sends a request of the liar.  Returns the type of the reply, or 0 if there is none. */
static uint32_t answer_to(struct link_fixture *fixture, const struct uroce_abi_shm *request)
{
	int fd = link_broker_connect(liar, link_slot(fixture->link), UROCE_BROKER_SHARED_MEMORY);
	struct uroce_abi_shm reply = { .header = { 0, 0, 0 } };
	uint32_t kind = 0;
	int region;

	assert_true(fd >= 0);
	assert_int_equal(send(fd, request, sizeof(*request), 0), sizeof(*request));
	serve(fixture->link);
	if (link_receive_with_fd(fd, &reply, sizeof(reply), MSG_DONTWAIT, &region) > 0) {
		kind = reply.header.message;
		assert_int_equal(region >= 0, kind == UROCE_ABI_SHM_REPLY);
	}
	close(fd);
	serve(fixture->link);
	if (kind != UROCE_ABI_SHM_REPLY)
		return kind;
	assert_int_equal(lseek(region, 0, SEEK_END), LINK_REGION_BYTES);
	assert_int_equal(ftruncate(region, 4096), -1);
	/* Not closed: any close() in this process, the region's owner, would drop the lock. */
	return kind;
}

/*
 * A request must contain the slot of its client, and is refused if shared memory is forbidden.  The
 * address may be one that is opened later.
 */
static void test_requests(void **state)
{
	struct link_fixture *fixture = *state;
	unsigned int slot = link_slot(liar);
	struct uroce_abi_shm request = shm_message(UROCE_ABI_SHM_REQUEST, loopback4, slot);
	struct uroce_abi_shm other = shm_message(UROCE_ABI_SHM_REQUEST, other4, slot);
	struct uroce_abi_shm false_slot = shm_message(UROCE_ABI_SHM_REQUEST, loopback4, slot + 1);
	struct uroce_abi_shm none = shm_message(UROCE_ABI_SHM_REQUEST, loopback4, UINT32_MAX);

	assert_int_equal(answer_to(fixture, &false_slot), 0);
	assert_int_equal(answer_to(fixture, &none), 0);
	link_set_shared_memory(fixture->link, false);
	assert_int_equal(answer_to(fixture, &request), UROCE_ABI_SHM_REFUSED);
	assert_null(fixture->addr->region);
	link_set_shared_memory(fixture->link, true);
	assert_int_equal(answer_to(fixture, &request), UROCE_ABI_SHM_REPLY);
	assert_int_equal(link_slot_set_next(&fixture->addr->region->slots, 0), slot);
	assert_int_equal(link_slot_set_next(&fixture->addr->region->slots, slot + 1), LINK_SLOTS);
	assert_int_equal(answer_to(fixture, &other), UROCE_ABI_SHM_REPLY);
}

/* Sends a request of another version, of this many bytes.  Returns the version in the refusal. */
static uint32_t version_refused(struct link_fixture *fixture, uint32_t version, size_t bytes)
{
	int fd = link_broker_connect(liar, link_slot(fixture->link), UROCE_BROKER_SHARED_MEMORY);
	struct {
		struct uroce_abi_header header;
		uint8_t more[200];
	} message = { .header = { UROCE_ABI_SHM_REQUEST, version, 0 } };

	assert_true(fd >= 0);
	assert_int_equal(send(fd, &message, bytes, 0), bytes);
	/* The request does not count as a doorbell. */
	assert_false(serve(fixture->link));
	assert_int_equal(recv(fd, &message, sizeof(message), MSG_DONTWAIT), sizeof(message.header));
	assert_int_equal(message.header.message, UROCE_ABI_SHM_REFUSED);
	close(fd);
	serve(fixture->link);
	return message.header.version;
}

/* Requests of older and newer versions, whatever they contain, are refused with the version. */
static void test_requests_of_other_versions(void **state)
{
	static const uint32_t versions[] = { 1, UROCE_ABI_VERSION - 1, UROCE_ABI_VERSION + 1,
					     UINT32_MAX };
	struct link_fixture *fixture = *state;

	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		size_t bytes = sizeof(struct uroce_abi_header) + 60 * i;

		assert_int_equal(version_refused(fixture, versions[i], bytes), UROCE_ABI_VERSION);
		/* If shared memory is off, the version is not the reason. */
		link_set_shared_memory(fixture->link, false);
		assert_int_equal(version_refused(fixture, versions[i], bytes), versions[i]);
		link_set_shared_memory(fixture->link, true);
	}
}

/* The number of regions is limited, however many addresses a process requests. */
static void test_too_many_regions(void **state)
{
	struct link_fixture *fixture = *state;
	struct uroce_abi_shm request =
		shm_message(UROCE_ABI_SHM_REQUEST, loopback4, link_slot(liar));

	for (unsigned int i = 0; i < LINK_REGIONS_MAX; i++) {
		assert_int_equal(answer_to(fixture, &request), UROCE_ABI_SHM_REPLY);
		request.address[15]++;
	}
	assert_int_equal(answer_to(fixture, &request), UROCE_ABI_SHM_REFUSED);
}

/* Closed connections leave no descriptors open. */
static void test_nothing_is_left(void **state)
{
	struct link_fixture *fixture = *state;
	struct uroce_abi_shm refused = shm_message(UROCE_ABI_SHM_REQUEST, loopback4, UINT32_MAX);
	unsigned int before;

	answer_to(fixture, &refused);
	before = count_descriptors();
	for (unsigned int i = 0; i < 100; i++)
		assert_int_equal(answer_to(fixture, &refused), 0);
	/* The end of a connection is seen only after the broker has closed its copy, too. */
	for (unsigned int i = 0; i < CHILD_TIMEOUT_MS && count_descriptors() > before; i++) {
		usleep(1000);
		serve(fixture->link);
	}
	assert_uint_in_range(count_descriptors(), before - 1, before);
}

#define WITH_LIAR(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_LIAR(test_bad_replies),
		WITH_LIAR(test_silent_process),
		WITH_LIAR(test_nobody_there),
		WITH_LIAR(test_requests),
		WITH_LIAR(test_too_many_regions),
		WITH_LIAR(test_nothing_is_left),
		WITH_LIAR(test_refused_by_another_version),
		WITH_LIAR(test_requests_of_other_versions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
