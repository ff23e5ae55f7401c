/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* uroce-stat --capture: captures the packets of a running process. */
#ifndef UROCE_TOOLS_CAPTURE_CONTROL_H
#define UROCE_TOOLS_CAPTURE_CONTROL_H

/*
 * Starts a capture in process pid, with settings of the form FILE[,OPTION=VALUE...], and waits
 * until it ends or a signal arrives.  Returns the exit code of the program; messages go to stderr.
 */
int capture_control(unsigned long pid, const char *text);

#endif
