/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "uroce_stat.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "capture/config.h"
#include "capture/file.h"
#include "link/link.h"
#include "link/scm_rights.h"

enum {
	/* Maximum time in which a process ends its capture, even if its file blocks. */
	STOP_TIMEOUT_MS = 5000,
};

static int print_message(const char *text)
{
	fprintf(stderr, "uroce-stat: %s\n", text);
	return 1;
}

struct search {
	struct link_guest broker;
	unsigned long pid;
	uint32_t slot; /* slot of the process's first worker */
};

/*
 * Stores the slot and returns true if it is that of the wanted process.  Callback of
 * link_guest_for_each().
 */
static bool match_process(void *arg, uint32_t slot)
{
	struct search *search = arg;
	json_t *snapshot;
	bool found;

	snapshot_fetch(&search->broker, slot, &snapshot);
	found = snapshot_pid(snapshot) == search->pid;
	json_decref(snapshot);
	search->slot = slot;
	return found;
}

/* Returns a socket connected to the process, or -1 after printing an error. */
static int connect_process(unsigned long pid)
{
	struct search search = { .pid = pid };
	bool found;
	int fd = -1;

	if (link_guest_open(&search.broker)) {
		print_message("no uroce process of yours has this number");
		return -1;
	}
	found = link_guest_for_each(&search.broker, match_process, &search);
	if (found)
		fd = snapshot_request(&search.broker, search.slot, UROCE_ABI_CAPTURE_REQUEST);
	link_guest_close(&search.broker);
	if (fd < 0)
		print_message(found ? "the process does not answer"
				    : "no uroce process of yours has this number");
	return fd;
}

/*
 * Receives a message of the given kind.  Returns 0, or 1 after printing an error if there is none
 * or it reports one.
 */
static int receive_message(int fd, enum uroce_abi_message kind, struct uroce_abi_capture *message)
{
	ssize_t bytes = recv(fd, message, sizeof(*message), 0);

	if (bytes >= (ssize_t)sizeof(message->header) && message->header.message == kind &&
	    message->header.version != UROCE_ABI_VERSION) {
		fprintf(stderr,
			"uroce-stat: the process has another version of uroce, with version %u of "
			"the messages for captures, and this uroce-stat has %u: use that of its "
			"release\n",
			message->header.version, UROCE_ABI_VERSION);
		return 1;
	}
	if (bytes != (ssize_t)sizeof(*message) || message->header.message != kind ||
	    message->header.version != UROCE_ABI_VERSION)
		return print_message(bytes ? "the process does not answer"
					   : "the process cannot capture, or has ended");
	message->text[sizeof(message->text) - 1] = '\0';
	return message->error ? print_message(message->text) : 0;
}

static int send_start(int fd, const char *options, int file)
{
	struct uroce_abi_capture start = {
		.header = { .message = UROCE_ABI_CAPTURE_START, .version = UROCE_ABI_VERSION },
	};
	int error;

	if (strlen(options) >= sizeof(start.text))
		return print_message("the options are too long");
	strcpy(start.text, options);
	error = link_send_with_fds(fd, &start, sizeof(start), &file, 1);
	return error ? print_message(strerror(-error)) : 0;
}

/* Waits for a signal or the end of the capture, and prints the result. */
static int wait_for_end(int fd, int signals)
{
	struct pollfd wait[2] = { { .fd = fd, .events = POLLIN },
				  { .fd = signals, .events = POLLIN } };
	struct uroce_abi_capture last;

	while (poll(wait, 2, -1) < 0 && errno == EINTR)
		;
	shutdown(fd, SHUT_WR);
	if (poll(wait, 1, STOP_TIMEOUT_MS) != 1)
		return print_message("the process does not end its capture");
	if (recv(fd, &last, sizeof(last), 0) != (ssize_t)sizeof(last) ||
	    last.header.message != UROCE_ABI_CAPTURE_REPLY) {
		print_message("the process has ended");
		return 0;
	}
	fprintf(stderr, "uroce-stat: %llu packets captured, %llu missing\n",
		(unsigned long long)last.packets, (unsigned long long)last.lost);
	return 0;
}

static int run_capture(int fd, const char *options, int file, int signals)
{
	int result;
	struct uroce_abi_capture message;

	result = receive_message(fd, UROCE_ABI_CAPTURE_READY, &message);
	if (!result)
		result = send_start(fd, options, file);
	if (!result)
		result = receive_message(fd, UROCE_ABI_CAPTURE_REPLY, &message);
	if (!result) {
		print_message("the capture has begun; Ctrl-C ends it");
		result = wait_for_end(fd, signals);
	}
	close(fd);
	return result;
}

int capture_control(unsigned long pid, const char *text)
{
	char name[CAPTURE_NAME_BYTES], error[CAPTURE_ERROR_TEXT];
	struct capture_config config;
	struct capture_file file;
	sigset_t end;
	int signals, result, fd;

	if (capture_config_parse(&config, text, error)) {
		print_message(error);
		return 2;
	}
	fd = connect_process(pid);
	if (fd < 0)
		return 1;
	if (!capture_config_name(&config, (int)pid, 0, name))
		return print_message("the file's name is too long");
	/* Blocked before the capture starts, so that each of these signals ends it properly. */
	sigemptyset(&end);
	sigaddset(&end, SIGINT);
	sigaddset(&end, SIGTERM);
	sigaddset(&end, SIGHUP);
	sigprocmask(SIG_BLOCK, &end, NULL);
	signals = signalfd(-1, &end, SFD_CLOEXEC);
	if (signals < 0)
		return print_message(strerror(errno));
	if (capture_file_open(&file, name, error))
		return print_message(error);
	result = run_capture(fd, text + strcspn(text, ","), file.fd, signals);
	close(file.fd);
	close(signals);
	return result;
}
