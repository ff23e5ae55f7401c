/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Cost of many queue pairs: the time to create COUNT of them and to bring each to RTS, connected to
 * itself, and their memory.  Only libibverbs' public interface is used.
 *
 * Memory is given twice: the memory that the process has requested from the kernel (data, from
 * /proc/self/statm), touched or not, and the resident memory.  Memory that a process's first queue
 * pair allocates for all (the pool for out-of-order packets is 8 MiB, untouched) is not included.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "device.h"

#define CQ_ENTRIES 256

struct memory {
	double data, resident; /* bytes */
};

static _Noreturn void die(const char *what, int error)
{
	fprintf(stderr, "%s: %s\n", what, strerror(error));
	exit(1);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static struct memory memory_now(void)
{
	double page = (double)sysconf(_SC_PAGESIZE);
	unsigned long resident, data;
	FILE *file = fopen("/proc/self/statm", "r");

	if (!file || fscanf(file, "%*u %lu %*u %*u %*u %lu", &resident, &data) != 2)
		die("/proc/self/statm", errno);
	fclose(file);
	return (struct memory){ .data = (double)data * page, .resident = (double)resident * page };
}

static struct ibv_qp *create(struct ibv_pd *pd, struct ibv_cq *cq, unsigned int entries)
{
	struct ibv_qp_init_attr init = { .send_cq = cq,
					 .recv_cq = cq,
					 .qp_type = IBV_QPT_RC,
					 .cap = { .max_send_wr = entries,
						  .max_recv_wr = entries,
						  .max_send_sge = 1,
						  .max_recv_sge = 1 } };
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	if (!qp)
		die("ibv_create_qp", errno);
	return qp;
}

static void measure(struct ibv_context *context, unsigned int count, unsigned int entries)
{
	struct ibv_qp **qps = calloc(count, sizeof(struct ibv_qp *));
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, CQ_ENTRIES, NULL, NULL, 0);
	struct memory before, after;
	double start, created, ready, gone;
	union ibv_gid gid;

	if (!qps || !pd || !cq || ibv_query_gid(context, PORT, GID_INDEX, &gid) != 0)
		die("set-up", errno);
	memset(qps, 0, count * sizeof(struct ibv_qp *));
	ibv_destroy_qp(create(pd, cq, entries));
	before = memory_now();
	start = now();
	for (unsigned int i = 0; i < count; i++)
		qps[i] = create(pd, cq, entries);
	created = now();
	for (unsigned int i = 0; i < count; i++)
		connect_to_itself(qps[i], &gid);
	ready = now();
	after = memory_now();
	for (unsigned int i = 0; i < count; i++)
		ibv_destroy_qp(qps[i]);
	gone = now();
	printf("{\"count\": %u, \"entries\": %u, \"create_s\": %.4f, \"rts_s\": %.4f, "
	       "\"destroy_s\": %.4f, \"data_per_qp\": %.0f, \"resident_per_qp\": %.0f}\n",
	       count, entries, created - start, ready - created, gone - ready,
	       (after.data - before.data) / count, (after.resident - before.resident) / count);
	ibv_destroy_cq(cq);
	ibv_dealloc_pd(pd);
	free(qps);
}

int main(int argc, char **argv)
{
	struct ibv_context *context;

	if (argc != 4) {
		fprintf(stderr,
			"usage: %s DEVICE COUNT ENTRIES\n"
			"ENTRIES: work requests in each send and each receive queue\n",
			argv[0]);
		return 2;
	}
	context = open_device(argv[1]);
	measure(context, (unsigned int)strtoul(argv[2], NULL, 0),
		(unsigned int)strtoul(argv[3], NULL, 0));
	ibv_close_device(context);
	return 0;
}
