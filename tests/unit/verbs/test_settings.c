/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Settings of a set-user-ID program, whose caller must not choose the files that it writes. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "link_child.h"
#include "verbs/settings.h"

enum { NOT_SECURE = 77 };

static struct capture_config config;
static char error[PROGRESS_ERROR_TEXT];

static void test_capture(void **state)
{
	(void)state;
	setenv("UROCE_CAPTURE", "/tmp/uroce.pcapng", 1);
	assert_int_equal(uroce_settings_read_capture(&config, error), 0);
	assert_string_equal(config.name, "/tmp/uroce.pcapng");
}

/* Copies this program to path, as a set-user-ID program of another user. */
static void copy_program(char *path)
{
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), to = mkstemp(path);
	struct stat status;

	assert_true(from >= 0 && to >= 0);
	assert_int_equal(fstat(from, &status), 0);
	while (sendfile(to, from, NULL, (size_t)status.st_size) > 0)
		;
	assert_int_equal(fchown(to, CHILD_NOBODY, CHILD_NOBODY), 0);
	assert_int_equal(fchmod(to, 04755), 0);
	close(from);
	close(to);
}

/* A set-user-ID program does not write the file that its caller names. */
static void test_set_user_id(void **state)
{
	char path[] = "/tmp/uroce-settings-XXXXXX";
	int status;
	pid_t child;

	(void)state;
	need_root();
	copy_program(path);
	setenv("UROCE_CAPTURE", "/tmp/uroce.pcapng", 1);
	child = fork();
	if (child == 0) {
		execl(path, path, "ignores", NULL);
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	unlink(path);
	/* /tmp is mounted nosuid. */
	if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_SECURE)
		skip();
	assert_int_equal(status, 0);
}

int main(int count, char **words)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_capture),
		cmocka_unit_test(test_set_user_id),
	};

	if (count == 1 || strcmp(words[1], "ignores") != 0)
		return cmocka_run_group_tests(tests, NULL, NULL);
	/* Not return: LeakSanitizer cannot run in such a process. */
	if (!getauxval(AT_SECURE))
		_exit(NOT_SECURE);
	_exit(uroce_settings_read_capture(&config, error) || config.name[0] ? 1 : 0);
}
