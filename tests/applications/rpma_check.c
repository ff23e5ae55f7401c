/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * usage: rpma_check server ADDRESS PORT FILE
 *        rpma_check client ADDRESS PORT
 *
 * The client writes all of the server's file, makes it persistent by flushes, reads it back, and
 * ends with an atomic write.  The server compares the file with what the client should have
 * written.
 */
#include <fcntl.h>
#include <librpma.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	BYTES = 4 << 20,
	CHUNK = 64 << 10,
};

#define CHECK(call) check((call), #call)

static void check(int result, const char *call)
{
	if (!result)
		return;
	fprintf(stderr, "%s: %s\n", call, rpma_err_2str(result));
	exit(1);
}

static uint8_t byte_at(size_t i)
{
	return (uint8_t)(i * 31 + i / 251 + i / 65536);
}

/* Checks all bytes of the file, the last eight of which are those of the atomic write. */
static void verify(const uint8_t *bytes, const char *whose)
{
	for (size_t i = 0; i < BYTES; i++) {
		uint8_t expected = i < BYTES - 8 ? byte_at(i) : 'a';

		if (bytes[i] == expected)
			continue;
		fprintf(stderr, "%s: byte %zu is %#x, not %#x\n", whose, i, bytes[i], expected);
		exit(1);
	}
}

static struct rpma_peer *open_peer(const char *address, enum rpma_util_ibv_context_type type)
{
	struct ibv_context *context;
	struct rpma_peer *peer;

	CHECK(rpma_utils_get_ibv_context(address, type, &context));
	CHECK(rpma_peer_new(context, &peer));
	return peer;
}

static void expect_event(struct rpma_conn *connection, enum rpma_conn_event expected)
{
	enum rpma_conn_event event;

	CHECK(rpma_conn_next_event(connection, &event));
	if (event == expected)
		return;
	fprintf(stderr, "event: %s\n", rpma_utils_conn_event_2str(event));
	exit(1);
}

static void serve(const char *address, const char *port, const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	struct rpma_peer *peer = open_peer(address, RPMA_UTIL_IBV_CONTEXT_LOCAL);
	struct rpma_conn_private_data data = { 0 };
	struct rpma_conn_req *request;
	struct rpma_conn *connection;
	struct rpma_mr_local *mr;
	uint8_t descriptor[256];
	struct rpma_ep *ep;
	size_t size;
	void *file;

	if (fd < 0 || ftruncate(fd, BYTES)) {
		perror(path);
		exit(1);
	}
	file = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(rpma_mr_reg(peer, file, BYTES,
			  RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_READ_SRC |
				  RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT |
				  RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY,
			  &mr));
	CHECK(rpma_mr_get_descriptor_size(mr, &size));
	CHECK(rpma_mr_get_descriptor(mr, descriptor));
	data.ptr = descriptor;
	data.len = (uint8_t)size;
	CHECK(rpma_ep_listen(peer, address, port, &ep));
	puts("listening");
	fflush(stdout);
	CHECK(rpma_ep_next_conn_req(ep, NULL, &request));
	CHECK(rpma_conn_req_connect(&request, &data, &connection));
	expect_event(connection, RPMA_CONN_ESTABLISHED);
	expect_event(connection, RPMA_CONN_CLOSED);
	CHECK(rpma_conn_disconnect(connection));
	CHECK(rpma_conn_delete(&connection));
	CHECK(rpma_ep_shutdown(&ep));
	CHECK(rpma_mr_dereg(&mr));
	CHECK(rpma_peer_delete(&peer));
	munmap(file, BYTES);
	file = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
	verify(file, "server");
}

/* Waits for the completion of the only signaled operation. */
static void complete(struct rpma_conn *connection, uintptr_t id)
{
	struct rpma_cq *cq;
	struct ibv_wc wc;

	CHECK(rpma_conn_get_cq(connection, &cq));
	CHECK(rpma_cq_wait(cq));
	CHECK(rpma_cq_get_wc(cq, 1, &wc, NULL));
	if (wc.status == IBV_WC_SUCCESS && wc.wr_id == id)
		return;
	fprintf(stderr, "operation %zu: %s\n", (size_t)id, ibv_wc_status_str(wc.status));
	exit(1);
}

