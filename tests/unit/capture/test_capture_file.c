/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The path of captured packets to the file: the buffer between the threads, files that are valid at
 * any time, that are full, or that another process writes, and a forked child.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/buffer.h"
#include "capture/capture.h"
#include "capture/file.h"
#include "capture/pcapng.h"
#include "tmpdir.h"
#include "pcapng_reader.h"

static char error[CAPTURE_ERROR_TEXT];
static char complaint[512];
static atomic_uint complaints;

static void report_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(complaint, sizeof(complaint), format, args);
	va_end(args);
	atomic_fetch_add(&complaints, 1);
}

static int start(const char *text)
{
	struct capture_config config;

	assert_int_equal(capture_config_parse(&config, text, error), 0);
	config.report_error = report_error;
	atomic_store(&complaints, 0);
	return capture_start(&config, -1, error);
}

static void put(size_t length)
{
	static const struct capture_path path = { .src = { [10] = 0xff, [11] = 0xff },
						  .dst = { [10] = 0xff, [11] = 0xff } };
	static const uint8_t bytes[65507];
	const struct iovec piece = { (void *)(uintptr_t)bytes, length };
	const struct capture_packets packets = {
		.path = &path, .pieces = &piece, .count = 1, .bytes = length
	};
	struct capture *capture = capture_running();

	if (capture)
		capture_put(capture, &packets);
}

/* ---- the buffer ---- */

/* Records after an unfinished one wait for it; abandoned ones are not read. */
static void test_buffer_keeps_order(void **state)
{
	struct capture_buffer buffer;
	struct capture_record *record[3];
	uint64_t now[3] = { 0 };

	(void)state;
	assert_int_equal(capture_buffer_open(&buffer), 0);
	for (int i = 0; i < 3; i++) {
		record[i] = capture_buffer_reserve(&buffer, 100 + (size_t)i, 1, &now[i]);
		assert_non_null(record[i]);
	}
	assert_true(now[0] <= now[1] && now[1] <= now[2]);
	capture_buffer_complete(record[2], true);
	assert_null(capture_buffer_peek(&buffer));
	capture_buffer_complete(record[0], false);
	assert_null(capture_buffer_peek(&buffer));
	capture_buffer_complete(record[1], true);
	for (int i = 1; i < 3; i++) {
		assert_ptr_equal(capture_buffer_peek(&buffer), record[i]);
		assert_false(i == 1 && capture_buffer_close(&buffer));
		capture_buffer_pop(&buffer, record[i]);
	}
	assert_null(capture_buffer_peek(&buffer));
	assert_true(capture_buffer_close(&buffer));
	assert_null(capture_buffer_reserve(&buffer, 100, 1, &now[0]));
	capture_buffer_free(&buffer);
}

/* Packets of one call have the same time, but none earlier than that of an earlier record. */
static void test_buffer_given_time(void **state)
{
	struct capture_buffer buffer;
	uint64_t first = 0, again, other = 0, late;

	(void)state;
	assert_int_equal(capture_buffer_open(&buffer), 0);
	capture_buffer_complete(capture_buffer_reserve(&buffer, 100, 1, &first), true);
	again = first;
	capture_buffer_complete(capture_buffer_reserve(&buffer, 100, 1, &again), true);
	assert_int_equal(again, first);
	do {
		other = 0;
		capture_buffer_complete(capture_buffer_reserve(&buffer, 100, 1, &other), true);
	} while (other == first);
	again = first;
	capture_buffer_complete(capture_buffer_reserve(&buffer, 100, 1, &again), true);
	assert_int_equal(again, other);
	/*
	 * The call's time is later than all in the buffer, as in one that was opened during the
	 * call.
	 */
	late = other + 1000000000;
	again = late;
	capture_buffer_complete(capture_buffer_reserve(&buffer, 100, 1, &again), true);
	assert_int_equal(again, late);
	capture_buffer_free(&buffer);
}

/* The ring wraps many times, with records of all lengths; the bytes read are those written. */
static void test_buffer_goes_round(void **state)
{
	struct capture_buffer buffer;
	uint64_t total = 0;

	(void)state;
	assert_int_equal(capture_buffer_open(&buffer), 0);
	for (uint32_t i = 0; total < 5u * CAPTURE_BUFFER_BYTES; i++) {
		size_t bytes = 1 + (i * 7919u) % CAPTURE_RECORD_MAX;
		uint64_t now = 0;
		struct capture_record *record = capture_buffer_reserve(&buffer, bytes, 1, &now),
				      *oldest;

		assert_non_null(record);
		memset(record->data, (int)(i & 0xff), bytes);
		capture_buffer_complete(record, true);
		oldest = capture_buffer_peek(&buffer);
		assert_ptr_equal(oldest, record);
		assert_true(oldest->bytes >= bytes);
		for (size_t k = 0; k < bytes; k += 97)
			assert_int_equal(oldest->data[k], i & 0xff);
		capture_buffer_pop(&buffer, oldest);
		total += oldest->bytes;
	}
	assert_int_equal(atomic_load(&buffer.lost), 0);
	assert_true(capture_buffer_close(&buffer));
	capture_buffer_free(&buffer);
}

