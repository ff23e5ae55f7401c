/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Empty library named libibverbs-real.so.1, used only at link time (CMakeLists.txt). */
typedef int real_stub_is_empty;
