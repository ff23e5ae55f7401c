/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Hundreds of processes on one address, each with a queue pair that is connected to another
 * process: all can write, one more process opens the device quickly, and all have about the same
 * number of descriptors.
 */
#include <dirent.h>
#include <float.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs_fixture.h"

enum {
#ifdef __SANITIZE_ADDRESS__
	CROWD = 40,
#else
	CROWD = 300,
#endif
	LONG_CROWD = 1024, /* with UROCE_INTEG_LONG=1 */
	CHILD_SECONDS = 50,
	LONG_SECONDS = 300,
	/* A quiet host takes 9 ms with 1,024 processes (Documentation/performance.md). */
	OPEN_MS_MAX = 500,
	OPEN_TRIES = 5, /* the other processes may have the processor during a try */
	WRITTEN = 4096, /* offset at which the partner writes */
};

struct member {
	uint64_t address; /* of its buffer */
	uint32_t rkey;
	uint32_t qpn;
	int descriptors;
	bool passed;
};

struct crowd {
	pthread_barrier_t step; /* of all members and the parent */
	int count;
	double open_ms; /* shortest time that come_late() took to open a connected pair */
	struct member member[LONG_CROWD];
};

static int count_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int count = -1; /* without the entry of the directory itself */

	assert_non_null(folder);
	for (const struct dirent *entry; (entry = readdir(folder));)
		count += entry->d_name[0] != '.';
	closedir(folder);
	return count;
}

static void write_to(struct verbs_fixture *fixture, struct ibv_qp *qp, const struct member *partner)
{
	struct ibv_sge sge = fixture_sge(fixture, 0, sizeof(uint64_t));
	struct ibv_send_wr wr = { .wr_id = 1,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	wr.wr.rdma.remote_addr = partner->address + WRITTEN;
	wr.wr.rdma.rkey = partner->rkey;
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	fixture_expect(fixture->cq, 1, IBV_WC_SUCCESS);
}

static uint64_t text_of(int index)
{
	return 0x0123456700000000 + (uint64_t)index;
}

/* Runs a member; each wait at the barrier is a step of the parent, too. */
static void take_part(struct crowd *crowd, int index)
{
	struct member *self = &crowd->member[index], *partner = &crowd->member[index ^ 1];
	struct ibv_qp *qp;
	struct verbs_fixture fixture;
	uint64_t text;

	fixture_open(&fixture);
	qp = fixture_qp(&fixture, IBV_QPT_RC, NULL);
	*self = (struct member){ .address = (uintptr_t)fixture.bytes,
				 .rkey = fixture.mr->rkey,
				 .qpn = qp->qp_num };
	pthread_barrier_wait(&crowd->step);
	fixture_connect(qp, partner->qpn);
	text = text_of(index);
	memcpy(fixture.bytes, &text, sizeof(text));
	pthread_barrier_wait(&crowd->step);
	write_to(&fixture, qp, partner);
	pthread_barrier_wait(&crowd->step);
	memcpy(&text, fixture.bytes + WRITTEN, sizeof(text));
	self->passed = text == text_of(index ^ 1);
	self->descriptors = count_descriptors();
	pthread_barrier_wait(&crowd->step);
	/* The parent now measures the time that one more process takes. */
	pthread_barrier_wait(&crowd->step);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	fixture_close(&fixture);
	assert_int_equal(ibv_close_device(the_context()), 0);
}

static void come_late(struct crowd *crowd, int index)
{
	struct timespec begin, end;
	struct ibv_qp *from, *to;
	struct verbs_fixture fixture;
	double ms;

	(void)index;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	fixture_open_pair(&fixture, &from, &to);
	clock_gettime(CLOCK_MONOTONIC, &end);
	ms = (double)(end.tv_sec - begin.tv_sec) * 1e3 +
	     (double)(end.tv_nsec - begin.tv_nsec) / 1e6;
	if (ms < crowd->open_ms)
		crowd->open_ms = ms;
	fixture_close_pair(&fixture, from, to);
	assert_int_equal(ibv_close_device(the_context()), 0);
}

/* A failed assertion of cmocka ends the child, too, with another exit code than 0. */
static pid_t start(void (*run)(struct crowd *crowd, int index), struct crowd *crowd, int index)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (child)
		return child;
	alarm(crowd->count > CROWD ? LONG_SECONDS : CHILD_SECONDS);
	run(crowd, index);
	exit(0);
}

static void expect_success(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static struct crowd *make_crowd(void)
{
	const char *longer = getenv("UROCE_INTEG_LONG");
	struct crowd *crowd = mmap(NULL, sizeof(*crowd), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_barrierattr_t shared;

	assert_true(crowd != MAP_FAILED);
	crowd->open_ms = DBL_MAX;
	crowd->count = longer && *longer != '0' ? LONG_CROWD : CROWD;
	pthread_barrierattr_init(&shared);
	pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	assert_int_equal(
		pthread_barrier_init(&crowd->step, &shared, (unsigned int)crowd->count + 1), 0);
	return crowd;
}

static void hundreds_of_processes_share_an_address(void **state)
{
	struct crowd *crowd = make_crowd();
	static pid_t child[LONG_CROWD];
	int fewest = INT_MAX, most = 0;

	(void)state;
	for (int i = 0; i < crowd->count; i++)
		child[i] = start(take_part, crowd, i);
	for (int step = 0; step < 4; step++)
		pthread_barrier_wait(&crowd->step);
	for (int i = 0; i < crowd->count; i++) {
		assert_true(crowd->member[i].passed);
		if (crowd->member[i].descriptors < fewest)
			fewest = crowd->member[i].descriptors;
		if (crowd->member[i].descriptors > most)
			most = crowd->member[i].descriptors;
	}
	print_message("%d processes have %d to %d descriptors\n", crowd->count, fewest, most);
	/* The order at the barriers decides which members have looked at their partner's socket. */
	assert_true(most - fewest <= 2);
	for (int i = 0; i < OPEN_TRIES && crowd->open_ms >= OPEN_MS_MAX; i++)
		expect_success(start(come_late, crowd, 0));
	print_message("one more has a connected pair after %.1f ms\n", crowd->open_ms);
	assert_true(crowd->open_ms < OPEN_MS_MAX);
	pthread_barrier_wait(&crowd->step);
	for (int i = 0; i < crowd->count; i++)
		expect_success(child[i]);
	munmap(crowd, sizeof(*crowd));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hundreds_of_processes_share_an_address),
	};

	/* If a member fails, the other processes would wait for it forever. */
	alarm(LONG_SECONDS);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