/*
 * The first record that does not fit waits for room; then packets are lost, and counted, until half
 * of the buffer is free.
 */
static void test_buffer_is_full(void **state)
{
	struct capture_buffer buffer;
	struct capture_record *record;
	unsigned int added = 0;
	uint64_t now = 0;

	(void)state;
	assert_int_equal(capture_buffer_open(&buffer), 0);
	while ((record = capture_buffer_reserve(&buffer, 100000, 3, &now))) {
		capture_buffer_complete(record, true);
		added++;
	}
	assert_uint_in_range(added, 160, 168);
	assert_int_equal(atomic_load(&buffer.lost), 3);
	for (unsigned int i = 0; i < added / 2 - 2; i++)
		capture_buffer_pop(&buffer, capture_buffer_peek(&buffer));
	assert_null(capture_buffer_reserve(&buffer, 100, 1, &now));
	assert_int_equal(atomic_load(&buffer.lost), 4);
	for (unsigned int i = 0; i < 4; i++)
		capture_buffer_pop(&buffer, capture_buffer_peek(&buffer));
	assert_non_null(capture_buffer_reserve(&buffer, 100, 1, &now));
	capture_buffer_free(&buffer);
}

enum {
	THREADS = 4,
	EACH = 20000,
};

static void *add_many(void *arg)
{
	struct capture_buffer *buffer = arg;

	for (uint32_t i = 0; i < EACH; i++) {
		uint64_t now = 0;
		struct capture_record *record = capture_buffer_reserve(buffer, 200, 1, &now);

		if (!record)
			return (void *)1;
		memcpy(record->data, &now, sizeof(now));
		capture_buffer_complete(record, i % 3 != 0);
	}
	return NULL;
}

/* Several threads add records: none is lost, and times never go back. */
static void test_buffer_threads(void **state)
{
	unsigned int read = 0, expected = THREADS * (EACH - (EACH + 2) / 3);
	struct capture_buffer buffer;
	pthread_t thread[THREADS];
	uint64_t before = 0, now;

	(void)state;
	assert_int_equal(capture_buffer_open(&buffer), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, add_many, &buffer), 0);
	while (read < expected) {
		struct capture_record *record = capture_buffer_peek(&buffer);

		if (!record)
			continue;
		memcpy(&now, record->data, sizeof(now));
		assert_true(now >= before);
		before = now;
		capture_buffer_pop(&buffer, record);
		read++;
	}
	for (int i = 0; i < THREADS; i++) {
		void *failed;

		pthread_join(thread[i], &failed);
		assert_null(failed);
	}
	assert_null(capture_buffer_peek(&buffer));
	assert_true(capture_buffer_close(&buffer));
	capture_buffer_free(&buffer);
}

/* ---- files ---- */

/*
 * After each addition the file is valid, with one filler, and after close it has none.  flags are
 * those of open(): only a file that can also be read can be mapped.
 */
static void add_and_read(const char *name, int flags)
{
	static uint8_t blocks[CAPTURE_FILE_APPEND_MAX + CAPTURE_FILE_TAIL];
	const struct pcapng_packet packet = { .captured = 1000, .original = 1000 };
	int fd = open(name, flags | O_CREAT | O_CLOEXEC, 0600);
	const struct pcapng_file *read;
	unsigned int packets = 0;
	struct capture_file file;
	size_t used;

	assert_true(fd >= 0);
	assert_int_equal(capture_file_adopt(&file, fd, error), 0);
	used = pcapng_put_head(blocks, 65535, "a test", NULL);
	assert_int_equal(capture_file_append(&file, blocks, used), 0);
	for (unsigned int count = 1; count < 900; count *= 3) {
		for (used = 0; used < count * pcapng_packet_bytes(&packet);
		     used += pcapng_packet_bytes(&packet))
			pcapng_put_packet(blocks + used, &packet);
		for (int i = 0; i < 3; i++) {
			assert_int_equal(capture_file_append(&file, blocks, used), 0);
			packets += count;
			read = pcapng_read(name);
			assert_int_equal(read->packets, packets);
			assert_int_equal(read->fillers, 1);
			assert_int_equal(file.map != NULL, flags == O_RDWR);
		}
	}
	capture_file_close(&file);
	read = pcapng_read(name);
	assert_int_equal(read->packets, packets);
	assert_int_equal(read->fillers, 0);
}

