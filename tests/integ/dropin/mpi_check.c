/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * usage: mpi_check [LARGEST]
 *
 * An MPI program that checks every byte that it gets: sendrecv, allreduce, alltoall, and one-sided
 * put, get and accumulate.  LARGEST is the maximum size of messages in bytes.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, ranks;

static void check(int good, const char *what, int bytes)
{
	if (good)
		return;
	fprintf(stderr, "rank %d: %s of %d bytes is wrong\n", rank, what, bytes);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static uint8_t byte_of(int from, int to, int i)
{
	return (uint8_t)(from * 31 + to * 7 + i * 13 + i / 256);
}

static void fill(uint8_t *bytes, int from, int to, int count)
{
	for (int i = 0; i < count; i++)
		bytes[i] = byte_of(from, to, i);
}

static int is_right(const uint8_t *bytes, int from, int to, int count)
{
	int i = 0;

	while (i < count && bytes[i] == byte_of(from, to, i))
		i++;
	return i == count;
}

static void send_receive(int count)
{
	uint8_t *out = malloc(count), *in = malloc(count);
	int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;

	fill(out, rank, next, count);
	MPI_Sendrecv(out, count, MPI_BYTE, next, 1, in, count, MPI_BYTE, before, 1, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	check(is_right(in, before, rank, count), "sendrecv", count);
	free(out);
	free(in);
}

static void all_reduce(int count)
{
	int64_t *out = malloc(count * sizeof(*out)), *in = malloc(count * sizeof(*in));

	for (int i = 0; i < count; i++)
		out[i] = (int64_t)(rank + 1) * (i + 1);
	MPI_Allreduce(out, in, count, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < count; i++)
		check(in[i] == (int64_t)ranks * (ranks + 1) / 2 * (i + 1), "allreduce", count * 8);
	free(out);
	free(in);
}

static void all_to_all(int count)
{
	uint8_t *out = malloc((size_t)count * ranks), *in = malloc((size_t)count * ranks);

	for (int i = 0; i < ranks; i++)
		fill(out + (size_t)i * count, rank, i, count);
	MPI_Alltoall(out, count, MPI_BYTE, in, count, MPI_BYTE, MPI_COMM_WORLD);
	for (int i = 0; i < ranks; i++)
		check(is_right(in + (size_t)i * count, i, rank, count), "alltoall", count);
	free(out);
	free(in);
}

static void one_sided(int count)
{
	int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
	uint8_t *memory, *local = malloc(count);
	int64_t one = 1, *sum;
	MPI_Win window, counter;

	MPI_Win_allocate(count, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
	MPI_Win_allocate(sizeof(*sum), sizeof(*sum), MPI_INFO_NULL, MPI_COMM_WORLD, &sum, &counter);
	*sum = 0;
	fill(local, rank, next, count);
	MPI_Win_fence(0, window);
	MPI_Put(local, count, MPI_BYTE, next, 0, count, MPI_BYTE, window);
	MPI_Win_fence(0, window);
	check(is_right(memory, before, rank, count), "put", count);
	MPI_Get(local, count, MPI_BYTE, next, 0, count, MPI_BYTE, window);
	MPI_Win_fence(0, window);
	check(is_right(local, rank, next, count), "get", count);
	MPI_Win_fence(0, counter);
	MPI_Accumulate(&one, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_SUM, counter);
	MPI_Win_fence(0, counter);
	check(rank != 0 || *sum == ranks, "accumulate", 8);
	MPI_Win_free(&window);
	MPI_Win_free(&counter);
	free(local);
}

int main(int argc, char **argv)
{
	static const int sizes[] = { 8, 1000, 40000, 1 << 20 };

	MPI_Init(&argc, &argv);
	int largest = argc > 1 ? atoi(argv[1]) : 1 << 20;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && sizes[i] <= largest; i++) {
		send_receive(sizes[i]);
		all_reduce(sizes[i] / 8);
		all_to_all(sizes[i]);
		one_sided(sizes[i]);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d ranks: all data is right\n", ranks);
	MPI_Finalize();
	return 0;
}
