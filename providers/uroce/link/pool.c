/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The sockets of port 4791 on one address (Documentation/decisions/port-sharing.md).
 *
 * The kernel numbers the members of a SO_REUSEPORT group in the order of bind(), and a close moves
 * the last member into the gap.  Every process holds the first members up to its own at least, so
 * that only the last ones ever go, and member i serves slot i for ever.
 * Members are never connected: that would take them out of the group's steering.
 * A kernel without steering (qemu-user, gVisor) has one socket, which all processes read.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "internal.h"
#include <rdma/uroce-abi.h>

#ifndef SO_ATTACH_REUSEPORT_CBPF
#define SO_ATTACH_REUSEPORT_CBPF 51
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

/* More than a receive buffer of LINK_SOCKET_BUFFER can hold. */
#define DRAIN_MAX 32768
/* A process that joins makes so many sockets at once, so that few processes have to. */
#define POOL_STEP 4
/* A datagram to one's own address is there when sending it returns; on a crowded host, soon. */
#define PROBE_PATIENCE_MS 50

/* A socket bound to the port, alone or as the next member of the group: descriptor or -errno. */
static int bind_port(const struct link_endpoint *endpoint, bool shared)
{
	union link_sockaddr name;
	socklen_t name_bytes = link_endpoint_to_sockaddr(endpoint, LINK_UDP_PORT, &name);
	int fd = link_socket(name.any.sa_family, SOCK_DGRAM);
	int error = 0;

	if (fd < 0)
		return fd;
	if (name.any.sa_family == AF_INET6)
		error = link_set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	if (!error && shared)
		error = link_set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1);
	if (!error && bind(fd, &name.any, name_bytes))
		error = -errno;
	if (!error)
		return fd;
	link_close_fd(&fd);
	return error;
}

int link_pool_probe(const struct link_endpoint *endpoint)
{
	int fd = bind_port(endpoint, false);

	if (fd >= 0) {
		link_close_fd(&fd);
		return LINK_POOL_FREE;
	}
	return fd == -EADDRINUSE ? LINK_POOL_IN_USE : fd;
}

/*
 * A group takes new members of its own user only.  The program never names an index beyond the
 * pool, so the last member gets nothing; but a closing one does (port-sharing.md, Prices).
 */
int link_pool_probe_group(const struct link_endpoint *endpoint)
{
	int fd = bind_port(endpoint, true);

	if (fd >= 0) {
		link_close_fd(&fd);
		return LINK_POOL_JOINABLE;
	}
	return fd == -EADDRINUSE ? LINK_POOL_FOREIGN : fd;
}

static bool steers_nothing;

static void read_environment(void)
{
	steers_nothing = getenv("UROCE_TEST_NO_STEERING");
}

/* 0, or -ENOPROTOOPT where the kernel knows no such programs, or another negative errno. */
static int attach(int fd, const struct sock_fprog *program)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_environment);
	if (steers_nothing)
		return -ENOPROTOOPT;
	if (!setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, program, sizeof(*program)))
		return 0;
	return errno == EOPNOTSUPP || errno == ENOSYS ? -ENOPROTOOPT : -errno;
}

/*
 * Queue pairs 0 and 1 belong to the host and not to a slot: they go to gsi_slot.  All others are
 * steered by the slot bits.  For a packet too short to have a destination the kernel takes index 0.
 */
static int steer(int fd, unsigned int gsi_slot)
{
	/* clang-format off */
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xffffff),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, LINK_GSI_QPN_MAX, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, gsi_slot),
		BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, LINK_SLOT_SHIFT),
		BPF_STMT(BPF_RET | BPF_A, 0),
	};
	/* clang-format on */
	struct sock_fprog program;

	/* Its padding goes to the kernel as well: memory checkers expect it to be written. */
	memset(&program, 0, sizeof(program));
	program.len = sizeof(code) / sizeof(code[0]);
	program.filter = code;
	return attach(fd, &program);
}

int link_pool_steer(int fd, unsigned int gsi_slot)
{
	int error = steer(fd, gsi_slot);

	/* Then whichever process reads it hands it on. */
	return error == -ENOPROTOOPT ? 0 : error;
}

/*
 * Where the kernel cannot steer, the pool is one socket under many descriptors: every process reads
 * from it, and forwards what is not its own.
 */
static bool is_one_socket(const int *fds)
{
	struct stat first, second;

	return !fstat(fds[0], &first) && !fstat(fds[1], &second) && first.st_ino == second.st_ino;
}

/* The same socket for all from first on: 0 or a negative errno; *made counts the attempts. */
static int copy_first(int *fds, unsigned int first, unsigned int count, unsigned int *made)
{
	for (*made = first; *made < count; ++*made) {
		fds[*made] = fcntl(fds[0], F_DUPFD_CLOEXEC, 0);
		if (fds[*made] < 0)
			return -errno;
	}
	return 0;
}

unsigned int link_pool_share(unsigned int slot)
{
	return (slot / POOL_STEP + 1) * POOL_STEP;
}

/* The next member of the group, ready to receive: descriptor or -errno. */
static int add_member(const struct link_endpoint *endpoint)
{
	int fd = bind_port(endpoint, true);

	if (fd < 0)
		return fd;
	/* Less than asked for, or no GRO on an old kernel: slower, not wrong. */
	link_set_option(fd, SOL_SOCKET, SO_RCVBUF, LINK_SOCKET_BUFFER);
	link_set_option(fd, IPPROTO_UDP, UDP_GRO, 1);
	if (!link_gid_is_ipv4(endpoint->gid))
		link_receive_unchecked(fd);
	return fd;
}