static void await_size(const char *name, off_t bytes)
{
	struct stat status = { 0 };

	for (int i = 0; i < 50000 && status.st_size < bytes; i++) {
		usleep(100);
		if (stat(name, &status))
			status.st_size = 0;
	}
}

static void test_file_is_whole(void **state)
{
	(void)state;
	add_and_read(tmpdir_file("mapped.pcapng"), O_RDWR);
	add_and_read(tmpdir_file("written.pcapng"), O_WRONLY);
}

/* Returns the number of write calls of this thread, or -1 if the kernel does not count them. */
static long write_calls(void)
{
	FILE *file = fopen("/proc/thread-self/io", "re");
	char line[64];
	long calls = -1;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "syscw: %ld", &calls) == 1)
			break;
	if (file)
		fclose(file);
	return calls;
}

/* The number of system calls depends on the number of additions, not on that of pages. */
static void test_few_calls(void **state)
{
	static uint8_t blocks[CAPTURE_FILE_APPEND_MAX + CAPTURE_FILE_TAIL];
	const struct pcapng_packet packet = { .captured = 60000, .original = 60000 };
	const size_t bytes = pcapng_packet_bytes(&packet), additions = 32;
	const char *name = tmpdir_file("calls.pcapng");
	struct capture_file file;
	long before;

	(void)state;
	assert_int_equal(capture_file_open(&file, name, error), 0);
	assert_int_equal(
		capture_file_append(&file, blocks, pcapng_put_head(blocks, 65535, "a test", NULL)),
		0);
	for (size_t at = 0; at + bytes <= CAPTURE_FILE_APPEND_MAX; at += bytes)
		pcapng_put_packet(blocks + at, &packet);
	before = write_calls();
	for (size_t i = 0; i < additions; i++)
		assert_int_equal(
			capture_file_append(&file, blocks, CAPTURE_FILE_APPEND_MAX / bytes * bytes),
			0);
	if (before >= 0)
		assert_uint_in_range(write_calls() - before, additions, 4 * additions);
	capture_file_close(&file);
	assert_int_equal(pcapng_read(name)->packets, additions * (CAPTURE_FILE_APPEND_MAX / bytes));
}

/* A process that is killed while it writes as fast as it can leaves a valid file. */
static void test_killed(void **state)
{
	const char *name = tmpdir_file("killed.pcapng");

	(void)state;
	for (int i = 0; i < 10; i++) {
		int status;
		pid_t child;

		unlink(name);
		child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			if (start(name))
				_exit(1);
			for (;;)
				put(60000);
		}
		await_size(name, 8000000 + 100000 * i);
		kill(child, SIGKILL);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status));
		assert_true(pcapng_read(name)->packets > 0);
	}
}

/* Runs in the child: only changes a file, several hundred thousand times a second. */
static void change_until_killed(const char *name, int begun)
{
	static uint8_t blocks[4096 + CAPTURE_FILE_TAIL];
	const struct pcapng_packet packet = { .captured = 100, .original = 100 };
	const size_t bytes = pcapng_packet_bytes(&packet);
	struct capture_file file;

	if (capture_file_open(&file, name, error) ||
	    capture_file_append(&file, blocks, pcapng_put_head(blocks, 65535, "a test", NULL)) ||
	    write(begun, "", 1) != 1)
		_exit(1);
	pcapng_put_packet(blocks, &packet);
	while (file.end < 50000000)
		if (capture_file_append(&file, blocks, bytes))
			_exit(1);
	pause();
}

/*
 * A change is two stores, and a kill between them cannot be prevented, but it is rare: when the
 * second store had to fault in its page, one kill in twenty was there; now none of 20,000 is.
 */
static void test_killed_in_change(void **state)
{
	const char *name = tmpdir_file("changed.pcapng");
	int broken = 0;

	(void)state;
	for (useconds_t i = 0; i < 300; i++) {
		int status, pipe_fds[2];
		pid_t child;
		char byte;

		assert_int_equal(pipe(pipe_fds), 0);
		child = fork();
		assert_true(child >= 0);
		if (child == 0)
			change_until_killed(name, pipe_fds[1]);
		close(pipe_fds[1]);
		assert_int_equal(read(pipe_fds[0], &byte, 1), 1);
		close(pipe_fds[0]);
		usleep(i * 37 % 1000);
		kill(child, SIGKILL);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status));
		broken += !pcapng_is_whole(name);
	}
	assert_uint_in_range(broken, 0, 2);
}

static void await_complaint(void)
{
	for (int i = 0; i < 10000 && !atomic_load(&complaints); i++)
		usleep(1000);
	assert_int_equal(atomic_load(&complaints), 1);
}