static struct rpma_mr_remote *connect_to(struct rpma_peer *peer, const char *address,
					 const char *port, struct rpma_conn **connection)
{
	struct rpma_conn_private_data data;
	struct rpma_peer_cfg *peer_config;
	struct rpma_mr_remote *remote;
	struct rpma_conn_req *request;

	CHECK(rpma_conn_req_new(peer, address, port, NULL, &request));
	CHECK(rpma_conn_req_connect(&request, NULL, connection));
	expect_event(*connection, RPMA_CONN_ESTABLISHED);
	CHECK(rpma_conn_get_private_data(*connection, &data));
	CHECK(rpma_mr_remote_from_descriptor(data.ptr, data.len, &remote));
	/* librpma refuses persistent flushes if the server does not announce this. */
	CHECK(rpma_peer_cfg_new(&peer_config));
	CHECK(rpma_peer_cfg_set_direct_write_to_pmem(peer_config, true));
	CHECK(rpma_conn_apply_remote_peer_cfg(*connection, peer_config));
	CHECK(rpma_peer_cfg_delete(&peer_config));
	return remote;
}

static void transfer(struct rpma_conn *connection, struct rpma_mr_remote *remote,
		     struct rpma_mr_local *mr, uint8_t *bytes)
{
	static const char last[8] = "aaaaaaaa";
	uintptr_t id = 1;

	for (size_t i = 0; i < BYTES; i++)
		bytes[i] = byte_at(i);
	for (size_t at = 0; at < BYTES; at += CHUNK, id++) {
		CHECK(rpma_write(connection, remote, at, mr, at, CHUNK, RPMA_F_COMPLETION_ON_ERROR,
				 NULL));
		CHECK(rpma_flush(connection, remote, at, CHUNK,
				 id % 2 ? RPMA_FLUSH_TYPE_PERSISTENT : RPMA_FLUSH_TYPE_VISIBILITY,
				 RPMA_F_COMPLETION_ALWAYS, (void *)id));
		complete(connection, id);
	}
	CHECK(rpma_atomic_write(connection, remote, BYTES - 8, last, RPMA_F_COMPLETION_ALWAYS,
				(void *)id));
	complete(connection, id++);
	memset(bytes, 0, BYTES);
	CHECK(rpma_read(connection, mr, 0, remote, 0, BYTES, RPMA_F_COMPLETION_ALWAYS, (void *)id));
	complete(connection, id);
	verify(bytes, "client");
}

static void be_client(const char *address, const char *port)
{
	struct rpma_peer *peer = open_peer(address, RPMA_UTIL_IBV_CONTEXT_REMOTE);
	struct rpma_mr_remote *remote;
	struct rpma_conn *connection;
	struct rpma_mr_local *mr;
	uint8_t *bytes =
		mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	remote = connect_to(peer, address, port, &connection);
	CHECK(rpma_mr_reg(peer, bytes, BYTES, RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_READ_DST,
			  &mr));
	transfer(connection, remote, mr, bytes);
	CHECK(rpma_conn_disconnect(connection));
	expect_event(connection, RPMA_CONN_CLOSED);
	CHECK(rpma_conn_delete(&connection));
	CHECK(rpma_mr_remote_delete(&remote));
	CHECK(rpma_mr_dereg(&mr));
	CHECK(rpma_peer_delete(&peer));
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "server")) {
		serve(argv[2], argv[3], argv[4]);
	} else if (argc == 4 && !strcmp(argv[1], "client")) {
		be_client(argv[2], argv[3]);
	} else {
		fprintf(stderr, "usage: rpma_check server ADDRESS PORT FILE\n"
				"       rpma_check client ADDRESS PORT\n");
		return 2;
	}
	puts("all data is right");
	return 0;
}