int link_pool_create(const struct link_endpoint *endpoint, unsigned int gsi_slot, int *fds,
		     unsigned int count)
{
	int error = 0;
	unsigned int i;

	for (i = 0; i < count && !error; i++) {
		fds[i] = add_member(endpoint);
		if (fds[i] < 0)
			error = fds[i];
		/* A program can be attached only to a socket that is in its group already. */
		else if (i == 0)
			error = steer(fds[0], gsi_slot);
	}
	if (error == -ENOPROTOOPT)
		error = copy_first(fds, 1, count, &i);
	if (error)
		link_pool_close(fds, i);
	return error;
}

/* It is steered to the slot, and is no packet: a process that gets it by mistake drops it. */
struct probe {
	uint32_t number;
	uint32_t destination;
};

/* Does fd get what is steered to the slot? */
static bool is_member(int sender, const union link_sockaddr *port, socklen_t port_bytes, int fd,
		      unsigned int slot)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	struct probe probe = {
		.destination = htonl((slot << LINK_SLOT_SHIFT) | LINK_INDEX_MASK),
	}, seen;

	int64_t until = link_now_ms() + PROBE_PATIENCE_MS, left;

	if (getrandom(&probe.number, sizeof(probe.number), 0) < 0 ||
	    sendto(sender, &probe, sizeof(probe), MSG_DONTWAIT, &port->any, port_bytes) < 0)
		return false;
	/* There may be something else for that slot. */
	while ((left = until - link_now_ms()) > 0 && poll(&wait, 1, (int)left) > 0)
		if (recv(fd, &seen, sizeof(seen), MSG_DONTWAIT) == sizeof(seen) &&
		    seen.number == probe.number && seen.destination == probe.destination)
			return true;
	return false;
}

/*
 * Only the order from first to count, seen in one go, proves it: while a process ends, its sockets
 * go one by one, and the last ones, which may be ours, move into the gaps.
 */
static bool are_members(const struct link_endpoint *endpoint, const int *fds, unsigned int first,
			unsigned int count)
{
	union link_sockaddr port, any;
	socklen_t bytes = link_endpoint_to_sockaddr(endpoint, LINK_UDP_PORT, &port);
	int sender = link_socket(port.any.sa_family, SOCK_DGRAM);
	unsigned int i = first;

	if (sender < 0)
		return false;
	link_endpoint_to_sockaddr(endpoint, 0, &any);
	if (bind(sender, &any.any, bytes) == 0)
		while (i < count && is_member(sender, &port, bytes, fds[i], i))
			i++;
	link_close_fd(&sender);
	return i == count;
}

int link_pool_grow(const struct link_endpoint *endpoint, int *fds, unsigned int first,
		   unsigned int count)
{
	unsigned int i;
	int error = 0;

	if (is_one_socket(fds)) {
		error = copy_first(fds, first, count, &i);
		if (error)
			link_pool_close(fds + first, i - first);
		return error;
	}
	for (i = first; i < count && !error; i++) {
		fds[i] = add_member(endpoint);
		error = fds[i] < 0 ? fds[i] : 0;
	}
	if (!error && !are_members(endpoint, fds, first, count))
		error = -EBUSY;
	if (error)
		link_pool_close(fds + first, i - first);
	return error;
}

bool link_pool_is_valid(const struct link_endpoint *endpoint, const int *fds, unsigned int count)
{
	union link_sockaddr expected, name;
	socklen_t expected_bytes = link_endpoint_to_sockaddr(endpoint, LINK_UDP_PORT, &expected);
	unsigned int i;

	for (i = 0; i < count; i++) {
		socklen_t bytes = sizeof(name);

		memset(&name, 0, sizeof(name));
		if (getsockname(fds[i], &name.any, &bytes) || bytes != expected_bytes ||
		    memcmp(&name, &expected, sizeof(name)) != 0)
			return false;
	}
	return true;
}

void link_pool_close(int *fds, unsigned int count)
{
	/* From the last to the first, so that no member changes its index meanwhile. */
	while (count-- > 0)
		link_close_fd(&fds[count]);
}

void link_pool_drain(const int *fds, unsigned int slot)
{
	unsigned int i;

	/* What waits there may be for others. */
	if (is_one_socket(fds))
		return;
	for (i = 0; i < DRAIN_MAX; i++)
		if (recv(fds[slot], NULL, 0, MSG_DONTWAIT | MSG_TRUNC) < 0 && errno == EAGAIN)
			return;
}

/*
 * A name that does not listen: no process can put descriptors into it that closing would release.
 */
int link_pool_lock(const struct link_endpoint *endpoint)
{
	struct sockaddr_un name;
	char hex[LINK_ADDRESS_HEX];
	socklen_t bytes;
	int error, fd = link_socket(AF_UNIX, SOCK_SEQPACKET);

	link_endpoint_hex(endpoint, hex);
	bytes = link_abstract_name(&name, UROCE_ABI_POOL_LOCK_NAME, UROCE_ABI_VERSION, hex,
				   endpoint->scope_id);
	if (fd < 0 || bind(fd, (struct sockaddr *)&name, bytes) == 0)
		return fd;
	error = -errno;
	link_close_fd(&fd);
	return error;
}