/*
 * A full file ends the capture with one error line, and later packets are omitted without waiting.
 */
static void test_full(void **state)
{
	/* Packets are written one by one, or all together: those that fit are in the file. */
	static const unsigned int pauses_us[] = { 5000, 0 };

	const char *name = tmpdir_file("full.pcapng");
	const struct rlimit limit = { 300000, RLIM_INFINITY };
	struct rlimit before;

	(void)state;
	assert_int_equal(start("/dev/full"), 0);
	await_complaint();
	assert_non_null(strstr(complaint, "/dev/full: No space left"));
	put(1000);
	capture_stop(NULL);

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	for (int way = 0; way < 2; way++) {
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
		assert_int_equal(start(name), 0);
		for (int i = 0; i < 100 && !atomic_load(&complaints); i++) {
			put(10000);
			usleep(pauses_us[way]);
		}
		await_complaint();
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
		assert_non_null(strstr(complaint, "File too large"));
		for (int i = 0; i < 5000; i++)
			put(65000);
		capture_stop(NULL);
		assert_int_equal(atomic_load(&complaints), 1);
		assert_uint_in_range(pcapng_read(name)->packets, 28, 30);
		assert_int_equal(pcapng_read(name)->fillers, 0);
	}
}

/* A pipe gets all blocks; when its reader exits, the capture ends, not the process. */
static void test_pipe(void **state)
{
	const char *name = tmpdir_file("fifo");
	char copy[160], command[400];
	FILE *reader;

	(void)state;
	assert_int_equal(mkfifo(name, 0600), 0);
	assert_int_equal(start(name), -ENXIO);
	assert_non_null(strstr(error, "start its reader first"));
	snprintf(command, sizeof(command), "cat %s > %s.copy", name, name);
	reader = popen(command, "w");
	assert_non_null(reader);
	for (int i = 0; i < 10000 && start(name); i++)
		usleep(1000);
	assert_non_null(capture_running());
	for (int i = 0; i < 100; i++)
		put(5000);
	capture_stop(NULL);
	assert_int_equal(pclose(reader), 0);
	snprintf(copy, sizeof(copy), "%s.copy", name);
	assert_int_equal(pcapng_read(copy)->packets, 100);

	snprintf(command, sizeof(command), "head -c 100 %s", tmpdir_file("fifo"));
	reader = popen(command, "r");
	assert_non_null(reader);
	for (int i = 0; i < 10000 && start(tmpdir_file("fifo")); i++)
		usleep(1000);
	while (fgetc(reader) != EOF)
		;
	pclose(reader);
	for (int i = 0; i < 1000 && !atomic_load(&complaints); i++) {
		put(5000);
		usleep(1000);
	}
	await_complaint();
	capture_stop(NULL);
}

/*
 * The allocator of AddressSanitizer does not handle fork(): if a thread of the parent is in the
 * allocator at that moment, the child blocks forever when it allocates memory.  A starting thread
 * allocates; the writer thread has started when it has written.
 */
static void await_writer(const char *name)
{
	for (int i = 0; i < 10000 && pcapng_read(name)->packets == 0; i++)
		usleep(1000);
}

/* Two captures at a time are refused, both in one process and into one file. */
static void test_busy(void **state)
{
	const char *name = tmpdir_file("busy.pcapng");
	int status;
	pid_t child;

	(void)state;
	assert_int_equal(start(name), 0);
	assert_int_equal(start(tmpdir_file("other.pcapng")), -EBUSY);
	assert_non_null(strstr(error, "it captures already"));
	put(100);
	await_writer(tmpdir_file("busy.pcapng"));
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		capture_fork_prepare();
		capture_fork_child();
		put(100);
		if (capture_running() || start(tmpdir_file("busy.pcapng")) != -EBUSY)
			_exit(1);
		exit(strstr(error, "%p in the name") ? 0 : 2);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	put(100);
	capture_stop(NULL);
	assert_int_equal(pcapng_read(tmpdir_file("busy.pcapng"))->packets, 2);
	assert_int_equal(start("/nonexistent/x"), -ENOENT);
	assert_string_equal(error, "/nonexistent/x: No such file or directory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_buffer_keeps_order),
		cmocka_unit_test(test_buffer_given_time),
		cmocka_unit_test(test_buffer_goes_round),
		cmocka_unit_test(test_buffer_is_full),
		cmocka_unit_test(test_buffer_threads),
		cmocka_unit_test(test_file_is_whole),
		cmocka_unit_test(test_few_calls),
		cmocka_unit_test(test_killed),
		cmocka_unit_test(test_killed_in_change),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_pipe),
		cmocka_unit_test(test_busy),
	};

	return cmocka_run_group_tests(tests, tmpdir_create, tmpdir_remove);
}
