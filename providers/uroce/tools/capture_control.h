/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * uroce-stat --capture: a capture of a process that runs already.
 */
#ifndef UROCE_TOOLS_CAPTURE_CONTROL_H
#define UROCE_TOOLS_CAPTURE_CONTROL_H

/*
 * Let process pid capture into what text says (FILE[,OPTION=VALUE...]) until it ends or a signal
 * interrupts.  The exit code of the program; what is to be said goes to stderr.
 */
int capture_control(unsigned long pid, const char *text);

#endif
