/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * usage: iser_check ADDRESS:PORT TARGET INITIATOR
 *
 * Writes 4 MB to logical unit 1 of an iSER target in requests of 512 bytes to 128 KB, and reads
 * them back in requests of other sizes.
 */
#include <iscsi/iscsi.h>
#include <iscsi/scsi-lowlevel.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	BLOCK = 512,
	BLOCKS = (4 << 20) / BLOCK,
	LARGEST = 256, /* blocks of a request */
	LUN = 1,
};

static struct iscsi_context *iscsi;

static void fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, iscsi_get_error(iscsi));
	exit(1);
}

static void check(struct scsi_task *task, const char *what)
{
	if (!task || task->status != SCSI_STATUS_GOOD)
		fail(what);
}

static uint8_t byte_at(uint32_t block, int i)
{
	return (uint8_t)(block * 31 + block / 256 + (uint32_t)i * 7);
}

static void write_blocks(uint32_t first, int count)
{
	uint8_t bytes[LARGEST * BLOCK];
	struct scsi_task *task;

	for (int i = 0; i < count * BLOCK; i++)
		bytes[i] = byte_at(first + (uint32_t)(i / BLOCK), i % BLOCK);
	task = iscsi_write10_sync(iscsi, LUN, first, bytes, (uint32_t)(count * BLOCK), BLOCK, 0, 0,
				  0, 0, 0);
	check(task, "WRITE");
	scsi_free_scsi_task(task);
}

static void read_blocks(uint32_t first, int count)
{
	struct scsi_task *task = iscsi_read10_sync(iscsi, LUN, first, (uint32_t)(count * BLOCK),
						   BLOCK, 0, 0, 0, 0, 0);

	check(task, "READ");
	if (task->datain.size != count * BLOCK)
		fail("READ returns another number of bytes");
	for (int i = 0; i < count * BLOCK; i++) {
		if (task->datain.data[i] == byte_at(first + (uint32_t)(i / BLOCK), i % BLOCK))
			continue;
		fprintf(stderr, "byte %d of block %u differs\n", i % BLOCK,
			first + (uint32_t)(i / BLOCK));
		exit(1);
	}
	scsi_free_scsi_task(task);
}

/* Calls access for all blocks, in requests of count, count + step ... blocks. */
static void for_all(void (*access)(uint32_t first, int count), int step)
{
	int count = 1;

	for (int first = 0; first < BLOCKS; first += count) {
		count = (count + step) % LARGEST + 1;
		if (count > BLOCKS - first)
			count = BLOCKS - first;
		access((uint32_t)first, count);
	}
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: iser_check ADDRESS:PORT TARGET INITIATOR\n");
		return 2;
	}
	iscsi = iscsi_create_context(argv[3]);
	if (!iscsi || iscsi_init_transport(iscsi, ISER_TRANSPORT))
		fail("iSER");
	if (iscsi_set_session_type(iscsi, ISCSI_SESSION_NORMAL) ||
	    iscsi_set_targetname(iscsi, argv[2]) || iscsi_full_connect_sync(iscsi, argv[1], LUN))
		fail("login");
	for_all(write_blocks, 37);
	for_all(read_blocks, 101);
	if (iscsi_logout_sync(iscsi))
		fail("logout");
	iscsi_destroy_context(iscsi);
	puts("all data is right");
	return 0;
}
